/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Allocators in the budget, for the thread of the process. */
#ifndef MRRC_BUDGET_KEEP_H
#define MRRC_BUDGET_KEEP_H

#include "sys/node/budget_priv.h"

/*
 * Makes allocators deregister this much of their free memory. Returns by about
 * how much the debt shrinks.
 */
uint64_t mrrc_budget_give_kept(struct mrrc_budget *budget, uint64_t units);

#endif /* MRRC_BUDGET_KEEP_H */
