/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deregisters regions that left the index, makes room for a registration that
 * failed, and runs the helper thread.
 */
#ifndef MRRC_REAPER_H
#define MRRC_REAPER_H

#include "sys/cache/cache_mt_priv.h"

/* Starts and stops the helper thread, if the cache has one. */
int mrrc_cache_mt_helper_start(struct mrrc_cache_mt *cache);
void mrrc_cache_mt_helper_stop(struct mrrc_cache_mt *cache);

/*
 * Gives the victims to the helper. Lock held. If too many bytes already wait
 * for the helper, the victims stay in @list, for the caller.
 */
void mrrc_cache_mt_queue(struct mrrc_cache_mt *cache,
			 struct mrrc_region_list *list);

/*
 * Called by the helper when it has deregistered the regions that it took. No
 * lock held.
 */
void mrrc_cache_mt_helped(struct mrrc_cache_mt *cache);

/* To be called when an event has left victims. Lock held. */
void mrrc_cache_mt_left(struct mrrc_cache_mt *cache);

static inline bool mrrc_cache_mt_has_victims(struct mrrc_cache_mt *cache)
{
	return atomic_load_explicit(&cache->has_victims, memory_order_relaxed);
}

static inline size_t mrrc_cache_mt_reap(struct mrrc_cache_mt *cache)
{
	return mrrc_cache_mt_has_victims(cache) ?
		       mrrc_cache_mt_reap_now(cache) :
		       0;
}

/*
 * A registration of @len bytes failed for lack of room. Deregisters waiting
 * victims; if no victims wait, evicts about @len bytes, twice as many regions
 * with each attempt. Returns the number of regions; 0: no region is idle.
 */
size_t mrrc_cache_mt_make_room(struct mrrc_cache_mt *cache, size_t len,
			       unsigned attempt);

#endif /* MRRC_REAPER_H */
