/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deregisters regions that left the index, makes room when a registration
 * failed, and ends the keys of closed registrations.
 *
 * With a helper thread (li2011, section 5) a thread that misses appends its
 * victims and goes on. After being woken the helper first sleeps for a moment,
 * so that many victims wake it only once. Waiting victims are still registered:
 * when they exceed a part of the byte limit, the thread that misses deregisters
 * its own victims. Without a helper a thread that misses deregisters its
 * victims; the next call deregisters regions that the monitor invalidated.
 */
#include "config.h"
#include "sys/cache/reaper.h"
#include "sys/cache/cache_use.h"

#include <time.h>

#define MRRC_QUEUE_PART 8      /* part of the byte limit that may wait */
#define MRRC_QUEUE_NS	500000 /* time of collecting */

/*
 * Minimum number of regions evicted after a failed registration; doubled with
 * each attempt.
 */
#define MRRC_ROOM_REGIONS 4

/* CACHE lock held. */
static void cache_mt_take(struct mrrc_cache_mt *cache,
			  struct mrrc_region_list *list)
{
	TAILQ_CONCAT(list, &cache->victims, link);
	cache->queued = 0;
	atomic_store(&cache->has_victims, false);
}

size_t mrrc_cache_mt_reap_now(struct mrrc_cache_mt *cache)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	uint64_t round;
	size_t count;

	if (mrrc_mon_forked(cache->mon))
		return 0;
	mrrc_lock_acquire(&cache->lock);
	cache_mt_take(cache, &list);
	mrrc_lock_release(&cache->lock);
	count = mrrc_cache_mt_dereg_list(cache, &list);

	mrrc_lock_acquire(&cache->lock);
	if (cache->helping) {
		/*
		 * does not wait for regions that the helper takes next: such a
		 * wait might never end
		 */
		round = cache->rounds;
		cache->waiting++;
		while (cache->helping && cache->rounds == round)
			mrrc_lock_wait(&cache->lock, &cache->settled);
		cache->waiting--;
		count++; /* at least one region */
	}
	mrrc_lock_release(&cache->lock);
	return count;
}

void mrrc_cache_mt_left(struct mrrc_cache_mt *cache)
{
	if (TAILQ_EMPTY(&cache->victims))
		return;
	if (!cache->helped)
		atomic_store(&cache->has_victims, true);
	else if (cache->idle)
		pthread_cond_signal(&cache->work);
}

void mrrc_cache_mt_queue(struct mrrc_cache_mt *cache,
			 struct mrrc_region_list *list)
{
	const struct mrrc_region *region;
	size_t bytes = 0;

	if (!cache->helped || TAILQ_EMPTY(list))
		return;
	TAILQ_FOREACH(region, list, link)
		bytes += region->len;
	if (cache->queued + bytes > cache->cache.max_bytes / MRRC_QUEUE_PART)
		return;
	cache->queued += bytes;
	TAILQ_CONCAT(&cache->victims, list, link);
	mrrc_cache_mt_left(cache);
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

/*
 * ---- the end of keys of closed registrations (core/cache/revoke.h) ----
 *
 * If a new registration of the application finds a region just before the
 * region leaves the index, the registration holds the region, which is
 * deregistered when the registration is closed.
 */

__attribute__((noinline)) static void
cache_revoke_begin(struct mrrc_cache_mt *cache, struct mrrc_region *region)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	if (mrrc_revoke_begin(&cache->revoke, region))
		pthread_cond_signal(&cache->work);
	mrrc_lock_release(&cache->lock);
}

void mrrc_cache_mt_key_given(struct mrrc_cache_mt *cache,
			     struct mrrc_region *region)
{
	if (cache->revoke.half && !mrrc_revoke_begun(region))
		cache_revoke_begin(cache, region);
}

void mrrc_cache_mt_put_key(struct mrrc_cache_mt *cache,
			   struct mrrc_region *region)
{
	if (cache->revoke.half)
		mrrc_revoke_note(&cache->revoke, region);
	mrrc_cache_mt_put(cache, region);
}

/*
 * Makes victims of regions whose keys have to end now. Lock held. Returns the
 * time of the next call; 0: at once, UINT64_MAX: when the helper is signalled.
 */
static uint64_t cache_mt_revoke(struct mrrc_cache_mt *cache)
{
	mrrc_lock_assert_held(&cache->lock);
	if (cache->revoke.due == MRRC_REVOKE_NEVER)
		return MRRC_REVOKE_NEVER;
	return mrrc_revoke_turn(&cache->revoke, &cache->cache, mrrc_uses_ns(),
				&cache->victims);
}

/* ---- the helper ---- */

