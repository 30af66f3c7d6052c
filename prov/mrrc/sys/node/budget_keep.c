/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocators in the budget of a node (budget.h): takes bytes for allocators,
 * and takes back free bytes that allocators keep.
 */
#include "config.h"
#include "sys/node/budget_keep.h"

#include <time.h>

void mrrc_budget_keep(struct mrrc_budget *budget,
		      struct mrrc_budget_keeper *keeper)
{
	mrrc_mutex_lock(&budget->keepers_lock);
	TAILQ_INSERT_TAIL(&budget->keepers, keeper, link);
	mrrc_mutex_unlock(&budget->keepers_lock);
}

void mrrc_budget_keep_end(struct mrrc_budget *budget,
			  struct mrrc_budget_keeper *keeper)
{
	mrrc_mutex_lock(&budget->keepers_lock);
	TAILQ_REMOVE(&budget->keepers, keeper, link);
	mrrc_mutex_unlock(&budget->keepers_lock);
}

void mrrc_budget_keep_wait(struct mrrc_budget *budget)
{
	mrrc_mutex_lock(&budget->keepers_lock);
	mrrc_mutex_unlock(&budget->keepers_lock);
}

uint64_t mrrc_budget_give_kept(struct mrrc_budget *budget, uint64_t units)
{
	const uint64_t owed = atomic_load(&budget->owe);
	struct mrrc_budget_keeper *keeper;
	uint64_t owe = owed;

	mrrc_mutex_lock(&budget->keepers_lock);
	TAILQ_FOREACH(keeper, &budget->keepers, link) {
		if (!keeper->any_thread)
			continue;
		keeper->give(keeper);
		owe = atomic_load(&budget->owe);
		if (owe + units <= owed)
			break;
	}
	mrrc_mutex_unlock(&budget->keepers_lock);
	return owe < owed ? owed - owe : 0;
}

/*
 * Has the allocators of this process free the memory that they keep, one
 * allocator after the other, until the budget has @bytes, and takes these.
 */
static bool take_kept(struct mrrc_budget *budget,
		      struct mrrc_budget_keeper *own, size_t bytes)
{
	struct mrrc_budget_keeper *keeper;
	bool got = false;

	if (own) {
		own->trim(own);
		if (mrrc_budget_try(budget, bytes))
			return true;
	}
	mrrc_mutex_lock(&budget->keepers_lock);
	TAILQ_FOREACH(keeper, &budget->keepers, link) {
		if (got)
			break;
		if (keeper == own || !keeper->any_thread)
			continue;
		keeper->trim(keeper);
		got = mrrc_budget_try(budget, bytes);
	}
	mrrc_mutex_unlock(&budget->keepers_lock);
	return got;
}

/* The number of units that the budget lacks to take @units. */
static uint64_t missing(struct mrrc_budget *budget, uint64_t units)
{
	const uint64_t left = atomic_load(&budget->left);
	uint64_t need = left < units ? units - left : 0, got;
	struct mrrc_node_view view;

	mrrc_lock_acquire(&budget->lock);
	mrrc_budget_view(budget, true, mrrc_budget_now(), &view);
	got = mrrc_node_take(&view,
			     need > budget->grain ? need : budget->grain);
	mrrc_lock_release(&budget->lock);
	return got < need ? need - got : 0;
}

/*
 * Has the caches of this process evict the missing units, if the caches have at
 * least the missing number; otherwise other processes have to give units first.
 * @evicted: number of units evicted so far.
 */
static uint64_t evict_missing(struct mrrc_budget *budget, uint64_t units,
			      uint64_t evicted)
{
	struct mrrc_budget_member *member;
	uint64_t lacks = missing(budget, units), has = 0;

	if (lacks <= evicted)
		return 0;
	lacks -= evicted;
	mrrc_lock_acquire(&budget->members_lock);
	TAILQ_FOREACH(member, &budget->members, link)
		has += member->bytes(member) / MRRC_NODE_UNIT;
	lacks = has < lacks ? 0 : mrrc_budget_evict(budget, NULL, lacks);
	mrrc_lock_release(&budget->members_lock);
	return lacks;
}

bool mrrc_budget_take_wait(struct mrrc_budget *budget,
			   struct mrrc_budget_keeper *own, size_t bytes,
			   unsigned ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const uint64_t units = mrrc_budget_units(bytes);
	uint64_t evicted = 0, more;

	if (mrrc_budget_take(budget, bytes))
		return true;
	if (bytes > mrrc_budget_limit(budget))
		return false;
	if (take_kept(budget, own, bytes))
		return true;
	for (;;) {
		more = evict_missing(budget, units, evicted);
		evicted += more;
		if (more && own)
			own->reap(own);
		if (mrrc_budget_take(budget, bytes))
			return true;
		/*
		 * without a segment only evicted regions can still give bytes
		 */
		if (!ms-- || (!budget->shm && !evicted))
			return false;
		nanosleep(&pause, NULL);
	}
}
