/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait sets and fi_trywait(): the core's, but a thread may not sleep while one
 * of our CQs has pending completions, which were read on the application's
 * behalf.
 *
 * Threading: any thread, as far as the core allows. data/pending.c keeps the
 * sum wait->pending_cnt, and signals the CQ, and so the wait set, too.
 */
#include "config.h"
#include "fi/data/pending.h"

#include "fi/fid.h"
#include "fi/obj/obj.h"

#define TRYWAIT_CHUNK 32 /* fids passed on at once */

static int wait_wait(struct fid_wait *wait_fid, int timeout)
{
	struct mrrc_wait *wait = container_of(wait_fid, struct mrrc_wait, wait);

	if (atomic_load(&wait->pending_cnt))
		return 0;
	return wait->core->ops->wait(wait->core, timeout);
}

static int wait_close(struct fid *fid)
{
	struct mrrc_wait *wait = container_of(fid, struct mrrc_wait, wait.fid);
	int ret;

	if (mrrc_ref_busy(&wait->ref))
		return -FI_EBUSY;
	ret = fi_close(&wait->core->fid);
	if (ret)
		return ret;
	mrrc_ref_put(&wait->fabric->ref);
	free(wait);
	return 0;
}

static struct fi_ops mrrc_wait_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = wait_close,
	.bind = mrrc_fid_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static struct fi_ops_wait mrrc_wait_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = wait_wait,
};

int mrrc_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		   struct fid_wait **wait_fid)
{
	struct mrrc_fabric *fab = mrrc_fabric_of(fabric);
	struct mrrc_wait *wait;
	int ret;

	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -FI_ENOMEM;
	wait->fabric = fab;
	wait->wait.fid.fclass = FI_CLASS_WAIT;
	wait->wait.fid.ops = &mrrc_wait_fid_ops;
	wait->wait.ops = &mrrc_wait_ops;

	/* not fi_wait_open(): libfabric 2.x calls wait sets deprecated */
	ret = fab->core->ops->wait_open(fab->core, attr, &wait->core);
	if (ret) {
		free(wait);
		return ret;
	}
	mrrc_ref_get(&fab->ref);
	*wait_fid = &wait->wait;
	return 0;
}

/* Has the object completions that the core no longer has? */
static bool fid_has_pending(const struct fid *fid)
{
	const struct mrrc_wait *wait;
	const struct mrrc_cq *cq;

	switch (fid->fclass) {
	case FI_CLASS_CQ:
		cq = container_of(fid, const struct mrrc_cq, cq.fid);
		return atomic_load(&cq->pending_cnt) != 0;
	case FI_CLASS_WAIT:
		wait = container_of(fid, const struct mrrc_wait, wait.fid);
		return atomic_load(&wait->pending_cnt) != 0;
	default:
		return false;
	}
}

/* Do the calls that replaced a CQ's own refuse the wait? */
static bool fid_over_refuses(struct fid *fid)
{
	const struct mrrc_cq_over *over;
	struct mrrc_cq *cq;

	if (fid->fclass != FI_CLASS_CQ)
		return false;
	cq = container_of(fid, struct mrrc_cq, cq.fid);
	over = atomic_load(&cq->over);
	return over && over->trywait(cq);
}

static int trywait_core(struct fid_fabric *core, struct fid **fids, int count)
{
	struct fid *core_fids[TRYWAIT_CHUNK];
	int i, n, ret;

	while (count > 0) {
		n = count < TRYWAIT_CHUNK ? count : TRYWAIT_CHUNK;
		for (i = 0; i < n; i++) {
			core_fids[i] = mrrc_fid_core(fids[i]);
			if (!core_fids[i])
				return -FI_EINVAL;
			if (fid_over_refuses(fids[i]) ||
			    fid_has_pending(fids[i]))
				return -FI_EAGAIN;
		}
		ret = fi_trywait(core, core_fids, n);
		if (ret)
			return ret;
		fids += n;
		count -= n;
	}
	return 0;
}

int mrrc_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i, ret;

	ret = trywait_core(mrrc_fabric_of(fabric)->core, fids, count);
	if (ret)
		return ret;
	/*
	 * Another thread may have made completions pending meanwhile. The
	 * core's fi_trywait() clears the signal that such a thread sends.
	 */
	for (i = 0; i < count; i++) {
		if (fid_has_pending(fids[i]))
			return -FI_EAGAIN;
	}
	return 0;
}
