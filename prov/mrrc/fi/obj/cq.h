/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues. */
#ifndef MRRC_CQ_H
#define MRRC_CQ_H

#include "fi/data/pending.h"

int mrrc_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 struct fid_cq **cq, void *context);

/*
 * From now on only the application reads the core's CQ, until
 * mrrc_cq_leave_alone_end() was called as often as this function.
 */
void mrrc_cq_leave_alone(struct mrrc_cq *cq);
void mrrc_cq_leave_alone_end(struct mrrc_cq *cq);
/* Tells the CQ that an endpoint with FI_BUFFERED_RECV is bound to it. */
void mrrc_cq_set_buffered(struct mrrc_cq *cq);
int mrrc_cq_open_internal(struct mrrc_domain *domain, struct mrrc_cq **cq);

#endif /* MRRC_CQ_H */
