/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cache for threads (cache_mt.h): life, events, counts.
 *
 * An event marks pending ranges stale and takes regions out of the index.
 * Regions that are not held wait in `victims` for the application's next call,
 * which deregisters them: the thread that reads events must not call the core
 * provider.
 *
 * Regions are objects of a pool whose memory is used for regions only, so that
 * a thread with a hint can read the region's word without a lock.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys/cache/cache_mt_priv.h"
#include "sys/base/vm.h"
#include "sys/cache/reaper.h"
#include "sys/cache/cache_budget.h"

/*
 * Number of dead regions, still held by operations, for which the pool has room
 * beside the indexed regions.
 */
#define MRRC_REGIONS_MORE ((size_t) 1 << 16)
#define MRRC_REGIONS_MAX  ((size_t) 1 << 24)

_Static_assert(MRRC_REGIONS_MAX <= 1 << MRRC_REGION_TAG,
	       "what tables of threads have for an index");

static struct mrrc_cache_mt *cache_mt_of(struct mrrc_mon_sub *sub)
{
	return (struct mrrc_cache_mt *) ((char *) sub -
					 offsetof(struct mrrc_cache_mt, sub));
}

static bool ranges_overlap(uintptr_t a, size_t alen, uintptr_t b, size_t blen)
{
	return a < b ? b - a < alen : a - b < blen;
}

/* ---- the monitor's side ---- */

static struct mrrc_range cache_mt_notify(struct mrrc_mon_sub *sub,
					 uintptr_t start, uintptr_t end)
{
	struct mrrc_cache_mt *cache = cache_mt_of(sub);
	struct mrrc_range hull = { UINTPTR_MAX, 0 };
	const size_t len = end - start;
	struct mrrc_pending *pending;
	struct mrrc_region *region;
	int i;

	mrrc_lock_assert_held(&cache->lock);
	cache->changes++;
	TAILQ_FOREACH(pending, &cache->pending, link) {
		if (ranges_overlap(pending->start, pending->len, start, len))
			pending->stale = true;
	}
	for (i = 0; i < MRRC_ACCESS_CNT; i++) {
		region = mrrc_index_first_overlap(&cache->cache.index[i], start,
						  len);
		while (region) {
			/* The monitor unwatches the rest of the range. */
			region->watched = false;
			if (region->start < hull.start)
				hull.start = region->start;
			if (mrrc_region_end(region) > hull.end)
				hull.end = mrrc_region_end(region);
			region = mrrc_index_next_overlap(region, start, len);
		}
	}
	mrrc_cache_invalidate(&cache->cache, start, len, &cache->victims);
	mrrc_cache_mt_left(cache);
	if (hull.start > hull.end)
		hull = (struct mrrc_range){ 0, 0 };
	return hull;
}

static struct mrrc_range cache_mt_cover(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	struct mrrc_cache_mt *cache = cache_mt_of(sub);
	struct mrrc_range best = { 0, 0 };
	struct mrrc_pending *pending;
	struct mrrc_region *region;
	int i;

	mrrc_lock_assert_held(&cache->lock);
	for (i = 0; i < MRRC_ACCESS_CNT; i++) {
		region = mrrc_index_first_overlap(&cache->cache.index[i], pos,
						  UINTPTR_MAX - pos);
		if (region && (!best.end || region->start < best.start))
			best = (struct mrrc_range){ region->start,
						    mrrc_region_end(region) };
	}
	TAILQ_FOREACH(pending, &cache->pending, link) {
		if (pending->start + pending->len > pos &&
		    (!best.end || pending->start < best.start))
			best = (struct mrrc_range){
				pending->start, pending->start + pending->len
			};
	}
	return best;
}

/* ---- deregistration, outside locks ---- */

struct mrrc_region *mrrc_cache_mt_region(struct mrrc_cache_mt *cache)
{
	struct mrrc_region *region;

	/*
	 * A fork may have copied the parent's pool in the middle of a change.
	 */
	if (mrrc_mon_forked(cache->mon))
		return calloc(1, sizeof(*region));
	region = mrrc_pool_alloc(cache->pool);
	if (!region)
		return NULL;
	mrrc_region_renew(region, ((char *) region - cache->regions) /
					  MRRC_REGION_STRIDE);
	region->watched = region->reused = false;
	memset((char *) region + offsetof(struct mrrc_region, start), 0,
	       sizeof(*region) - offsetof(struct mrrc_region, start));
	region->holders = &cache->hints_list.holders;
	return region;
}

void mrrc_cache_mt_region_free(struct mrrc_cache_mt *cache,
			       struct mrrc_region *region)
{
	if (!mrrc_pool_owns(cache->pool, region))
		free(region);
	else if (!mrrc_mon_forked(cache->mon))
		mrrc_pool_free(cache->pool, region);
}

/*
 * The thread cannot be cancelled in the core: the region would never be freed.
 */
void mrrc_cache_mt_dereg(struct mrrc_cache_mt *cache,
			 struct mrrc_region **batch, size_t count)
{
	int cancel;
	size_t i;

