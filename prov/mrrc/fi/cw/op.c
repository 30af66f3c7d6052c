/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional operations: posting and cancelling: see cw/cw.h.
 *
 * Buffers are registered before the group's lock is taken, and released after
 * it is released.
 */
#include "config.h"

#include <limits.h>

#include "fi/cw/cw.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/rdm.h"
#include "fi/record/record.h"
#include "fi/data/resolve.h"
#include "sys/base/pool.h"

_Static_assert(MRRC_CW_ETRUNC == FI_ETRUNC, "core has its own name for it");

static size_t cw_iov_len(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	while (count--)
		len += iov[count].iov_len;
	return len;
}

/*
 * Are the lengths possible? The core may not check before the data come, and a
 * peer takes impossible lengths for a violation of the protocol.
 */
static int cw_check_bufs(const struct iovec *iov, size_t count)
{
	size_t sum = 0;

	for (; count--; iov++) {
		if (iov->iov_len > SSIZE_MAX - sum)
			return -FI_EINVAL;
		sum += iov->iov_len;
		if (iov->iov_len &&
		    (!iov->iov_base ||
		     iov->iov_len - 1 >
			     UINTPTR_MAX - (uintptr_t) iov->iov_base))
			return -FI_EFAULT;
	}
	return 0;
}

/*
 * Makes a record, with memory for its completion, which so cannot fail later.
 */
static struct cw_rec *cw_rec_new(struct mrrc_cw_ep *cw,
				 const struct fi_msg_cw *msg, uint64_t flags,
				 size_t iovs)
{
	struct cw_rec *rec = mrrc_pool_alloc(cw->group->cwd->recs);

	if (!rec)
		return NULL;
	memset(rec, 0, offsetof(struct cw_rec, few));
	rec->cw = cw;
	rec->comp = mrrc_comp_new(cw->group->cwd->comps);
	rec->iov = rec->few;
	if (iovs > MRRC_CW_SEGS)
		rec->iov =
			malloc(iovs * (sizeof(*rec->iov) + sizeof(*rec->desc)));
	if (!rec->comp || !rec->iov) {
		mrrc_cw_rec_free(rec);
		return NULL;
	}
	rec->iov_cnt = iovs;
	rec->desc = rec->iov == rec->few ? rec->few_desc :
					   (void **) (rec->iov + iovs);
	rec->flags = flags;
	rec->context = msg->context;
	rec->buf = msg->iov_count ? msg->msg_iov[0].iov_base : NULL;
	return rec;
}

/*
 * Can an operation be posted? Called with the group's lock held, or without the
 * lock as a preliminary check.
 */
static int cw_check(const struct mrrc_cw_ep *cw)
{
	switch (mrrc_cw_phase_step(cw->phase, CW_ON_POST).act) {
	case CW_DO_CONNECT:
		return -FI_EOPBADSTATE;
	case CW_DO_FAIL:
		return -FI_EOPNOTSUPP;
	case CW_DO_RENEW:
		return -FI_ENOTCONN;
	default:
		return cw->lost ? -FI_ENOTCONN : 0;
	}
}

/* Gets the link for msg; the link stays until mrrc_cw_put(). */
static int cw_get(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
		  struct mrrc_cw_ep **cw_out)
{
	struct mrrc_cw_ep *cw = ep->cw;
	int ret;

	if (ep->cw_rdm)
		return mrrc_cw_rdm_get(ep, msg->addr, cw_out);
	ret = cw_check(cw);
	if (ret)
		return ret;
	atomic_fetch_add(&cw->ending, 1);
	*cw_out = cw;
	return 0;
}

/* Can an operation be posted now? The group's lock held */
static int cw_ready(struct mrrc_cw_ep *cw)
{
	return cw->rdm ? mrrc_cw_rdm_ready(cw) : cw_check(cw);
}

/*
 * Notes an operation, so that cancelling finds it. To be called before the
 * operation is posted, since posting may end the operation. The group's lock
 * held
 */
