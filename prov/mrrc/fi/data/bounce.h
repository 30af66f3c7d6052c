/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies of an operation's buffers, in blocks of registered memory. */
#ifndef MRRC_BOUNCE_H
#define MRRC_BOUNCE_H

#include "fi/data/op.h"

/*
 * Copies a source that cannot be registered, and lets iov point to the copy,
 * which lives as long as op. -FI_EFAULT: the source cannot be read.
 */
int mrrc_bounce_out(struct mrrc_op *op, struct iovec *iov);

/* May the operation's data go through blocks of registered memory? */
bool mrrc_bounce_allowed(const struct mrrc_op *op, enum mrrc_access access);

/*
 * Takes a block for a buffer at this offset in its message: -FI_ENOMEM if no
 * block is left, -FI_EFAULT if the buffer is not mapped or not writable.
 */
int mrrc_bounce_block(struct mrrc_op *op, const struct iovec *iov,
		      size_t offset, enum mrrc_access access, void **base,
		      void **desc);

/* Copies the first len bytes of a received message to the user's buffers. */
void mrrc_bounce_in(struct mrrc_op *op, size_t len);

/*
 * Returns the user's address for an address in one of the record's blocks; any
 * other address is returned unchanged.
 */
void *mrrc_bounce_user(const struct mrrc_op *op, const void *addr);
/* Did the operation read a part of a file that may have been wrong? */
bool mrrc_bounce_lost(const struct mrrc_op *op);
void mrrc_bounce_free(struct mrrc_op *op);

#endif /* MRRC_BOUNCE_H */
