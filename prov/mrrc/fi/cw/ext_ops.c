/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The extension's calls on endpoints: fi_cwrite(3), rdma/fi_ext_mrrc.h.
 * Any thread.
 */
#include "config.h"
#include "fi/cw/cw.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/rdm.h"
#include "fi/sized.h"

/*
 * Hooking providers (FI_HOOK) hand out our table but keep our fid: so a call
 * may come with an endpoint that is not ours.
 */
static struct mrrc_ep *cw_ops_ep(struct fid_ep *ep)
{
	if (!mrrc_fid_core(&ep->fid) || ep->fid.fclass != FI_CLASS_EP)
		return NULL;
	return mrrc_cw_base(mrrc_ep_of(ep));
}

static ssize_t cw_ops_cwritemsg(struct fid_ep *ep_fid,
				const struct fi_msg_cw *msg, uint64_t flags)
{
	struct mrrc_ep *ep = cw_ops_ep(ep_fid);

	if (!ep)
		return -FI_EINVAL;
	return mrrc_ep_has_cw(ep) ? mrrc_cw_post_write(ep, msg, flags, NULL) :
				    -FI_EOPNOTSUPP;
}

/*
 * The flags of a call without flags: those of the endpoint, of which only this
 * one applies.
 */
static uint64_t cw_ops_flags(struct fid_ep *ep_fid, bool tx)
{
	struct mrrc_ep *ep;

	if (!cw_ops_ep(ep_fid))
		return 0;
	ep = mrrc_ep_of(ep_fid); /* an alias has its own */
	return (tx ? ep->tx.op_flags : ep->rx.op_flags) & FI_COMPLETION;
}

static ssize_t cw_ops_cwritev(struct fid_ep *ep, const struct iovec *iov,
			      void **desc, size_t count, fi_addr_t dest_addr,
			      uint64_t cwtag, void *context)
{
	const struct fi_msg_cw msg = {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = dest_addr,
		.cwtag = cwtag,
		.context = context,
	};

	return cw_ops_cwritemsg(ep, &msg, cw_ops_flags(ep, true));
}

static ssize_t cw_ops_cwrite(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, fi_addr_t dest_addr, uint64_t cwtag,
			     void *context)
{
	const struct iovec iov = { (void *) buf, len };

	return cw_ops_cwritev(ep, &iov, &desc, 1, dest_addr, cwtag, context);
}

static ssize_t cw_ops_cwtagmsg(struct fid_ep *ep_fid,
			       const struct fi_msg_cw *msg, uint64_t flags)
{
	struct mrrc_ep *ep = cw_ops_ep(ep_fid);

	if (!ep)
		return -FI_EINVAL;
	return mrrc_ep_has_cw(ep) ? mrrc_cw_post_tag(ep, msg, flags) :
				    -FI_EOPNOTSUPP;
}

static ssize_t cw_ops_cwtag(struct fid_ep *ep, void *buf, size_t len,
			    void *desc, fi_addr_t src_addr, uint64_t cwtag,
			    void *context)
{
	const struct iovec iov = { buf, len };
	const struct fi_msg_cw msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = src_addr,
		.cwtag = cwtag,
		.context = context,
	};

	return cw_ops_cwtagmsg(ep, &msg, cw_ops_flags(ep, false));
}

/* Bit 63 marks tags given here. Then the endpoint's number, or a bit: */
static uint64_t cw_ops_rdm_tag(struct mrrc_cw_rdm *rdm)
{
	const uint64_t number = rdm->number & 0x7fffffff;

	return 1ULL << 63 | number << 32 |
	       (uint32_t) atomic_fetch_add(&rdm->tags, 1);
}