static void cw_note(struct mrrc_cw_ep *cw, struct cw_rec *rec)
{
	if (cw->rdm)
		rec->seq = atomic_fetch_add(&cw->rdm->seq, 1);
	mrrc_cw_map_add(&cw->by_context, &rec->by_context,
			(uintptr_t) rec->context);
	rec->noted = true;
}

/* ret: the result of posting the operation */
static int cw_noted(struct mrrc_cw_ep *cw, struct cw_rec *rec, int ret)
{
	if (ret)
		mrrc_cw_forget(cw, rec);
	else
		mrrc_cw_after(cw);
	return ret;
}

/*
 * Resolves the buffers of a write. The write's record holds the buffers'
 * regions, and no completion of the core names the record: the flag CLAIMED
 * keeps flushes from the record.
 */
static int cw_resolve(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
		      const struct mrrc_source *source, struct mrrc_op **op_out,
		      struct mrrc_bufs *bufs)
{
	struct mrrc_op *op;
	bool any;
	int ret;

	if (mrrc_unlikely(ep->domain->reg.traced))
		mrrc_record_by(MRRC_TRACE_CWRITE, MRRC_TRACE_NOBODY, 0, NULL);
	ret = mrrc_op_begin(ep, &ep->tx, FI_COMPLETION, msg->context, &op);
	if (ret)
		return ret;
	mrrc_op_retire_silent(op);
	atomic_store(&op->flags, MRRC_OP_CLAIMED);
	ret = source ?
		      source->resolve(source, op, ep->write_split_limit, bufs) :
		      mrrc_resolve(op, msg->msg_iov, msg->desc, msg->iov_count,
				   ep->write_split_limit, MRRC_RO, bufs, &any);
	if (ret)
		return mrrc_op_posted(op, ret);
	*op_out = op;
	return 0;
}

static void cw_given(const struct fi_msg_cw *msg, struct mrrc_bufs *bufs)
{
	size_t i;

	bufs->count = msg->iov_count;
	for (i = 0; i < msg->iov_count; i++) {
		bufs->iov[i] = msg->msg_iov[i];
		bufs->desc[i] = msg->desc ? msg->desc[i] : NULL;
	}
}

static int cw_submit_write(struct mrrc_cw_ep *cw, struct cw_rec *rec,
			   uint64_t cwtag, bool more)
{
	struct mrrc_cw_group *group = cw->group;
	int ret;

	mrrc_mutex_lock(&group->lock);
	/* the tag may have arrived unread: the last call of a batch polls */
	if (!more && !mrrc_cw_map_first(&cw->sm.known, cwtag))
		mrrc_cw_group_poll(group, false);
	ret = cw_ready(cw);
	if (!ret) {
		cw_note(cw, rec);
		ret = mrrc_cw_post_wr(&cw->sm, &rec->wr, cwtag);
		ret = cw_noted(cw, rec, ret);
	}
	group->more = more;
	mrrc_cw_group_unlock(group);
	return ret;
}

