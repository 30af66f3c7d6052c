/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lookups of the cache for threads (cache_mt.h).
 *
 * Hit: find a region that this thread used before -> memory is quiet -> hold
 *       the region, if it has the same tag and is indexed. Takes no lock, and
 *       makes no system call if no other thread could unmap.
 * Else: quiet_lock (memory is quiet, lock, seq unchanged; only lock, if no
 *       region is near) -> collect the threads' counters and requests -> lookup
 *       -> hold.
 * Miss: the caller copies the buffer, if a copy is cheaper. Else hold the
 *       plan's regions, and publish each gap of the plan as pending, under the
 *       lookup's lock if there is one gap only -> watch -> register ->
 *       quiet_lock -> insert, unless an event touched the pending range: then
 *       the registration serves this operation only.
 *
 * A hit is right, because once memory is quiet, regions that were unmapped
 * before the call have left the index: the tag in such a region's word has
 * changed, so the hint does not hold the region. An insertion is right, because
 * the range was pending before it was watched, and watched before it was
 * pinned: the event of a later unmap either was read, so that the pending range
 * is stale, or the unmap is unfinished, and the probe reports it. If two
 * threads miss at once, and the first registers all of the second's range, the
 * second waits for the first, and looks up again.
 */
#include "config.h"
#include "sys/cache/cache_get.h"
#include "sys/cache/cache_hit.h"

#include <errno.h>

#include "sys/base/pause.h"
#include "sys/cache/miss.h"
#include "sys/cache/reaper.h"
#include "core/cache/plan.h"

#define MRRC_TRIES 32 /* probes before an operation goes uncached */
#define MRRC_SPIN  4  /* probes without giving up the processor */

/* Adds the counts of a thread's table to the cache's statistics. */
__attribute__((noinline)) void mrrc_cache_mt_count(struct mrrc_cache_mt *cache,
						   struct mrrc_hints *hints)
{
	mrrc_lock_acquire(&cache->lock);
	mrrc_hints_count(hints, &cache->cache);
	mrrc_lock_release(&cache->lock);
}

/* Make a hint for the thread's next lookup. The region is held. */
static void cache_mt_remember(struct mrrc_cache_mt *cache, uintptr_t addr,
			      enum mrrc_access access,
			      struct mrrc_region *region)
{
	const uintptr_t big = addr >> MRRC_HINTS_BIG << MRRC_HINTS_BIG;
	const uint64_t ref = mrrc_region_word(region);
	struct mrrc_hints *hints;

	/* an unindexed region, as in a forked child, serves only once */
	if (!(ref & MRRC_REGION_INDEX_BIT))
		return;
	hints = mrrc_hints_get(&cache->hints_list);
	if (hints)
		mrrc_hints_fill(hints, cache->regions, addr, access, ref,
				big >= region->start &&
					mrrc_region_end(region) - big >=
						(uintptr_t) 1
							<< MRRC_HINTS_BIG);
}

/* Serves a hit by the thread's hint, if the hint is still valid. */
static struct mrrc_region *cache_mt_hit(struct mrrc_cache_mt *cache,
					uintptr_t addr, size_t len,
					enum mrrc_access access)
{
	struct mrrc_hints *hints = mrrc_hints_mine(&cache->hints_list);

	return hints && len ?
		       mrrc_cache_hit(cache, hints, addr, len, access, true) :
		       NULL;
}

/* ---- with the lock ---- */

int mrrc_cache_mt_quiet_lock(struct mrrc_cache_mt *cache)
{
	_Atomic uint64_t probes = 0;
	uint64_t seq;
	int tries;
	int ret;

	for (tries = 0; tries < MRRC_TRIES; tries++) {
		ret = mrrc_mon_quiet(cache->mon, &seq, &probes);
		if (!ret) {
			mrrc_lock_acquire(&cache->lock);
			if (mrrc_mon_seq(cache->mon) != seq) {
				mrrc_lock_release(&cache->lock);
				continue;
			}
			cache->cache.stats->value[MRRC_STAT_PROBES] += probes;
			if (tries)
				mrrc_cache_count(&cache->cache, MRRC_STAT_BUSY);
			return 0;
		}
		if (ret != -EAGAIN)
			return ret;
		mrrc_mon_drain(cache->mon);
		/*
		 * The unmapping thread has not woken up yet, and may need this
		 * processor.
		 */
		if (tries >= MRRC_SPIN)
			mrrc_pause_brief(MRRC_TRIES - 1 - tries);
	}
	return -EAGAIN;
}

/* A request for registrations, which a copy may replace. */
struct mrrc_want {
	uintptr_t addr;
	size_t len;
	enum mrrc_access access;
	unsigned pieces;
	struct mrrc_admit *admit; /* NULL: the buffer cannot be copied */
	bool stable;		  /* mrrc_cache_mt_get_stable() */
	bool copy;		  /* a copy is cheaper: nothing is held */
};