	mrrc_lock_assert_none();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	cache->ops->dereg(cache->arg, batch, count);
	pthread_setcancelstate(cancel, NULL);

	mrrc_lock_acquire(&cache->lock);
	for (i = 0; i < count; i++)
		mrrc_cache_deregistered(&cache->cache, batch[i]->len);
	mrrc_lock_release(&cache->lock);

	for (i = 0; i < count; i++) {
		mrrc_cache_mt_budget_put(cache, batch[i]->len);
		if (batch[i]->watched)
			mrrc_mon_unwatch(cache->mon, batch[i]->start,
					 batch[i]->len);
		mrrc_cache_mt_region_free(cache, batch[i]);
	}
}

size_t mrrc_cache_mt_dereg_list(struct mrrc_cache_mt *cache,
				struct mrrc_region_list *list)
{
	struct mrrc_region *batch[MRRC_DEREG_BATCH];
	struct mrrc_region *region;
	size_t count = 0;
	size_t total = 0;

	while ((region = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, region, link);
		batch[count++] = region;
		if (count == MRRC_DEREG_BATCH || TAILQ_EMPTY(list)) {
			mrrc_cache_mt_dereg(cache, batch, count);
			total += count;
			count = 0;
		}
	}
	return total;
}

/* ---- entry points ---- */

/* Waits until the helper holds no region that it registers. Lock held. */
static void cache_mt_settle(struct mrrc_cache_mt *cache)
{
	cache->waiting++;
	while (cache->registering)
		mrrc_lock_wait(&cache->lock, &cache->settled);
	cache->waiting--;
}

size_t mrrc_cache_mt_flush(struct mrrc_cache_mt *cache)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	size_t count;

	if (mrrc_mon_forked(cache->mon))
		return 0;
	mrrc_lock_acquire(&cache->lock);
	/*
	 * the flush waits for the region that the helper is registering now;
	 * the helper registers no further region
	 */
	cache->flushes++;
	cache_mt_settle(cache);
	/*
	 * from here on the helper has no registration under way,
	 * nor does it register again regions that it deregistered early
	 */
	cache->flushes++;
	mrrc_hints_collect(&cache->hints_list);
	mrrc_cache_evict_all(&cache->cache, &list);
	mrrc_lock_release(&cache->lock);
	count = mrrc_cache_mt_dereg_list(cache, &list);
	/*
	 * Victims are reaped last, when events find no idle regions any more.
	 */
	return count + mrrc_cache_mt_reap_now(cache);
}

void mrrc_cache_mt_invalidate(struct mrrc_cache_mt *cache, const void *addr,
			      size_t len)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct mrrc_pending *pending;
	bool coming = false;

	if (mrrc_mon_forked(cache->mon))
		return;
	/*
	 * the helper does not register again the regions that it deregistered
	 * early
	 */
	if (cache->ahead)
		mrrc_mon_unwatch_idle(cache->mon);
	mrrc_lock_acquire(&cache->lock);
	cache->changes++;
	TAILQ_FOREACH(pending, &cache->pending, link) {
		if (!ranges_overlap(pending->start, pending->len,
				    (uintptr_t) addr, len))
			continue;
		pending->stale = true;
		coming |= pending->gentle;
	}
	if (coming)
		cache_mt_settle(cache);
	mrrc_cache_invalidate(&cache->cache, (uintptr_t) addr, len, &list);
	mrrc_lock_release(&cache->lock);
	mrrc_cache_mt_dereg_list(cache, &list);
	/* mremap(2) refuses a range that is watched in part */
	mrrc_mon_unwatch_idle(cache->mon);
}

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

struct mrrc_stats *mrrc_cache_mt_shared_stats(struct mrrc_cache_mt *cache)
{
	return cache->cache.stats;
}

void mrrc_cache_mt_stats(struct mrrc_cache_mt *cache, struct mrrc_stats *stats)
{
	if (mrrc_mon_forked(cache->mon)) {
		mrrc_stats_copy(stats, cache->cache.stats);
		return;
	}
	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_collect(&cache->hints_list);
	mrrc_stats_copy(stats, cache->cache.stats);
	mrrc_lock_release(&cache->lock);
}

void mrrc_cache_mt_collect(struct mrrc_cache_mt *cache)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_collect(&cache->hints_list);
	mrrc_lock_release(&cache->lock);
}

size_t mrrc_cache_mt_held(struct mrrc_cache_mt *cache)
{
	size_t held = 0;

	if (mrrc_mon_forked(cache->mon))
		return 0;
	mrrc_lock_acquire(&cache->lock);
	cache_mt_settle(cache);
	held = mrrc_cache_held(&cache->cache);
	mrrc_lock_release(&cache->lock);
	return held;
}

void mrrc_cache_mt_limits(const struct mrrc_cache_mt *cache, size_t *max_bytes,
			  size_t *max_regions)
{
	*max_bytes = cache->cache.max_bytes;
	*max_regions = cache->cache.max_regions;
}

