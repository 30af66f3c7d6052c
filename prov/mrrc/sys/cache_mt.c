/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cache for threads (cache_mt.h).
 *
 * Hit:  quiet_lock (probe, lock, seq unchanged) -> lookup -> hold.
 * Miss: the regions of the plan are held, then each of its gaps is published
 *       as pending -> watch -> register -> quiet_lock -> insert, unless an
 *       event touched the pending range. Otherwise the registration serves
 *       this operation only.
 * Event: notify marks pending ranges stale and uncaches; regions that nobody
 *       holds wait in `victims` for the next call of the application, as the
 *       thread that reads events must not call out.
 *
 * Why an insertion is right: the range was watched before it was pinned and
 * pending before it was watched. An unmap of it since then has either been
 * read, so the pending range is stale, or is unfinished, so the probe says
 * so. Why two at once are right: whoever comes second finds the first one's
 * region and drops its own, or replaces what it overlaps.
 */
#include "config.h"
#include "sys/cache_mt_priv.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "sys/vm.h"

#define MRRC_TRIES	32	/* probes before an operation goes uncached */
#define MRRC_SPIN	4	/* of these without giving up the processor */

static struct mrrc_cache_mt *mrrc_cache_mt_of(struct mrrc_mon_sub *sub)
{
	return (struct mrrc_cache_mt *)((char *)sub -
					offsetof(struct mrrc_cache_mt, sub));
}

static bool mrrc_ranges_overlap(uintptr_t a, size_t alen, uintptr_t b,
				size_t blen)
{
	return a < b ? b - a < alen : a - b < blen;
}

/* ---- the monitor's side ---- */

static struct mrrc_range mrrc_cache_mt_notify(struct mrrc_mon_sub *sub,
					      uintptr_t start, uintptr_t end)
{
	struct mrrc_cache_mt *cache = mrrc_cache_mt_of(sub);
	struct mrrc_range hull = { UINTPTR_MAX, 0 };
	const size_t len = end - start;
	struct mrrc_pending *pending;
	struct mrrc_region *region;
	int i;

	mrrc_lock_acquire(&cache->lock);
	TAILQ_FOREACH(pending, &cache->pending, link) {
		if (mrrc_ranges_overlap(pending->start, pending->len, start,
					len))
			pending->stale = true;
	}
	for (i = 0; i < MRRC_ACCESS_CNT; i++) {
		region = mrrc_index_first_overlap(&cache->cache.index[i],
						  start, len);
		while (region) {
			/* The monitor unwatches what is left of it. */
			region->watched = false;
			if (region->start < hull.start)
				hull.start = region->start;
			if (mrrc_region_end(region) > hull.end)
				hull.end = mrrc_region_end(region);
			region = mrrc_index_next_overlap(region, start, len);
		}
	}
	mrrc_cache_invalidate(&cache->cache, start, len, &cache->victims);
	if (!TAILQ_EMPTY(&cache->victims))
		atomic_store(&cache->has_victims, true);
	mrrc_lock_release(&cache->lock);

	if (hull.start > hull.end)
		hull = (struct mrrc_range) { 0, 0 };
	return hull;
}

static struct mrrc_range mrrc_cache_mt_cover(struct mrrc_mon_sub *sub,
					     uintptr_t pos)
{
	struct mrrc_cache_mt *cache = mrrc_cache_mt_of(sub);
	struct mrrc_range best = { 0, 0 };
	struct mrrc_pending *pending;
	struct mrrc_region *region;
	int i;

	mrrc_lock_acquire(&cache->lock);
	for (i = 0; i < MRRC_ACCESS_CNT; i++) {
		region = mrrc_index_first_overlap(&cache->cache.index[i], pos,
						  UINTPTR_MAX - pos);
		if (region && (!best.end || region->start < best.start))
			best = (struct mrrc_range) {
				region->start, mrrc_region_end(region)
			};
	}
	TAILQ_FOREACH(pending, &cache->pending, link) {
		if (pending->start + pending->len > pos &&
		    (!best.end || pending->start < best.start))
			best = (struct mrrc_range) {
				pending->start, pending->start + pending->len
			};
	}
	mrrc_lock_release(&cache->lock);
	return best;
}