static size_t plan_missing(const struct mrrc_plan *plan)
{
	size_t missing = 0;
	unsigned i;

	for (i = 0; i < plan->count; i++)
		missing += plan->piece[i].region ? 0 : plan->piece[i].len;
	return missing;
}

/* Does a region share a page with the request? CACHE lock held. */
static bool cache_mt_near(const struct mrrc_cache *cache,
			  const struct mrrc_want *want)
{
	const uintptr_t start = want->addr & ~(cache->page - 1);
	int i;

	for (i = 0; i < MRRC_ACCESS_CNT; i++) {
		if (cache->index[i].bytes &&
		    mrrc_index_first_overlap(&cache->index[i], start,
					     want->addr + want->len - start))
			return true;
	}
	return false;
}

/*
 * Takes the lock without asking the kernel whether memory is quiet, if the
 * request will miss: a miss uses no region that could be stale, and its
 * insertion asks the kernel.
 */
static bool cache_mt_miss_lock(struct mrrc_cache_mt *cache,
			       const struct mrrc_want *want)
{
	if (mrrc_mon_told(cache->mon) || !mrrc_mon_works(cache->mon))
		return false;
	mrrc_lock_acquire(&cache->lock);
	/* events that are being handled would make the range stale */
	if (!(mrrc_mon_seq(cache->mon) & 1) &&
	    !cache_mt_near(&cache->cache, want))
		return true;
	mrrc_lock_release(&cache->lock);
	return false;
}

/*
 * Plans the request, and holds the existing regions of the plan, unless the
 * request should be copied. If the plan is a single gap, publishes *pending,
 * unless another thread registers the gap. Returns the errors of
 * mrrc_cache_mt_quiet_lock().
 */
static int cache_mt_lookup(struct mrrc_cache_mt *cache, struct mrrc_want *want,
			   struct mrrc_plan *plan, struct mrrc_pending *pending,
			   uint64_t *changes)
{
	unsigned i;
	int ret;

	ret = cache_mt_miss_lock(cache, want) ? 0 :
						mrrc_cache_mt_quiet_lock(cache);
	if (ret)
		return ret;
	mrrc_hints_collect(&cache->hints_list);
	*changes = cache->changes;
	mrrc_cache_lookup(&cache->cache, want->addr, want->len, want->access,
			  want->pieces, plan);
	want->copy = plan->missing && want->admit &&
		     mrrc_admit(want->admit, &cache->cache, want->addr,
				want->len,
				plan_missing(plan)) == MRRC_ADMIT_BOUNCE;
	for (i = 0; i < plan->count && !want->copy; i++) {
		if (plan->piece[i].region)
			mrrc_cache_hold(&cache->cache, plan->piece[i].region);
	}
	if (plan->missing && plan->count == 1 && !want->copy &&
	    plan->piece[0].len <= cache->cache.max_bytes) {
		pending->start = plan->piece[0].start;
		pending->len = plan->piece[0].len;
		pending->place = plan->place;
		mrrc_cache_mt_publish(cache, pending);
	}
	mrrc_lock_release(&cache->lock);
	return 0;
}

/*
 * A request whose lookup failed counts as a miss. Because its registration
 * would serve this request only, copying once may be cheaper.
 */
static void cache_mt_unseen(struct mrrc_cache_mt *cache, struct mrrc_want *want,
			    int ret)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	want->copy = want->admit &&
		     mrrc_admit_copy_once(want->admit, want->len);
	mrrc_cache_count(&cache->cache, MRRC_STAT_LOOKUPS);
	mrrc_cache_count(&cache->cache, MRRC_STAT_MISSES);
	if (ret == -EAGAIN)
		mrrc_cache_count(&cache->cache, MRRC_STAT_BUSY);
	mrrc_lock_release(&cache->lock);
}

/* ---- entry points ---- */

/* Length of the pages that the range touches. */
static size_t mrrc_pages_len(uintptr_t addr, size_t len, size_t page)
{
	return ((addr + len - 1) | (page - 1)) + 1 - (addr & ~(page - 1));
}

/* Registers the whole request in one separate registration. */
static int cache_mt_single(struct mrrc_cache_mt *cache,
			   const struct mrrc_want *want, int ret,
			   struct mrrc_plan *plan)
{
	struct mrrc_piece *piece = &plan->piece[0];
	struct mrrc_pending pending = { .access = want->access,
					.stable = want->stable };

