/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deregisters regions that left the index (cache_mt_priv.h).
 *
 * With a helper thread (li2011, section 5) a thread that misses appends its
 * victims and goes on. The helper sleeps for a moment once it has been woken,
 * so that it is woken once for many victims. Victims that wait are still
 * registered: beyond a part of the byte limit the thread that misses
 * deregisters its own. Without a helper a thread that misses deregisters its
 * victims, and those that the monitor leaves are deregistered by the next call.
 */
#include "config.h"
#include "sys/cache_mt_priv.h"

#include <time.h>

#define MRRC_QUEUE_PART 8      /* of the byte limit */
#define MRRC_QUEUE_NS	500000 /* of collecting */

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
		 * do not wait for what the helper takes next: that may never
		 * end
		 */
		round = cache->rounds;
		cache->waiting++;
		while (cache->helping && cache->rounds == round)
			mrrc_lock_wait(&cache->lock, &cache->settled);
		cache->waiting--;
		count++; /* one at least */
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

/* ---- the helper ---- */

/* CACHE lock held, but for a moment. */
static void helper_collect(struct mrrc_cache_mt *cache)
{
	const struct timespec moment = { .tv_nsec = MRRC_QUEUE_NS };

	if (cache->stop)
		return;
	mrrc_lock_release(&cache->lock);
	nanosleep(&moment, NULL);
	mrrc_lock_acquire(&cache->lock);
}

static void *helper_run(void *arg)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct mrrc_cache_mt *cache = arg;

	mrrc_lock_acquire(&cache->lock);
	while (!cache->stop) {
		if (TAILQ_EMPTY(&cache->victims)) {
			cache->idle = true;
			mrrc_lock_wait(&cache->lock, &cache->work);
			cache->idle = false;
			helper_collect(cache);
			continue;
		}
		cache_mt_take(cache, &list);
		cache->helping = true;
		mrrc_lock_release(&cache->lock);
		mrrc_thread_outside();
		mrrc_cache_mt_dereg_list(cache, &list);
		mrrc_thread_inside();
		mrrc_lock_acquire(&cache->lock);
		cache->helping = false;
		cache->rounds++;
		if (cache->waiting)
			pthread_cond_broadcast(&cache->settled);
	}
	mrrc_lock_release(&cache->lock);
	return NULL;
}

int mrrc_cache_mt_helper_start(struct mrrc_cache_mt *cache)
{
	int ret;

	ret = -pthread_cond_init(&cache->work, NULL);
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
