/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters: forwarded to the core's. Where an application binds a counter and
 * no CQ, the provider binds an internal CQ, and reads that CQ whenever the
 * application looks at the counter.
 *
 * Threading: the core's; mrrc_domain_drain() is for any thread.
 */
#include "config.h"
#include "fi/attr.h"
#include "fi/data/pending.h"
#include "fi/fid.h"
#include "fi/mrrc_fi.h"
#include "fi/obj/obj.h"

static uint64_t cntr_read(struct fid_cntr *cntr_fid)
{
	struct mrrc_cntr *cntr = container_of(cntr_fid, struct mrrc_cntr, cntr);

	mrrc_domain_drain(cntr->domain);
	return fi_cntr_read(cntr->core);
}

static uint64_t cntr_readerr(struct fid_cntr *cntr_fid)
{
	struct mrrc_cntr *cntr = container_of(cntr_fid, struct mrrc_cntr, cntr);

	mrrc_domain_drain(cntr->domain);
	return fi_cntr_readerr(cntr->core);
}

static int cntr_add(struct fid_cntr *cntr_fid, uint64_t value)
{
	struct mrrc_cntr *cntr = container_of(cntr_fid, struct mrrc_cntr, cntr);

	return fi_cntr_add(cntr->core, value);
}

static int cntr_set(struct fid_cntr *cntr_fid, uint64_t value)
{
	struct mrrc_cntr *cntr = container_of(cntr_fid, struct mrrc_cntr, cntr);

	return fi_cntr_set(cntr->core, value);
}

static int cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold, int timeout)
{
	struct mrrc_cntr *cntr = container_of(cntr_fid, struct mrrc_cntr, cntr);

	mrrc_domain_drain(cntr->domain);
	return fi_cntr_wait(cntr->core, threshold, timeout);
}

static int cntr_adderr(struct fid_cntr *cntr_fid, uint64_t value)
{
	struct mrrc_cntr *cntr = container_of(cntr_fid, struct mrrc_cntr, cntr);

	return fi_cntr_adderr(cntr->core, value);
}

static int cntr_seterr(struct fid_cntr *cntr_fid, uint64_t value)
{
	struct mrrc_cntr *cntr = container_of(cntr_fid, struct mrrc_cntr, cntr);

	return fi_cntr_seterr(cntr->core, value);
}

static int cntr_close(struct fid *fid)
{
	struct mrrc_cntr *cntr = container_of(fid, struct mrrc_cntr, cntr.fid);
	int ret;

	ret = fi_close(&cntr->core->fid);
	if (ret)
		return ret;
	mrrc_ref_put(&cntr->domain->ref);
	free(cntr);
	return 0;
}

static struct fi_ops mrrc_cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = mrrc_fid_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static struct fi_ops_cntr mrrc_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
#ifdef MRRC_XPU_CALLS
	.export_xpu = mrrc_cntr_export_xpu,
#endif
};

int mrrc_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		   struct fid_cntr **cntr_fid, void *context)
{
	struct mrrc_domain *dom = mrrc_domain_of(domain);
	struct mrrc_cntr_attrs copy;
	struct mrrc_cntr *cntr;
	struct fid *wait;
	int ret;

	if (attr) {
		/* refused as in mrrc_av_open() */
		if (attr->flags & FI_PEER)
			return -FI_ENOSYS;
		/* the error of cores without such counters; see xpu.c */
		if (attr->flags & FI_XPU)
			return -FI_EINVAL;
		if (attr->wait_obj == FI_WAIT_SET) {
			wait = attr->wait_set ?
				       mrrc_fid_core(&attr->wait_set->fid) :
				       NULL;
			if (!wait)
				return -FI_EINVAL;
			attr = mrrc_cntr_attr_copy(&copy, attr);
			attr->wait_set =
				container_of(wait, struct fid_wait, fid);
		}
	}

	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->domain = dom;
	cntr->cntr.fid.fclass = FI_CLASS_CNTR;
	cntr->cntr.fid.context = context;
	cntr->cntr.fid.ops = &mrrc_cntr_fid_ops;
	cntr->cntr.ops = &mrrc_cntr_ops;

	ret = fi_cntr_open(dom->core, attr, &cntr->core, &cntr->cntr.fid);
	if (ret) {
		free(cntr);
		return ret;
	}
	mrrc_ref_get(&dom->ref);
	*cntr_fid = &cntr->cntr;
	return 0;
}