/* ---- deregistration, outside locks ---- */

static void mrrc_cache_mt_dereg(struct mrrc_cache_mt *cache,
				struct mrrc_region **batch, size_t count)
{
	size_t i;

	mrrc_lock_assert_none();
	cache->ops->dereg(cache->arg, batch, count);

	mrrc_lock_acquire(&cache->lock);
	for (i = 0; i < count; i++)
		mrrc_cache_deregistered(&cache->cache, batch[i]->len);
	mrrc_lock_release(&cache->lock);

	for (i = 0; i < count; i++) {
		if (batch[i]->watched)
			mrrc_mon_unwatch(cache->mon, batch[i]->start,
					 batch[i]->len);
		free(batch[i]);
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

static size_t mrrc_cache_mt_reap_now(struct mrrc_cache_mt *cache)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);

	if (mrrc_mon_forked(cache->mon))
		return 0;
	mrrc_lock_acquire(&cache->lock);
	TAILQ_CONCAT(&list, &cache->victims, link);
	atomic_store(&cache->has_victims, false);
	mrrc_lock_release(&cache->lock);
	return mrrc_cache_mt_dereg_list(cache, &list);
}

/* What the monitor left for a thread that may call out. */
static inline size_t mrrc_cache_mt_reap(struct mrrc_cache_mt *cache)
{
	return atomic_load_explicit(&cache->has_victims,
				    memory_order_relaxed) ?
	       mrrc_cache_mt_reap_now(cache) : 0;
}

/* ---- lookups ---- */

int mrrc_cache_mt_quiet_lock(struct mrrc_cache_mt *cache)
{
	uint64_t seq;
	int tries;
	int rc;

	for (tries = 0; tries < MRRC_TRIES; tries++) {
		seq = mrrc_mon_seq(cache->mon);
		if (seq & 1)
			rc = mrrc_mon_works(cache->mon) ? -EAGAIN : -ENODEV;
		else
			rc = mrrc_mon_check(cache->mon);
		if (!rc) {
			mrrc_lock_acquire(&cache->lock);
			if (mrrc_mon_seq(cache->mon) != seq) {
				mrrc_lock_release(&cache->lock);
				continue;
			}
			if (tries)
				mrrc_cache_count(&cache->cache,
						 MRRC_STAT_BUSY);
			return 0;
		}
		if (rc != -EAGAIN)
			return rc;
		mrrc_mon_drain(cache->mon);
		/* The unmapping thread has yet to wake up. */
		if (tries >= MRRC_SPIN)
			sched_yield();
	}
	return -EAGAIN;
}

/* What is there, held. What quiet_lock says if there is no telling. */
static int mrrc_cache_mt_lookup(struct mrrc_cache_mt *cache, uintptr_t addr,
				size_t len, enum mrrc_access access,
				unsigned pieces, struct mrrc_plan *plan)
{
	unsigned i;
	int rc;

	rc = mrrc_cache_mt_quiet_lock(cache);
	if (rc)
		return rc;
	mrrc_cache_lookup(&cache->cache, addr, len, access, pieces, plan);
	for (i = 0; i < plan->count; i++) {
		if (plan->piece[i].region)
			mrrc_cache_hold(&cache->cache, plan->piece[i].region);
	}
	mrrc_lock_release(&cache->lock);
	return 0;
}

/* A request that could not even be looked up is a miss all the same. */
static void mrrc_cache_mt_unseen(struct mrrc_cache_mt *cache, int rc)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	mrrc_cache_count(&cache->cache, MRRC_STAT_LOOKUPS);
	mrrc_cache_count(&cache->cache, MRRC_STAT_MISSES);
	if (rc == -EAGAIN)
		mrrc_cache_count(&cache->cache, MRRC_STAT_BUSY);
	mrrc_lock_release(&cache->lock);
}

/* ---- entry points ---- */

