/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cache for threads: core/cache/cache.h with a lock, a monitor that reports
 * changed mappings, and the registration calls.
 *
 * Any thread that holds no lock may call all of these functions
 * (sys/base/lock.h asserts in debug builds that no lock is held). A hit takes
 * no lock (cache_hit.h). The calling thread registers; the calling thread or
 * the cache's helper thread (attr.helper) deregisters; both with no lock held.
 */
#ifndef MRRC_CACHE_MT_H
#define MRRC_CACHE_MT_H

#include "core/cache/admit.h"
#include "core/cache/plan.h"
#include "core/cache/revoke.h"
#include "sys/node/budget.h"
#include "sys/monitor/mon.h"

/*
 * The calls that register and deregister memory. Threads in get, put or flush
 * make these calls, several at once, with no lock of the cache held.
 */
struct mrrc_reg_ops {
	/*
	 * Registers memory. Returns 0 or -E*. -EFAULT, -EACCES, -EPERM: the
	 * memory does not allow the access. -ENOMEM, -EAGAIN, -EMFILE, -ENFILE,
	 * -ENOSPC, -ENOBUFS, -EBUSY: a limit is reached; the cache tries again
	 * after evicting.
	 */
	int (*reg)(void *arg, uintptr_t start, size_t len,
		   enum mrrc_access access, void **cookie, void **desc);
	/*
	 * The cookie of each region identifies its registration. Cannot fail.
	 */
	void (*dereg)(void *arg, struct mrrc_region *const *regions,
		      size_t count);
};

struct mrrc_cache_attr {
	size_t max_bytes;   /* 0: mrrc_vm_default_limits */
	size_t max_regions; /* 0: default; both 1: tiny */
	const char *policy; /* core/policy/policy.h; NULL: default */
	const struct mrrc_reg_ops *ops;
	void *arg;		  /* argument of ops */
	struct mrrc_mon *mon;	  /* not owned: outlives the cache */
	struct mrrc_stats *stats; /* not owned, zeroes; NULL: the cache's own */
	bool helper;		  /* a helper thread calls dereg */
	/*
	 * lets the helper also register ahead of use, if the node's budget
	 * allows it; NULL: the helper does not
	 */
	const struct mrrc_predictor *predictor;
	enum mrrc_node_helpers helpers;
	/*
	 * The pool of the user's records, one record for each use of a region;
	 * threads keep some free records (cache_hit.h). Outlives the cache.
	 * NULL: no records
	 */
	struct mrrc_pool *records;
	/*
	 * The budget of registered bytes, which outlives the cache. NULL: no
	 * budget
	 */
	struct mrrc_budget *budget;
	/*
	 * Nanoseconds from mrrc_cache_mt_put_key() until the helper revokes the
	 * key; 0, MRRC_REVOKE_NEVER, or no helper: never
	 */
	uint64_t revoke;
};

struct mrrc_cache_mt;

int mrrc_cache_mt_open(const struct mrrc_cache_attr *attr,
		       struct mrrc_cache_mt **cache);

/*
 * Deregisters all regions. -EBUSY, with nothing done, while regions are held.
 */
int mrrc_cache_mt_close(struct mrrc_cache_mt *cache);

/* cache_get.c: lookups */

/*
 * Gets a registration that covers [addr, addr + len) and allows the access,
 * held until the caller puts it; the caller may read region->desc and
 * region->cookie. -EINVAL: the range is empty; -EFAULT: addr is NULL, or the
 * range wraps around; else the registration's error.
 */
int mrrc_cache_mt_get(struct mrrc_cache_mt *cache, const void *addr, size_t len,
		      enum mrrc_access access, struct mrrc_region **region);

/*
 * As mrrc_cache_mt_get(), but with at most @pieces regions: the regions of the
 * plan, each held, cover the pages of the range in order.
 */
int mrrc_cache_mt_get_pieces(struct mrrc_cache_mt *cache, const void *addr,
			     size_t len, enum mrrc_access access,
			     unsigned pieces, struct mrrc_plan *plan);

/*
 * mrrc_cache_mt_get_pieces() for a buffer that the caller could copy through
 * registered memory: Sets *copy if copying is cheaper: then no region is held,
 * and the lookup counts as a miss. The cache's lock guards admit.
 */
