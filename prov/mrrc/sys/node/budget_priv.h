/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Private to budget.c, budget_keep.c, budget_open.c and node_helper.c. */
#ifndef MRRC_BUDGET_PRIV_H
#define MRRC_BUDGET_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "sys/node/budget.h"
#include "sys/node/cpus.h"
#include "sys/base/lock.h"
#include "sys/node/node_shm.h"

/* All amounts are in units of MRRC_NODE_UNIT bytes. */
struct mrrc_budget {
	_Atomic uint64_t left; /* reserved, and not used */
	_Atomic uint64_t used;
	_Atomic uint64_t over; /* reserved beyond the budget; written: lock */
	_Atomic uint64_t owe;  /* to give back; written: lock */
	uint64_t limit; /* constant; SIZE_MAX: none, only `used` counts */
	uint64_t alone;
	uint64_t grain;

	struct mrrc_lock lock; /* LEAF: the next ones, and the slot */
	struct mrrc_node_shm *shm;
	uint64_t reserved;
	uint64_t want;
	uint64_t node; /* reserved by all, as last seen */
	uint64_t given, taken;
	uint64_t lacked_at, rang_at, looked_at; /* ms */
	uint64_t ring_ms; /* until it rings again, if nothing was given */
	uint32_t bell;	  /* its number at that time */
	uint64_t tried_at, try_ms; /* a trial, and the time until the next */
	uint64_t tried_with;	   /* what it had at the trial */
	uint64_t trial; /* failed if demand rises by this many units */
	bool missed;
	struct mrrc_node_share share[MRRC_NODE_SLOTS];

	struct mrrc_lock members_lock; /* BUDGET; changed under both locks */
	TAILQ_HEAD(, mrrc_budget_member) members;
	uint64_t uses; /* members_lock: as last seen, and when they changed */
	uint64_t used_at;

	struct mrrc_mutex keepers_lock; /* held while they deregister */
	TAILQ_HEAD(, mrrc_budget_keeper) keepers;

	pthread_t thread;
	bool runs;	  /* constant but in open and close */
	atomic_bool stop; /* the thread is to end */

	/* members_lock: of the threads that ask for a helper */
	struct mrrc_cpus cpus;
	unsigned would;	   /* members */
	uint64_t asked_at; /* ms; 0: never */
	uint64_t ask_ms;   /* from then to the next time */
	struct mrrc_budget_helper helper;
};

#define MRRC_BUDGET_RING_MS 2	/* between two rings, at first */
#define MRRC_BUDGET_TRY_MS  100 /* between two trials, at first */

/* ms, coarse. Compared with times that are kept under a lock: called under it. */
uint64_t mrrc_budget_now(void);

static inline uint64_t mrrc_budget_units(size_t bytes)
{
	return bytes / MRRC_NODE_UNIT + (bytes % MRRC_NODE_UNIT != 0);
}

/* Lock held: all processes. @look: as in mrrc_node_shm_read(). */
void mrrc_budget_view(struct mrrc_budget *budget, bool look, uint64_t now,
		      struct mrrc_node_view *view);

/* members_lock held: all but @except evict. */
uint64_t mrrc_budget_evict(struct mrrc_budget *budget,
			   const struct mrrc_budget_member *except,
			   uint64_t units);

/*
 * Allocators deregister so much of what they keep free. Returns about how much
 * less is owed.
 */
uint64_t mrrc_budget_give_kept(struct mrrc_budget *budget, uint64_t units);

/* The thread: gives back what others lack. */
void mrrc_budget_answer(struct mrrc_budget *budget);

#endif /* MRRC_BUDGET_PRIV_H */
