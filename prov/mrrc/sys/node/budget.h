/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The budget of registered bytes that the processes of a node share
 * (FI_OFI_MRRC_NODE_MAX_SIZE), as one process uses it: bytes are taken before a
 * registration and put after it has ended.
 *
 * The process reserves bytes of the node's segment (sys/node/node_shm.h) in
 * grains, so that most calls find enough and cost two atomic operations. A
 * grain is reserved without a lock between processes: the process publishes its
 * new reservation, adds up those of all, and goes back if the sum is beyond the
 * budget. If two processes do so at once, at least one of them sees both
 * reservations.
 *
 * A process that lacks bytes publishes their number, and rings: it wakes the
 * threads of the other processes. Each process has a thread that sleeps until
 * then. It gives back the number of bytes that core/cache/node.h computes:
 * first reserved bytes that are not used, then bytes of regions that its
 * members evict, and of free memory of its allocators; these return when they
 * are deregistered. A process that lacks bytes does not wait: it evicts regions
 * of its own.
 *
 * Without a segment the process has its own budget.
 *
 * Any thread, no lock held, except open and close. Not in a forked child: it
 * has no part in the budget, and its calls would write to its parent's slot.
 */
#ifndef MRRC_BUDGET_H
#define MRRC_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "core/cache/node.h"
#include "core/text/stats.h"

#define MRRC_BUDGET_NONE SIZE_MAX

struct mrrc_budget_attr {
	/* bytes of the node; NONE: no limit, nothing is reserved */
	size_t bytes;
	/* limit of a process without a segment, if that is less */
	size_t alone;
	const char
		/*
		 * directory of the segment; NULL: sys/node/node_dir.h finds it
		 */
		*dir;
};

/* A cache that takes part; its functions are called with no LEAF lock held. */
struct mrrc_budget_member {
	/* Counts requests for memory. */
	uint64_t (*uses)(struct mrrc_budget_member *member);
	/*
	 * Bytes that are registered; the member evicts them unless operations
	 * hold them.
	 */
	size_t (*bytes)(struct mrrc_budget_member *member);
	/* Evicts about that many bytes, and returns how many. */
	size_t (*evict)(struct mrrc_budget_member *member, size_t bytes);
	struct mrrc_stats *stats; /* gets the node's counters; or NULL */
	/* members_lock: the member has a use for a helper */
	bool would;
	TAILQ_ENTRY(mrrc_budget_member) link;
};

/*
 * An allocator that takes part. Its free memory is for users that lack bytes:
 * its functions deregister that memory, and are called with no lock held except
 * a mutex.
 */
struct mrrc_budget_keeper {
	void (*trim)(struct mrrc_budget_keeper *keeper); /* all of it */
	/* Gives memory that was free for a second to other processes. */
	void (*give)(struct mrrc_budget_keeper *keeper);
	/*
	 * Deregisters the regions that its domain's cache has evicted, in a
	 * separate call.
	 */
	void (*reap)(struct mrrc_budget_keeper *keeper);
	/* any thread may call trim and give; else only its own calls do */
	bool any_thread;
	TAILQ_ENTRY(mrrc_budget_keeper) link;
};

struct mrrc_budget_stats {
	uint64_t budget;   /* bytes; 0: no limit */
	uint64_t node;	   /* reserved by all processes, as last seen */
	uint64_t reserved; /* by this process */
	uint64_t want;	   /* that it lacks */
	/* bytes given to other processes, since it was opened */
	uint64_t given;
	/* bytes added to the reservation, since it was opened */
	uint64_t taken;
};

struct mrrc_budget;

/* budget_open.c */

/*
 * *alone: the reason why there is no segment, an error of mrrc_node_shm_open(),
 * or 0.
 */
int mrrc_budget_open(const struct mrrc_budget_attr *attr,
		     struct mrrc_budget **budget, int *alone);
void mrrc_budget_close(struct mrrc_budget *budget);

/* Bytes that this process may have in all. */
size_t mrrc_budget_limit(const struct mrrc_budget *budget);

/*
 * Joins the budget of this process, which its first domain opens for all of
 * them. A forked child joins another one.
 */
int mrrc_budget_join(const struct mrrc_budget_attr *attr,
		     struct mrrc_budget **budget, int *alone);
/* NULL is allowed. */
void mrrc_budget_leave(struct mrrc_budget *budget);

void mrrc_budget_add(struct mrrc_budget *budget,
		     struct mrrc_budget_member *member);
void mrrc_budget_remove(struct mrrc_budget *budget,
			struct mrrc_budget_member *member);

/* budget.c */

/* Takes bytes. false: the budget does not have this many bytes now. */
bool mrrc_budget_take(struct mrrc_budget *budget, size_t bytes);

/*
 * Like mrrc_budget_take(), but does not tell other processes that bytes are
 * lacking.
 */
bool mrrc_budget_try(struct mrrc_budget *budget, size_t bytes);

/* budget_keep.c: allocators */

/*
 * Like mrrc_budget_take(), for an allocator. The allocators of the process give
 * their free memory, @own (or NULL) first, until it suffices. Then the members
 * evict the missing bytes, if they have that many, and the call waits for that,
 * and for other processes, at most @ms.
 */
bool mrrc_budget_take_wait(struct mrrc_budget *budget,
			   struct mrrc_budget_keeper *own, size_t bytes,
			   unsigned ms);
void mrrc_budget_keep(struct mrrc_budget *budget,
		      struct mrrc_budget_keeper *keeper);
void mrrc_budget_keep_end(struct mrrc_budget *budget,
			  struct mrrc_budget_keeper *keeper);

/* budget.c */

/*
 * Takes bytes that an operation holds, beyond the budget if necessary; then
 * returns false.
 */
bool mrrc_budget_take_over(struct mrrc_budget *budget, size_t bytes);

void mrrc_budget_put(struct mrrc_budget *budget, size_t bytes);

/* Has the other members of this process evict this many bytes for this one. */
size_t mrrc_budget_evict_others(struct mrrc_budget *budget,
				struct mrrc_budget_member *member,
				size_t bytes);

/* All zero if there is no limit. */
void mrrc_budget_stats(struct mrrc_budget *budget,
		       struct mrrc_budget_stats *stats);

/* node_helper.c: helper threads of the node's processes */

struct mrrc_budget_helper {
	bool may;	  /* this process may have a helper thread now */
	uint64_t move_ns; /* time by which its deadlines are to be moved */
};

/*
 * Called by a predicting helper thread each time it wakes. The files for the
 * answer are read every MRRC_BUDGET_HELPER_MS, and less often, down to every
 * MRRC_BUDGET_HELPER_MAX_MS, while the answer stays the same: reading takes a
 * millisecond on a node of many processors. A call in between costs reading a
 * clock, a lock and a few loads. @would: the member has a use for a helper
 * thread; it calls once with false when it has none any more. The process has a
 * use for one while any of its members has, and all of these get the same
 * answer.
 */
#define MRRC_BUDGET_HELPER_MS	  100
#define MRRC_BUDGET_HELPER_MAX_MS 800
struct mrrc_budget_helper mrrc_budget_helper(struct mrrc_budget *budget,
					     struct mrrc_budget_member *member,
					     enum mrrc_node_helpers policy,
					     bool would);

#endif /* MRRC_BUDGET_H */