static int cw_post_write(struct mrrc_cw_ep *cw, const struct fi_msg_cw *msg,
			 uint64_t flags, const struct mrrc_source *source)
{
	struct mrrc_ep *via = cw->via;
	struct mrrc_op *op = NULL;
	struct mrrc_bufs bufs;
	struct cw_rec *rec;
	int ret;

	if (msg->iov_count > via->tx.iov_limit ||
	    cw_iov_len(msg->msg_iov, msg->iov_count) >
		    via->info->ep_attr->max_msg_size)
		return -FI_EINVAL;
	if (via->domain->implicit) {
		ret = cw_resolve(via, msg, source, &op, &bufs);
		if (ret)
			return ret;
	} else if (source) {
		return -FI_EOPNOTSUPP;
	} else {
		cw_given(msg, &bufs);
	}
	rec = cw_rec_new(cw, msg, flags, bufs.count);
	if (!rec) {
		ret = -FI_ENOMEM;
		goto err_op;
	}
	memcpy(rec->iov, bufs.iov, bufs.count * sizeof(*rec->iov));
	memcpy(rec->desc, bufs.desc, bufs.count * sizeof(*rec->desc));
	rec->is_wr = true;
	rec->op = op;
	rec->wr.len = cw_iov_len(bufs.iov, bufs.count);
	rec->wr.has_data = flags & FI_REMOTE_CQ_DATA;
	rec->wr.data = rec->wr.has_data ? msg->data : 0;
	/* reading a part that was cut off a file would raise SIGBUS */
	if (bufs.count == 1 && !source && cw->inline_max)
		rec->wr.bytes = bufs.iov->iov_base;
	ret = cw_submit_write(cw, rec, msg->cwtag, flags & FI_MORE);
	if (!ret)
		return 0;
	mrrc_cw_rec_free(rec);
err_op:
	return op ? mrrc_op_posted(op, ret) : ret;
}

ssize_t mrrc_cw_post_write(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			   uint64_t flags, const struct mrrc_source *source)
{
	struct fi_msg_cw own = *msg;
	struct mrrc_cw_ep *cw;
	int ret;

	if (flags &
	    ~(FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_MORE | FI_INJECT_COMPLETE))
		return -FI_EBADFLAGS;
	if (msg->iov_count > ep->tx.iov_limit)
		return -FI_EINVAL;
	ret = cw_check_bufs(msg->msg_iov, msg->iov_count);
	if (!ret)
		ret = cw_get(ep, msg, &cw);
	if (ret)
		return ret;
	/*
	 * descriptors of the application's domain are not valid in the MSG
	 * domain
	 */
	if (cw->rdm)
		own.desc = NULL;
	ret = cw_post_write(cw, &own, flags, source);
	mrrc_cw_put(cw);
	return ret;
}

/* ---- targets ------------------------------------------------------------- */

static int cw_expose_one(struct mrrc_domain *domain, struct cw_rec *rec,
			 const struct iovec *iov)
{
	struct mrrc_cw_seg *seg = &rec->target.seg[rec->mr_cnt];
	uintptr_t start = (uintptr_t) iov->iov_base;
	struct mrrc_region *region = NULL;
	struct fid_mr *mr;
	int ret;

	if ((rec->flags & FI_MRRC_CW_KEEP) && domain->implicit) {
		ret = mrrc_record_get_one(&domain->reg, &rec->trace, iov,
					  MRRC_RW | MRRC_REMOTE_WRITE, &region);
		if (ret)
			return ret;
		mr = region->cookie;
		start = region->start;
	} else {
		ret = mrrc_reg_own(&domain->reg, iov->iov_base, iov->iov_len,
				   MRRC_REG_EXPOSE, &mr);
		if (ret)
			return ret;
	}
	*seg = (struct mrrc_cw_seg){
		.addr = mrrc_reg_remote(&domain->reg, iov->iov_base, start),
		.key = fi_mr_key(mr),
		.len = iov->iov_len,
	};
	rec->few[rec->mr_cnt] = *iov;
	rec->mr[rec->mr_cnt] = mr;
	rec->region[rec->mr_cnt++] = region;
	return 0;
}

static int cw_expose(struct mrrc_domain *domain, struct cw_rec *rec,
		     const struct fi_msg_cw *msg)
{
	size_t i;
	int ret;

	if (mrrc_unlikely(domain->reg.traced))
		mrrc_record_by(MRRC_TRACE_EXPOSE, MRRC_TRACE_NOBODY, 0, NULL);
	for (i = 0; i < msg->iov_count; i++) {
		if (!msg->msg_iov[i].iov_len)
			continue;
		ret = cw_expose_one(domain, rec, &msg->msg_iov[i]);
		if (ret) {
			MRRC_WARN(MR,
				  "%zu bytes at %p cannot be exposed: "
				  "%s\n",
				  msg->msg_iov[i].iov_len,
				  msg->msg_iov[i].iov_base, fi_strerror(-ret));
			mrrc_cw_conceal(domain, rec);
			return ret;
		}
	}
	rec->target.count = rec->mr_cnt;
	return 0;
}

