/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Turns a core's completion into the application's: finds the completion's
 * record, and decides whether the application sees the completion and when the
 * operation is over.
 */
#include "config.h"
#include "fi/blocks.h"
#include "fi/data/bounce.h"
#include "fi/data/complete.h"
#include "fi/data/pending.h"

/*
 * A multi-receive buffer is over when the core places nothing more in it and
 * every message in it has completed. FI_MULTI_RECV reports that the core places
 * nothing more, but an earlier message may complete later (a rendezvous), and
 * FI_MULTI_RECV may come without a message. So the buffer is over when the
 * completed lengths add up to the end of the last known message, and the rest
 * of the buffer is too small for another message, or FI_MULTI_RECV came with a
 * message, which is then the last message.
 */
static bool multi_over(struct mrrc_op *op, uint32_t *state,
		       const struct fi_cq_data_entry *entry, int err)
{
	uintptr_t place = (uintptr_t) entry->buf - op->multi_base;
	size_t len = entry->len;

	/* the rest of the buffer is cancelled, or too small for a message */
	if (err == FI_ECANCELED || err == FI_ETRUNC ||
	    (entry->flags & FI_MULTI_RECV))
		*state |= MRRC_OP_FULL;
	if ((entry->flags & FI_MULTI_RECV) && (entry->flags & FI_RECV))
		op->multi_min = SIZE_MAX;
	if (err == FI_ETRUNC)
		len = op->rx_len - place;
	if ((!err || err == FI_ETRUNC) && place <= op->rx_len) {
		if (place + len > op->multi_end)
			op->multi_end = place + len;
		op->multi_done += len;
	}
	return (*state & MRRC_OP_FULL) && op->multi_done >= op->multi_end &&
	       (op->rx_len - op->multi_end < op->multi_min ||
		(err == FI_ECANCELED && !op->multi_end));
}

void mrrc_op_multi(struct mrrc_op *op, struct mrrc_ep *ep,
		   const struct iovec *iov, size_t count)
{
	size_t min = 0, size = sizeof(min);

	op->multi_base = count ? (uintptr_t) iov->iov_base : 0;
	mrrc_op_room(op, iov, count);
	op->multi_done = 0;
	op->multi_end = 0;
	if (op->cq)
		atomic_fetch_or_explicit(&op->flags, MRRC_OP_POSTING,
					 memory_order_release);
	/*
	 * shared contexts lack FI_OPT_MIN_MULTI_RECV: FI_MULTI_RECV on the last
	 * message shows the end of the buffer
	 */
	op->multi_min = fi_getopt(&ep->core->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &min, &size) ?
				0 :
				min;
}

/*
 * Handles the completion of an operation with copies, under the CQ's lock.
 * false: the completion is not reported, because the endpoint is closed, so
 * that the buffers must not be written any more, or because the part of a file
 * that the operation read is to be reported as an error instead
 * (mrrc_bounce_free()).
 */
static bool claim_copies(struct mrrc_cq *cq, struct mrrc_op *op, uint32_t state,
			 struct fi_cq_data_entry *entry, int err)
{
	struct mrrc_block *block = op->bounces;

	if (block->class == MRRC_BLOCK_FILE) {
		block->error = !err && !(state & MRRC_OP_ZOMBIE) &&
			       mrrc_bounce_lost(op);
		return !block->error;
	}
	if (cq->core_entry_size >= sizeof(*entry) || err)
		entry->buf = mrrc_bounce_user(op, entry->buf);
	if (state & MRRC_OP_ZOMBIE)
		return err || !op->bounces->in;
	/*
	 * a remote write with data takes a receive, but puts nothing in the
	 * receive's buffer
	 */
	if (!err && !((state & MRRC_OP_RX) && (entry->flags & FI_RMA)))
		mrrc_bounce_in(op, state & MRRC_OP_RX ? entry->len : SIZE_MAX);
	return true;
}

/*
 * Is the message longer than its buffers? Some cores pass on the length that
 * the peer claims. CQ formats without a length cannot tell, and pass no length
 * on. A remote write with data takes a receive, but puts nothing in the
 * receive's buffers.
 */
