/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to cache_mt.c (life, events, deregistration), cache_get.c (lookups),
 * cache_cost.c (costs), miss.c (registration of a missed range),
 * cache_revoke.c (the end of keys), reaper.c (deregistration) and
 * cache_budget.c: the state that all of them use.
 */
#ifndef MRRC_CACHE_MT_PRIV_H
#define MRRC_CACHE_MT_PRIV_H

#include "sys/cache/cache_mt.h"
#include "sys/base/pool.h"
#include "sys/cache/region_hints.h"

/* Pages that are being registered; on the stack of the thread that missed. */
struct mrrc_pending {
	uintptr_t start;
	size_t len;
	enum mrrc_access access; /* asked for */
	bool stable;		 /* mrrc_cache_mt_get_stable() */
	bool published;		 /* in the cache's list: lock */
	pthread_t thread;	 /* that registers it */
	bool stale;		 /* an event touched the range */
	bool watched;		 /* to be unwatched unless indexed */
	/* registered ahead of use: no region is evicted for it */
	bool gentle;
	struct mrrc_place place; /* lock: where the lookup found the gap */
	TAILQ_ENTRY(mrrc_pending) link;
};

struct mrrc_ahead;

/*
 * The calls of a predictor, which is a layer above the cache:
 * sys/predict/ahead.h.
 */
struct mrrc_predictor {
	int (*open)(struct mrrc_cache_mt *cache, bool counter,
		    struct mrrc_ahead **ahead);
	void (*close)(struct mrrc_ahead *ahead);
	uint64_t (*turn)(struct mrrc_ahead *ahead, bool *asleep);
};

struct mrrc_cache_mt {
	/* constant, read by hits; the list's head: lock */
	struct mrrc_mon *mon;
	mrrc_ours *ours; /* the monitor's */
	char *regions;	 /* the first of the pool */
	struct mrrc_hints_list hints_list;
	struct mrrc_pool *pool; /* memory of regions only */
	atomic_bool asleep;	/* the next use wakes the helper: ahead.c */
	const struct mrrc_reg_ops *ops;
	void *arg;
	_Alignas(64) struct mrrc_lock lock; /* CACHE */
	struct mrrc_cache cache;	    /* lock */
	TAILQ_HEAD(, mrrc_pending) pending; /* lock */
	uint64_t changes;		    /* lock: changes reported */
	pthread_cond_t settled;		 /* lock: a pending range is settled */
	unsigned waiting;		 /* lock: threads that wait for it */
	struct mrrc_region_list victims; /* lock: to be deregistered */
	atomic_bool has_victims;	 /* lock; read without: deregister */
	bool helped;			 /* constant until close: by helper */
	pthread_t helper;
	pthread_cond_t work; /* lock: there are victims, or stop */
	size_t queued;	     /* lock: bytes of victims queued */
	bool idle;	     /* lock: the helper waits for work */
	bool helping;	     /* lock: it has taken victims */
	uint64_t rounds;     /* lock: times that it was done */
	bool stop;	     /* lock: it is to end */
	const struct mrrc_predictor *predictor; /* constant */
	struct mrrc_ahead *ahead; /* constant until close: it predicts */
	bool registering;	  /* lock: ahead of use */
	uint64_t flushes;	  /* lock: so many */
	struct mrrc_mon_sub sub;
	struct mrrc_budget *budget; /* constant; or NULL */
	struct mrrc_budget_member member;
	enum mrrc_node_helpers helpers; /* constant */
	/* lock; without a period: no helper, or keys have no end */
	struct mrrc_revoke revoke;
};

/*
 * Take the lock while memory is quiet, so that the index is up to date. On any
 * error the lock is not held: -EAGAIN memory keeps changing, -ENODEV no
 * monitor.
 */
int mrrc_cache_mt_quiet_lock(struct mrrc_cache_mt *cache);

/* Make a hint for this thread's next lookup. The region is held. */
void mrrc_cache_mt_remember(struct mrrc_cache_mt *cache, uintptr_t addr,
			    enum mrrc_access access,
			    struct mrrc_region *region);

