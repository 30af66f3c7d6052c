/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A table of ranges that a monitor remembers: ranges that it still watches
 * although no cache needs the range (evicted memory is often registered again),
 * and ranges that were found to be private and have been watched since, so that
 * they cannot have changed. The table's owner guards the table. No call
 * allocates memory.
 */
#ifndef MRRC_IDLE_H
#define MRRC_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_IDLE_MAX  1024
#define MRRC_IDLE_SETS 256 /* a power of two */
#define MRRC_IDLE_WAYS 4

struct mrrc_range;

struct mrrc_idle_range {
	uintptr_t start, end;
	bool whole; /* a huge page that is watched whole */
	bool alone; /* its known range has been replaced */
};

struct mrrc_idle_known {
	uintptr_t start;
	uintptr_t seen;	  /* end of the examined part; 0: none */
	uintptr_t queued; /* end of the range in the ring; 0: none */
	/* end of the part watched since @token; 0: none */
	uintptr_t watched;
	uint64_t token;
	/* end of the part that was watched, and then changed as a whole */
	uintptr_t gone;
	bool whole; /* the range in the ring is */
};

/* All zero: nothing is remembered. */
struct mrrc_idle {
	/*
	 * a ring; a range counts if it is alone, or if the known range that
	 * begins there is queued to the same end
	 */
	struct mrrc_idle_range range[MRRC_IDLE_MAX];
	unsigned first, count, alone;
	struct mrrc_idle_known known[MRRC_IDLE_SETS][MRRC_IDLE_WAYS];
	unsigned way;	 /* the next way to replace, modulo the ways */
	uint32_t reach;	 /* pages of the longest known range, or more */
	uint64_t tokens; /* number of tokens given so far */
};

/*
 * Remembers a range that no cache needs any more, unless all of it has changed
 * since it was watched: it is no longer watched then. Returns true if *out was
 * set to the oldest range, which no longer has a place in the ring, and which
 * the caller has to unwatch.
 */
bool mrrc_idle_add(struct mrrc_idle *idle, const struct mrrc_idle_range *range,
		   struct mrrc_idle_range *out);

/* Takes the oldest range; false: no range is left. */
bool mrrc_idle_take(struct mrrc_idle *idle, struct mrrc_idle_range *out);

/*
 * Does a range of the ring share a byte with [@start, @end)? Looks at all ranges
 * of the ring.
 */
bool mrrc_idle_overlaps(struct mrrc_idle *idle, uintptr_t start, uintptr_t end);

/* A new token, never 0. */
static inline uint64_t mrrc_idle_token(struct mrrc_idle *idle)
{
	return ++idle->tokens;
}

/* The range is watched from now on; returns a token. */
uint64_t mrrc_idle_watch(struct mrrc_idle *idle, uintptr_t start,
			 uintptr_t end);

/*
 * mrrc_idle_saw(): records that the pages of the range were examined, if the
 * range was watched all the time since @token was given. mrrc_idle_seen(): the
 * token of a range that was examined and has been watched since; else 0.
 */
void mrrc_idle_saw(struct mrrc_idle *idle, uintptr_t start, uint64_t token);
uint64_t mrrc_idle_seen(struct mrrc_idle *idle, uintptr_t start, uintptr_t end);

/*
 * Forgets a range that has changed or is no longer watched. All ranges begin at
 * pages. Examines all known ranges if this range or a known range is long.
 */
void mrrc_idle_forget(struct mrrc_idle *idle, uintptr_t start, uintptr_t end);

/*
 * Takes idle ranges out of the ring, because [@start, @end) is no longer
 * watched. If an idle range stayed in the ring, the monitor would unwatch the
 * range later, when another userfaultfd may watch the memory, and Linux before
 * 6.14 would end the watch of the other userfaultfd.
 *
 * @hull NULL: takes out the idle ranges that lie inside [@start, @end). Else
 * takes out all idle ranges that overlap [@start, @end), and extends *@hull to
 * include these idle ranges. Huge pages that are watched whole stay in the ring:
 * the table of huge pages (huge.h) tells whether they are still watched.
 */
void mrrc_idle_drop(struct mrrc_idle *idle, uintptr_t start, uintptr_t end,
		    struct mrrc_range *hull);

#endif /* MRRC_IDLE_H */
