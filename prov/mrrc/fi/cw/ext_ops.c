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
#include "fi/fid.h"
#include "fi/obj/ep.h"
#include "fi/obj/obj.h"
#include "fi/sized.h"

static struct mrrc_ep *cw_ops_own(struct fi_mrrc_cw *cw)
{
	return container_of(cw, struct mrrc_ep, ext_cw);
}

/* The endpoint of cw, also if cw is an alias's */
static struct mrrc_ep *cw_ops_ep(struct fi_mrrc_cw *cw)
{
	return mrrc_cw_base(cw_ops_own(cw));
}

static ssize_t cw_ops_cwritemsg(struct fi_mrrc_cw *cw,
				const struct fi_msg_cw *msg, uint64_t flags)
{
	struct mrrc_ep *ep = cw_ops_ep(cw);

	return mrrc_ep_has_cw(ep) ? mrrc_cw_post_write(ep, msg, flags, NULL) :
				    -FI_EOPNOTSUPP;
}

static ssize_t cw_ops_cwritev(struct fi_mrrc_cw *cw, const struct iovec *iov,
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
	/*
	 * flags of the endpoint, or of its alias; completion levels are refused
	 */
	const uint64_t flags = cw_ops_own(cw)->tx.op_flags;

	return cw_ops_cwritemsg(cw, &msg,
				flags & (FI_COMPLETION | CW_NO_LEVELS));
}

static ssize_t cw_ops_cwrite(struct fi_mrrc_cw *cw, const void *buf, size_t len,
			     void *desc, fi_addr_t dest_addr, uint64_t cwtag,
			     void *context)
{
	const struct iovec iov = { (void *) buf, len };

	return cw_ops_cwritev(cw, &iov, &desc, 1, dest_addr, cwtag, context);
}

static ssize_t cw_ops_cwtagmsg(struct fi_mrrc_cw *cw,
			       const struct fi_msg_cw *msg, uint64_t flags)
{
	struct mrrc_ep *ep = cw_ops_ep(cw);

	return mrrc_ep_has_cw(ep) ? mrrc_cw_post_tag(ep, msg, flags) :
				    -FI_EOPNOTSUPP;
}

static ssize_t cw_ops_cwtag(struct fi_mrrc_cw *cw, void *buf, size_t len,
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

	return cw_ops_cwtagmsg(cw, &msg,
			       cw_ops_own(cw)->rx.op_flags & FI_COMPLETION);
}

#define CW_GIVEN (1ULL << 63) /* marks tags that the provider gives */

/* Bits 62 to 32: the endpoint's number */
static uint64_t cw_ops_rdm_tag(struct mrrc_cw_rdm *rdm)
{
	const uint64_t number = rdm->number & 0x7fffffff;

	return CW_GIVEN | number << 32 |
	       (uint32_t) atomic_fetch_add(&rdm->tags, 1);
}

/* Gives a tag; on a connected endpoint, bit 62 tells the two sides apart. */
static int cw_ops_tag_alloc(struct fi_mrrc_cw *cw, uint64_t *cwtag)
{
	struct mrrc_ep *ep = cw_ops_ep(cw);
	struct mrrc_cw_ep *link = ep->cw;

	if (ep->cw_rdm) {
		*cwtag = cw_ops_rdm_tag(ep->cw_rdm);
		return 0;
	}
	if (!link)
		return -FI_EOPNOTSUPP;
	mrrc_mutex_lock(&link->group->lock);
	*cwtag = CW_GIVEN | (uint64_t) link->accepts << 62 | link->tags++;
	mrrc_mutex_unlock(&link->group->lock);
	return 0;
}

static int cw_ops_stats(struct fi_mrrc_cw *cw, struct fi_mrrc_cw_stats *out)
{
	struct fi_mrrc_cw_stats full = { 0 };
	struct mrrc_ep *ep = cw_ops_ep(cw);

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

static int cw_ops_limits(struct fi_mrrc_cw_attr *out, size_t iov_limit)
{
	const struct fi_mrrc_cw_attr full = {
		.iov_limit = iov_limit,
		.tag_iov_limit = MRRC_CW_SEGS,
		.max_pending = CW_PENDING,
		.cm_data_size = sizeof(struct cw_mark),
		.cq_data_size = sizeof(uint64_t),
		.app_tag_mask = ~CW_GIVEN,
	};

	return mrrc_sized_out(out, &full, sizeof(full));
}

static int cw_ops_ep_query(struct fi_mrrc_cw *cw, struct fi_mrrc_cw_attr *attr)
{
	return cw_ops_limits(attr, cw_ops_own(cw)->tx.iov_limit);
}

/* The endpoints of a passive endpoint have infos of their own. */
static int cw_ops_pep_query(struct fi_mrrc_cw *cw, struct fi_mrrc_cw_attr *attr)
{
	return cw_ops_limits(attr, 0);
}

/* Features of the provider, the same for every object */
static int cw_ops_feature(struct fi_mrrc_cw *cw, const char *name)
{
	return name ? !strcmp(name, "cw") : -FI_EINVAL;
}

static int cw_ops_ep_feature(struct fi_mrrc_cw *cw, const char *name)
{
	const struct mrrc_ep *ep = cw_ops_own(cw);

	if (name && !strcmp(name, "cw-auto-progress"))
		return mrrc_ep_has_cw(ep) && ep->domain->cw->automatic;
	return cw_ops_feature(cw, name);
}

static int cw_ops_ep_enable(struct fi_mrrc_cw *cw, uint64_t flags)
{
	return flags ? -FI_EBADFLAGS : mrrc_cw_enable_ep(cw_ops_own(cw));
}

static int cw_ops_pep_enable(struct fi_mrrc_cw *cw, uint64_t flags)
{
	struct mrrc_pep *pep = container_of(cw, struct mrrc_pep, ext_cw);

	return flags ? -FI_EBADFLAGS : mrrc_cw_enable_pep(pep);
}

static const struct fi_mrrc_ops_cw cw_ep_ext_ops = {
	.size = sizeof(struct fi_mrrc_ops_cw),
	.feature = cw_ops_ep_feature,
	.enable = cw_ops_ep_enable,
	.query = cw_ops_ep_query,
	.cwrite = cw_ops_cwrite,
	.cwritev = cw_ops_cwritev,
	.cwritemsg = cw_ops_cwritemsg,
	.cwtag = cw_ops_cwtag,
	.cwtagmsg = cw_ops_cwtagmsg,
	.tag_alloc = cw_ops_tag_alloc,
	.stats = cw_ops_stats,
};

static const struct fi_mrrc_ops_cw cw_pep_ext_ops = {
	.size = offsetof(struct fi_mrrc_ops_cw, cwrite),
	.feature = cw_ops_feature,
	.enable = cw_ops_pep_enable,
	.query = cw_ops_pep_query,
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
	if (fid->fclass == FI_CLASS_EP)
		*ops = &container_of(fid, struct mrrc_ep, ep.fid)->ext_cw;
	else
		*ops = &container_of(fid, struct mrrc_pep, pep.fid)->ext_cw;
	return 0;
}

void mrrc_cw_calls_init(void)
{
	mrrc_cw_over = &mrrc_cw_admission;
	mrrc_ep_cw_ops = &cw_ep_ext_ops;
	mrrc_pep_cw_ops = &cw_pep_ext_ops;
	mrrc_ep_fid_ops.ops_open = cw_ops_open;
	mrrc_pep_fid_ops.ops_open = cw_ops_open;
	mrrc_cw_ep_init();
	mrrc_cw_av_init();
}