static int cw_submit_tag(struct mrrc_cw_ep *cw, struct cw_rec *rec,
			 uint64_t cwtag, bool more)
{
	struct mrrc_cw_group *group = cw->group;
	int ret;

	mrrc_mutex_lock(&group->lock);
	ret = cw_ready(cw);
	if (!ret) {
		cw_note(cw, rec);
		ret = mrrc_cw_post_target(&cw->sm, &rec->target, cwtag);
		ret = cw_noted(cw, rec, ret);
	}
	group->more = more;
	mrrc_cw_group_unlock(group);
	return ret;
}

static int cw_post_tag(struct mrrc_cw_ep *cw, const struct fi_msg_cw *msg,
		       uint64_t flags)
{
	struct mrrc_domain *domain = cw->via->domain;
	struct cw_rec *rec;
	int ret;

	rec = cw_rec_new(cw, msg, flags, 0);
	if (!rec)
		return -FI_ENOMEM;
	rec->target.len = cw_iov_len(msg->msg_iov, msg->iov_count);
	ret = cw_expose(domain, rec, msg);
	if (ret)
		goto err_free;
	ret = cw_submit_tag(cw, rec, msg->cwtag, flags & FI_MORE);
	if (!ret)
		return 0;
	mrrc_cw_conceal(domain, rec);
err_free:
	mrrc_cw_rec_free(rec);
	return ret;
}

ssize_t mrrc_cw_post_tag(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			 uint64_t flags)
{
	struct mrrc_cw_ep *cw;
	int ret;

	if (flags & ~(FI_COMPLETION | FI_MRRC_CW_KEEP | FI_MORE))
		return -FI_EBADFLAGS;
	if (msg->iov_count > MRRC_CW_SEGS)
		return -FI_EINVAL;
	ret = cw_check_bufs(msg->msg_iov, msg->iov_count);
	if (!ret)
		ret = cw_get(ep, msg, &cw);
	if (ret)
		return ret;
	ret = cw_post_tag(cw, msg, flags);
	mrrc_cw_put(cw);
	return ret;
}

static void cw_cancel_target(struct cw_rec *rec)
{
	/*
	 * cancelling may end the target's operation; the operation's record
	 * stays valid until the group is unlocked
	 */
	mrrc_cw_cancel_target(&rec->cw->sm, &rec->target);
	if (rec->target.state != MRRC_CW_TARGET_ENDED && !rec->confirm_by)
		mrrc_cw_confirm(rec);
}

static int cw_cancel_on(struct mrrc_cw_ep *cw, void *context)
{
	struct cw_rec *found;

	mrrc_mutex_lock(&cw->group->lock);
	found = mrrc_cw_oldest(cw, context);
	/* the next call finds another operation, even if this one has not ended */
	if (found)
		mrrc_cw_forget(cw, found);
	if (found && found->is_wr)
		mrrc_cw_cancel_wr(&cw->sm, &found->wr);
	else if (found)
		cw_cancel_target(found);
	if (found)
		mrrc_cw_after(cw);
	mrrc_cw_group_unlock(cw->group);
	return found ? 0 : -FI_ENOENT;
}

int mrrc_cw_cancel(struct mrrc_ep *ep, void *context)
{
	struct mrrc_cw_ep *cw;
	int ret;

	ep = mrrc_cw_base(ep);
	if (!ep->cw_rdm)
		return cw_cancel_on(ep->cw, context);
	cw = mrrc_cw_rdm_oldest(ep, context);
	if (!cw)
		return -FI_ENOENT;
	ret = cw_cancel_on(cw, context);
	mrrc_cw_put(cw);
	return ret;
}