	piece->start = want->addr & ~(cache->cache.page - 1);
	piece->len = mrrc_pages_len(want->addr, want->len, cache->cache.page);
	plan->count = 1;
	if (ret)
		return mrrc_cache_mt_once(cache, want->addr, want->len,
					  want->access,
					  ret == -EAGAIN ?
						  MRRC_STAT_UNCACHED_RACED :
						  MRRC_STAT_UNCACHED_NO_MONITOR,
					  &piece->region);
	pending.start = piece->start;
	pending.len = piece->len;
	return mrrc_cache_mt_fill(cache, &pending, NULL, &piece->region);
}

/*
 * Registers the gaps of a plan; on failure no region of the plan is held. A
 * merged plan has pages beyond the request, which may not be mapped any more.
 */
static int cache_mt_complete(struct mrrc_cache_mt *cache,
			     struct mrrc_pending *pending,
			     const uint64_t *changes, struct mrrc_plan *plan)
{
	struct mrrc_piece *piece;
	unsigned i;
	int ret = 0;

	for (i = 0; i < plan->count && !ret; i++) {
		piece = &plan->piece[i];
		if (piece->region)
			continue;
		if (!pending->published)
			*pending = (struct mrrc_pending){
				.start = piece->start,
				.len = piece->len,
				.access = pending->access,
				.stable = pending->stable,
			};
		ret = mrrc_cache_mt_fill(cache, pending,
					 plan->merged ? changes : NULL,
					 &piece->region);
		pending->published = false;
	}
	for (i = 0; ret && i < plan->count; i++) {
		if (plan->piece[i].region)
			mrrc_cache_mt_put(cache, plan->piece[i].region);
	}
	return ret;
}

static int cache_mt_plan(struct mrrc_cache_mt *cache, struct mrrc_want *want,
			 struct mrrc_plan *plan)
{
	struct mrrc_pending pending = { .access = want->access,
					.stable = want->stable };
	uint64_t changes;
	bool alone;
	int ret;

	if (!want->len)
		return -EINVAL;
	/* The last page of the address space is never registered. */
	if (!want->addr || want->len > UINTPTR_MAX - want->addr ||
	    want->addr + want->len > UINTPTR_MAX - cache->cache.page)
		return -EFAULT;

	mrrc_lock_assert_none();
	mrrc_cache_mt_reap(cache);
	ret = cache_mt_lookup(cache, want, plan, &pending, &changes);
	if (ret) {
		cache_mt_unseen(cache, want, ret);
		return want->copy ? 0 : cache_mt_single(cache, want, ret, plan);
	}
	if (!plan->missing || want->copy)
		return 0;
	alone = plan->count == 1 &&
		plan->piece[0].len == mrrc_pages_len(want->addr, want->len,
						     cache->cache.page);
	ret = cache_mt_complete(cache, &pending, &changes, plan);
	if (!ret || alone)
		return ret;
	/* Cached neighbours may lack the access rights that are requested. */
	return cache_mt_single(cache, want, 0, plan);
}

/*
 * Makes a lookup that needs the lock. The thread cannot be cancelled during the
 * lookup, since its pending range lies on its stack.
 */
static __attribute__((noinline)) int
mrrc_cache_mt_get_slow(struct mrrc_cache_mt *cache, struct mrrc_want *want,
		       struct mrrc_plan *plan)
{
	int cancel;
	int ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = cache_mt_plan(cache, want, plan);
	pthread_setcancelstate(cancel, NULL);
	if (!ret && !want->copy && plan->count == 1)
		cache_mt_remember(cache, want->addr, want->access,
				  plan->piece[0].region);
	return ret;
}

static __attribute__((noinline)) int
mrrc_cache_mt_get_one(struct mrrc_cache_mt *cache, uintptr_t addr, size_t len,
		      enum mrrc_access access, struct mrrc_region **region)
{
	struct mrrc_want want = { addr, len, access, 1, .admit = NULL };
	struct mrrc_plan plan;
	int ret;

	ret = mrrc_cache_mt_get_slow(cache, &want, &plan);
	if (!ret)
		*region = plan.piece[0].region;
	return ret;
}

static inline bool cache_mt_known(struct mrrc_cache_mt *cache, uintptr_t addr,
				  size_t len, enum mrrc_access access,
				  struct mrrc_plan *plan)
{
	struct mrrc_region *region;

	region = cache_mt_hit(cache, addr, len, access);
	if (!region)
		return false;
	plan->count = 1;
	plan->missing = 0;
	plan->merged = false;
	plan->piece[0] = (struct mrrc_piece){
		.start = region->start,
		.len = region->len,
		.region = region,
	};
	return true;
}

int mrrc_cache_mt_get_pieces(struct mrrc_cache_mt *cache, const void *ptr,
			     size_t len, enum mrrc_access access,
			     unsigned pieces, struct mrrc_plan *plan)
{
	struct mrrc_want want = { (uintptr_t) ptr, len, access, pieces,
				  .admit = NULL };

	return cache_mt_known(cache, want.addr, len, access, plan) ?
		       0 :
		       mrrc_cache_mt_get_slow(cache, &want, plan);
}