/* Allocates a region, NEW and zero except its word; NULL: no memory is left. */
struct mrrc_region *mrrc_cache_mt_region(struct mrrc_cache_mt *cache);
void mrrc_cache_mt_region_free(struct mrrc_cache_mt *cache,
			       struct mrrc_region *region);

/* Deregister a region that has left the index and is not held. No lock held. */
void mrrc_cache_mt_dereg(struct mrrc_cache_mt *cache,
			 struct mrrc_region **batch, size_t count);

/* Deregister and free the list; no lock held. Returns the number of regions. */
size_t mrrc_cache_mt_dereg_list(struct mrrc_cache_mt *cache,
				struct mrrc_region_list *list);

/*
 * After a lookup that found a gap, under the same lock: publish the gap as
 * pending. false: another thread is registering it.
 */
bool mrrc_cache_mt_publish(struct mrrc_cache_mt *cache,
			   struct mrrc_pending *pending);

/*
 * After a miss: register the range, published or not, and insert it if that is
 * safe. The resulting region is held. No lock held. @changes: NULL, or the
 * count of changes at which pages beyond the request were known to be mapped.
 */
int mrrc_cache_mt_fill(struct mrrc_cache_mt *cache,
		       struct mrrc_pending *pending, const uint64_t *changes,
		       struct mrrc_region **region);

/* reaper.c: the helper, where there is one. */
int mrrc_cache_mt_helper_start(struct mrrc_cache_mt *cache);
void mrrc_cache_mt_helper_stop(struct mrrc_cache_mt *cache);

/*
 * Gives the victims to the helper. Lock held. If too many bytes already wait
 * for it, they stay in the list, for the caller.
 */
void mrrc_cache_mt_queue(struct mrrc_cache_mt *cache,
			 struct mrrc_region_list *list);

/*
 * To be called when the helper has deregistered the regions that it took. No
 * lock held.
 */
void mrrc_cache_mt_helped(struct mrrc_cache_mt *cache);

/*
 * Register a region ahead of its use, without making room for it. @token:
 * proves that the memory is unchanged (mrrc_mon_unchanged). @flushes: the
 * cache's count of flushes, which must not have grown. -EEXIST: the range is
 * registered; other errors: it cannot be registered now.
 */
int mrrc_cache_mt_ahead(struct mrrc_cache_mt *cache, uintptr_t start,
			size_t len, enum mrrc_access access, uint64_t token,
			uint64_t flushes);

/*
 * Makes victims of closed regions whose time has passed (cache_revoke.c). Lock
 * held. Returns the time of the next call; 0: at once, UINT64_MAX: when it is
 * signalled.
 */
uint64_t mrrc_cache_mt_revoke(struct mrrc_cache_mt *cache);

/* Lock held: the monitor left victims. */
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

/* Registers for one operation, counting the reason (CNT: counted already). */
int mrrc_cache_mt_once(struct mrrc_cache_mt *cache, uintptr_t addr, size_t len,
		       enum mrrc_access access, enum mrrc_stat cause,
		       struct mrrc_region **region);

/*
 * A registration of @len bytes failed for lack of room. Deregister waiting
 * victims; if there are none, evict about as many bytes, twice as many with
 * each attempt. Returns the number of regions; 0: no region is idle.
 */
size_t mrrc_cache_mt_make_room(struct mrrc_cache_mt *cache, size_t len,
			       unsigned attempt);

/* cache_budget.c: the cache's part in the budget of the node. */
void mrrc_cache_mt_budget_open(struct mrrc_cache_mt *cache);
void mrrc_cache_mt_budget_close(struct mrrc_cache_mt *cache);

/*
 * Takes bytes of the budget before a registration, and evicts regions for that.
 * false: the registration exceeds the budget, so it serves one operation only.
 */
bool mrrc_cache_mt_budget_take(struct mrrc_cache_mt *cache, size_t len);

/* After it has failed or ended. */
static inline void mrrc_cache_mt_budget_put(struct mrrc_cache_mt *cache,
					    size_t len)
{
	if (cache->budget)
		mrrc_budget_put(cache->budget, len);
}

#endif /* MRRC_CACHE_MT_PRIV_H */
