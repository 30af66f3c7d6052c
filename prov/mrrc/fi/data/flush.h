/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Cancels operations, and ends those in flight when an endpoint closes. */
#ifndef MRRC_FLUSH_H
#define MRRC_FLUSH_H

#include "fi/mrrc_fi.h"

/* fi_cancel() */
ssize_t mrrc_ep_cancel(struct fid *fid, void *context);

/* Ends all records, when no endpoint and no CQ is left. */
void mrrc_domain_flush_ops(struct mrrc_domain *domain);

/* To be called after the core's endpoint is closed, before ep is freed. */
void mrrc_ep_flush_ops(struct mrrc_ep *ep);

/*
 * Ends the zombies of a CQ, and adds them to *done. To be called when the last
 * thread has left the core's sread, with the CQ's lock held.
 */
void mrrc_cq_reap(struct mrrc_cq *cq, struct mrrc_op **done);

#endif /* MRRC_FLUSH_H */
