/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operation records: taken before posting, ended after completion. Any thread;
 * op.h says which thread owns a record at which time.
 */
#include "config.h"
#include "fi/data/pending.h"
#include "fi/data/bounce.h"
#include "fi/data/op.h"
#include "fi/record/record.h"

/*
 * Unsignalled operations are signalled internally. The application may never
 * read their CQ, so posting reads the CQ once for each MRRC_SILENT_MAX such
 * operations.
 */
#define MRRC_SILENT_MAX 64

static inline void op_free(struct mrrc_op *op, struct mrrc_hints *hints)
{
	if (mrrc_unlikely(op->more != NULL)) {
		free(op->more);
		op->more = NULL;
	}
	if (mrrc_unlikely(op->bounces != NULL))
		mrrc_bounce_free(op);
	op->region_cnt = 1;
	/*
	 * a free record is marked as claimed, so that its old fields are not
	 * used
	 */
	atomic_store_explicit(&op->flags, MRRC_OP_CLAIMED,
			      memory_order_relaxed);
	if (!hints || !mrrc_hints_keep_spare(hints, op))
		mrrc_pool_free(op->domain->ops, op);
}

/* A record's flags when its operation is posted. */
static inline uint32_t mrrc_op_flags(const struct mrrc_ep *ep,
				     const struct mrrc_ep_dir *dir,
				     uint64_t flags)
{
	const struct mrrc_domain *domain = ep->domain;
	uint32_t op_flags = MRRC_OP_GENERAL;

	if (!(flags & FI_COMPLETION)) {
		op_flags |= MRRC_OP_PLAIN;
		if ((dir->selective &&
		     !(dir == &ep->rx &&
		       domain->reg.below & MRRC_BELOW_RX_ALWAYS)) ||
		    (dir->cq && dir->cq->internal))
			op_flags |= MRRC_OP_SILENT;
	} else if (dir->cq && dir->cq->internal) {
		op_flags |= MRRC_OP_SILENT;
	}
	if ((flags & FI_MULTI_RECV) && domain->multi_recv)
		op_flags |= MRRC_OP_MULTI;
	if (dir == &ep->rx)
		op_flags |= MRRC_OP_RX;
	return op_flags;
}

int mrrc_op_begin(struct mrrc_ep *ep, struct mrrc_ep_dir *dir, uint64_t flags,
		  void *context, struct mrrc_op **op_out)
{
	struct mrrc_domain *domain = ep->domain;
	uint32_t op_flags;
	struct mrrc_op *op;

	/*
	 * with these flags the context is a structure that no record can
	 * replace
	 */
	if (mrrc_unlikely(flags & (FI_TRIGGER | FI_CLAIM)))
		return -FI_EOPNOTSUPP;
	/* the CQ's format may lack fields that complete.c needs */
	if (mrrc_unlikely(flags & FI_MULTI_RECV) && !domain->multi_recv)
		return -FI_EOPNOTSUPP;

	op_flags = mrrc_op_flags(ep, dir, flags);
	if ((op_flags & MRRC_OP_SILENT) && dir->cq &&
	    atomic_load_explicit(&dir->cq->silent, memory_order_relaxed) >=
		    MRRC_SILENT_MAX)
		mrrc_cq_drain(dir->cq);

	op = mrrc_op_alloc(domain, mrrc_op_hints(domain));
	if (mrrc_unlikely(!op)) {
		MRRC_DBG(EP_DATA, "%u operations in flight\n", MRRC_OPS_MAX);
		return -FI_EAGAIN;
	}
	if ((op_flags & MRRC_OP_SILENT) && dir->cq)
		atomic_fetch_add_explicit(&dir->cq->silent, 1,
					  memory_order_relaxed);
	op->region_cnt = 0;
	mrrc_op_start(op, ep, dir->cq, mrrc_op_posts(domain, dir->cq), context,
		      op_flags);
	*op_out = op;
	return 0;
}

int mrrc_op_peek(struct mrrc_ep *ep, uint64_t flags, struct fi_context *context,
		 struct mrrc_op **op_out)
{
	struct mrrc_op *op;
	int ret;

	/* a peek always completes to the application, as with ofi_rxm */
	ret = mrrc_op_begin(ep, &ep->rx, (flags & ~FI_CLAIM) | FI_COMPLETION,
			    context, &op);
	if (ret)
		return ret;
	atomic_fetch_or_explicit(&op->flags, MRRC_OP_PEEK,
				 memory_order_release);
	op->rx_len = SIZE_MAX;
	context->internal[0] = op;
	*op_out = op;
	return 0;
}

int mrrc_op_retrieve(struct mrrc_ep *ep, uint64_t flags,
		     const struct fi_context *context, struct mrrc_op **op_out)
{
	struct mrrc_op *op = context->internal[0];
	uint32_t state = MRRC_OP_FOUND | MRRC_OP_RX;

	if (!mrrc_pool_is_live(ep->domain->ops, op) || op->context != context ||
	    atomic_load_explicit(&op->ep, memory_order_relaxed) != ep->base)
		return -FI_EINVAL;
	/* only one of several threads may get the message */
	if (!atomic_compare_exchange_strong(&op->flags, &state,
					    mrrc_op_flags(ep, &ep->rx, flags) |
						    MRRC_OP_RETRIEVE))
		return -FI_EINVAL;
	op->rx_len = SIZE_MAX;
	if (op->cq && (atomic_load(&op->flags) & MRRC_OP_SILENT))
		atomic_fetch_add_explicit(&op->cq->silent, 1,
					  memory_order_relaxed);
	*op_out = op;
	return 0;
}