static bool rx_too_long(const struct mrrc_cq *cq, const struct mrrc_op *op,
			uint32_t state, const struct fi_cq_data_entry *entry,
			int err, size_t *room)
{
	uintptr_t place;

	if (!(state & MRRC_OP_RX) ||
	    cq->core_entry_size < sizeof(struct fi_cq_msg_entry) ||
	    (entry->flags & FI_RMA))
		return false;
	*room = op->rx_len;
	if ((state & MRRC_OP_MULTI) && !err) {
		place = (uintptr_t) entry->buf - op->multi_base;
		*room = place < op->rx_len ? op->rx_len - place : 0;
	}
	return entry->len > *room;
}

static bool claim(struct mrrc_cq *cq, struct mrrc_op *op, void *entry, int err,
		  void **context, struct mrrc_op **done)
{
	uint32_t state = atomic_load_explicit(&op->flags, memory_order_acquire);
	struct mrrc_ep *ep =
		atomic_load_explicit(&op->ep, memory_order_relaxed);
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

	if (mrrc_unlikely(state & MRRC_OP_PEEK) && !err) {
		/*
		 * the operation's record stays until the message is claimed or
		 * the endpoint closes
		 */
		mrrc_op_retire_silent(op);
		atomic_store_explicit(&op->flags,
				      MRRC_OP_FOUND | MRRC_OP_RX |
					      (state & MRRC_OP_ZOMBIE),
				      memory_order_release);
		return !silent;
	}
	if (state & MRRC_OP_MULTI) {
		if (multi_over(op, &state, entry, err))
			state |= MRRC_OP_OVER;
		if (!(state & MRRC_OP_OVER) || (state & MRRC_OP_POSTING)) {
			atomic_store_explicit(&op->flags, state,
					      memory_order_relaxed);
			return !silent;
		}
	}

	if (mrrc_unlikely(op->bounces != NULL) &&
	    !claim_copies(cq, op, state, entry, err))
		silent = true;
	mrrc_op_retire_silent(op);
	if ((state & MRRC_OP_ZOMBIE) && op->cq)
		op->cq->zombies--;
	atomic_store_explicit(&op->flags, state | MRRC_OP_CLAIMED,
			      memory_order_relaxed);
	op->next = *done;
	*done = op;
	return !silent;
}

void mrrc_cq_claimed(struct mrrc_cq *cq, size_t len, size_t room,
		     const char *fate)
{
	if (!(atomic_fetch_add(&cq->domain->claimed_lengths, 1)))
		MRRC_WARN(CQ,
			  "a message claims %zu bytes, but its receive has "
			  "%zu: the receive %s. The peer or the core provider "
			  "is at fault (logged once for each domain)\n",
			  len, room, fate);
}

/*
 * Makes an error of a message that claims to be longer than the @room bytes of
 * its buffers.
 */
static bool __attribute__((noinline))
claim_too_long(struct mrrc_cq *cq, struct mrrc_op *op, const void *entry,
	       size_t room, struct mrrc_op **done)
{
	struct fi_cq_err_entry error = { 0 };

	memcpy(&error, entry, cq->core_entry_size);
	mrrc_cq_claimed(cq, error.len, room, "ends with FI_ETRUNC");
	error.olen = error.len - room;
	error.len = room;
	error.err = FI_ETRUNC;
	if (claim(cq, op, &error, FI_ETRUNC, &error.op_context, done))
		mrrc_pending_error(cq, &error);
	return false;
}

bool mrrc_op_claim_any(struct mrrc_cq *cq, struct mrrc_op *op, void *entry,
		       int err, void **context, struct mrrc_op **done)
{
	uint32_t state = atomic_load_explicit(&op->flags, memory_order_acquire);
	size_t room;

	if (mrrc_unlikely(rx_too_long(cq, op, state, entry, err, &room)) &&
	    !(state & MRRC_OP_CLAIMED)) {
		if (!err)
			return claim_too_long(cq, op, entry, room, done);
		((struct fi_cq_err_entry *) entry)->len = room;
		/* layered cores place the part that fits */
		if (err == FI_ETRUNC && op->bounces &&
		    (op->domain->reg.below & MRRC_BELOW_LAYERED) &&
		    !(state & MRRC_OP_ZOMBIE))
			mrrc_bounce_in(op, room);
	}
	return claim(cq, op, entry, err, context, done);
}
