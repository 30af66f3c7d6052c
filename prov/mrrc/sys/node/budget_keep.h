/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Allocators in the budget, for the budget's thread. */
#ifndef MRRC_BUDGET_KEEP_H
#define MRRC_BUDGET_KEEP_H

#include "sys/node/budget_priv.h"

/*
 * Makes allocators deregister @units of their free memory. Returns the
 * approximate number of units by which the debt shrinks.
 */
uint64_t mrrc_budget_give_kept(struct mrrc_budget *budget, uint64_t units);

#endif /* MRRC_BUDGET_KEEP_H */
