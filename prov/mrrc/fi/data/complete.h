/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completions of operations, as the application sees them. */
#ifndef MRRC_COMPLETE_H
#define MRRC_COMPLETE_H

#include "fi/data/op.h"

/* Marks op as the record of a receive with FI_MULTI_RECV. */
void mrrc_op_multi(struct mrrc_op *op, struct mrrc_ep *ep,
		   const struct iovec *iov, size_t count);

/*
 * Claims the operation of a completion, under the lock of the CQ that reported
 * it. @entry is the core's, in the CQ's core format, or an error entry with
 * @err; received data are copied to the application's buffers. Adds the record
 * to *done when the operation is over. Returns true if the application sees
 * this completion; *context is then the application's.
 */
bool mrrc_op_claim_any(struct mrrc_cq *cq, struct mrrc_op *op, void *entry,
		       int err, void **context, struct mrrc_op **done);

static inline bool mrrc_op_claim(struct mrrc_cq *cq, struct mrrc_op *op,
				 void *entry, int err, void **context,
				 struct mrrc_op **done)
{
	/*
	 * the short way: a transmission that is reported, and needs no other
	 * work
	 */
	if (mrrc_unlikely(
		    atomic_load_explicit(&op->flags, memory_order_acquire) &
		    ~MRRC_OP_GENERAL) ||
	    mrrc_unlikely(op->bounces != NULL))
		return mrrc_op_claim_any(cq, op, entry, err, context, done);
	*context = op->context;
	atomic_store_explicit(&op->flags, MRRC_OP_CLAIMED,
			      memory_order_relaxed);
	op->next = *done;
	*done = op;
	return true;
}

/*
 * Counts and logs a message that claims @len bytes for buffers of @room bytes.
 * @fate: the end of the message, for the log.
 */
void mrrc_cq_claimed(struct mrrc_cq *cq, size_t len, size_t room,
		     const char *fate);

#endif /* MRRC_COMPLETE_H */
