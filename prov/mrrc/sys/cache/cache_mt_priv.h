/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of a cache, private to its files: cache_mt.c (life, events,
 * counts), cache_get.c (lookups), miss.c (registration of a missed range),
 * reaper.c (deregistration, the end of keys) and cache_budget.c.
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
	enum mrrc_access access; /* access asked for */
	bool stable;		 /* mrrc_cache_mt_get_stable() */
	bool published;		 /* in the cache's list: lock */
	pthread_t thread;	 /* the thread that registers */
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
	mrrc_ours *ours; /* the monitor's byte */
	char *regions;	 /* the pool's first region */
	struct mrrc_hints_list hints_list;
	struct mrrc_pool *pool; /* memory of regions only */
	atomic_bool asleep;	/* the next use wakes the helper: ahead.c */
	const struct mrrc_reg_ops *ops;
	void *arg;
	_Alignas(64) struct mrrc_lock lock; /* CACHE */
	struct mrrc_cache cache;	    /* lock */
	TAILQ_HEAD(, mrrc_pending) pending; /* lock */
	uint64_t changes;		    /* lock: number of changes */
	pthread_cond_t settled;		 /* lock: a pending range is settled */
	unsigned waiting;		 /* lock: threads waiting for settled */
	struct mrrc_region_list victims; /* lock: to be deregistered */
	atomic_bool has_victims;	 /* written under lock: victims wait */
	bool helped;			 /* constant until close: a helper */
	pthread_t helper;
	pthread_cond_t work; /* lock: there are victims, or stop */
	size_t queued;	     /* lock: bytes of victims queued */
	bool idle;	     /* lock: the helper waits for work */
	bool helping;	     /* lock: the helper has taken victims */
	uint64_t rounds;     /* lock: rounds that the helper ended */
	bool stop;	     /* lock: the helper is to end */
	const struct mrrc_predictor *predictor; /* constant */
	struct mrrc_ahead *ahead; /* constant until close; or NULL */
	bool registering;	  /* lock: the helper registers */
	uint64_t flushes;	  /* lock: number of flushes */
	struct mrrc_mon_sub sub;
	struct mrrc_budget *budget; /* constant; or NULL */
	struct mrrc_budget_member member;
	enum mrrc_node_helpers helpers; /* constant */
	/* lock; without a period: there is no helper, or keys have no end */
	struct mrrc_revoke revoke;
};

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

#endif /* MRRC_CACHE_MT_PRIV_H */
