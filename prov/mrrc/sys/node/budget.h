/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The budget of registered bytes that the processes of a node share
 * (FI_OFI_MRRC_NODE_MAX_SIZE), as one process uses the budget: the process
 * takes bytes before a registration and puts bytes after its end.
 *
 * The process reserves bytes of the node's segment (sys/node/node_shm.h) in
 * grains, so that most calls find enough and cost two atomic operations. A
 * grain is reserved without a lock between processes: the process publishes its
 * new reservation, adds up the reservations of all processes, and takes its own
 * back if the sum exceeds the budget. If two processes reserve at once, at
 * least one of them sees both reservations.
 *
 * A process that lacks bytes publishes how many, and rings, which wakes a
 * thread in each other process. Each process has a thread that sleeps until
 * another process rings, and then gives back the number of bytes that
 * core/cache/node.h computes: first bytes that are reserved but unused, then
 * bytes of regions that the process's members (caches) evict, and free memory
 * of its allocators. Evicted bytes are given back when their regions are
 * deregistered. A process that lacks bytes does not wait: it evicts its own
 * regions.
 *
 * Without a segment the process has its own budget.
 *
 * All calls except open and close: any thread, no lock held. Not in a forked
 * child, whose calls would write to the parent's slot.
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
	/* limit of a process without a segment, if less than @bytes */
	size_t alone;
	const char
		/*
		 * directory of the segment; NULL: sys/node/node_dir.h finds it
		 */
		*dir;
};

/* A cache in the budget; its functions are called with no LEAF lock held. */
struct mrrc_budget_member {
	/* Counts requests for memory. */
	uint64_t (*uses)(struct mrrc_budget_member *member);
	/*
	 * Returns the member's registered bytes, which it can evict unless
	 * operations hold them.
	 */
	size_t (*bytes)(struct mrrc_budget_member *member);
	/* Evicts about @bytes bytes, and returns the number evicted. */
	size_t (*evict)(struct mrrc_budget_member *member, size_t bytes);
	struct mrrc_stats *stats; /* gets the node's counters; or NULL */
	/* members_lock: the member has a use for a helper thread */
	bool would;
	TAILQ_ENTRY(mrrc_budget_member) link;
};

/*
 * An allocator in the budget. Its functions deregister its free memory when
 * users of the budget lack bytes, and are called with no lock held except a
 * mutex.
 */
struct mrrc_budget_keeper {
	void (*trim)(struct mrrc_budget_keeper *keeper); /* all free memory */
	/* Gives memory that was free for a second to other processes. */
	void (*give)(struct mrrc_budget_keeper *keeper);
	/*
	 * Deregisters the regions that the cache of the allocator's domain has
	 * evicted.
	 */
	void (*reap)(struct mrrc_budget_keeper *keeper);
	/*
	 * true: any thread may call trim and give; false: only the allocator's
	 * own calls may
	 */
	bool any_thread;
	TAILQ_ENTRY(mrrc_budget_keeper) link;
};

struct mrrc_budget_stats {
	uint64_t budget;   /* bytes; 0: no limit */
	uint64_t node;	   /* bytes reserved by all processes, as last seen */
	uint64_t reserved; /* bytes reserved by this process */
	uint64_t want;	   /* bytes that this process lacks */
	/* bytes given to other processes, since the budget was opened */
	uint64_t given;
	/* bytes added to the reservation, since the budget was opened */
	uint64_t taken;
};

struct mrrc_budget;

/* budget_open.c */

/*
 * Opens a budget. *alone: 0, or the reason why there is no segment, an error of
 * mrrc_node_shm_open().
 */
int mrrc_budget_open(const struct mrrc_budget_attr *attr,
		     struct mrrc_budget **budget, int *alone);
void mrrc_budget_close(struct mrrc_budget *budget);

/* Bytes that this process may have in all. */
size_t mrrc_budget_limit(const struct mrrc_budget *budget);

/*
 * Joins the budget of this process, which the first domain opens for all
 * domains of the process. A forked child joins a new budget.
 */
int mrrc_budget_join(const struct mrrc_budget_attr *attr,
		     struct mrrc_budget **budget, int *alone);
/* @budget may be NULL. */
void mrrc_budget_leave(struct mrrc_budget *budget);

void mrrc_budget_add(struct mrrc_budget *budget,
		     struct mrrc_budget_member *member);
void mrrc_budget_remove(struct mrrc_budget *budget,
			struct mrrc_budget_member *member);

/* budget.c */

/* Takes bytes. false: the budget does not have this many bytes now. */
bool mrrc_budget_take(struct mrrc_budget *budget, size_t bytes);

/*
 * Like mrrc_budget_take(), but does not tell other processes that this process
 * lacks bytes.
 */
bool mrrc_budget_try(struct mrrc_budget *budget, size_t bytes);

/* budget_keep.c: allocators */

/*
 * Like mrrc_budget_take(), for an allocator. The allocators of the process give
 * their free memory, @own (or NULL) first, until the bytes suffice. Then the
 * members evict the missing bytes, if they have enough bytes, and the call
 * waits at most @ms milliseconds for these evictions and for other processes.
 */
bool mrrc_budget_take_wait(struct mrrc_budget *budget,
			   struct mrrc_budget_keeper *own, size_t bytes,
			   unsigned ms);
void mrrc_budget_keep(struct mrrc_budget *budget,
		      struct mrrc_budget_keeper *keeper);
void mrrc_budget_keep_end(struct mrrc_budget *budget,
			  struct mrrc_budget_keeper *keeper);
/*
 * Waits until no other thread is making the allocators of the process free
 * memory.
 */
void mrrc_budget_keep_wait(struct mrrc_budget *budget);

/* budget.c */

/*
 * Takes bytes for a registration of one operation, even beyond the budget.
 * false: the budget is exceeded.
 */
bool mrrc_budget_take_over(struct mrrc_budget *budget, size_t bytes);

void mrrc_budget_put(struct mrrc_budget *budget, size_t bytes);

/* Has the other members of this process evict @bytes bytes for @member. */
size_t mrrc_budget_evict_others(struct mrrc_budget *budget,
				struct mrrc_budget_member *member,
				size_t bytes);

/* All zero if there is no limit. */
void mrrc_budget_stats(struct mrrc_budget *budget,
		       struct mrrc_budget_stats *stats);

/* node_helper.c: helper threads of the node's processes */

struct mrrc_budget_helper {
	bool may;	  /* this process may have a helper thread now */
	uint64_t move_ns; /* ns by which to move the thread's deadlines */
};

/*
 * Called by a predicting helper thread each time it wakes. Reads the files for
 * the answer every MRRC_BUDGET_HELPER_MS, and while the answer stays the same
 * less often, down to every MRRC_BUDGET_HELPER_MAX_MS, as reading takes a
 * millisecond on a node of many processors. Other calls only read a clock, take
 * a lock and load a few words. @would: the member has a use for a helper
 * thread; when the member has no use any more, it calls once with false. All
 * members of the process with a use for a helper thread get the same answer.
 */
#define MRRC_BUDGET_HELPER_MS	  100
#define MRRC_BUDGET_HELPER_MAX_MS 800
struct mrrc_budget_helper mrrc_budget_helper(struct mrrc_budget *budget,
					     struct mrrc_budget_member *member,
					     enum mrrc_node_helpers policy,
					     bool would);

#endif /* MRRC_BUDGET_H */
