/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds operations by their endpoint: to cancel an operation, and to end the
 * operations in flight when an endpoint is closed.
 *
 * Cancelling and closing are rare, so both take the locks of all CQs of the
 * domain and examine every operation in flight; posting and completing maintain
 * no lists for cancelling and closing.
 */
#include "config.h"
#include "fi/data/pending.h"
#include "fi/data/op.h"
#include "fi/data/flush.h"

struct mrrc_search {
	struct mrrc_ep *ep;
	void *context;
	struct mrrc_op *op;
};

/*
 * Chooses among operations with the same context: a receive before a send, then
 * the oldest.
 */
static bool search_better(const struct mrrc_op *op, const struct mrrc_op *than)
{
	uint32_t rx, than_rx;

	if (!than)
		return true;
	rx = atomic_load(&op->flags) & MRRC_OP_RX;
	than_rx = atomic_load(&than->flags) & MRRC_OP_RX;
	return rx != than_rx ? rx != 0 : op->seq < than->seq;
}

static void search_cb(void *object, void *arg)
{
	struct mrrc_search *search = arg;
	struct mrrc_op *op = object;

	if (!(atomic_load(&op->flags) & (MRRC_OP_CLAIMED | MRRC_OP_ZOMBIE |
					 MRRC_OP_FOUND | MRRC_OP_FULL)) &&
	    op->ep == search->ep && op->context == search->context &&
	    search_better(op, search->op))
		search->op = op;
}

ssize_t mrrc_ep_cancel(struct fid *fid, void *context)
{
	struct mrrc_ep *ep = container_of(fid, struct mrrc_ep, ep.fid);
	struct fid_ep *const base = &ep->base->ep;
	struct mrrc_search search = { .ep = ep, .context = context };
	ssize_t ret;

	/* an alias's operations belong to its endpoint */
	if (base != &ep->ep)
		return base->ops->cancel(&base->fid, context);
	if (!ep->domain->ops)
		return fi_cancel(&ep->core->fid, context);

	/* with the locks held no record can complete and be used again */
	mrrc_domain_lock_cqs(ep->domain);
	mrrc_pool_foreach_live(ep->domain->ops, search_cb, &search);
	ret = fi_cancel(&ep->core->fid, search.op ? search.op : context);
	mrrc_domain_unlock_cqs(ep->domain);
	return ret;
}

struct mrrc_flush {
	const struct mrrc_ep *ep; /* owner of the records; NULL: of zombies */
	const struct mrrc_cq *cq; /* zombies that this CQ reports */
	bool busy;		  /* some thread is inside a core's sread */
	struct mrrc_op *done;
};

static void flush_end(struct mrrc_flush *flush, struct mrrc_op *op,
		      uint32_t flags)
{
	mrrc_op_retire_silent(op);
	atomic_store(&op->flags, flags | MRRC_OP_CLAIMED);
	op->next = flush->done;
	flush->done = op;
}

static void flush_ep_cb(void *object, void *arg)
{
	struct mrrc_flush *flush = arg;
	struct mrrc_op *op = object;
	uint32_t flags = atomic_load(&op->flags);

	if ((flags & MRRC_OP_CLAIMED) || op->ep != flush->ep)
		return;
	if (op->cq ? op->cq->sreaders != 0 : flush->busy) {
		op->ep = NULL;
		atomic_store(&op->flags, flags | MRRC_OP_ZOMBIE);
		if (op->cq)
			op->cq->zombies++;
	} else {
		flush_end(flush, op, flags);
	}
}

static void flush_zombie_cb(void *object, void *arg)
{
	struct mrrc_flush *flush = arg;
	struct mrrc_op *op = object;
	uint32_t flags = atomic_load(&op->flags);

	if (!(flags & MRRC_OP_CLAIMED) && (flags & MRRC_OP_ZOMBIE) &&
	    op->cq == flush->cq)
		flush_end(flush, op, flags);
}

void mrrc_cq_reap(struct mrrc_cq *cq, struct mrrc_op **done)
{
	struct mrrc_flush flush = { .cq = cq, .done = *done };

	mrrc_cq_read_ahead(cq, SIZE_MAX, &flush.done);
	if (cq->zombies)
		mrrc_pool_foreach_live(cq->domain->ops, flush_zombie_cb,
				       &flush);
	cq->zombies = 0;
	if (cq->awaited) {
		cq->awaited = false;
		flush.cq = NULL;
		if (atomic_fetch_sub(&cq->domain->awaited_cqs, 1) == 1)
			mrrc_pool_foreach_live(cq->domain->ops, flush_zombie_cb,
					       &flush);
	}
	*done = flush.done;
}

/*
 * Ends the operations of an endpoint. The core's endpoint is closed: the
 * network no longer accesses its buffers, and remaining reports are in the
 * core's CQs. These reports are read as pending completions; then operations
 * that were never reported are ended.
 *
 * A thread inside a core's sread may hold a completion that is not visible
 * here, and only the application reads that CQ meanwhile. Records that are
 * reported in that CQ stay as zombies until the last such thread leaves
 * (mrrc_cq_reap). Any CQ may report receives of a shared context: such receives
 * wait until the threads inside sread now have left every CQ (`awaited`).
 */
void mrrc_ep_flush_ops(struct mrrc_ep *ep)
{
	struct mrrc_domain *domain = ep->domain;
	struct mrrc_flush flush = { .ep = ep };
	struct mrrc_cq *cq;

	mrrc_domain_lock_cqs(domain);
	LIST_FOREACH(cq, &domain->cqs, link) {
		if (cq->sreaders) {
			flush.busy = true;
			if (ep->is_srx && !cq->awaited)
				atomic_fetch_add(&domain->awaited_cqs, 1);
			cq->awaited |= ep->is_srx;
		} else if (cq == ep->tx.cq || cq == ep->rx.cq || ep->is_srx) {
			mrrc_cq_read_ahead(cq, SIZE_MAX, &flush.done);
		}
	}
	mrrc_pool_foreach_live(domain->ops, flush_ep_cb, &flush);
	LIST_FOREACH(cq, &domain->cqs, link)
		mrrc_cq_unlock(cq);
	LIST_FOREACH(cq, &domain->cqs, link)
		mrrc_cq_wake(cq);
	mrrc_mutex_unlock(&domain->cq_lock);
	mrrc_op_end_list(flush.done);
}

static void flush_all_cb(void *object, void *arg)
{
	struct mrrc_op *op = object;

	/* the record is a thread's spare one */
	if (atomic_load(&op->flags) & MRRC_OP_CLAIMED)
		return;
	/* its CQ is closed already */
	op->cq = NULL;
	mrrc_op_end(op);
}

void mrrc_domain_flush_ops(struct mrrc_domain *domain)
{
	mrrc_pool_foreach_live(domain->ops, flush_all_cb, NULL);
}