int mrrc_cache_mt_get_or_copy(struct mrrc_cache_mt *cache,
			      struct mrrc_admit *admit, const void *addr,
			      size_t len, enum mrrc_access access,
			      unsigned pieces, struct mrrc_plan *plan,
			      bool *copy);

/*
 * Is the whole range registered as one region? Then holds this region, like
 * mrrc_cache_mt_get().
 */
bool mrrc_cache_mt_known(struct mrrc_cache_mt *cache, const void *addr,
			 size_t len, enum mrrc_access access,
			 struct mrrc_plan *plan);

/*
 * As mrrc_cache_mt_get_or_copy(), after mrrc_cache_mt_known() has found
 * nothing. The source lies in a mapping that only its owner changes, and which
 * the owner invalidates before unmapping it: so the source is not watched.
 * admit: NULL if the source cannot be copied.
 */
int mrrc_cache_mt_get_stable(struct mrrc_cache_mt *cache,
			     struct mrrc_admit *admit, const void *addr,
			     size_t len, unsigned pieces,
			     struct mrrc_plan *plan, bool *copy);

/*
 * To be called once per region, when the operation has completed. Any thread.
 */
void mrrc_cache_mt_put(struct mrrc_cache_mt *cache, struct mrrc_region *region);

/* reaper.c: deregistration */

/*
 * For a region whose key is given to peers: call mrrc_cache_mt_key_given()
 * after getting the region, and mrrc_cache_mt_put_key() instead of
 * mrrc_cache_mt_put(). If no call gets the region again, the helper deregisters
 * it within attr.revoke ns.
 */
void mrrc_cache_mt_key_given(struct mrrc_cache_mt *cache,
			     struct mrrc_region *region);
void mrrc_cache_mt_put_key(struct mrrc_cache_mt *cache,
			   struct mrrc_region *region);

/*
 * Deregisters the evicted regions that wait for deregistration, including the
 * regions queued for the helper.
 */
size_t mrrc_cache_mt_reap_now(struct mrrc_cache_mt *cache);

/*
 * Does the cache's helper predict uses, so that uses have to be noted
 * (cache_use.h)?
 */
bool mrrc_cache_mt_predicts(const struct mrrc_cache_mt *cache);

/* cache_mt.c */

/* Set the cost model, before anything is registered. */
void mrrc_cache_mt_set_cost(struct mrrc_cache_mt *cache,
			    const struct mrrc_cost *cost);

/*
 * Count an event that the cache does not know of; a negative @change lowers a
 * gauge.
 */
void mrrc_cache_mt_stat(struct mrrc_cache_mt *cache, enum mrrc_stat stat,
			int64_t change);

/* Count a copy of @len bytes; set the bytes registered for copies. */
void mrrc_cache_mt_bounced(struct mrrc_cache_mt *cache, size_t len);
void mrrc_cache_mt_bounce_memory(struct mrrc_cache_mt *cache, size_t bytes);

/*
 * Deregisters all regions that are not in use, and waits for regions that are
 * being deregistered. Returns the number of regions deregistered.
 */
size_t mrrc_cache_mt_flush(struct mrrc_cache_mt *cache);

/* Forget a range, as after an unmap that no monitor reports. */
void mrrc_cache_mt_invalidate(struct mrrc_cache_mt *cache, const void *addr,
			      size_t len);

/* Counters to be added to with mrrc_stats_add(), until the cache is closed. */
struct mrrc_stats *mrrc_cache_mt_shared_stats(struct mrrc_cache_mt *cache);

/* Adds the counts of all threads to the shared counters, for their readers. */
void mrrc_cache_mt_collect(struct mrrc_cache_mt *cache);

void mrrc_cache_mt_stats(struct mrrc_cache_mt *cache, struct mrrc_stats *stats);

/*
 * The number of regions that operations use now. Waits for the helper's
 * registration, and walks the index.
 */
size_t mrrc_cache_mt_held(struct mrrc_cache_mt *cache);

/* The limits in force. */
void mrrc_cache_mt_limits(const struct mrrc_cache_mt *cache, size_t *max_bytes,
			  size_t *max_regions);

/* For tests and debug builds. */
bool mrrc_cache_mt_valid(struct mrrc_cache_mt *cache);

#endif /* MRRC_CACHE_MT_H */
