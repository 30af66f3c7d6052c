/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of a budget, and functions of budget.c, for the other budget_*.c
 * and node_helper.c.
 */
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
	_Atomic uint64_t left; /* units reserved and not used */
	_Atomic uint64_t used;
	/* units registered beyond the budget; written under lock */
	_Atomic uint64_t over;
	_Atomic uint64_t owe; /* units to give back; written under lock */
	uint64_t limit;	      /* constant; SIZE_MAX: none, only `used` counts */
	uint64_t alone;
	uint64_t grain;

	struct mrrc_lock lock; /* LEAF: guards the next fields, and the slot */
	struct mrrc_node_shm *shm;
	uint64_t reserved;
	uint64_t want;
	uint64_t node; /* units reserved by all processes, as last seen */
	uint64_t given, taken;
	uint64_t lacked_at, rang_at, looked_at; /* times in ms */
	uint64_t
		/*
		 * ms until the process rings again, if no other process has
		 * given bytes
		 */
		ring_ms;
	uint32_t bell; /* the bell's number at @rang_at */
	/* time of a trial, and the time until the next one */
	uint64_t tried_at, try_ms;
	uint64_t tried_with; /* units reserved at the trial */
	uint64_t trial;	     /* units whose need makes the trial fail */
	bool missed;
	struct mrrc_node_share share[MRRC_NODE_SLOTS];

	/* BUDGET; members are changed under this lock and @lock */
	struct mrrc_lock members_lock;
	TAILQ_HEAD(, mrrc_budget_member) members;
	/* members_lock: uses as last seen, and the time of their last change */
	uint64_t uses;
	uint64_t used_at;

	struct mrrc_mutex keepers_lock; /* held while keepers deregister */
	TAILQ_HEAD(, mrrc_budget_keeper) keepers;

	pthread_t thread;
	bool runs;	  /* constant except in open and close */
	atomic_bool stop; /* the thread is to end */

	/* members_lock: processors of the threads that ask for a helper */
	struct mrrc_cpus cpus;
	unsigned would;	   /* members with a use for a helper */
	uint64_t asked_at; /* ms; 0: never */
	uint64_t ask_ms;   /* time until the next request */
	struct mrrc_budget_helper helper;
};

#define MRRC_BUDGET_RING_MS 2	/* ms between two rings, at first */
#define MRRC_BUDGET_TRY_MS  100 /* ms between two trials, at first */

/*
 * The coarse clock in ms. Called under the lock that guards the times to
 * compare the result with.
 */
uint64_t mrrc_budget_now(void);

static inline uint64_t mrrc_budget_units(size_t bytes)
{
	return bytes / MRRC_NODE_UNIT + (bytes % MRRC_NODE_UNIT != 0);
}

/*
 * Reads the state of all processes. Lock held. @look: as in
 * mrrc_node_shm_read().
 */
void mrrc_budget_view(struct mrrc_budget *budget, bool look, uint64_t now,
		      struct mrrc_node_view *view);

/* Makes all members except @except evict. members_lock held. */
uint64_t mrrc_budget_evict(struct mrrc_budget *budget,
			   const struct mrrc_budget_member *except,
			   uint64_t units);

/* Called by the budget's thread: gives back units that other processes lack. */
void mrrc_budget_answer(struct mrrc_budget *budget);

#endif /* MRRC_BUDGET_PRIV_H */
