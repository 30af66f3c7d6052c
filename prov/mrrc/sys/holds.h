/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holds of regions, counted by threads: an array of a thread's own has a
 * number for each region of a cache, which the thread raises with each hold
 * and lowers with each put, by plain loads and stores. A hold may be put by
 * another thread, so a number alone means nothing: the sum of all arrays and
 * of the region's word is the number of holds, modulo 2^28 (core/region.h).
 *
 * Why that is right. A hold first raises its number and then looks at the
 * word, a put first lowers it and then looks. The side that takes a region out
 * of the index first changes the word, then makes every running thread pass a
 * barrier (membarrier(2)), and then adds up. So of a hold or put and that
 * side at least one sees the other:
 *
 *	a hold that saw INDEXED is in the sum: the region is not deregistered;
 *	one that did not takes itself back, as a put;
 *	a put that saw INDEXED is in the sum;
 *	one that did not takes the cache's lock and adds up anew.
 *
 * After the barrier numbers only fall, but for holds that fail and take
 * themselves back. Hence a sum that is made while they change is never less
 * than the truth, and what is 0 stays 0. The last one that takes the lock sees
 * what all did before, so a region that is not held any more is found to be so.
 *
 * A thread that ends leaves its array to the next one, as it is. A signal
 * handler that takes a region out of the index meets its own thread between
 * two instructions, which are in order for it.
 *
 * Without membarrier there are no arrays: holds change the word, which then is
 * all of the sum. Where it is forbidden later on, words become SHARED, so that
 * no hold by a number succeeds any more.
 *
 * Threads: any, no lock; sums by whoever may look at the region.
 */
#ifndef MRRC_HOLDS_H
#define MRRC_HOLDS_H

#include "core/region.h"
#include "sys/pool.h"

/*
 * The array of one thread. Regions lie in a pool, in units of 64 bytes: each
 * unit has a number, so that a region's is found by a shift.
 */
struct mrrc_lane {
	struct mrrc_lane *next;
	atomic_bool taken;
	_Alignas(64) _Atomic uint32_t number[];
};

struct mrrc_holds {
	struct mrrc_counts counts;
	const char *regions;
	size_t size;			/* of a lane; 0: there are none */
	struct mrrc_lane *_Atomic lanes;	/* grows only */
};

/* Of the regions in this pool. */
void mrrc_holds_init(struct mrrc_holds *holds, const struct mrrc_pool *pool);

/* No thread uses one any more. */
void mrrc_holds_fini(struct mrrc_holds *holds);

/* For the calling thread; NULL: none. No lock held. */
struct mrrc_lane *mrrc_holds_take(struct mrrc_holds *holds);

static inline void mrrc_holds_give(struct mrrc_lane *lane)
{
	atomic_store_explicit(&lane->taken, false, memory_order_release);
}

/* The number of the region that lies so far into the pool. */
static inline _Atomic uint32_t *mrrc_lane_number(struct mrrc_lane *lane,
						 size_t offset)
{
	return (_Atomic uint32_t *)((char *)lane->number + (offset >> 4));
}

/* The owner: one more (1) or less (-1), before it looks at the word. */
static inline void mrrc_lane_add(_Atomic uint32_t *number, int more)
{
	atomic_store_explicit(number, atomic_load_explicit(
		number, memory_order_relaxed) + more, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

#endif /* MRRC_HOLDS_H */
