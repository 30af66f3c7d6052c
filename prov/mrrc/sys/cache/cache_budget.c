/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connects the cache to the budget that the processes of a node share
 * (sys/node/budget.h): takes bytes before a registration, and evicts regions
 * when other processes lack bytes.
 */
#include "config.h"
#include "sys/cache/cache_budget.h"

#include "sys/cache/reaper.h"

/* Attempts to evict before the other caches of the process have to evict. */
#define TRIES 4

static struct mrrc_cache_mt *cache_of(struct mrrc_budget_member *member)
{
	return (struct mrrc_cache_mt *) ((char *) member -
					 offsetof(struct mrrc_cache_mt,
						  member));
}

static uint64_t budget_uses(struct mrrc_budget_member *member)
{
	struct mrrc_cache_mt *cache = cache_of(member);
	uint64_t uses;

	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_collect(&cache->hints_list);
	uses = cache->cache.stats->value[MRRC_STAT_LOOKUPS];
	mrrc_lock_release(&cache->lock);
	return uses;
}

static size_t budget_bytes(struct mrrc_budget_member *member)
{
	struct mrrc_cache_mt *cache = cache_of(member);
	size_t bytes;

	mrrc_lock_acquire(&cache->lock);
	bytes = cache->cache.stats->value[MRRC_STAT_BYTES];
	mrrc_lock_release(&cache->lock);
	return bytes;
}

/*
 * Evicts regions. The calling thread must not call the core provider, so the
 * helper or the application's next call deregisters the evicted regions.
 */
static size_t budget_evict(struct mrrc_budget_member *member, size_t bytes)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct mrrc_cache_mt *cache = cache_of(member);
	struct mrrc_stats *stats = cache->cache.stats;
	uint64_t before;

	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_collect(&cache->hints_list);
	before = stats->value[MRRC_STAT_BYTES];
	mrrc_cache_evict_some(&cache->cache, bytes, 0, &list);
	bytes = before - stats->value[MRRC_STAT_BYTES];
	TAILQ_CONCAT(&cache->victims, &list, link);
	mrrc_cache_mt_left(cache);
	mrrc_lock_release(&cache->lock);
	return bytes;
}

void mrrc_cache_mt_budget_open(struct mrrc_cache_mt *cache)
{
	if (!cache->budget)
		return;
	cache->member.uses = budget_uses;
	cache->member.bytes = budget_bytes;
	cache->member.evict = budget_evict;
	cache->member.stats = cache->cache.stats;
	mrrc_budget_add(cache->budget, &cache->member);
}

void mrrc_cache_mt_budget_close(struct mrrc_cache_mt *cache)
{
	if (cache->budget)
		mrrc_budget_remove(cache->budget, &cache->member);
}

/*
 * Deregisters the regions that wait for deregistration, and then idle regions
 * of at least @len bytes in all.
 */
static size_t budget_room(struct mrrc_cache_mt *cache, size_t len)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	size_t count;

	count = mrrc_cache_mt_reap(cache);
	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_collect(&cache->hints_list);
	mrrc_cache_evict_some(&cache->cache, len, 1, &list);
	mrrc_lock_release(&cache->lock);
	return count + mrrc_cache_mt_dereg_list(cache, &list);
}

bool mrrc_cache_mt_budget_take(struct mrrc_cache_mt *cache, size_t len)
{
	unsigned tries;

	for (tries = 0; tries < TRIES; tries++) {
		if (mrrc_budget_take(cache->budget, len))
			return true;
		if (!budget_room(cache, len))
			break;
	}
	mrrc_budget_evict_others(cache->budget, &cache->member, len);
	return mrrc_budget_take_over(cache->budget, len);
}
