/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to cache_mt.c (entry points, events) and cache_miss.c (how a range
 * comes to be registered): the state both work on.
 */
#ifndef MRRC_CACHE_MT_PRIV_H
#define MRRC_CACHE_MT_PRIV_H

#include "sys/cache_mt.h"

/* A range on its way into the index; on the stack of the missing thread. */
struct mrrc_pending {
	uintptr_t start;
	size_t len;
	bool stale;			/* an event touched the range */
	bool watched;			/* to be unwatched unless indexed */
	TAILQ_ENTRY(mrrc_pending) link;
};

struct mrrc_cache_mt {
	struct mrrc_lock lock;		/* CACHE */
	struct mrrc_cache cache;	/* lock */
	TAILQ_HEAD(, mrrc_pending) pending;	/* lock */
	struct mrrc_region_list victims;	/* lock: to be deregistered */
	atomic_bool has_victims;	/* changed under lock, read without */
	struct mrrc_mon_sub sub;
	struct mrrc_mon *mon;
	const struct mrrc_reg_ops *ops;
	void *arg;
};

/*
 * Take the lock at a moment when the index tells the truth. On any error the
 * lock is not held: -EAGAIN memory keeps changing, -ENODEV no monitor.
 */
int mrrc_cache_mt_quiet_lock(struct mrrc_cache_mt *cache);

/* Deregister and free; no lock held. Returns how many. */
size_t mrrc_cache_mt_dereg_list(struct mrrc_cache_mt *cache,
				struct mrrc_region_list *list);

/*
 * After a miss: register these pages, insert if that is safe; held. No lock
 * held.
 */
int mrrc_cache_mt_fill(struct mrrc_cache_mt *cache, uintptr_t addr,
		       size_t len, enum mrrc_access access,
		       struct mrrc_region **region);

/* Register for one operation, counting why (CNT: already counted). */
int mrrc_cache_mt_once(struct mrrc_cache_mt *cache, uintptr_t addr,
		       size_t len, enum mrrc_access access,
		       enum mrrc_stat cause, struct mrrc_region **region);

#endif /* MRRC_CACHE_MT_PRIV_H */
