/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints: the core's, opened with the core's view of the
 * application's info. Connection requests come back through eq.c.
 *
 * Threading: the core's.
 */
#include "config.h"
#include "fi/fid.h"
#include "fi/getinfo.h"
#include "fi/info.h"
#include "fi/mrrc_fi.h"
#include "fi/obj/obj.h"

static int pep_close(struct fid *fid)
{
	struct mrrc_pep *pep = container_of(fid, struct mrrc_pep, pep.fid);
	int ret;

	ret = fi_close(&pep->core->fid);
	if (ret)
		return ret;
	mrrc_fid_untrack(pep->fabric, &pep->track);
	mrrc_ref_put(&pep->fabric->ref);
	fi_freeinfo(pep->info);
	free(pep);
	return 0;
}

static int pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrrc_pep *pep = container_of(fid, struct mrrc_pep, pep.fid);
	int ret = mrrc_fid_bind(fid, bfid, flags);

	if (!ret && bfid->fclass == FI_CLASS_EQ)
		pep->eq = container_of(bfid, struct mrrc_eq, eq.fid);
	return ret;
}

static ssize_t pep_cancel(struct fid *fid, void *context)
{
	struct fid_pep *core =
		container_of(fid, struct mrrc_pep, pep.fid)->core;

	if (!FI_CHECK_OP(core->ops, struct fi_ops_ep, cancel))
		return -FI_ENOSYS;
	return core->ops->cancel(&core->fid, context);
}

static int pep_getopt(struct fid *fid, int level, int optname, void *optval,
		      size_t *optlen)
{
	struct fid_pep *core =
		container_of(fid, struct mrrc_pep, pep.fid)->core;

	if (!FI_CHECK_OP(core->ops, struct fi_ops_ep, getopt))
		return -FI_ENOSYS;
	return core->ops->getopt(&core->fid, level, optname, optval, optlen);
}

static int pep_setopt(struct fid *fid, int level, int optname,
		      const void *optval, size_t optlen)
{
	struct fid_pep *core =
		container_of(fid, struct mrrc_pep, pep.fid)->core;

	if (!FI_CHECK_OP(core->ops, struct fi_ops_ep, setopt))
		return -FI_ENOSYS;
	return core->ops->setopt(&core->fid, level, optname, optval, optlen);
}

const struct fi_mrrc_ops_cw *mrrc_pep_cw_ops;

struct fi_ops mrrc_pep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = pep_close,
	.bind = pep_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

/* the calls behind these are not for passive endpoints */
struct fi_ops_ep mrrc_pep_ep_ops = {
	.size = offsetof(struct fi_ops_ep, tx_ctx),
	.cancel = pep_cancel,
	.getopt = pep_getopt,
	.setopt = pep_setopt,
};

/*
 * The core compares each connection request with the passive endpoint's info,
 * and drops requests that do not match: that info must have the core's
 * FI_MR_LOCAL.
 */
static int pep_core_info(struct mrrc_fabric *fabric, const struct fi_info *info,
			 struct fi_info **core_info)
{
	int ret, mr_mode;
	bool local, safe;

	ret = mrrc_info_core_needs(fabric, info, &mr_mode, &local, &safe);
	if (ret)
		return ret;
	ret = mrrc_info_to_core(NULL, fabric, info, core_info);
	if (!ret && local)
		mrrc_info_add_local(*core_info);
	return ret;
}

int mrrc_pep_open(struct fid_fabric *fabric, struct fi_info *info,
		  struct fid_pep **pep_fid, void *context)
{
	struct mrrc_fabric *fab = mrrc_fabric_of(fabric);
	struct mrrc_pep *pep;
	int ret;

	if (!info)
		return -FI_EINVAL;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pep->fabric = fab;
	pep->pep.fid.fclass = FI_CLASS_PEP;
	pep->pep.fid.context = context;
	pep->pep.fid.ops = &mrrc_pep_fid_ops;
	pep->pep.ops = &mrrc_pep_ep_ops;
	pep->pep.cm = &mrrc_pep_cm_ops;
	pep->ext_cw.ops = mrrc_pep_cw_ops;

	ret = pep_core_info(fab, info, &pep->info);
	if (ret)
		goto err_free;
	ret = fi_passive_ep(fab->core, pep->info, &pep->core, &pep->pep.fid);
	if (ret)
		goto err_info;

	mrrc_fid_track(fab, &pep->track, &pep->core->fid, &pep->pep.fid);
	mrrc_ref_get(&fab->ref);
	*pep_fid = &pep->pep;
	return 0;

err_info:
	fi_freeinfo(pep->info);
err_free:
	free(pep);
	return ret;
}
