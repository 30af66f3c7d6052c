/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rings of memory uses, for the helper that predicts uses: the deregistration
 * queue of li2011, section 4.1.
 *
 * Each thread has a ring for each cache. The thread alone writes its ring, and
 * never waits: when the helper is late the oldest uses are overwritten and
 * counted as lost. Noting a use takes no lookup, lock, allocation or system
 * call.
 *
 * Times are ticks of the processor's counter, if all processors' counters run
 * at one rate, else nanoseconds; struct mrrc_ticks converts ticks.
 */
#ifndef MRRC_USES_H
#define MRRC_USES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <bsd/sys/queue.h>

#include "core/helper/predict.h"
#include "sys/monitor/mon.h"

/* The smallest use that is noted, as in the paper: more than 16 KiB. */
#define MRRC_USES_MIN ((size_t) 16384 + 1)

#define MRRC_USES_RING 256 /* a power of two: 8 KiB */

struct mrrc_use {
	uint64_t site; /* identifies the call */
	uintptr_t addr;
	size_t len;
	uint64_t when; /* ticks */
};

struct mrrc_uses_slot {
	_Atomic uint64_t site, addr, len, when;
};

struct mrrc_uses {
	/* the thread's */
	struct mrrc_uses_slot slot[MRRC_USES_RING];
	_Atomic uint64_t head; /* uses so far */
	bool counter;	       /* ticks are the processor's; constant */
	/* the helper's */
	_Alignas(64) uint64_t tail; /* uses read or lost */
	struct mrrc_predict_context context;
	/* the cache's lock */
	bool ended; /* the thread has ended; the helper frees the ring */
	TAILQ_ENTRY(mrrc_uses) link;
};

TAILQ_HEAD(mrrc_uses_list, mrrc_uses);

static inline uint64_t mrrc_uses_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static inline uint64_t mrrc_ticks_now(bool counter)
{
#if defined(__x86_64__)
	if (__builtin_expect(counter, 1))
		return __builtin_ia32_rdtsc();
#endif
	return mrrc_uses_ns();
}

/* Adds a use; called by the ring's thread. */
static inline void mrrc_uses_add(struct mrrc_uses *uses, uint64_t site,
				 uintptr_t addr, size_t len)
{
	const uint64_t head =
		atomic_load_explicit(&uses->head, memory_order_relaxed);
	struct mrrc_uses_slot *slot = &uses->slot[head % MRRC_USES_RING];

	/*
	 * a reader that sees a part of this use also sees the head that the use
	 * before has stored
	 */
	mrrc_fence(release);
	atomic_store_explicit(&slot->site, site, memory_order_relaxed);
	atomic_store_explicit(&slot->addr, addr, memory_order_relaxed);
	atomic_store_explicit(&slot->len, len, memory_order_relaxed);
	atomic_store_explicit(&slot->when, mrrc_ticks_now(uses->counter),
			      memory_order_relaxed);
	atomic_store_explicit(&uses->head, head + 1, memory_order_release);
}

/* Can the processor's counter be used on this machine? */
bool mrrc_ticks_counter(void);

/* An empty ring; NULL: no memory. */
struct mrrc_uses *mrrc_uses_new(bool counter);
void mrrc_uses_free(struct mrrc_uses *uses);

/* Has the ring uses to read? Called by the helper. */
static inline bool mrrc_uses_any(const struct mrrc_uses *uses)
{
	return atomic_load_explicit(&((struct mrrc_uses *) uses)->head,
				    memory_order_acquire) != uses->tail;
}

/*
 * Called by the helper: reads the oldest uses, at most @max, and returns their
 * number. *lost grows by the number of overwritten uses.
 */
size_t mrrc_uses_read(struct mrrc_uses *uses, struct mrrc_use *out, size_t max,
		      uint64_t *lost);

/* Converts ticks to nanoseconds of CLOCK_MONOTONIC. */
struct mrrc_ticks {
	bool counter;
	uint64_t ticks0, ns0; /* first reading */
	uint64_t ticks, ns;   /* last reading */
	double rate;	      /* ns a tick; 0: not known yet */
};

void mrrc_ticks_init(struct mrrc_ticks *ticks, bool counter);

/* Look at both clocks; returns nanoseconds. */
uint64_t mrrc_ticks_look(struct mrrc_ticks *ticks);

/* The time of a use in ns, not after the last reading of the clock. */
uint64_t mrrc_ticks_ns(const struct mrrc_ticks *ticks, uint64_t when);

#endif /* MRRC_USES_H */
