/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked in place of the other files of this folder if configure was called
 * with --disable-node: no process has a budget, so only join, leave and why are
 * called.
 */
#include "config.h"
#include "sys/node/budget.h"
#include "sys/node/node_shm.h"

int mrrc_budget_join(const struct mrrc_budget_attr *attr,
		     struct mrrc_budget **budget, int *alone)
{
	*budget = NULL;
	*alone = 0;
	return 0;
}

void mrrc_budget_leave(struct mrrc_budget *budget)
{
}

size_t mrrc_budget_limit(const struct mrrc_budget *budget)
{
	return MRRC_BUDGET_NONE;
}

void mrrc_budget_add(struct mrrc_budget *budget,
		     struct mrrc_budget_member *member)
{
}

void mrrc_budget_remove(struct mrrc_budget *budget,
			struct mrrc_budget_member *member)
{
}

bool mrrc_budget_take(struct mrrc_budget *budget, size_t bytes)
{
	return true;
}

bool mrrc_budget_try(struct mrrc_budget *budget, size_t bytes)
{
	return true;
}

bool mrrc_budget_take_wait(struct mrrc_budget *budget,
			   struct mrrc_budget_keeper *own, size_t bytes,
			   unsigned ms)
{
	return true;
}

void mrrc_budget_keep(struct mrrc_budget *budget,
		      struct mrrc_budget_keeper *keeper)
{
}

void mrrc_budget_keep_end(struct mrrc_budget *budget,
			  struct mrrc_budget_keeper *keeper)
{
}

void mrrc_budget_keep_wait(struct mrrc_budget *budget)
{
}

bool mrrc_budget_take_over(struct mrrc_budget *budget, size_t bytes)
{
	return true;
}

void mrrc_budget_put(struct mrrc_budget *budget, size_t bytes)
{
}

size_t mrrc_budget_evict_others(struct mrrc_budget *budget,
				struct mrrc_budget_member *member, size_t bytes)
{
	return 0;
}

void mrrc_budget_stats(struct mrrc_budget *budget,
		       struct mrrc_budget_stats *stats)
{
	*stats = (struct mrrc_budget_stats){ 0 };
}

struct mrrc_budget_helper mrrc_budget_helper(struct mrrc_budget *budget,
					     struct mrrc_budget_member *member,
					     enum mrrc_node_helpers policy,
					     bool would)
{
	return (struct mrrc_budget_helper){ .may = true };
}

int mrrc_node_shm_path(const char *dir, char *path, size_t size)
{
	*path = '\0';
	return 0;
}

const char *mrrc_node_shm_why(int err)
{
	return NULL;
}
