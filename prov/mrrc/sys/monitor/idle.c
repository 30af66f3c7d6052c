/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ranges that a monitor remembers (idle.h).
 */
#include "config.h"
#include "sys/monitor/idle.h"

#include "core/text/hash.h"

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

static struct mrrc_idle_known *idle_make(struct mrrc_idle *idle,
					 uintptr_t start)
{
	struct mrrc_idle_known *known = idle_find(idle, start);

	if (!known) {
		known = &idle_set(idle, start)[idle->way++ % MRRC_IDLE_WAYS];
		*known = (struct mrrc_idle_known){ .start = start };
	}
	return known;
}

bool mrrc_idle_take(struct mrrc_idle *idle, struct mrrc_idle_range *out)
{
	struct mrrc_idle_known *known;

	if (!idle->count)
		return false;
	*out = idle->range[idle->first];
	idle->first = (idle->first + 1) % MRRC_IDLE_MAX;
	idle->count--;
	known = idle_find(idle, out->start);
	if (known)
		known->queued = 0;
	return true;
}

bool mrrc_idle_add(struct mrrc_idle *idle, const struct mrrc_idle_range *range,
		   struct mrrc_idle_range *out)
{
	struct mrrc_idle_known *known = idle_make(idle, range->start);
	bool full;

	if (known->queued >= range->end)
		return false;
	full = idle->count == MRRC_IDLE_MAX && mrrc_idle_take(idle, out);
	known->queued = range->end;
	idle->range[(idle->first + idle->count++) % MRRC_IDLE_MAX] = *range;
	return full;
}

bool mrrc_idle_overlaps(const struct mrrc_idle *idle, uintptr_t start,
			uintptr_t end)
{
	const struct mrrc_idle_range *range;
	unsigned i;

	for (i = 0; i < idle->count; i++) {
		range = &idle->range[(idle->first + i) % MRRC_IDLE_MAX];
		if (range->start < end && start < range->end)
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

uint64_t mrrc_idle_watch(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	struct mrrc_idle_known *known = idle_make(idle, start);

	idle_reach(idle, start, end);
	known->watched = end;
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
			    uintptr_t end)
{
	if (known->start < end && start < known->seen)
		known->seen = 0;
	if (known->start < end && start < known->watched)
		known->watched = 0;
}

/*
 * Calls idle_forget_one() for all entries, and computes idle->reach from the
 * entries that remain.
 */
static void idle_forget_all(struct mrrc_idle *idle, uintptr_t start,
			    uintptr_t end)
{
	struct mrrc_idle_known *known = idle->known[0];
	size_t i;

	idle->reach = 0;
	for (i = 0; i < MRRC_IDLE_SETS * MRRC_IDLE_WAYS; i++, known++) {
		idle_forget_one(known, start, end);
		idle_reach(idle, known->start, known->seen);
		idle_reach(idle, known->start, known->watched);
	}
}

void mrrc_idle_forget(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	const uintptr_t page = start / IDLE_PAGE, reach = idle->reach;
	const uintptr_t last = end ? (end - 1) / IDLE_PAGE : 0;
	uintptr_t at = page >= reach ? page + 1 - reach : 0;
	struct mrrc_idle_known *known;

	if (start >= end || !reach)
		return;
	if (reach == UINT32_MAX || last - at >= IDLE_PROBES) {
		idle_forget_all(idle, start, end);
		return;
	}
	/* an entry that overlaps the range begins at one of these pages */
	for (; at <= last; at++) {
		known = idle_find(idle, at * IDLE_PAGE);
		if (known)
			idle_forget_one(known, start, end);
	}
}
