/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Huge pages that are watched whole (huge.h).
 */
#include "config.h"
#include "sys/huge.h"

#include "core/hash.h"

#define HUGE_AGAIN 64 /* watches in a page that is none, until the next try */

static uintptr_t *huge_set(struct mrrc_huge *huge, uintptr_t page)
{
	return huge->whole[mrrc_hash(page) & (MRRC_HUGE_SETS - 1)];
}

static uintptr_t *huge_find(struct mrrc_huge *huge, uintptr_t page)
{
	uintptr_t *set = huge_set(huge, page);
	int i;

	for (i = 0; i < MRRC_HUGE_WAYS; i++) {
		if (set[i] == page && page)
			return &set[i];
	}
	return NULL;
}

bool mrrc_huge_whole(const struct mrrc_huge *huge, uintptr_t addr)
{
	return huge->count && huge_find((struct mrrc_huge *) huge,
					mrrc_huge_floor(huge, addr));
}

bool mrrc_huge_overlaps(const struct mrrc_huge *huge, uintptr_t start,
			uintptr_t end)
{
	if (!huge->count || start >= end)
		return false;
	if ((end - start) / huge->size > MRRC_HUGE_SETS)
		return true;
	for (; start < end; start = mrrc_huge_floor(huge, start) + huge->size) {
		if (mrrc_huge_whole(huge, start))
			return true;
	}
	return false;
}

void mrrc_huge_add(struct mrrc_huge *huge, uintptr_t addr)
{
	const uintptr_t page = mrrc_huge_floor(huge, addr);
	uintptr_t *set = huge_set(huge, page);
	int i = 0;

	if (huge_find(huge, page))
		return;
	while (i < MRRC_HUGE_WAYS && set[i])
		i++;
	if (i == MRRC_HUGE_WAYS)
		i = huge->way++ % MRRC_HUGE_WAYS;
	else
		huge->count++;
	set[i] = page;
}

static void huge_take(struct mrrc_huge *huge, uintptr_t *page)
{
	*page = 0;
	huge->count--;
}

void mrrc_huge_remove(struct mrrc_huge *huge, uintptr_t start, uintptr_t end)
{
	uintptr_t addr = mrrc_huge_ceil(huge, start), *page = huge->whole[0];
	uintptr_t *const last = page + MRRC_HUGE_SETS * MRRC_HUGE_WAYS;

	if (!huge->count)
		return;
	/* the range may have more pages than the table */
	if ((end - start) / huge->size > MRRC_HUGE_SETS) {
		for (; page < last; page++) {
			if (*page && *page >= start && *page < end)
				huge_take(huge, page);
		}
		return;
	}
	for (; addr < end; addr += huge->size) {
		page = huge_find(huge, addr);
		if (page)
			huge_take(huge, page);
	}
}

bool mrrc_huge_may(struct mrrc_huge *huge, uintptr_t addr)
{
	const uintptr_t page = mrrc_huge_floor(huge, addr);
	const size_t i = mrrc_hash(page) % MRRC_HUGE_SPLITS;

	return huge->split[i].page != page || !huge->split[i].left ||
	       !huge->split[i].left--;
}

void mrrc_huge_none(struct mrrc_huge *huge, uintptr_t addr)
{
	const uintptr_t page = mrrc_huge_floor(huge, addr);
	const size_t i = mrrc_hash(page) % MRRC_HUGE_SPLITS;

	huge->split[i].page = page;
	huge->split[i].left = HUGE_AGAIN;
}
