/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The steps of a miss: plan (cache_get.c), publish, watch, register, insert.
 * mrrc_cache_mt_fill() has the reasons for this order. If the range cannot be
 * cached, the operation is served by a region in state NEW, which is
 * deregistered with its last put.
 *
 * Runs in the thread of the application that missed; no lock is held across
 * calls out.
 */
#include "config.h"
#include "sys/cache/miss.h"
#include "sys/base/reg_error.h"

#include <errno.h>
#include <stdlib.h>

#include "sys/cache/cache_get.h"
#include "sys/cache/reaper.h"
#include "sys/cache/cache_budget.h"

/* Number of evictions of some regions before all idle regions are evicted. */
#define MRRC_ROOM_TRIES 6
/* Number of attempts to watch a range before it is left uncached. */
#define MRRC_WATCH_TRIES 2

/* The state of one miss. */
struct mrrc_miss {
	struct mrrc_cache_mt *cache;
	struct mrrc_pending *pending; /* NULL: not to be cached */
	uint64_t token;		      /* the watch's; 0: sees changes */
	bool seen;		      /* every change would be reported */
	bool over;		      /* beyond the budget of the node */
	struct mrrc_region *region;
};

/* A forked child must not take locks, and its counters are not read. */
static void miss_count(struct mrrc_cache_mt *cache, enum mrrc_stat stat)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	mrrc_cache_count(&cache->cache, stat);
	mrrc_lock_release(&cache->lock);
}

/*
 * Registers [start, start + len) in one attempt; fills miss->region. The thread
 * counts the registration when it takes the lock next.
 */
static int miss_reg_once(struct mrrc_miss *miss, uintptr_t start, size_t len,
			 enum mrrc_access as)
{
	struct mrrc_cache_mt *cache = miss->cache;
	struct mrrc_region *region = miss->region;
	void *cookie = NULL;
	void *desc = NULL;
	int ret;

	mrrc_lock_assert_none();
	ret = cache->ops->reg(cache->arg, start, len, as, &cookie, &desc);
	if (ret) {
		miss_count(cache, MRRC_STAT_REG_FAILURES);
		return ret;
	}
	region->start = start;
	region->len = len;
	region->access = as;
	region->cookie = cookie;
	region->desc = desc;
	return 0;
}

/*
 * Registers the range; each time a limit is reached, evicts idle regions, more
 * from attempt to attempt, and tries again.
 */
static int miss_reg_tries(struct mrrc_miss *miss, uintptr_t start, size_t len,
			  enum mrrc_access as)
{
	unsigned attempt;
	int ret;

	for (attempt = 0;; attempt++) {
		ret = miss_reg_once(miss, start, len, as);
		if (!mrrc_reg_limited(ret) ||
		    (miss->pending && miss->pending->gentle))
			return ret;
		if (attempt < MRRC_ROOM_TRIES ?
			    !mrrc_cache_mt_make_room(miss->cache, len,
						     attempt) :
			    attempt > MRRC_ROOM_TRIES ||
				    !mrrc_cache_mt_flush(miss->cache))
			return ret;
	}
}

/*
 * Registers the range with bytes of the node's budget; a forked child takes no
 * bytes.
 */
static int miss_reg(struct mrrc_miss *miss, uintptr_t start, size_t len,
		    enum mrrc_access as)
{
	struct mrrc_cache_mt *cache = miss->cache;
	const bool counts = cache->budget && !mrrc_mon_forked(cache->mon);
	int ret;

	if (!counts)
		miss->over = false;
	else if (!miss->pending || !miss->pending->gentle)
		miss->over = !mrrc_cache_mt_budget_take(cache, len);
	else if (!mrrc_budget_try(cache->budget, len))
		return -ENOSPC;
	ret = miss_reg_tries(miss, start, len, as);
	if (ret && counts)
		mrrc_cache_mt_budget_put(cache, len);
	return ret;
}

/* ---- a miss that may be cached ---- */

/* CACHE lock held. */
static void miss_settle(struct mrrc_miss *miss)
{
	struct mrrc_cache_mt *cache = miss->cache;

	TAILQ_REMOVE(&cache->pending, miss->pending, link);
	if (cache->waiting)
		pthread_cond_broadcast(&cache->settled);
}

/*
 * Is another thread registering a range that covers this range? CACHE lock
 * held.
 */