int mrrc_op_hold(struct mrrc_op *op, struct mrrc_region *region)
{
	const uint32_t max = op->more ? op->more_max : MRRC_OP_REGIONS;
	struct mrrc_region **more;

	if (mrrc_unlikely(op->region_cnt == max)) {
		more = malloc(2 * max * sizeof(*more));
		if (!more)
			return -FI_ENOMEM;
		memcpy(more, op->more ? op->more : op->region,
		       max * sizeof(*more));
		free(op->more);
		op->more = more;
		op->more_max = 2 * max;
	}
	(op->more ? op->more : op->region)[op->region_cnt++] = region;
	return 0;
}

static inline void op_put_regions(struct mrrc_op *op,
				  const struct mrrc_reg *reg,
				  struct mrrc_hints *hints)
{
	struct mrrc_region **region = op->region;
	uint32_t i;

	if (mrrc_unlikely(op->more != NULL))
		region = op->more;
	for (i = 0; i < op->region_cnt; i++)
		mrrc_cache_hit_put(reg->cache, hints, region[i]);
	op->region_cnt = 0;
	if (mrrc_unlikely(reg->traced))
		mrrc_record_end(&op->trace);
}

ssize_t mrrc_op_refused(struct mrrc_op *op, ssize_t ret)
{
	struct mrrc_domain *domain = op->domain;
	struct mrrc_hints *hints;

	/* the hit path does not retry: this makes room for the next call */
	if (ret == -FI_EAGAIN)
		mrrc_op_make_room(op);
	mrrc_op_retire_silent(op);
	hints = mrrc_op_hints(domain);
	op_put_regions(op, &domain->reg, hints);
	if (atomic_load_explicit(&op->flags, memory_order_relaxed) &
	    MRRC_OP_RETRIEVE) {
		/* the message is still there */
		atomic_store_explicit(&op->flags, MRRC_OP_FOUND | MRRC_OP_RX,
				      memory_order_release);
		return ret;
	}
	atomic_fetch_sub_explicit(mrrc_op_posts(domain, op->cq), 1,
				  memory_order_relaxed);
	atomic_fetch_or_explicit(&op->flags, MRRC_OP_REFUSED,
				 memory_order_relaxed);
	op_free(op, hints);
	return ret;
}

/*
 * A core may place messages in a multi-receive buffer and then refuse the
 * buffer, which does not come back, but the messages complete (ofi_rxm, when it
 * runs out of entries for unexpected messages). A completion with FI_MULTI_RECV
 * shows this case, before the call returns. Other threads may have read all the
 * messages' completions by then: MRRC_OP_POSTING keeps those threads from
 * ending the record.
 */
ssize_t mrrc_op_posted_multi(struct mrrc_op *op, struct mrrc_cq *cq,
			     ssize_t ret)
{
	struct mrrc_op *done = NULL;
	uint32_t state;
	bool failed;

	if (!cq)
		return mrrc_op_posted(op, ret);
	mrrc_cq_lock(cq);
	failed = ret && ret != -FI_EAGAIN;
	if (failed && !cq->sreaders)
		mrrc_cq_read_ahead(cq, SIZE_MAX, &done);
	state = atomic_load_explicit(&op->flags, memory_order_relaxed);
	/*
	 * a thread in the core's sread may have got a completion of the
	 * operation
	 */
	if (failed && cq->sreaders)
		state |= MRRC_OP_FULL;
	state &= ~MRRC_OP_POSTING;
	atomic_store_explicit(&op->flags, state, memory_order_release);
	if (state & MRRC_OP_OVER) {
		op->next = done;
		done = op;
		mrrc_op_retire_silent(op);
		atomic_store_explicit(&op->flags, state | MRRC_OP_CLAIMED,
				      memory_order_relaxed);
	}
	mrrc_cq_unlock(cq);
	mrrc_cq_wake(cq);
	mrrc_op_end_list(done);
	return ret && !(state & MRRC_OP_FULL) ? mrrc_op_posted(op, ret) : ret;
}

bool mrrc_op_make_room(struct mrrc_op *op)
{
	uint32_t flags = atomic_load_explicit(&op->flags, memory_order_relaxed);
	struct mrrc_cq *cq = op->cq;
	int before;

	/*
	 * without unsignalled operations, reading the CQ makes no room; and the
	 * core may not allow any thread to read it
	 */
	if (!cq || (flags & MRRC_OP_RETRIED) || !op->domain->implicit)
		return false;
	/* another thread may read completions of a multi-receive buffer */
	atomic_fetch_or_explicit(&op->flags, MRRC_OP_RETRIED,
				 memory_order_relaxed);
	before = atomic_load_explicit(&cq->silent, memory_order_relaxed);
	mrrc_cq_drain(cq);
	/* the core placed messages in the buffer, and keeps it no longer */
	if (atomic_load_explicit(&op->flags, memory_order_relaxed) &
	    MRRC_OP_FULL)
		return false;
	return atomic_load_explicit(&cq->silent, memory_order_relaxed) < before;
}

void mrrc_op_end(struct mrrc_op *op)
{
	op->next = NULL;
	mrrc_op_end_list(op);
}

void mrrc_op_end_list(struct mrrc_op *list)
{
	struct mrrc_domain *domain;
	struct mrrc_hints *hints;
	struct mrrc_op *op;
	unsigned count = 0;

	if (!list)
		return;
	domain = list->domain;
	hints = mrrc_op_hints(domain);
	if (mrrc_unlikely(domain->reg.traced))
		mrrc_record_end_begin();
	while ((op = list)) {
		list = op->next;
		count++;
		op_put_regions(op, &domain->reg, hints);
		op_free(op, hints);
	}
	atomic_fetch_add_explicit(&domain->completions, count,
				  memory_order_relaxed);
	if (mrrc_unlikely(domain->reg.traced))
		mrrc_record_end_done();
}
