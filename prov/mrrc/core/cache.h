/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cache proper: an index per access, a policy, and a budget in bytes and
 * regions. It decides and keeps the books; it registers nothing. Whatever
 * has to be deregistered is handed to the caller, who does it outside locks.
 *
 * Not thread-safe: sys/cache_mt.h is the front for threads, simulators use
 * this directly. Nothing here allocates except init.
 *
 * Invariants (mrrc_cache_valid; C4 is the front's, its race test checks it):
 *   C1 a region is NEW, INDEXED or DEAD; the index and the policy know
 *      exactly the INDEXED ones
 *   C2 no region with held > 0 is handed out for deregistration
 *   C3 indexed bytes and regions equal the sums and are within the budget
 *   C4 after invalidate returns, no lookup yields that range until it is
 *      registered anew
 */
#ifndef MRRC_CACHE_H
#define MRRC_CACHE_H

#include "core/index.h"
#include "core/policy.h"
#include "core/stats.h"

struct mrrc_cache {
	struct mrrc_index index[MRRC_ACCESS_CNT];
	struct mrrc_policy *policy;
	size_t max_bytes;
	size_t max_regions;
	size_t page;			/* page size, a power of two */
	size_t held_bytes;		/* indexed and held > 0 */
	size_t held_regions;
	struct mrrc_stats stats;
};

/* @policy: a name or NULL. -EINVAL for a zero limit or odd page size. */
int mrrc_cache_init(struct mrrc_cache *cache, size_t max_bytes,
		    size_t max_regions, size_t page, const char *policy);

/* The index must be empty (mrrc_cache_uncache_all, then put what is held). */
void mrrc_cache_fini(struct mrrc_cache *cache);

/*
 * The region that covers the range and allows the access, or NULL; counts
 * it and tells the policy. It is not held yet.
 */
struct mrrc_region *mrrc_cache_lookup(struct mrrc_cache *cache,
				      uintptr_t addr, size_t len,
				      enum mrrc_access access);

/* The same, seen by neither counters nor policy. */
struct mrrc_region *mrrc_cache_find(const struct mrrc_cache *cache,
				    uintptr_t addr, size_t len,
				    enum mrrc_access access);

/*
 * What to register for a missed request: the pages it touches, together
 * with the indexed regions of that access they overlap if the union is at
 * most a quarter of the byte limit (so that one merge cannot displace most
 * of the cache). Returns whether the range was widened. -EFAULT style errors
 * do not exist here: the caller has checked that the range does not wrap.
 */
bool mrrc_cache_widen(const struct mrrc_cache *cache, uintptr_t addr,
		      size_t len, enum mrrc_access access, uintptr_t *start,
		      size_t *range);

/*
 * Index a NEW region. Regions of the same access that it overlaps, then
 * victims of the policy, leave the index; those not held are appended to
 * @victims. -E2BIG: larger than the byte limit; -ENOSPC: what is held leaves
 * no room. Nothing has changed then.
 */
int mrrc_cache_insert(struct mrrc_cache *cache, struct mrrc_region *region,
		      struct mrrc_region_list *victims);

/* One more, one less operation uses the region, whatever its state. */
void mrrc_cache_hold(struct mrrc_cache *cache, struct mrrc_region *region);

/* Returns true if the caller must now deregister it (NEW or DEAD, unheld). */
bool mrrc_cache_put(struct mrrc_cache *cache, struct mrrc_region *region);

/*
 * Uncache every region that shares a byte with the range; those not held are
 * appended to @victims. Returns how many left.
 */
size_t mrrc_cache_invalidate(struct mrrc_cache *cache, uintptr_t start,
			     size_t len, struct mrrc_region_list *victims);

/* Evict everything that is not held. Returns how many. */
size_t mrrc_cache_evict_all(struct mrrc_cache *cache,
			    struct mrrc_region_list *victims);

/* Bookkeeping of the registrations themselves, by whoever makes them. */
void mrrc_cache_registered(struct mrrc_cache *cache, size_t len);
void mrrc_cache_deregistered(struct mrrc_cache *cache, size_t len);

static inline void mrrc_cache_count(struct mrrc_cache *cache,
				    enum mrrc_stat stat)
{
	cache->stats.value[stat]++;
}

bool mrrc_cache_valid(const struct mrrc_cache *cache);

#endif /* MRRC_CACHE_H */