static bool miss_under_way(struct mrrc_cache_mt *cache,
			   const struct mrrc_pending *pending)
{
	const struct mrrc_pending *other;

	TAILQ_FOREACH(other, &cache->pending, link) {
		if (!other->stale &&
		    !pthread_equal(other->thread, pthread_self()) &&
		    other->start <= pending->start &&
		    pending->start - other->start < other->len &&
		    pending->len <=
			    other->len - (pending->start - other->start) &&
		    (other->access == pending->access ||
		     !mrrc_access_remote(other->access | pending->access)))
			return true;
	}
	return false;
}

/* CACHE lock held. */
static void miss_publish(struct mrrc_cache_mt *cache,
			 struct mrrc_pending *pending)
{
	pending->thread = pthread_self();
	pending->published = true;
	TAILQ_INSERT_TAIL(&cache->pending, pending, link);
}

bool mrrc_cache_mt_publish(struct mrrc_cache_mt *cache,
			   struct mrrc_pending *pending)
{
	if (miss_under_way(cache, pending))
		return false;
	miss_publish(cache, pending);
	return true;
}

/*
 * Publish the range as pending. If another thread has registered the range,
 * returns that region, held. If another thread is registering the range, waits
 * for that registration, but only once, as the new region may not get indexed.
 * Otherwise returns NULL. Because a thread waits before it publishes, no thread
 * waits for a waiting thread.
 */
static struct mrrc_region *miss_begin(struct mrrc_miss *miss,
				      const uint64_t *changes)
{
	struct mrrc_pending *pending = miss->pending;
	struct mrrc_cache_mt *cache = miss->cache;
	struct mrrc_region *found = NULL;
	bool waited = false;

	for (;; waited = true) {
		if (mrrc_cache_mt_quiet_lock(cache)) {
			mrrc_lock_acquire(&cache->lock);
			break;
		}
		found = mrrc_cache_find(&cache->cache, pending->start,
					pending->len, pending->access);
		if (found || waited || !miss_under_way(cache, pending))
			break;
		cache->waiting++;
		while (miss_under_way(cache, pending))
			mrrc_lock_wait(&cache->lock, &cache->settled);
		cache->waiting--;
		mrrc_lock_release(&cache->lock);
	}
	if (found) {
		mrrc_cache_hold(&cache->cache, found);
		mrrc_cache_count(&cache->cache, MRRC_STAT_JOINED);
	} else {
		pending->stale = changes && *changes != cache->changes;
		miss_publish(cache, pending);
	}
	mrrc_lock_release(&cache->lock);
	return found;
}

/* Give up without a registration. */
static void miss_withdraw(struct mrrc_miss *miss)
{
	struct mrrc_cache_mt *cache = miss->cache;

	mrrc_lock_acquire(&cache->lock);
	miss_settle(miss);
	mrrc_lock_release(&cache->lock);
	if (miss->pending->watched)
		mrrc_mon_unwatch(cache->mon, miss->pending->start,
				 miss->pending->len);
}

/*
 * Watches the range. At the limit of watched ranges, evicts other caches'
 * regions or idle regions to make room, unless the range is registered ahead of
 * use.
 */
static int miss_watch(struct mrrc_miss *miss)
{
	struct mrrc_pending *pending = miss->pending;
	bool began = false;
	unsigned attempt;
	int ret;

	if (pending->stable)
		return 0;
	for (attempt = 0;; attempt++) {
		ret = mrrc_mon_watch(miss->cache->mon, pending->start,
				     pending->len, &miss->token);
		/* the kernel may have begun at any try */
		began = began || mrrc_mon_watched(ret);
		if (!mrrc_mon_no_room(ret) || pending->gentle ||
		    attempt == MRRC_WATCH_TRIES ||
		    (!mrrc_mon_make_room(miss->cache->mon, &miss->cache->sub) &&
		     !mrrc_cache_mt_make_room(miss->cache, pending->len,
					      attempt)))
			break;
	}
	/*
	 * If the kernel refused the watch, this miss has nothing to unwatch: a
	 * watch of the range may be another user's.
	 */
	pending->watched = began;
	return ret;
}

/*
 * Registers for reading and writing, as most buffers are used both ways, or for
 * reading, as not all memory allows writing.
 */
static int miss_register(struct mrrc_miss *miss)
{
	struct mrrc_pending *pending = miss->pending;
	const bool more = pending->access == MRRC_RO && !pending->stable;
	int ret;

	ret = miss_reg(miss, pending->start, pending->len,
		       more ? MRRC_RW : pending->access);
	if (more && mrrc_reg_denied(ret)) {
		miss_count(miss->cache, MRRC_STAT_RO_FALLBACKS);
		ret = miss_reg(miss, pending->start, pending->len, MRRC_RO);
	}
	return ret;
}