int mrrc_cache_mt_get_or_copy(struct mrrc_cache_mt *cache,
			      struct mrrc_admit *admit, const void *ptr,
			      size_t len, enum mrrc_access access,
			      unsigned pieces, struct mrrc_plan *plan,
			      bool *copy)
{
	struct mrrc_want want = { (uintptr_t) ptr, len, access, pieces,
				  .admit = admit };
	int ret;

	*copy = false;
	if (cache_mt_known(cache, want.addr, len, access, plan))
		return 0;
	ret = mrrc_cache_mt_get_slow(cache, &want, plan);
	*copy = want.copy;
	return ret;
}

bool mrrc_cache_mt_known(struct mrrc_cache_mt *cache, const void *ptr,
			 size_t len, enum mrrc_access access,
			 struct mrrc_plan *plan)
{
	return cache_mt_known(cache, (uintptr_t) ptr, len, access, plan);
}

int mrrc_cache_mt_get_stable(struct mrrc_cache_mt *cache,
			     struct mrrc_admit *admit, const void *ptr,
			     size_t len, unsigned pieces,
			     struct mrrc_plan *plan, bool *copy)
{
	struct mrrc_want want = { (uintptr_t) ptr, len,
				  MRRC_RO,	   pieces,
				  .admit = admit,  .stable = true };
	int ret;

	ret = mrrc_cache_mt_get_slow(cache, &want, plan);
	*copy = want.copy;
	return ret;
}

static __attribute__((noinline)) int
mrrc_cache_mt_get_asking(struct mrrc_cache_mt *cache, const void *ptr,
			 size_t len, enum mrrc_access access,
			 struct mrrc_region **region)
{
	const uintptr_t addr = (uintptr_t) ptr;
	struct mrrc_region *found;

	found = cache_mt_hit(cache, addr, len, access);
	if (!found)
		return mrrc_cache_mt_get_one(cache, addr, len, access, region);
	*region = found;
	return 0;
}

/* The fast path calls no function, so this function saves no registers. */
int mrrc_cache_mt_get(struct mrrc_cache_mt *cache, const void *ptr, size_t len,
		      enum mrrc_access access, struct mrrc_region **region)
{
	struct mrrc_hints *hints = mrrc_cache_hit_table(cache);
	struct mrrc_region *found = NULL;

	if (__builtin_expect(hints && len, 1))
		found = mrrc_cache_hit(cache, hints, (uintptr_t) ptr, len,
				       access, false);
	if (__builtin_expect(!found, 0))
		return mrrc_cache_mt_get_asking(cache, ptr, len, access,
						region);
	*region = found;
	return 0;
}

/*
 * Puts a region in a forked child, which must not deregister the parent's
 * regions. Regions that the child registered itself were never counted.
 */
__attribute__((noinline)) void
mrrc_cache_mt_put_forked(struct mrrc_cache_mt *cache,
			 struct mrrc_region *region)
{
	/* the parent's regions are in the pool, indexed or not */
	if (mrrc_pool_owns(cache->pool, region) || mrrc_region_unhold(region))
		return;
	cache->ops->dereg(cache->arg, &region, 1);
	mrrc_cache_mt_region_free(cache, region);
}

/*
 * Called when an operation, perhaps the last one, on a region that is no longer
 * indexed has ended. Retiring the region and each call of this function take
 * the lock, so either the retiring or one of these calls finds no operation
 * left.
 */
__attribute__((noinline)) void
mrrc_cache_mt_put_last(struct mrrc_cache_mt *cache, struct mrrc_region *region)
{
	bool last;

	mrrc_lock_acquire(&cache->lock);
	last = mrrc_cache_last(&cache->cache, region);
	mrrc_lock_release(&cache->lock);
	if (last)
		mrrc_cache_mt_dereg(cache, &region, 1);
	mrrc_cache_mt_reap(cache);
}

/* For a thread that has no table, or used the table of another cache last. */
__attribute__((noinline)) void
mrrc_cache_mt_put_stray(struct mrrc_cache_mt *cache, struct mrrc_region *region)
{
	struct mrrc_hints *hints = mrrc_hints_of(&cache->hints_list);

	if (hints) {
		mrrc_cache_hit_put(cache, hints, region);
		return;
	}
	mrrc_region_unhold(region);
	if (!mrrc_region_indexed(region))
		mrrc_cache_mt_put_last(cache, region);
	else
		mrrc_cache_mt_reap(cache);
}

void mrrc_cache_mt_put(struct mrrc_cache_mt *cache, struct mrrc_region *region)
{
	mrrc_cache_hit_put(cache, mrrc_cache_hit_table(cache), region);
}
