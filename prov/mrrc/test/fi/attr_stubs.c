/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For test_attr: stubs of what fi/obj uses of other folders and of libfabric.
 * Opening and closing objects call only the stubs that have a body.
 */
#include "config.h"
#include <rdma/fi_errno.h>

#include "fi/data/complete.h"
#include "fi/data/flush.h"
#include "fi/data/op.h"
#include "fi/data/pending.h"
#include "fi/names.h"
#include "fi/obj/cq_fwd.h"
#include "fi/param.h"
#include "fi/parts.h"
#include "test/fi/unused.h"

struct mrrc_params mrrc_params;
struct fi_provider mrrc_prov = { .name = "test_attr" };
struct fi_ops_cq mrrc_cq_fwd_ops = { .size = sizeof(struct fi_ops_cq) };

void mrrc_pending_clear(struct mrrc_cq *cq)
{
}

UNUSED(void, mrrc_cq_lock_slow, struct mrrc_cq *cq);
UNUSED(bool, mrrc_cq_offered, struct mrrc_cq *cq,
       const struct fi_cq_msg_entry *entry);
UNUSED(bool, mrrc_cq_ready, struct mrrc_cq *cq);
UNUSED(void, mrrc_cq_reap, struct mrrc_cq *cq, struct mrrc_op **done);
UNUSED(int, mrrc_cq_signal, struct fid_cq *cq);
UNUSED(const char *, mrrc_cq_strerror, struct fid_cq *cq, int prov_errno,
       const void *err_data, char *buf, size_t len);
UNUSED(void, mrrc_domain_drain, struct mrrc_domain *domain);
UNUSED(bool, mrrc_op_claim_any, struct mrrc_cq *cq, struct mrrc_op *op,
       void *entry, int err, void **context, struct mrrc_op **done);
UNUSED(void, mrrc_op_end_list, struct mrrc_op *list);
UNUSED(bool, mrrc_pending_behind, struct mrrc_cq *cq, const void *entry,
       void *context, fi_addr_t src);
UNUSED(ssize_t, mrrc_pending_read, struct mrrc_cq *cq, void *buf, size_t count,
       fi_addr_t *src);
UNUSED(ssize_t, mrrc_pending_readerr, struct mrrc_cq *cq,
       struct fi_cq_err_entry *entry);
UNUSED(const char *, mrrc_fabric_name_split, char *name);
UNUSED(void, mrrc_part_asked, const char *ops);
