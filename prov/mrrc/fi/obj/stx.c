/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared transmit contexts: the core's. Data calls are made on endpoints, not
 * on the context, so a shared transmit context resolves no descriptors.
 *
 * Threading: the core's.
 */
#include "config.h"
#include "fi/mrrc_fi.h"

#include "fi/fid.h"
#include "fi/obj/obj.h"

static ssize_t stx_cancel(struct fid *fid, void *context)
{
	struct fid_stx *core =
		container_of(fid, struct mrrc_stx, stx.fid)->core;

	if (!FI_CHECK_OP(core->ops, struct fi_ops_ep, cancel))
		return -FI_ENOSYS;
	return core->ops->cancel(&core->fid, context);
}

static int stx_getopt(struct fid *fid, int level, int optname, void *optval,
		      size_t *optlen)
{
	struct fid_stx *core =
		container_of(fid, struct mrrc_stx, stx.fid)->core;

	if (!FI_CHECK_OP(core->ops, struct fi_ops_ep, getopt))
		return -FI_ENOSYS;
	return core->ops->getopt(&core->fid, level, optname, optval, optlen);
}

static int stx_setopt(struct fid *fid, int level, int optname,
		      const void *optval, size_t optlen)
{
	struct fid_stx *core =
		container_of(fid, struct mrrc_stx, stx.fid)->core;

	if (!FI_CHECK_OP(core->ops, struct fi_ops_ep, setopt))
		return -FI_ENOSYS;
	return core->ops->setopt(&core->fid, level, optname, optval, optlen);
}

static int stx_close(struct fid *fid)
{
	struct mrrc_stx *stx = container_of(fid, struct mrrc_stx, stx.fid);
	int ret;

	ret = fi_close(&stx->core->fid);
	if (ret)
		return ret;
	mrrc_ref_put(&stx->domain->ref);
	free(stx);
	return 0;
}

static struct fi_ops mrrc_stx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
	.bind = mrrc_fid_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

/* the calls behind these are not for shared contexts */
static struct fi_ops_ep mrrc_stx_ep_ops = {
	.size = offsetof(struct fi_ops_ep, tx_ctx),
	.cancel = stx_cancel,
	.getopt = stx_getopt,
	.setopt = stx_setopt,
};

int mrrc_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr,
		  struct fid_stx **stx_fid, void *context)
{
	struct mrrc_domain *dom = mrrc_domain_of(domain);
	struct mrrc_stx *stx;
	int ret;

	stx = calloc(1, sizeof(*stx));
	if (!stx)
		return -FI_ENOMEM;
	stx->domain = dom;
	stx->stx.fid.fclass = FI_CLASS_STX_CTX;
	stx->stx.fid.context = context;
	stx->stx.fid.ops = &mrrc_stx_fid_ops;
	stx->stx.ops = &mrrc_stx_ep_ops;

	ret = fi_stx_context(dom->core, attr, &stx->core, &stx->stx.fid);
	if (ret) {
		free(stx);
		return ret;
	}
	mrrc_ref_get(&dom->ref);
	*stx_fid = &stx->stx;
	return 0;
}
