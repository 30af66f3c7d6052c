/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked by configure --disable-alloc in place of the other files of this folder:
 * no domain has fi_mr_alloc(3).
 */
#include "config.h"
#include "fi/alloc/alloc.h"

const struct fi_mrrc_ops_alloc *const mrrc_alloc_ops = NULL;

void mrrc_alloc_set_own(const struct fi_ops *ops)
{
}

void mrrc_process_init(void)
{
}

void mrrc_process_add(struct mrrc_reg *reg)
{
}

bool mrrc_alloc_busy(struct mrrc_reg *reg)
{
	return false;
}

void mrrc_alloc_close(struct mrrc_reg *reg)
{
}

int mrrc_alloc_feature(const struct mrrc_reg *reg, const char *name)
{
	return 0;
}

bool mrrc_alloc_desc(const struct mrrc_reg *reg, const void *addr, size_t len,
		     void **desc)
{
	return false;
}
