/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked by configure --disable-record in place of the other files of this folder:
 * no domain is recorded.
 */
#include "config.h"
#include "fi/record/record.h"
#include "fi/record/stats_file.h"

void mrrc_record_open(struct mrrc_reg *reg)
{
}

uint64_t mrrc_record_ep(void)
{
	return 0;
}

void mrrc_record_by(enum mrrc_trace_op op, enum mrrc_trace_peer kind,
		    uint64_t peer, const void *site)
{
}

int mrrc_record_get(struct mrrc_reg *reg, uint64_t *chain,
		    const struct iovec *iov, enum mrrc_access access,
		    unsigned pieces, struct mrrc_plan *plan,
		    struct mrrc_admit *admit, bool *copy)
{
	return -FI_ENOSYS;
}

void mrrc_record_hit(const struct mrrc_reg *reg, uint64_t *chain,
		     const void *addr, size_t len, enum mrrc_access access)
{
}

uint64_t mrrc_record_start(const struct mrrc_reg *reg)
{
	return 0;
}

void mrrc_record_own(const struct mrrc_reg *reg, uint64_t start,
		     const struct fi_mr_attr *attr, int ret, uint64_t *chain)
{
}

void mrrc_record_end(uint64_t *chain)
{
}

void mrrc_record_end_begin(void)
{
}

void mrrc_record_end_done(void)
{
}

void mrrc_stats_file_add(struct mrrc_reg *reg)
{
}

void mrrc_stats_file_close(struct mrrc_reg *reg)
{
}
