/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Huge pages that are watched whole (huge.h).
 */
#include "config.h"
#include "sys/monitor/huge.h"

#include <string.h>

#include "core/text/hash.h"

/*
 * After how many watches in a page that was found not to be huge the monitor
 * tries the page again: the first and the largest number. Trying a page of many
 * mappings takes a thousand times as long as trying a page of two mappings.
 */
#define HUGE_AGAIN 64
#define HUGE_RARE  16384

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

uintptr_t mrrc_huge_next(const struct mrrc_huge *huge, uintptr_t addr)
{
	const uintptr_t *page = huge->whole[0];
	uintptr_t next = UINTPTR_MAX;
	size_t i;

	for (i = 0; i < MRRC_HUGE_SETS * MRRC_HUGE_WAYS; i++) {
		if (page[i] > addr && page[i] < next)
			next = page[i];
	}
	return next;
}

static uint64_t *huge_token(const struct mrrc_huge *huge, const uintptr_t *page)
{
	return (uint64_t *) huge->token[0] + (page - huge->whole[0]);
}

void mrrc_huge_changed(struct mrrc_huge *huge, uintptr_t start, uintptr_t end)
{
	uintptr_t *page;

	if (!huge->count)
		return;
	if ((end - start) / huge->size > MRRC_HUGE_SETS) {
		memset(huge->token, 0, sizeof(huge->token));
		return;
	}
	for (start = mrrc_huge_floor(huge, start); start < end;
	     start += huge->size) {
		page = huge_find(huge, start);
		if (page)
			*huge_token(huge, page) = 0;
	}
}

uint64_t mrrc_huge_seen(const struct mrrc_huge *huge, uintptr_t start,
			uintptr_t end)
{
	uint64_t token, newest = 0;
	const uintptr_t *page;

	if (!huge->count)
		return 0;
	for (start = mrrc_huge_floor(huge, start); start < end;
	     start += huge->size) {
		page = huge_find((struct mrrc_huge *) huge, start);
		token = page ? *huge_token(huge, page) : 0;
		if (!token)
			return 0;
		if (token > newest)
			newest = token;
	}
	return newest;
}

void mrrc_huge_add(struct mrrc_huge *huge, uintptr_t addr, uint64_t token)
{
	const uintptr_t page = mrrc_huge_floor(huge, addr);
	uintptr_t *set = huge_set(huge, page);
	uintptr_t *known = huge_find(huge, page);
	int i = 0;

	if (known) {
		*huge_token(huge, known) = token;
		return;
	}
	while (i < MRRC_HUGE_WAYS && set[i])
		i++;
	if (i == MRRC_HUGE_WAYS)
		i = huge->way++ % MRRC_HUGE_WAYS;
	else
		huge->count++;
	set[i] = page;
	*huge_token(huge, &set[i]) = token;
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
	/* the range may cover more pages than the table holds */
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
	uint32_t *wait = &huge->split[i].wait;

	if (huge->split[i].page != page)
		*wait = HUGE_AGAIN;
	else if (*wait < HUGE_RARE)
		*wait *= 2;
	huge->split[i].page = page;
	huge->split[i].left = *wait;
}

void mrrc_huge_renew(struct mrrc_huge *huge, uintptr_t start, uintptr_t end)
{
	uintptr_t page = mrrc_huge_ceil(huge, start);
	size_t i;

	if (!huge->size || end - start < huge->size)
		return;
	/* the range may cover more pages than the table holds */
	if ((end - start) / huge->size > MRRC_HUGE_SPLITS) {
		memset(huge->split, 0, sizeof(huge->split));
		return;
	}
	for (; page <= end - huge->size; page += huge->size) {
		i = mrrc_hash(page) % MRRC_HUGE_SPLITS;
		if (huge->split[i].page == page)
			huge->split[i].page = 0;
	}
}
