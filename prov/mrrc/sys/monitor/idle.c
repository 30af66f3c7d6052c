/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ranges that a monitor remembers (idle.h).
 */
#include "config.h"
#include "sys/monitor/idle.h"

#include "core/text/hash.h"
#include "sys/monitor/mon.h"

#define IDLE_PAGE   4096 /* bytes of the smallest page */
#define IDLE_PROBES 128	 /* look-ups, faster than a pass over all */

static struct mrrc_idle_known *idle_set(struct mrrc_idle *idle, uintptr_t start)
{
	return idle->known[mrrc_hash(start) & (MRRC_IDLE_SETS - 1)];
}

static struct mrrc_idle_known *idle_find(struct mrrc_idle *idle,
					 uintptr_t start)
{
	struct mrrc_idle_known *set = idle_set(idle, start);
	int i;

	for (i = 0; i < MRRC_IDLE_WAYS; i++) {
		if (set[i].start == start)
			return &set[i];
	}
	return NULL;
}

static struct mrrc_idle_range *idle_at(struct mrrc_idle *idle, unsigned i)
{
	return &idle->range[(idle->first + i) % MRRC_IDLE_MAX];
}

/*
 * Finds the known range to which a range in the ring belongs. NULL: the range in
 * the ring is alone, or no longer counts.
 */
static struct mrrc_idle_known *idle_known(struct mrrc_idle *idle,
					  const struct mrrc_idle_range *range)
{
	struct mrrc_idle_known *known = idle_find(idle, range->start);

	return known && known->queued == range->end ? known : NULL;
}

/* The range in the ring loses its known range. */
static void idle_leave(struct mrrc_idle *idle,
		       const struct mrrc_idle_known *known)
{
	struct mrrc_idle_range *range;
	unsigned i;

	for (i = 0; i < idle->count; i++) {
		range = idle_at(idle, i);
		if (range->alone || idle_known(idle, range) != known)
			continue;
		range->alone = true;
		idle->alone++;
		return;
	}
}

/* Replaces a known range that is not in the ring, if there is one. */
static struct mrrc_idle_known *idle_make(struct mrrc_idle *idle,
					 uintptr_t start)
{
	struct mrrc_idle_known *known = idle_find(idle, start);
	struct mrrc_idle_known *set = idle_set(idle, start);
	int i;

	if (known)
		return known;
	for (i = 0; i < MRRC_IDLE_WAYS; i++) {
		known = &set[idle->way++ % MRRC_IDLE_WAYS];
		if (!known->queued)
			break;
	}
	if (known->queued)
		idle_leave(idle, known);
	*known = (struct mrrc_idle_known){ .start = start };
	return known;
}

bool mrrc_idle_take(struct mrrc_idle *idle, struct mrrc_idle_range *out)
{
	struct mrrc_idle_known *known;

	while (idle->count) {
		*out = *idle_at(idle, 0);
		idle->first = (idle->first + 1) % MRRC_IDLE_MAX;
		idle->count--;
		known = idle_known(idle, out);
		if (out->alone)
			idle->alone--;
		else if (known)
			known->queued = 0;
		else
			continue;
		return true;
	}
	return false;
}

/* Raises idle->reach to the pages of a known range. */
static void idle_reach(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	const uintptr_t pages =
		end > start ? (end - start - 1) / IDLE_PAGE + 1 : 0;

	if (pages > idle->reach)
		idle->reach = pages < UINT32_MAX ? pages : UINT32_MAX;
}

bool mrrc_idle_add(struct mrrc_idle *idle, const struct mrrc_idle_range *range,
		   struct mrrc_idle_range *out)
{
	struct mrrc_idle_known *known = idle_make(idle, range->start);
	bool full;

	if (known->queued >= range->end ||
	    (!range->whole && known->gone >= range->end))
		return false;
	full = idle->count == MRRC_IDLE_MAX && mrrc_idle_take(idle, out);
	known->queued = range->end;
	known->whole = range->whole;
	idle_reach(idle, range->start, range->end);
	*idle_at(idle, idle->count++) = *range;
	return full;
}

bool mrrc_idle_overlaps(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	const struct mrrc_idle_range *range;
	unsigned i;

	for (i = 0; i < idle->count; i++) {
		range = idle_at(idle, i);
		if (range->start < end && start < range->end &&
		    (range->alone || idle_known(idle, range)))
			return true;
	}
	return false;
}

