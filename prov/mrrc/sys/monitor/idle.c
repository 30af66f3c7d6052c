/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ranges that a monitor remembers (idle.h).
 */
#include "config.h"
#include "sys/monitor/idle.h"

#include "core/text/hash.h"

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

bool mrrc_idle_add(struct mrrc_idle *idle, uintptr_t start, uintptr_t end,
		   struct mrrc_idle_range *out)
{
	struct mrrc_idle_known *known = idle_make(idle, start);
	bool full;

	if (known->queued >= end)
		return false;
	full = idle->count == MRRC_IDLE_MAX && mrrc_idle_take(idle, out);
	known->queued = end;
	idle->range[(idle->first + idle->count++) % MRRC_IDLE_MAX] =
		(struct mrrc_idle_range){ .start = start, .end = end };
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

uint64_t mrrc_idle_watch(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	struct mrrc_idle_known *known = idle_make(idle, start);

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

void mrrc_idle_forget(struct mrrc_idle *idle, uintptr_t start, uintptr_t end)
{
	struct mrrc_idle_known *known = idle->known[0];
	size_t i;

	for (i = 0; i < MRRC_IDLE_SETS * MRRC_IDLE_WAYS; i++, known++) {
		if (known->start < end && start < known->seen)
			known->seen = 0;
		if (known->start < end && start < known->watched)
			known->watched = 0;
	}
}
