/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hit path of the cache (cache_mt.h), inlined into its callers: hold and
 * put a region that this thread used before. cache_get.c says why a hit is
 * right.
 *
 * Any thread, no lock held.
 */
#ifndef MRRC_CACHE_HIT_H
#define MRRC_CACHE_HIT_H

#include "sys/cache/cache_mt_priv.h"

#include "sys/cache/reaper.h"

/* cache_get.c: the rare cases */
void mrrc_cache_mt_count(struct mrrc_cache_mt *cache, struct mrrc_hints *hints);
void mrrc_cache_mt_put_forked(struct mrrc_cache_mt *cache,
			      struct mrrc_region *region);
void mrrc_cache_mt_put_last(struct mrrc_cache_mt *cache,
			    struct mrrc_region *region);
void mrrc_cache_mt_put_stray(struct mrrc_cache_mt *cache,
			     struct mrrc_region *region);

/* The calling thread's table, if it used this cache last. */
static inline struct mrrc_hints *
mrrc_cache_hit_table(const struct mrrc_cache_mt *cache)
{
	return mrrc_hints_last(&cache->hints_list);
}

/* @hints: the thread's table, or NULL. */
static inline __attribute__((always_inline)) void
mrrc_cache_hit_put(struct mrrc_cache_mt *cache, struct mrrc_hints *hints,
		   struct mrrc_region *region)
{
	if (__builtin_expect(!*cache->ours, 0)) {
		mrrc_cache_mt_put_forked(cache, region);
		return;
	}
	if (__builtin_expect(!hints, 0)) {
		mrrc_cache_mt_put_stray(cache, region);
		return;
	}
	mrrc_hints_count_hold(
		mrrc_hints_lane(hints, (char *) region - cache->regions), -1);
	if (__builtin_expect(!mrrc_region_indexed(region), 0))
		mrrc_cache_mt_put_last(cache, region);
	else if (__builtin_expect(mrrc_cache_mt_has_victims(cache), 0))
		mrrc_cache_mt_reap_now(cache);
}

/*
 * Finds a valid hint in the thread's table whose region covers the range, and
 * returns the region, held. NULL: call mrrc_cache_mt_get(). Without @ask the
 * result is also NULL if the kernel would have to be asked whether memory is
 * quiet. The range must not be empty.
 */
static inline __attribute__((always_inline)) struct mrrc_region *
mrrc_cache_hit(struct mrrc_cache_mt *cache, struct mrrc_hints *hints,
	       uintptr_t addr, size_t len, enum mrrc_access access, bool ask)
{
	const struct mrrc_hint *entry;
	struct mrrc_region *region;
	uint64_t seq, ref;

	if (!ask && !mrrc_mon_is_told(cache->mon))
		return NULL;
	entry = mrrc_hints_find(hints, addr, access);
	if (!entry)
		return NULL;
	ref = entry->ref;
	region = mrrc_hints_region(cache->regions, ref);
	/* putting a region that has left the index would need the lock */
	if (__builtin_expect(!mrrc_region_is(region, ref), 0) ||
	    (ask && mrrc_mon_quiet(cache->mon, &seq, &hints->probes)))
		return NULL;
	mrrc_hints_count_hold(mrrc_hints_lane(hints,
					      mrrc_hints_ref_index(ref) *
						      MRRC_REGION_STRIDE),
			      1);
	/*
	 * The region may have left the index meanwhile. The entry's region
	 * covers the page.
	 */
	if (__builtin_expect(!mrrc_region_is(region, ref) ||
				     len > mrrc_region_end(region) - addr,
			     0)) {
		mrrc_cache_mt_put(cache, region);
		return NULL;
	}
	if (mrrc_hints_hit(hints, addr, len, access))
		mrrc_cache_mt_count(cache, hints);
	return region;
}

#endif /* MRRC_CACHE_HIT_H */
