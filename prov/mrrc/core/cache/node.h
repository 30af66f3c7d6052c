/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arithmetic by which the processes of a node share one budget of
 * registered bytes, and by which some processes have a helper thread (li2011,
 * section 5).
 *
 * The budget is shared max-min fairly. Each active process has a right to the
 * same share; the part of its share that a process does not need is divided
 * among the other processes. Only the share of a process that lacks bytes is
 * enforced: the other processes give back what they hold beyond their shares. A
 * process that lacks bytes itself gives bytes only if it has an eighth more
 * than its share, so that two such processes do not take from each other in
 * turns.
 *
 * Amounts are in units of MRRC_NODE_UNIT bytes and come from other processes:
 * any value below MRRC_NODE_UNITS is allowed, and loops have an end. Pure
 * functions, not thread-safe.
 */
#ifndef MRRC_NODE_CORE_H
#define MRRC_NODE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_NODE_UNIT	4096
#define MRRC_NODE_UNITS ((uint64_t) 1 << 40)

/* One process. */
struct mrrc_node_share {
	uint64_t reserved; /* units that the process may have registered */
	uint64_t want;	   /* units that the process lacks, or 0 */
	uint64_t used;	   /* units registered */
	uint64_t cpus;	   /* set of processors on which it runs, modulo 64 */
	bool active;	   /* the process has used memory lately */
	/* the process does not answer requests: it keeps its bytes */
	bool deaf;
	bool helper; /* the process would use a helper thread */
};

/* A view of all live processes, the caller's own included. */
struct mrrc_node_view {
	const struct mrrc_node_share *share;
	size_t count;
	size_t self;
	uint64_t budget; /* units */
};

/* The sum of all reservations. */
uint64_t mrrc_node_reserved(const struct mrrc_node_view *view);

/* The equal share, in units, of a process that needs all of it. */
uint64_t mrrc_node_level(const struct mrrc_node_view *view);

/*
 * Returns the units of the budget that this process may add to its reservation:
 * all free units; if this process has its share already, only the free units
 * that no other process needs for its share.
 */
uint64_t mrrc_node_take(const struct mrrc_node_view *view, uint64_t ask);

/* Units that this process lacks of its share. */
uint64_t mrrc_node_lacks(const struct mrrc_node_view *view);

/* Units that this process has to give back, for processes that lack units. */
uint64_t mrrc_node_give(const struct mrrc_node_view *view);

/* Does another process, which answers requests, lack units? */
bool mrrc_node_others_want(const struct mrrc_node_view *view);

/* FI_OFI_MRRC_HELPER_NODE */
enum mrrc_node_helpers {
	/* MRRC_NODE_CONSERVATIVE, by measured idle time */
	MRRC_NODE_AUTO,
	MRRC_NODE_CONSERVATIVE, /* one helper for each core without a process */
	/* one helper for each process, with deadlines moved */
	MRRC_NODE_AGGRESSIVE,
};

struct mrrc_node_cores {
	unsigned allowed; /* cores on which this process may run */
	/* idle cores among `allowed`, measured; below 0: unknown */
	double idle;
	uint64_t slice; /* ns that a thread runs at a time */
};

/* ns of a switch from one thread to another */
#define MRRC_NODE_SWITCH 5000

/*
 * May this process have a helper thread? If so, *move is the time by which the
 * helper's deadlines have to be moved. Of the processes that share a core, the
 * processes with most registered bytes come first.
 */
bool mrrc_node_helper_may(const struct mrrc_node_view *view,
			  enum mrrc_node_helpers policy,
			  const struct mrrc_node_cores *cores, uint64_t *move);

#endif /* MRRC_NODE_CORE_H */
