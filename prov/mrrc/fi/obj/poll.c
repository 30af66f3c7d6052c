/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll sets: the core's, with two corrections. The provider's CQs with pending
 * completions, which the core no longer has, are added; CQs for which the core
 * has only completions that the application does not see are left out. The core
 * reports an object by its context, which is our fid.
 *
 * Threading: any thread, as far as the core allows; poll->lock guards the list
 * of CQs and is held for a walk only.
 */
#include "config.h"
#include "fi/data/pending.h"

#include "fi/fid.h"
#include "fi/obj/obj.h"

/* not fi_poll*(): libfabric 2.x calls poll sets deprecated */

struct mrrc_poll_cq {
	struct mrrc_poll_cq *next;
	struct mrrc_cq *cq;
};

/* Append CQs with pending completions that are not among the cnt fids found. */
static int poll_add_pending(struct mrrc_poll *poll, void **found, int cnt,
			    int max)
{
	struct mrrc_poll_cq *entry;
	int i;

	mrrc_mutex_lock(&poll->lock);
	for (entry = poll->cqs; entry && cnt < max; entry = entry->next) {
		if (!atomic_load(&entry->cq->pending_cnt))
			continue;
		for (i = 0; i < cnt; i++)
			if (found[i] == &entry->cq->cq.fid)
				break;
		if (i == cnt)
			found[cnt++] = &entry->cq->cq.fid;
	}
	mrrc_mutex_unlock(&poll->lock);
	return cnt;
}

/* Drop CQs that have nothing for the application. */
static int poll_drop_unready(void **found, int cnt)
{
	struct fid *fid;
	int i, kept = 0;

	for (i = 0; i < cnt; i++) {
		fid = found[i];
		if (fid->fclass != FI_CLASS_CQ ||
		    mrrc_cq_ready(container_of(fid, struct mrrc_cq, cq.fid)))
			found[kept++] = fid;
	}
	return kept;
}

static int poll_poll(struct fid_poll *poll_fid, void **context, int count)
{
	struct mrrc_poll *poll = container_of(poll_fid, struct mrrc_poll, poll);
	const struct mrrc_domain_over *over;
	int i, cnt, ret;

	mrrc_domain_drain(poll->domain);
	over = atomic_load(&poll->domain->over);
	if (over)
		over->progress(poll->domain);
	ret = poll->core->ops->poll(poll->core, context, count);
	cnt = ret > 0 ? poll_drop_unready(context, ret) : 0;
	cnt = poll_add_pending(poll, context, cnt, count);
	for (i = 0; i < cnt; i++)
		context[i] = ((struct fid *) context[i])->context;
	return cnt || ret > 0 ? cnt : ret;
}

/* Finds @fid, lock held. A CQ that is added twice counts once, as in cores. */
static struct mrrc_poll_cq **poll_find(struct mrrc_poll *poll,
				       const struct fid *fid)
{
	struct mrrc_poll_cq **link;

	for (link = &poll->cqs; *link; link = &(*link)->next)
		if (&(*link)->cq->cq.fid == fid)
			break;
	return link;
}

static int poll_poll_add(struct fid_poll *poll_fid, struct fid *event_fid,
			 uint64_t flags)
{
	struct mrrc_poll *poll = container_of(poll_fid, struct mrrc_poll, poll);
	struct fid *core = mrrc_fid_core(event_fid);
	struct mrrc_poll_cq *entry = NULL, **link;
	int ret;

	if (!core)
		return -FI_EINVAL;
	if (event_fid->fclass == FI_CLASS_CQ) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -FI_ENOMEM;
		entry->cq = container_of(event_fid, struct mrrc_cq, cq.fid);
	}

	ret = poll->core->ops->poll_add(poll->core, core, flags);
	if (ret || !entry) {
		free(entry);
		return ret;
	}
	mrrc_mutex_lock(&poll->lock);
	link = poll_find(poll, event_fid);
	if (!*link) {
		*link = entry;
		entry = NULL;
	}
	mrrc_mutex_unlock(&poll->lock);
	free(entry);
	return 0;
}

static int poll_poll_del(struct fid_poll *poll_fid, struct fid *event_fid,
			 uint64_t flags)
{
	struct mrrc_poll *poll = container_of(poll_fid, struct mrrc_poll, poll);
	struct fid *core = mrrc_fid_core(event_fid);
	struct mrrc_poll_cq **link, *entry;
	int ret;

	if (!core)
		return -FI_EINVAL;
	ret = poll->core->ops->poll_del(poll->core, core, flags);
	if (ret)
		return ret;

	mrrc_mutex_lock(&poll->lock);
	link = poll_find(poll, event_fid);
	entry = *link;
	if (entry)
		*link = entry->next;
	mrrc_mutex_unlock(&poll->lock);
	free(entry);
	return 0;
}

static int poll_close(struct fid *fid)
{
	struct mrrc_poll *poll = container_of(fid, struct mrrc_poll, poll.fid);
	struct mrrc_poll_cq *entry;
	int ret;

	ret = fi_close(&poll->core->fid);
	if (ret)
		return ret;
	while ((entry = poll->cqs)) {
		poll->cqs = entry->next;
		free(entry);
	}
	mrrc_mutex_fini(&poll->lock);
	mrrc_ref_put(&poll->domain->ref);
	free(poll);
	return 0;
}

static struct fi_ops mrrc_poll_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = mrrc_fid_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static struct fi_ops_poll mrrc_poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_poll_add,
	.poll_del = poll_poll_del,
};

int mrrc_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		   struct fid_poll **poll_fid)
{
	struct mrrc_domain *dom = mrrc_domain_of(domain);
	struct mrrc_poll *poll;
	int ret;

	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	poll->domain = dom;
	poll->poll.fid.fclass = FI_CLASS_POLL;
	poll->poll.fid.ops = &mrrc_poll_fid_ops;
	poll->poll.ops = &mrrc_poll_ops;
	mrrc_mutex_init(&poll->lock, MRRC_RANK_POLL);
	ret = dom->core->ops->poll_open(dom->core, attr, &poll->core);
	if (ret)
		goto err_lock;
	mrrc_ref_get(&dom->ref);
	*poll_fid = &poll->poll;
	return 0;

err_lock:
	mrrc_mutex_fini(&poll->lock);
	free(poll);
	return ret;
}