bool mrrc_cache_mt_valid(struct mrrc_cache_mt *cache)
{
	bool valid;

	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_collect(&cache->hints_list);
	valid = mrrc_cache_valid(&cache->cache);
	mrrc_lock_release(&cache->lock);
	return valid;
}

static uint32_t regions_at_most(const struct mrrc_vm_limits *limits)
{
	const size_t most = MRRC_REGIONS_MAX - MRRC_REGIONS_MORE;

	return MRRC_REGIONS_MORE +
	       (limits->max_regions < most ? limits->max_regions : most);
}

int mrrc_cache_mt_open(const struct mrrc_cache_attr *attr,
		       struct mrrc_cache_mt **out)
{
	struct mrrc_vm_limits limits;
	struct mrrc_cache_mt *cache;
	int ret;

	cache = aligned_alloc(_Alignof(struct mrrc_cache_mt), sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	memset(cache, 0, sizeof(*cache));
	TAILQ_INIT(&cache->pending);
	TAILQ_INIT(&cache->victims);
	cache->mon = attr->mon;
	cache->ours = attr->mon->ours;
	cache->ops = attr->ops;
	cache->arg = attr->arg;
	cache->budget = attr->budget;
	cache->helpers = attr->helpers;
	mrrc_revoke_init(&cache->revoke, attr->helper && attr->revoke ?
						 attr->revoke :
						 MRRC_REVOKE_NEVER);
	cache->sub.lock = &cache->lock;
	cache->sub.notify = cache_mt_notify;
	cache->sub.cover = cache_mt_cover;
	cache->sub.ranges = &cache->cache.regions;

	mrrc_vm_default_limits(&limits);
	if (attr->max_bytes)
		limits.max_bytes = attr->max_bytes;
	if (attr->max_regions)
		limits.max_regions = attr->max_regions;
	ret = mrrc_cache_init(&cache->cache,
			      &(struct mrrc_cache_conf){
				      .max_bytes = limits.max_bytes,
				      .max_regions = limits.max_regions,
				      .page = mrrc_vm_page(),
				      .policy = attr->policy,
				      .stats = attr->stats,
			      });
	if (ret)
		goto err_free;
	ret = mrrc_pool_open(MRRC_REGION_STRIDE, regions_at_most(&limits),
			     &cache->pool);
	if (ret)
		goto err_cache;
	cache->regions = cache->pool->base;
	cache->cache.holders = &cache->hints_list.holders;
	ret = mrrc_lock_init(&cache->lock, MRRC_RANK_CACHE);
	if (ret)
		goto err_pool;
	ret = -pthread_cond_init(&cache->settled, NULL);
	if (ret)
		goto err_lock;
	mrrc_hints_list_init(&cache->hints_list, &cache->lock, &cache->cache,
			     cache->pool, attr->records);
	/* the helper only deregisters if the monitor cannot report changes */
	cache->predictor = attr->predictor;
	if (attr->helper && cache->predictor) {
		ret = cache->predictor->open(cache, mrrc_ticks_counter(),
					     &cache->ahead);
		if (ret && ret != -ENODEV)
			goto err_cond;
	}
	ret = attr->helper ? mrrc_cache_mt_helper_start(cache) : 0;
	if (ret)
		goto err_ahead;
	mrrc_mon_subscribe(cache->mon, &cache->sub);
	mrrc_cache_mt_budget_open(cache);
	*out = cache;
	return 0;

err_ahead:
	if (cache->ahead)
		cache->predictor->close(cache->ahead);
err_cond:
	pthread_cond_destroy(&cache->settled);
err_lock:
	mrrc_lock_fini(&cache->lock);
err_pool:
	mrrc_pool_close(cache->pool);
err_cache:
	mrrc_cache_fini(&cache->cache);
err_free:
	free(cache);
	return ret;
}

/* Called when no thread notes uses any more. */
static void cache_mt_close_ahead(struct mrrc_cache_mt *cache)
{
	struct mrrc_uses *uses;

	while ((uses = TAILQ_FIRST(&cache->hints_list.uses))) {
		TAILQ_REMOVE(&cache->hints_list.uses, uses, link);
		mrrc_uses_free(uses);
	}
	if (cache->ahead)
		cache->predictor->close(cache->ahead);
}

int mrrc_cache_mt_close(struct mrrc_cache_mt *cache)
{
	if (!mrrc_mon_forked(cache->mon)) {
		if (mrrc_cache_mt_held(cache))
			return -EBUSY;
		mrrc_cache_mt_budget_close(cache);
		mrrc_cache_mt_flush(cache);
		mrrc_mon_unsubscribe(cache->mon, &cache->sub);
		mrrc_cache_mt_helper_stop(cache);
		mrrc_hints_detach(&cache->hints_list);
		cache_mt_close_ahead(cache);
		mrrc_cache_fini(&cache->cache);
		mrrc_pool_close(cache->pool);
		pthread_cond_destroy(&cache->settled);
		mrrc_lock_fini(&cache->lock);
	}
	/* A forked child does not touch inherited state: see the README. */
	free(cache);
	return 0;
}