/* Of the pages that the range touches. */
static size_t mrrc_pages_len(uintptr_t addr, size_t len, size_t page)
{
	return ((addr + len - 1) | (page - 1)) + 1 - (addr & ~(page - 1));
}

/* The whole request in one registration of its own. */
static int mrrc_cache_mt_single(struct mrrc_cache_mt *cache, uintptr_t addr,
				size_t len, enum mrrc_access access, int rc,
				struct mrrc_plan *plan)
{
	struct mrrc_piece *piece = &plan->piece[0];

	piece->start = addr & ~(cache->cache.page - 1);
	piece->len = mrrc_pages_len(addr, len, cache->cache.page);
	plan->count = 1;
	if (!rc)
		return mrrc_cache_mt_fill(cache, piece->start, piece->len,
					  access, &piece->region);
	return mrrc_cache_mt_once(cache, addr, len, access,
				  rc == -EAGAIN ?
				  MRRC_STAT_UNCACHED_RACED :
				  MRRC_STAT_UNCACHED_NO_MONITOR,
				  &piece->region);
}

/* Register what is missing; on failure nothing of the plan is held. */
static int mrrc_cache_mt_complete(struct mrrc_cache_mt *cache,
				  enum mrrc_access access,
				  struct mrrc_plan *plan)
{
	struct mrrc_piece *piece;
	unsigned i;
	int rc = 0;

	for (i = 0; i < plan->count && !rc; i++) {
		piece = &plan->piece[i];
		if (!piece->region)
			rc = mrrc_cache_mt_fill(cache, piece->start,
						piece->len, access,
						&piece->region);
	}
	for (i = 0; rc && i < plan->count; i++) {
		if (plan->piece[i].region)
			mrrc_cache_mt_put(cache, plan->piece[i].region);
	}
	return rc;
}

int mrrc_cache_mt_get_pieces(struct mrrc_cache_mt *cache, const void *ptr,
			     size_t len, enum mrrc_access access,
			     unsigned pieces, struct mrrc_plan *plan)
{
	const uintptr_t addr = (uintptr_t)ptr;
	bool alone;
	int rc;

	if (!len)
		return -EINVAL;
	/* The last page of the address space is nobody's. */
	if (!addr || len > UINTPTR_MAX - addr ||
	    addr + len > UINTPTR_MAX - cache->cache.page)
		return -EFAULT;

	mrrc_lock_assert_none();
	mrrc_cache_mt_reap(cache);
	rc = mrrc_cache_mt_lookup(cache, addr, len, access, pieces, plan);
	if (rc) {
		mrrc_cache_mt_unseen(cache, rc);
		return mrrc_cache_mt_single(cache, addr, len, access, rc, plan);
	}
	if (!plan->missing)
		return 0;
	alone = plan->count == 1 && plan->piece[0].len == mrrc_pages_len(
		addr, len, cache->cache.page);
	rc = mrrc_cache_mt_complete(cache, access, plan);
	if (!rc || alone)
		return rc;
	/* Neighbours that are cached may not be like what was asked for. */
	return mrrc_cache_mt_single(cache, addr, len, access, 0, plan);
}

int mrrc_cache_mt_get(struct mrrc_cache_mt *cache, const void *ptr, size_t len,
		      enum mrrc_access access, struct mrrc_region **region)
{
	struct mrrc_plan plan;
	int rc;

	rc = mrrc_cache_mt_get_pieces(cache, ptr, len, access, 1, &plan);
	if (!rc)
		*region = plan.piece[0].region;
	return rc;
}

/*
 * In a forked child the parent's regions are not ours to deregister, and
 * those registered here were never counted.
 */
static void mrrc_cache_mt_put_forked(struct mrrc_cache_mt *cache,
				     struct mrrc_region *region)
{
	if (region->state != MRRC_REGION_NEW || --region->held)
		return;
	cache->ops->dereg(cache->arg, &region, 1);
	free(region);
}