/* bit 62 tells the two sides apart. */
static int cw_ops_tag_alloc(struct fid_ep *ep_fid, uint64_t *cwtag)
{
	struct mrrc_ep *ep = cw_ops_ep(ep_fid);
	struct mrrc_cw_ep *cw;

	if (!ep)
		return -FI_EINVAL;
	if (ep->cw_rdm) {
		*cwtag = cw_ops_rdm_tag(ep->cw_rdm);
		return 0;
	}
	cw = ep->cw;
	if (!cw)
		return -FI_EOPNOTSUPP;
	mrrc_mutex_lock(&cw->group->lock);
	*cwtag = 1ULL << 63 | (uint64_t) cw->accepts << 62 | cw->tags++;
	mrrc_mutex_unlock(&cw->group->lock);
	return 0;
}

static int cw_ops_cancel(struct fid_ep *ep_fid, void *context)
{
	struct mrrc_ep *ep = cw_ops_ep(ep_fid);

	if (!ep)
		return -FI_EINVAL;
	return mrrc_ep_has_cw(ep) ? mrrc_cw_cancel(ep, context) :
				    -FI_EOPNOTSUPP;
}

static int cw_ops_stats(struct fid_ep *ep_fid, struct fi_mrrc_cw_stats *out)
{
	struct mrrc_ep *ep = cw_ops_ep(ep_fid);
	struct fi_mrrc_cw_stats full = { 0 };

	if (!ep)
		return -FI_EINVAL;
	if (!mrrc_ep_has_cw(ep))
		return -FI_EOPNOTSUPP;
	if (ep->cw_rdm) {
		mrrc_cw_rdm_stats(ep, &full);
	} else {
		mrrc_mutex_lock(&ep->cw->group->lock);
		mrrc_cw_stats_add(&full, ep->cw);
		mrrc_mutex_unlock(&ep->cw->group->lock);
	}
	return mrrc_sized_out(out, &full, sizeof(full));
}

static bool cw_ops_automatic(struct fid *fid)
{
	const struct mrrc_ep *ep = container_of(fid, struct mrrc_ep, ep.fid);

	return mrrc_ep_has_cw(ep) && ep->domain->cw->automatic;
}

static int cw_ops_feature(struct fid *fid, const char *name)
{
	static const char *const has[] = { "msg", "rdm", "cancel", "keep" };
	size_t i;

	if (!mrrc_fid_core(fid) || !name)
		return -FI_EINVAL;
	if (!strcmp(name, "auto_progress"))
		return fid->fclass == FI_CLASS_EP && cw_ops_automatic(fid);
	for (i = 0; i < count_of(has); i++) {
		if (!strcmp(name, has[i]))
			return 1;
	}
	return 0;
}

static int cw_ops_enable(struct fid *fid, uint64_t flags)
{
	return mrrc_fid_core(fid) ? mrrc_cw_enable(fid, flags) : -FI_EINVAL;
}

struct fi_mrrc_ops_cw mrrc_cw_ext_ops = {
	.size = sizeof(struct fi_mrrc_ops_cw),
	.feature = cw_ops_feature,
	.enable = cw_ops_enable,
	.cwrite = cw_ops_cwrite,
	.cwritev = cw_ops_cwritev,
	.cwritemsg = cw_ops_cwritemsg,
	.cwtag = cw_ops_cwtag,
	.cwtagmsg = cw_ops_cwtagmsg,
	.tag_alloc = cw_ops_tag_alloc,
	.cancel = cw_ops_cancel,
	.stats = cw_ops_stats,
};

static int cw_ops_open(struct fid *fid, const char *name, uint64_t flags,
		       void **ops, void *context)
{
	if (!name || strcmp(name, FI_MRRC_CW_OPS))
		return mrrc_fid_ops_open(fid, name, flags, ops, context);
	if (fid->fclass != FI_CLASS_EP && fid->fclass != FI_CLASS_PEP)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = &mrrc_cw_ext_ops;
	return 0;
}

void mrrc_cw_calls_init(void)
{
	mrrc_cw_over = &mrrc_cw_admission;
	mrrc_ep_fid_ops.ops_open = cw_ops_open;
	mrrc_pep_fid_ops.ops_open = cw_ops_open;
	mrrc_cw_ep_init();
	mrrc_cw_av_init();
}
