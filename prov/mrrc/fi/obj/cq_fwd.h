/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of completion queues that go to the core as they are. */
#ifndef MRRC_CQ_FWD_H
#define MRRC_CQ_FWD_H

#include "fi/data/pending.h"

extern struct fi_ops_cq mrrc_cq_fwd_ops;
int mrrc_cq_signal(struct fid_cq *cq);
const char *mrrc_cq_strerror(struct fid_cq *cq, int prov_errno,
			     const void *err_data, char *buf, size_t len);

#endif /* MRRC_CQ_FWD_H */