void mrrc_cache_mt_put(struct mrrc_cache_mt *cache, struct mrrc_region *region)
{
	bool last;

	if (mrrc_mon_forked(cache->mon)) {
		mrrc_cache_mt_put_forked(cache, region);
		return;
	}
	mrrc_lock_acquire(&cache->lock);
	last = mrrc_cache_put(&cache->cache, region);
	mrrc_lock_release(&cache->lock);
	if (last)
		mrrc_cache_mt_dereg(cache, &region, 1);
	mrrc_cache_mt_reap(cache);
}

size_t mrrc_cache_mt_flush(struct mrrc_cache_mt *cache)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	size_t count;

	if (mrrc_mon_forked(cache->mon))
		return 0;
	count = mrrc_cache_mt_reap(cache);
	mrrc_lock_acquire(&cache->lock);
	mrrc_cache_evict_all(&cache->cache, &list);
	mrrc_lock_release(&cache->lock);
	return count + mrrc_cache_mt_dereg_list(cache, &list);
}

void mrrc_cache_mt_invalidate(struct mrrc_cache_mt *cache, const void *addr,
			      size_t len)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct mrrc_pending *pending;

	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	TAILQ_FOREACH(pending, &cache->pending, link) {
		if (mrrc_ranges_overlap(pending->start, pending->len,
					(uintptr_t)addr, len))
			pending->stale = true;
	}
	mrrc_cache_invalidate(&cache->cache, (uintptr_t)addr, len, &list);
	mrrc_lock_release(&cache->lock);
	mrrc_cache_mt_dereg_list(cache, &list);
}

void mrrc_cache_mt_stats(struct mrrc_cache_mt *cache, struct mrrc_stats *stats)
{
	if (mrrc_mon_forked(cache->mon)) {
		*stats = *cache->cache.stats;
		return;
	}
	mrrc_lock_acquire(&cache->lock);
	*stats = *cache->cache.stats;
	mrrc_lock_release(&cache->lock);
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
	valid = mrrc_cache_valid(&cache->cache);
	mrrc_lock_release(&cache->lock);
	return valid;
}

int mrrc_cache_mt_open(const struct mrrc_cache_attr *attr,
		       struct mrrc_cache_mt **out)
{
	struct mrrc_vm_limits limits;
	struct mrrc_cache_mt *cache;
	int rc;

	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	TAILQ_INIT(&cache->pending);
	TAILQ_INIT(&cache->victims);
	cache->mon = attr->mon;
	cache->ops = attr->ops;
	cache->arg = attr->arg;
	cache->sub.notify = mrrc_cache_mt_notify;
	cache->sub.cover = mrrc_cache_mt_cover;

	mrrc_vm_default_limits(&limits);
	if (attr->max_bytes)
		limits.max_bytes = attr->max_bytes;
	if (attr->max_regions)
		limits.max_regions = attr->max_regions;
	rc = mrrc_cache_init(&cache->cache, &(struct mrrc_cache_conf) {
		.max_bytes = limits.max_bytes,
		.max_regions = limits.max_regions,
		.page = mrrc_vm_page(),
		.policy = attr->policy,
		.stats = attr->stats,
	});
	if (rc)
		goto err_free;
	rc = mrrc_lock_init(&cache->lock, MRRC_RANK_CACHE);
	if (rc)
		goto err_cache;
	mrrc_mon_subscribe(cache->mon, &cache->sub);
	*out = cache;
	return 0;

err_cache:
	mrrc_cache_fini(&cache->cache);
err_free:
	free(cache);
	return rc;
}

int mrrc_cache_mt_close(struct mrrc_cache_mt *cache)
{
	uint64_t held;

	if (!mrrc_mon_forked(cache->mon)) {
		mrrc_lock_acquire(&cache->lock);
		held = cache->cache.stats->value[MRRC_STAT_HELD];
		mrrc_lock_release(&cache->lock);
		if (held)
			return -EBUSY;
		mrrc_cache_mt_flush(cache);
		mrrc_mon_unsubscribe(cache->mon, &cache->sub);
		/* An event may have come between the two. */
		mrrc_cache_mt_reap(cache);
		mrrc_cache_fini(&cache->cache);
		mrrc_lock_fini(&cache->lock);
	}
	/* What a forked child inherited stays as it was: see README. */
	free(cache);
	return 0;
}
