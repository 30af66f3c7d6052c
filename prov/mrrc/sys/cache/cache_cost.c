/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Costs of the cache for threads (cache_mt.h): what registering costs, what was
 * copied instead, and the caches that make room when a limit of the system is
 * reached.
 */
#include "config.h"
#include "sys/cache/cache_mt_priv.h"

/*
 * Minimum number of regions evicted after a failed registration; doubled with
 * each attempt.
 */
#define MRRC_ROOM_REGIONS 4

void mrrc_cache_mt_set_cost(struct mrrc_cache_mt *cache,
			    const struct mrrc_cost *cost)
{
	uint64_t *value = cache->cache.stats->value;

	mrrc_lock_acquire(&cache->lock);
	cache->cache.cost = *cost;
	value[MRRC_STAT_COST_REG_PAGE] = (uint64_t) (cost->reg_page + .5);
	value[MRRC_STAT_COST_REG] = (uint64_t) (cost->reg + .5);
	value[MRRC_STAT_COST_DEREG_PAGE] = (uint64_t) (cost->dereg_page + .5);
	value[MRRC_STAT_COST_DEREG] = (uint64_t) (cost->dereg + .5);
	value[MRRC_STAT_COST_COPY_PAGE] = (uint64_t) (cost->copy_page + .5);
	mrrc_lock_release(&cache->lock);
}

void mrrc_cache_mt_stat(struct mrrc_cache_mt *cache, enum mrrc_stat stat,
			int64_t change)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	cache->cache.stats->value[stat] += change;
	mrrc_lock_release(&cache->lock);
}

void mrrc_cache_mt_bounced(struct mrrc_cache_mt *cache, size_t len)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	mrrc_cache_count(&cache->cache, MRRC_STAT_BOUNCES);
	cache->cache.stats->value[MRRC_STAT_BOUNCED_BYTES] += len;
	mrrc_lock_release(&cache->lock);
}

void mrrc_cache_mt_bounce_memory(struct mrrc_cache_mt *cache, size_t bytes)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	cache->cache.stats->value[MRRC_STAT_BOUNCE_MEMORY] = bytes;
	mrrc_lock_release(&cache->lock);
}

size_t mrrc_cache_mt_make_room(struct mrrc_cache_mt *cache, size_t len,
			       unsigned attempt)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	size_t count;

	if (mrrc_mon_forked(cache->mon))
		return 0;
	/* regions that wait for deregistration may be enough */
	count = mrrc_cache_mt_reap_now(cache);
	if (count && !attempt)
		return count;
	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_collect(&cache->hints_list);
	mrrc_cache_evict_some(&cache->cache, len << attempt,
			      MRRC_ROOM_REGIONS << attempt, &list);
	mrrc_lock_release(&cache->lock);
	return count + mrrc_cache_mt_dereg_list(cache, &list);
}
