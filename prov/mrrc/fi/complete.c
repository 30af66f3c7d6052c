/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a core's completion to the application's: whose it is, whether it is
 * seen, and when the operation behind it is over.
 */
#include "config.h"
#include "op.h"

bool mrrc_op_claim(struct mrrc_cq *cq, struct mrrc_op *op, uint64_t flags,
		   bool error, void **context, struct mrrc_op **done)
{
	uint32_t state = atomic_load_explicit(&op->flags,
					      memory_order_relaxed);
	bool silent;

	*context = op->context;
	silent = (state & MRRC_OP_SILENT) ||
		 (op->ep && op->ep->is_srx && cq->rx_selective &&
		  (state & MRRC_OP_PLAIN));

	/* a multi-receive buffer ends with the completion that says so */
	if ((state & MRRC_OP_MULTI) && !error && !(flags & FI_MULTI_RECV))
		return !silent;

	atomic_store_explicit(&op->flags, state | MRRC_OP_CLAIMED,
			      memory_order_relaxed);
	if (op->cq)
		atomic_fetch_sub_explicit(&op->cq->silent, 1,
					  memory_order_relaxed);
	op->next = *done;
	*done = op;

	/* errors of unsignalled operations are reported, too */
	return !cq->internal && (error || !silent);
}
