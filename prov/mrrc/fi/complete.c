/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a core's completion to the application's: whose it is, whether it is
 * seen, and when the operation behind it is over.
 */
#include "config.h"
#include "op.h"

/*
 * A multi-receive buffer is over when every message that was placed in it has
 * completed. The one with FI_MULTI_RECV is the last to be placed, not always
 * the last to complete: an earlier rendezvous may still be under way. It ends
 * where the buffer's use ends, and the lengths of all add up to that.
 */
static bool mrrc_multi_over(struct mrrc_op *op,
			    const struct fi_cq_data_entry *entry, int err)
{
	uintptr_t buf = (uintptr_t) entry->buf;

	if (err)	/* of one message, unless the buffer was cancelled */
		return err == FI_ECANCELED || (entry->flags & FI_MULTI_RECV);

	op->multi_done += entry->len;
	if (entry->flags & FI_MULTI_RECV) {
		if (buf < op->multi_base)	/* it says no place */
			return true;
		op->multi_end = buf + entry->len - op->multi_base;
	}
	return op->multi_done >= op->multi_end;
}

bool mrrc_op_claim(struct mrrc_cq *cq, struct mrrc_op *op, const void *entry,
		   int err, void **context, struct mrrc_op **done)
{
	uint32_t state = atomic_load_explicit(&op->flags,
					      memory_order_acquire);
	struct mrrc_ep *ep = atomic_load_explicit(&op->ep,
						  memory_order_relaxed);
	bool silent;

	if (mrrc_unlikely(state & MRRC_OP_CLAIMED)) {
		MRRC_WARN(CQ, "the core completed an operation twice\n");
		return false;
	}
	*context = op->context;
	silent = (state & MRRC_OP_SILENT) ||
		 (ep && ep->is_srx && cq->rx_selective &&
		  (state & MRRC_OP_PLAIN));
	/* errors of unsignalled operations are reported, too */
	silent = cq->internal || (silent && !err);

	if ((state & MRRC_OP_MULTI) && !mrrc_multi_over(op, entry, err))
		return !silent;

	mrrc_op_retire_silent(op);
	if ((state & MRRC_OP_ZOMBIE) && op->cq)
		op->cq->zombies--;
	atomic_store_explicit(&op->flags, state | MRRC_OP_CLAIMED,
			      memory_order_relaxed);
	op->next = *done;
	*done = op;
	return !silent;
}