uint64_t mrrc_idle_watch(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	struct mrrc_idle_known *known = idle_make(idle, start);

	idle_reach(idle, start, end);
	known->watched = end;
	known->gone = 0;
	known->token = mrrc_idle_token(idle);
	return known->token;
}

void mrrc_idle_saw(struct mrrc_idle *idle, uintptr_t start, uint64_t token)
{
	struct mrrc_idle_known *known = idle_find(idle, start);

	if (known && known->watched && known->token == token)
		known->seen = known->watched;
}

uint64_t mrrc_idle_seen(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	const struct mrrc_idle_known *known = idle_find(idle, start);

	return known && known->seen >= end ? known->token : 0;
}

static void idle_forget_one(struct mrrc_idle_known *known, uintptr_t start,
			    uintptr_t end, struct mrrc_range *hull)
{
	(void) hull;
	if (start <= known->start && known->watched && known->watched <= end)
		known->gone = known->watched;
	if (known->start < end && start < known->seen)
		known->seen = 0;
	if (known->start < end && start < known->watched)
		known->watched = 0;
}

/* See mrrc_idle_drop(); [@at, @to) is in the ring, if @to is not 0. */
static bool idle_goes(uintptr_t at, uintptr_t to, uintptr_t start,
		      uintptr_t end, struct mrrc_range *hull)
{
	if (at >= end || start >= to)
		return false;
	if (!hull)
		return at >= start && to <= end;
	if (at < hull->start)
		hull->start = at;
	if (to > hull->end)
		hull->end = to;
	return true;
}

static void idle_drop_one(struct mrrc_idle_known *known, uintptr_t start,
			  uintptr_t end, struct mrrc_range *hull)
{
	if (!known->whole &&
	    idle_goes(known->start, known->queued, start, end, hull))
		known->queued = 0;
}

typedef void idle_one(struct mrrc_idle_known *known, uintptr_t start,
		      uintptr_t end, struct mrrc_range *hull);

/* Calls one() for all entries, and computes idle->reach from what remains. */
static void idle_all(struct mrrc_idle *idle, uintptr_t start, uintptr_t end,
		     struct mrrc_range *hull, idle_one *one)
{
	struct mrrc_idle_known *known = idle->known[0];
	size_t i;

	idle->reach = 0;
	for (i = 0; i < MRRC_IDLE_SETS * MRRC_IDLE_WAYS; i++, known++) {
		one(known, start, end, hull);
		idle_reach(idle, known->start, known->seen);
		idle_reach(idle, known->start, known->watched);
		idle_reach(idle, known->start, known->queued);
	}
}

/* Calls one() for all entries that may overlap the range. */
static void idle_each(struct mrrc_idle *idle, uintptr_t start, uintptr_t end,
		      struct mrrc_range *hull, idle_one *one)
{
	const uintptr_t page = start / IDLE_PAGE, reach = idle->reach;
	const uintptr_t last = end ? (end - 1) / IDLE_PAGE : 0;
	uintptr_t at = page >= reach ? page + 1 - reach : 0;
	struct mrrc_idle_known *known;

	if (start >= end || !reach)
		return;
	if (reach == UINT32_MAX || last - at >= IDLE_PROBES) {
		idle_all(idle, start, end, hull, one);
		return;
	}
	/* an entry that overlaps the range begins at one of these pages */
	for (; at <= last; at++) {
		known = idle_find(idle, at * IDLE_PAGE);
		if (known)
			one(known, start, end, hull);
	}
}

void mrrc_idle_forget(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	idle_each(idle, start, end, NULL, idle_forget_one);
}

void mrrc_idle_drop(struct mrrc_idle *idle, uintptr_t start, uintptr_t end,
		    struct mrrc_range *hull)
{
	struct mrrc_idle_range *range;
	unsigned i;

	idle_each(idle, start, end, hull, idle_drop_one);
	for (i = 0; idle->alone && i < idle->count; i++) {
		range = idle_at(idle, i);
		if (!range->alone || range->whole ||
		    !idle_goes(range->start, range->end, start, end, hull))
			continue;
		range->alone = false;
		idle->alone--;
	}
}