static enum mrrc_stat watch_cause(int ret)
{
	switch (ret) {
	case -ENOSPC:
	case -ENOMEM:
		return MRRC_STAT_UNCACHED_WATCH_LIMIT;
	case -ENODEV:
		return MRRC_STAT_UNCACHED_NO_MONITOR;
	default:
		return MRRC_STAT_UNCACHED_UNWATCHABLE;
	}
}

/* Can the range be indexed without evicting anything? CACHE lock held. */
static bool miss_fits(const struct mrrc_cache *cache,
		      const struct mrrc_pending *pending)
{
	return mrrc_cache_room(cache, pending->len) &&
	       !mrrc_index_first_overlap(&cache->index[pending->access],
					 pending->start, pending->len);
}

/*
 * CACHE lock held, memory quiet: indexes the region, or finds the region that
 * another thread indexed meanwhile. Returns the region for the operation;
 * *cause says why the returned region is another one, or is not indexed.
 */
static struct mrrc_region *miss_index(struct mrrc_miss *miss,
				      struct mrrc_region_list *victims,
				      enum mrrc_stat *cause)
{
	struct mrrc_pending *pending = miss->pending;
	struct mrrc_cache *cache = &miss->cache->cache;
	struct mrrc_region *region = miss->region;
	struct mrrc_region *found;

	if (!miss->seen) {
		*cause = MRRC_STAT_UNCACHED_NOT_PRIVATE;
		return region;
	}
	if (pending->stale) {
		*cause = MRRC_STAT_UNCACHED_RACED;
		return region;
	}
	/* finds a new place only if regions have moved since the lookup */
	mrrc_cache_seek(cache, pending->start, pending->access,
			&pending->place);
	found = mrrc_cache_find_at(&pending->place, pending->len);
	if (found) {
		*cause = MRRC_STAT_DUPLICATES;
		TAILQ_INSERT_TAIL(victims, region, link);
		return found;
	}
	if (miss->over || (pending->gentle && !miss_fits(cache, pending)) ||
	    mrrc_cache_insert_at(cache, region, &pending->place, victims)) {
		*cause = MRRC_STAT_UNCACHED_FULL;
		return region;
	}
	region->watched = !pending->stable;
	*cause = MRRC_STAT_CNT;
	return region;
}

static void miss_insert(struct mrrc_miss *miss, struct mrrc_region **out)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);
	struct mrrc_cache_mt *cache = miss->cache;
	struct mrrc_region *use = miss->region;
	enum mrrc_stat cause;
	int ret;

	ret = mrrc_cache_mt_quiet_lock(cache);
	if (ret) {
		mrrc_lock_acquire(&cache->lock);
		cause = ret == -EAGAIN ? MRRC_STAT_UNCACHED_RACED :
					 MRRC_STAT_UNCACHED_NO_MONITOR;
	} else {
		mrrc_hints_collect(&cache->hints_list);
		use = miss_index(miss, &victims, &cause);
	}
	mrrc_cache_registered(&cache->cache, miss->region->len);
	mrrc_cache_hold(&cache->cache, use);
	miss_settle(miss);
	if (cause != MRRC_STAT_CNT)
		mrrc_cache_count(&cache->cache, cause);
	mrrc_cache_mt_queue(cache, &victims);
	mrrc_lock_release(&cache->lock);

	if (cause != MRRC_STAT_CNT && !miss->pending->stable)
		mrrc_mon_unwatch(cache->mon, miss->pending->start,
				 miss->pending->len);
	mrrc_cache_mt_dereg_list(cache, &victims);
	*out = use;
}

int mrrc_cache_mt_once(struct mrrc_cache_mt *cache, uintptr_t addr, size_t len,
		       enum mrrc_access access, enum mrrc_stat cause,
		       struct mrrc_region **out)
{
	const uintptr_t mask = cache->cache.page - 1;
	const uintptr_t start = addr & ~mask;
	struct mrrc_miss miss = { .cache = cache };
	int ret;

