/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ranges that a monitor remembers: those that are still watched although no
 * cache needs it (evicted memory is often registered again), and those that
 * were found to be private and have been watched since, so that they cannot
 * have changed. Guarded by its owner; allocates nothing.
 */
#ifndef MRRC_IDLE_H
#define MRRC_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_IDLE_MAX  1024
#define MRRC_IDLE_SETS 256 /* a power of two */
#define MRRC_IDLE_WAYS 4

struct mrrc_idle_range {
	uintptr_t start, end;
	bool whole; /* a huge page that is watched whole */
};

struct mrrc_idle_known {
	uintptr_t start;
	uintptr_t seen;	  /* looked at up to there; 0: not */
	uintptr_t queued; /* end of the part in the ring; 0: not in it */
	/* end of the part watched since this token; 0: none */
	uintptr_t watched;
	uint64_t token;
};

/* All zero: nothing is remembered. */
struct mrrc_idle {
	/* a ring; each range once, except a few stale entries */
	struct mrrc_idle_range range[MRRC_IDLE_MAX];
	unsigned first, count;
	struct mrrc_idle_known known[MRRC_IDLE_SETS][MRRC_IDLE_WAYS];
	unsigned way;	 /* that makes room next */
	uint32_t reach;	 /* pages of the longest known, or more */
	uint64_t tokens; /* given so far */
};

/*
 * Remembers a range that is no longer needed. Returns true if *out, the oldest
 * range, made room and has to be unwatched.
 */
bool mrrc_idle_add(struct mrrc_idle *idle, const struct mrrc_idle_range *range,
		   struct mrrc_idle_range *out);

/* The oldest; false: there is none. */
bool mrrc_idle_take(struct mrrc_idle *idle, struct mrrc_idle_range *out);

/* Does a remembered range share a byte with this one? Examines all. */
bool mrrc_idle_overlaps(const struct mrrc_idle *idle, uintptr_t start,
			uintptr_t end);

/* A new one, never 0. */
static inline uint64_t mrrc_idle_token(struct mrrc_idle *idle)
{
	return ++idle->tokens;
}

/* The range is watched from now on; returns a token. */
uint64_t mrrc_idle_watch(struct mrrc_idle *idle, uintptr_t start,
			 uintptr_t end);

/*
 * mrrc_idle_saw(): the pages were examined; valid if the range was watched all
 * the time since the token was given. mrrc_idle_seen(): the token, if that was
 * so and the range is still watched; else 0.
 */
void mrrc_idle_saw(struct mrrc_idle *idle, uintptr_t start, uint64_t token);
uint64_t mrrc_idle_seen(struct mrrc_idle *idle, uintptr_t start, uintptr_t end);

/*
 * The range has changed, or is no longer watched. Ranges begin at pages. Looks at
 * all that are known if the range, or one of these, is long.
 */
void mrrc_idle_forget(struct mrrc_idle *idle, uintptr_t start, uintptr_t end);

#endif /* MRRC_IDLE_H */
