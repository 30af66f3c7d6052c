/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registrations in the budget of the node. */
#ifndef MRRC_REG_BUDGET_H
#define MRRC_REG_BUDGET_H

#include "fi/reg.h"

/*
 * Joins the node's budget (sys/node/budget.h), until
 * mrrc_budget_leave(). If the parameters set no budget: NULL; or, for a helper
 * that predicts, a budget without a limit.
 */
int mrrc_reg_join(bool predicts, struct mrrc_budget **budget);

/*
 * Returns the cache's limit for a user who set no limit: the smaller of the
 * node's budget and three quarters of the memory that the process may lock, as
 * in mrrc_vm_default_limits(). 0: the process has no budget, or the user set
 * one.
 */
size_t mrrc_reg_budget_limit(const struct mrrc_reg *reg);

#endif /* MRRC_REG_BUDGET_H */
