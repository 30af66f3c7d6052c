/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What costs decide in the cache for threads (cache_mt.h): whether a miss is
 * registered or copied by the caller, and who makes room when a limit of the
 * system is reached.
 */
#include "config.h"
#include "sys/cache_mt_priv.h"

#include <errno.h>

/* What is evicted when a registration failed, at least; then twice that. */
#define MRRC_ROOM_REGIONS	4

void mrrc_cache_mt_set_cost(struct mrrc_cache_mt *cache,
			    const struct mrrc_cost *cost)
{
	uint64_t *value = cache->cache.stats->value;

	mrrc_lock_acquire(&cache->lock);
	cache->cache.cost = *cost;
	value[MRRC_STAT_COST_REG_PAGE] = (uint64_t)(cost->reg_page + .5);
	value[MRRC_STAT_COST_REG] = (uint64_t)(cost->reg + .5);
	value[MRRC_STAT_COST_DEREG_PAGE] = (uint64_t)(cost->dereg_page + .5);
	value[MRRC_STAT_COST_DEREG] = (uint64_t)(cost->dereg + .5);
	value[MRRC_STAT_COST_COPY_PAGE] = (uint64_t)(cost->copy_page + .5);
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

/* Lookups that nothing is kept for: only the copy itself can be cheaper. */
static bool mrrc_cache_mt_copy_unseen(struct mrrc_cache_mt *cache,
				      const struct mrrc_admit *admit,
				      size_t len, int rc)
{
	if (!mrrc_admit_copy_once(admit, len))
		return false;
	mrrc_lock_acquire(&cache->lock);
	mrrc_cache_count(&cache->cache, MRRC_STAT_LOOKUPS);
	mrrc_cache_count(&cache->cache, MRRC_STAT_MISSES);
	if (rc == -EAGAIN)
		mrrc_cache_count(&cache->cache, MRRC_STAT_BUSY);
	mrrc_lock_release(&cache->lock);
	return true;
}

static size_t mrrc_plan_missing(const struct mrrc_plan *plan)
{
	size_t missing = 0;
	unsigned i;

	for (i = 0; i < plan->count; i++)
		missing += plan->piece[i].region ? 0 : plan->piece[i].len;
	return missing;
}

int mrrc_cache_mt_admit(struct mrrc_cache_mt *cache, struct mrrc_admit *admit,
			uintptr_t addr, size_t len, enum mrrc_access access,
			unsigned pieces, struct mrrc_plan *plan, bool *copy)
{
	unsigned i;
	int rc;

	/* what is wrong with it is for others to say */
	if (!len || !addr || len > UINTPTR_MAX - addr ||
	    addr + len > UINTPTR_MAX - cache->cache.page ||
	    mrrc_mon_forked(cache->mon))
		goto register_it;

	mrrc_lock_assert_none();
	rc = mrrc_cache_mt_quiet_lock(cache);
	if (rc) {
		*copy = mrrc_cache_mt_copy_unseen(cache, admit, len, rc);
		if (*copy)
			return 0;
		goto register_it;
	}
	mrrc_tlb_collect(&cache->tlbs);
	mrrc_cache_plan(&cache->cache, addr, len, access, pieces, plan);
	if (plan->missing) {
		*copy = mrrc_admit(admit, addr, len, mrrc_plan_missing(plan)) ==
			MRRC_ADMIT_BOUNCE;
		if (*copy)
			mrrc_cache_lookup(&cache->cache, addr, len, access,
					  pieces, plan);
		mrrc_lock_release(&cache->lock);
		if (*copy)
			return 0;
		goto register_it;
	}
	mrrc_cache_lookup(&cache->cache, addr, len, access, pieces, plan);
	for (i = 0; i < plan->count; i++)
		mrrc_cache_hold(&cache->cache, plan->piece[i].region);
	mrrc_lock_release(&cache->lock);
	if (plan->count == 1)
		mrrc_cache_mt_remember(cache, addr, access,
				       plan->piece[0].region);
	return 0;

register_it:
	return mrrc_cache_mt_get_slow(cache, addr, len, access, pieces, plan);
}

size_t mrrc_cache_mt_make_room(struct mrrc_cache_mt *cache, size_t len,
			       unsigned attempt)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	size_t count;

	if (mrrc_mon_forked(cache->mon))
		return 0;
	/* what had gone already may be enough */
	count = mrrc_cache_mt_reap_now(cache);
	if (count && !attempt)
		return count;
	mrrc_lock_acquire(&cache->lock);
	mrrc_tlb_collect(&cache->tlbs);
	mrrc_cache_evict_some(&cache->cache, len << attempt,
			      MRRC_ROOM_REGIONS << attempt, &list);
	mrrc_lock_release(&cache->lock);
	return count + mrrc_cache_mt_dereg_list(cache, &list);
}