void mrrc_cache_mt_helped(struct mrrc_cache_mt *cache)
{
	mrrc_lock_acquire(&cache->lock);
	cache->helping = false;
	cache->rounds++;
	if (cache->waiting)
		pthread_cond_broadcast(&cache->settled);
	mrrc_lock_release(&cache->lock);
}

bool mrrc_cache_mt_predicts(const struct mrrc_cache_mt *cache)
{
	return cache->ahead;
}

__attribute__((noinline)) void mrrc_cache_mt_wake(struct mrrc_cache_mt *cache)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	atomic_store(&cache->asleep, false);
	pthread_cond_signal(&cache->work);
	mrrc_lock_release(&cache->lock);
}

/*
 * For a thread that has no table yet, or used the table of another cache last.
 */
__attribute__((noinline)) bool
mrrc_cache_mt_use_first(struct mrrc_cache_mt *cache, const void *addr,
			size_t len, const void *site)
{
	struct mrrc_hints *hints;

	if (mrrc_mon_forked(cache->mon))
		return false;
	hints = mrrc_hints_get(&cache->hints_list);
	return hints && hints->uses && mrrc_cache_use(cache, addr, len, site);
}

/* Lets victims gather. CACHE lock held, but released for a moment. */
static void helper_collect(struct mrrc_cache_mt *cache)
{
	const struct timespec moment = { .tv_nsec = MRRC_QUEUE_NS };

	if (cache->stop)
		return;
	mrrc_lock_release(&cache->lock);
	nanosleep(&moment, NULL);
	mrrc_lock_acquire(&cache->lock);
}

/* The helper sleeps: there is nothing to do before @wake. CACHE lock held. */
static void helper_wait(struct mrrc_cache_mt *cache, uint64_t wake)
{
	cache->idle = true;
	if (wake == UINT64_MAX)
		mrrc_lock_wait(&cache->lock, &cache->work);
	else
		mrrc_lock_wait_until(&cache->lock, &cache->work, wake);
	cache->idle = false;
	if (!TAILQ_EMPTY(&cache->victims))
		helper_collect(cache);
}

/*
 * Lets the helper predict, then sleep. CACHE lock held, but released during the
 * prediction, when the helper may be woken. @wake: the time when the next key
 * ends.
 */
static void helper_turn(struct mrrc_cache_mt *cache, uint64_t wake)
{
	bool asleep = false;
	uint64_t ahead;

	if (cache->ahead) {
		mrrc_lock_release(&cache->lock);
		ahead = cache->predictor->turn(cache->ahead, &asleep);
		mrrc_lock_acquire(&cache->lock);
		if (ahead < wake)
			wake = ahead;
	}
	/* the end of a key may have begun meanwhile */
	if (cache->revoke.due < wake)
		wake = cache->revoke.due;
	if (!cache->stop && TAILQ_EMPTY(&cache->victims) && wake &&
	    (!asleep || atomic_load(&cache->asleep)))
		helper_wait(cache, wake);
}

static void *helper_run(void *arg)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct mrrc_cache_mt *cache = arg;
	uint64_t wake;

	mrrc_lock_acquire(&cache->lock);
	while (!cache->stop) {
		wake = cache_mt_revoke(cache);
		if (TAILQ_EMPTY(&cache->victims)) {
			helper_turn(cache, wake);
			continue;
		}
		cache_mt_take(cache, &list);
		cache->helping = true;
		mrrc_lock_release(&cache->lock);
		mrrc_thread_outside();
		mrrc_cache_mt_dereg_list(cache, &list);
		mrrc_thread_inside();
		mrrc_cache_mt_helped(cache);
		mrrc_lock_acquire(&cache->lock);
	}
	mrrc_lock_release(&cache->lock);
	return NULL;
}

int mrrc_cache_mt_helper_start(struct mrrc_cache_mt *cache)
{
	int ret;

	ret = mrrc_lock_cond_init(&cache->work);
	if (ret)
		return ret;
	cache->helped = true;
	ret = mrrc_thread_start(&cache->helper, 0, helper_run, cache);
	if (ret) {
		cache->helped = false;
		pthread_cond_destroy(&cache->work);
		return ret;
	}
	pthread_setname_np(cache->helper, "mrrc-helper");
	return 0;
}

void mrrc_cache_mt_helper_stop(struct mrrc_cache_mt *cache)
{
	if (!cache->helped)
		return;
	mrrc_lock_acquire(&cache->lock);
	cache->stop = true;
	pthread_cond_signal(&cache->work);
	mrrc_lock_release(&cache->lock);
	mrrc_thread_join(cache->helper);
	pthread_cond_destroy(&cache->work);
	cache->helped = false;
}
