/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes that a thread uses memory, for a helper that predicts uses (ahead.h);
 * compiled into the data calls of domains that have such a helper.
 *
 * Any thread, no lock held.
 */
#ifndef MRRC_CACHE_USE_H
#define MRRC_CACHE_USE_H

#include "sys/cache/cache_hit.h"

/* reaper.c: the rare cases */
bool mrrc_cache_mt_use_first(struct mrrc_cache_mt *cache, const void *addr,
			     size_t len, const void *site);
void mrrc_cache_mt_wake(struct mrrc_cache_mt *cache);

/*
 * Notes a use. Returns true if the use was noted: then the caller calls
 * mrrc_cache_use_wake() when it holds the regions.
 */
static inline bool mrrc_cache_use(struct mrrc_cache_mt *cache, const void *addr,
				  size_t len, const void *site)
{
	struct mrrc_hints *hints = mrrc_cache_hit_table(cache);

	if (len < MRRC_USES_MIN)
		return false;
	if (__builtin_expect(!hints || !hints->uses, 0))
		return mrrc_cache_mt_use_first(cache, addr, len, site);
	mrrc_uses_add(hints->uses, (uintptr_t) site, (uintptr_t) addr, len);
	return true;
}

/*
 * Wakes the helper, once the caller holds the regions of the noted uses: a
 * helper that ran earlier would deregister these regions.
 */
static inline void mrrc_cache_use_wake(struct mrrc_cache_mt *cache)
{
	/* ahead_sleep() has the barrier of the helper's side */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&cache->asleep,
						  memory_order_relaxed),
			     0))
		mrrc_cache_mt_wake(cache);
}

#endif /* MRRC_CACHE_USE_H */