	miss.region = mrrc_cache_mt_region(cache);
	if (!miss.region)
		return -ENOMEM;
	ret = miss_reg(&miss, start, ((addr + len - 1) | mask) - start + 1,
		       access);
	if (ret)
		goto err_free;
	if (mrrc_mon_forked(cache->mon)) {
		mrrc_region_hold(miss.region);
	} else {
		mrrc_lock_acquire(&cache->lock);
		mrrc_cache_registered(&cache->cache, miss.region->len);
		mrrc_cache_hold(&cache->cache, miss.region);
		if (cause != MRRC_STAT_CNT)
			mrrc_cache_count(&cache->cache, cause);
		mrrc_lock_release(&cache->lock);
	}
	*out = miss.region;
	return 0;

err_free:
	mrrc_cache_mt_region_free(cache, miss.region);
	return ret;
}

int mrrc_cache_mt_fill(struct mrrc_cache_mt *cache,
		       struct mrrc_pending *pending, const uint64_t *changes,
		       struct mrrc_region **out)
{
	struct mrrc_miss miss = { .cache = cache, .pending = pending };
	int ret, watch = 0;

	if (pending->len > cache->cache.max_bytes)
		return mrrc_cache_mt_once(cache, pending->start, pending->len,
					  pending->access,
					  MRRC_STAT_UNCACHED_TOO_BIG, out);
	/*
	 * Publish the range, unless the lookup did: from now on events mark the
	 * range stale, no thread ends the range's watch, and threads that need
	 * the range wait.
	 */
	*out = pending->published ? NULL : miss_begin(&miss, changes);
	if (*out)
		return 0;
	ret = -ENOMEM;
	miss.region = mrrc_cache_mt_region(cache);
	if (!miss.region)
		goto err_withdraw;
	/*
	 * Watch the range before registration pins its pages: so no change of
	 * pinned pages goes unnoticed.
	 */
	ret = watch = miss_watch(&miss);
	if (ret)
		goto err_withdraw;
	/* Register: a call of the core provider, no lock held. */
	ret = miss_register(&miss);
	if (ret)
		goto err_withdraw;
	/*
	 * All pages of the range are present now, so mrrc_mon_sees() can tell
	 * whether the watch would report each change.
	 */
	miss.seen = !miss.token || mrrc_mon_sees(cache->mon, pending->start,
						 pending->len, miss.token);
	/*
	 * Insert under the lock, once memory is quiet: a change since the watch
	 * began has made the range stale.
	 */
	miss_insert(&miss, out);
	return 0;

err_withdraw:
	miss_withdraw(&miss);
	if (!miss.region)
		return ret;
	mrrc_cache_mt_region_free(cache, miss.region);
	if (!watch || pending->gentle)
		return ret;
	return mrrc_cache_mt_once(cache, pending->start, pending->len,
				  pending->access, watch_cause(watch), out);
}

/* May the range be registered ahead of use? CACHE lock held, memory quiet. */
static int ahead_begin(struct mrrc_cache_mt *cache,
		       struct mrrc_pending *pending, uint64_t flushes)
{
	if (cache->flushes != flushes)
		return -ECANCELED;
	if (mrrc_cache_find(&cache->cache, pending->start, pending->len,
			    pending->access) ||
	    miss_under_way(cache, pending))
		return -EEXIST;
	if (!miss_fits(&cache->cache, pending))
		return -ENOSPC;
	miss_publish(cache, pending);
	cache->registering = true;
	return 0;
}

static void ahead_end(struct mrrc_cache_mt *cache)
{
	mrrc_lock_acquire(&cache->lock);
	cache->registering = false;
	if (cache->waiting)
		pthread_cond_broadcast(&cache->settled);
	mrrc_lock_release(&cache->lock);
}

int mrrc_cache_mt_ahead(struct mrrc_cache_mt *cache, uintptr_t start,
			size_t len, enum mrrc_access access, uint64_t token,
			uint64_t flushes)
{
	struct mrrc_pending pending = {
		.start = start,
		.len = len,
		.access = access,
		.gentle = true,
	};
	struct mrrc_miss miss = { .cache = cache, .pending = &pending };
	struct mrrc_region *region;
	int ret;

	ret = mrrc_cache_mt_quiet_lock(cache);
	if (ret)
		return ret;
	ret = ahead_begin(cache, &pending, flushes);
	mrrc_lock_release(&cache->lock);
	if (ret)
		return ret;
	/* checked last, when changes make the range stale already */
	if (mrrc_mon_unchanged(cache->mon, start, len) != token) {
		miss_withdraw(&miss);
		ret = -ESTALE;
	} else {
		ret = mrrc_cache_mt_fill(cache, &pending, NULL, &region);
	}
	if (!ret) {
		ret = mrrc_region_indexed(region) ? 0 : -EAGAIN;
		mrrc_cache_mt_put(cache, region);
	}
	ahead_end(cache);
	return ret;
}
