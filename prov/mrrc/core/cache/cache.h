/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cache proper: an index per access, a policy, and a budget in bytes and
 * regions. The cache decides and counts, and registers nothing. The caller gets
 * the regions that have to be deregistered, and deregisters these regions
 * outside locks.
 *
 * Not thread-safe: sys/cache/cache_mt.h is the front for threads; simulators
 * use the cache directly. Other threads may at any time read the field word of
 * a region and the number of indexed regions, and count operations on a region
 * outside the cache (struct mrrc_holders). Only init allocates.
 *
 * Invariants (mrrc_cache_valid; C4 is the front's, its race test checks it):
 *   C1 a region is NEW, INDEXED or DEAD; the index and the policy
 *      know exactly the INDEXED regions
 *   C2 no region that is held is handed out for deregistration
 *   C3 indexed bytes and regions equal the sums and are within the budget
 *   C4 after invalidate returns, no lookup yields that range until it is
 *      registered again
 */
#ifndef MRRC_CACHE_H
#define MRRC_CACHE_H

#include "core/policy/history.h"
#include "core/index/index.h"
#include "core/policy/policy.h"
#include "core/text/stats.h"

/* Maximum number of regions deregistered in one batch. */
#define MRRC_DEREG_BATCH 32

struct mrrc_cache_conf {
	size_t max_bytes;
	size_t max_regions;
	size_t page;	    /* page size, a power of two */
	const char *policy; /* policy.h; NULL: default */
	/* policies to choose from; NULL: the provider's */
	const struct mrrc_policy_ops *const *policies;
	void *policy_arg;	      /* passed to the policies of simulators */
	const struct mrrc_cost *cost; /* copied; NULL: the default model */
	/* zeroed by the caller; NULL: the cache's own */
	struct mrrc_stats *stats;
};

struct mrrc_cache {
	struct mrrc_index index[MRRC_ACCESS_CNT];
	struct mrrc_policy *policy;
	struct mrrc_cost cost;
	struct mrrc_history merged; /* merged requests, by first page */
	size_t max_bytes;
	size_t max_regions;
	size_t page;
	_Atomic size_t regions; /* number of indexed regions */
	size_t bytes;		/* bytes of indexed regions */
	/* regions that entered or left an index */
	uint64_t moves;
	size_t loose; /* regions held and not indexed */
	/* counters outside regions; NULL: there are none */
	const struct mrrc_holders *holders;
	/* number of insertions that are still to fail at once */
	unsigned tight;
	struct mrrc_stats *stats; /* the cache's own, or those of the caller */
	struct mrrc_stats own;
};

/*
 * A position in the indexes that may serve a range: the index of the range's
 * access, or for MRRC_RO the indexes of MRRC_RW and MRRC_RO. A place holds the
 * first region of each index that ends after the start, and is valid until a
 * region enters or leaves an index.
 */
struct mrrc_place {
	uintptr_t start;
	enum mrrc_access access;
	/* the cache's moves when the place was set; 0: not valid */
	uint64_t moves;
	struct mrrc_region *at[2];
};

/*
 * Initialises a cache, which must not be moved afterwards. -EINVAL: a limit is
 * 0, or the page size or a cost is not valid; else the error of
 * mrrc_policy_open().
 */
int mrrc_cache_init(struct mrrc_cache *cache,
		    const struct mrrc_cache_conf *conf);

/* Is there room for a region of @len bytes without evicting? */
bool mrrc_cache_room(const struct mrrc_cache *cache, size_t len);

/* The number of indexed regions. Any thread may call this. */
static inline size_t mrrc_cache_regions(const struct mrrc_cache *cache)
{
	return atomic_load_explicit(&((struct mrrc_cache *) cache)->regions,
				    memory_order_relaxed);
}

/*
 * The indexes must be empty: call mrrc_cache_evict_all(), and put held regions.
 */
void mrrc_cache_fini(struct mrrc_cache *cache);

/*
 * Makes @place valid for @start and @access: searches each index that is not
 * empty, unless @place is still valid.
 */
void mrrc_cache_seek(const struct mrrc_cache *cache, uintptr_t start,
		     enum mrrc_access access, struct mrrc_place *place);

/* Like mrrc_cache_find(), for a range that begins at @place. */
struct mrrc_region *mrrc_cache_find_at(const struct mrrc_place *place,
				       size_t len);

/* The region that covers all of the range and allows the access, or NULL. */
struct mrrc_region *mrrc_cache_find(const struct mrrc_cache *cache,
				    uintptr_t addr, size_t len,
				    enum mrrc_access access);

/*
 * Do an indexed region and a new region that overlaps it both stay indexed? Two
 * regions never both stay if one contains the other. Adjacent buffers share a
 * page, so their regions overlap. For remote access, where one region has to
 * contain all of a request, both regions stay if they share at most half of the
 * smaller region. For local access with policies that merge, the limit is half
 * of the larger region. So a merge registers less than twice the requested
 * bytes, and a program that uses adjacent buffers one after the other does not
 * register all former buffers again with each new buffer.
 */
bool mrrc_cache_both(const struct mrrc_cache *cache,
		     const struct mrrc_region *region, uintptr_t start,
		     size_t len);

/*
 * Indexes a NEW region. Regions of the same access that overlap the new region
 * leave the index, except those for which mrrc_cache_both() is true. After
 * these regions, the policy's victims leave. Regions that have left and are not
 * held are appended to @victims. The policy's victims are one batch: at most
 * the policy's `batch` regions, and at most 1/32 of the byte limit more than
 * was needed. -E2BIG: the region is larger than the byte limit; -ENOSPC: held
 * regions leave no room. After an error the cache is as before, except that the
 * policy treats victims that were put back as new regions. A failed attempt is
 * expensive, so most calls after it fail at once, until an attempt succeeds.
 */
int mrrc_cache_insert(struct mrrc_cache *cache, struct mrrc_region *region,
		      struct mrrc_region_list *victims);

/*
 * Like mrrc_cache_insert(); @place is valid for the region's start and for an
 * access that the region serves.
 */
int mrrc_cache_insert_at(struct mrrc_cache *cache, struct mrrc_region *region,
			 const struct mrrc_place *place,
			 struct mrrc_region_list *victims);

/*
 * Counts one more operation that uses the region, which may be in any state,
 * until mrrc_cache_put().
 */
void mrrc_cache_hold(struct mrrc_cache *cache, struct mrrc_region *region);

/*
 * Counts the end of an operation on the region. Returns true if the caller must
 * now deregister the region, which is NEW or DEAD, and unheld.
 */
bool mrrc_cache_put(struct mrrc_cache *cache, struct mrrc_region *region);

/*
 * Like mrrc_cache_put(), for a region that is not INDEXED, when the caller has
 * already counted the end of the operation.
 */
bool mrrc_cache_last(struct mrrc_cache *cache, struct mrrc_region *region);

/*
 * Uncaches every region that shares a byte with the range, and appends the
 * regions that are not held to @victims. Returns the number of regions that
 * left.
 */
size_t mrrc_cache_invalidate(struct mrrc_cache *cache, uintptr_t start,
			     size_t len, struct mrrc_region_list *victims);

/*
 * mrrc_cache_leave() uncaches an indexed region. After the last call of
 * mrrc_cache_leave(), mrrc_cache_left() appends the regions that are not held
 * to @victims.
 */
void mrrc_cache_leave(struct mrrc_cache *cache, struct mrrc_region *region,
		      struct mrrc_region_list *gone);
void mrrc_cache_left(struct mrrc_cache *cache, struct mrrc_region_list *gone,
		     struct mrrc_region_list *victims);

/* The number of regions in use by operations; walks the index. */
size_t mrrc_cache_held(const struct mrrc_cache *cache);

/*
 * Evicts victims of the policy until at least @regions regions and @bytes bytes
 * have left the cache, or no victim remains. Returns the number of victims.
 */
size_t mrrc_cache_evict_some(struct mrrc_cache *cache, size_t bytes,
			     size_t regions, struct mrrc_region_list *victims);

/*
 * Evicts all regions that are not held, in the order of addresses: in another
 * order, ending the watches would split mappings further and further. Returns
 * the number of victims.
 */
size_t mrrc_cache_evict_all(struct mrrc_cache *cache,
			    struct mrrc_region_list *victims);

/* Count registrations; the code that registers and deregisters calls these. */
void mrrc_cache_registered(struct mrrc_cache *cache, size_t len);
void mrrc_cache_deregistered(struct mrrc_cache *cache, size_t len);

static inline void mrrc_cache_count(struct mrrc_cache *cache,
				    enum mrrc_stat stat)
{
	cache->stats->value[stat]++;
}

bool mrrc_cache_valid(const struct mrrc_cache *cache);

#endif /* MRRC_CACHE_H */
