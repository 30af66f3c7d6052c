/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations by their endpoint: cancelling one, and what an endpoint leaves
 * behind when it is closed.
 *
 * All this is rare, so it takes the locks of every CQ of the domain and looks
 * at every operation in flight; posting and completing keep no lists for it.
 */
#include "config.h"
#include "op.h"
#include "sweep.h"

struct mrrc_search {
	struct mrrc_ep *ep;
	void *context;
	struct mrrc_op *op;
};

static void mrrc_search_cb(void *object, void *arg)
{
	struct mrrc_search *search = arg;
	struct mrrc_op *op = object;

	if (!search->op && op->ep == search->ep &&
	    op->context == search->context &&
	    !(atomic_load(&op->flags) & (MRRC_OP_CLAIMED | MRRC_OP_ZOMBIE)))
		search->op = op;
}

ssize_t mrrc_ep_cancel(struct fid *fid, void *context)
{
	struct mrrc_ep *ep = container_of(fid, struct mrrc_ep, ep.fid);
	struct mrrc_search search = {
		.ep = ep->alias_of ? ep->alias_of : ep,
		.context = context,
	};
	ssize_t ret;

	if (!ep->domain->implicit)
		return fi_cancel(&ep->core->fid, context);

	/* under the locks no record found can be completed and used again */
	mrrc_domain_lock_cqs(ep->domain);
	mrrc_pool_foreach_live(ep->domain->ops, mrrc_search_cb, &search);
	ret = fi_cancel(&ep->core->fid, search.op ? search.op : context);
	mrrc_domain_unlock_cqs(ep->domain);
	return ret;
}

struct mrrc_sweep {
	struct mrrc_ep *ep;
	uint64_t ticket;	/* of this sweep */
	uint64_t oldest;	/* ticket of a thread still in a core's sread */
	struct mrrc_op *done;
};

static void mrrc_sweep_cb(void *object, void *arg)
{
	struct mrrc_sweep *sweep = arg;
	struct mrrc_op *op = object;
	uint32_t flags = atomic_load(&op->flags);

	if (flags & MRRC_OP_CLAIMED)
		return;
	if (flags & MRRC_OP_ZOMBIE) {
		if (op->ticket > sweep->oldest)
			return;
	} else {
		if (op->ep != sweep->ep)
			return;
		if (op->cq)
			atomic_fetch_sub(&op->cq->silent, 1);
		op->cq = NULL;
		op->ep = NULL;
		op->ticket = sweep->ticket;
		if (op->ticket > sweep->oldest) {
			atomic_store(&op->flags, flags | MRRC_OP_ZOMBIE);
			return;
		}
	}
	atomic_store(&op->flags, flags | MRRC_OP_CLAIMED);
	op->next = sweep->done;
	sweep->done = op;
}

/*
 * The core's endpoint is closed: the network touches nothing for it any more,
 * and whatever it still reports is in the core's CQs. Bring that to safety,
 * then end what was never reported.
 *
 * A thread that is inside a core's sread may hold a completion that we cannot
 * see. Records that it could mean stay as zombies, until a later sweep finds
 * that every thread that was inside has left.
 */
void mrrc_ep_sweep(struct mrrc_ep *ep)
{
	struct mrrc_domain *domain = ep->domain;
	struct mrrc_sweep sweep = { .ep = ep, .oldest = UINT64_MAX };
	struct mrrc_sreader *reader;
	struct mrrc_cq *cq;

	pthread_mutex_lock(&domain->cq_lock);
	for (cq = domain->cqs; cq; cq = cq->next) {
		if (cq == ep->tx.cq || cq == ep->rx.cq || ep->is_srx)
			mrrc_cq_drain(cq);
	}
	pthread_mutex_unlock(&domain->cq_lock);

	mrrc_domain_lock_cqs(domain);
	sweep.ticket = ++domain->ticket;
	for (cq = domain->cqs; cq; cq = cq->next) {
		reader = TAILQ_FIRST(&cq->sreaders);
		if (reader && reader->ticket < sweep.oldest)
			sweep.oldest = reader->ticket;
	}
	mrrc_pool_foreach_live(domain->ops, mrrc_sweep_cb, &sweep);
	mrrc_domain_unlock_cqs(domain);
	mrrc_op_end_list(sweep.done);
}
