/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The huge pages that a monitor watches whole, although caches need only a part
 * of each page. Watching a part of a huge page splits the mapping, and with it
 * the huge page, permanently: the application then reads its memory by small
 * pages.
 *
 * The table of huge pages has a fixed size: the monitor may forget a few huge
 * pages, which are then split. The table's owner guards the table.
 */
#ifndef MRRC_HUGE_H
#define MRRC_HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_HUGE_SETS	 1024 /* a power of two */
#define MRRC_HUGE_WAYS	 4
#define MRRC_HUGE_SPLITS 1024

/* All zero: no huge pages. */
struct mrrc_huge {
	size_t size;  /* bytes of a huge page; 0: no huge pages */
	size_t count; /* pages that are watched whole */
	uintptr_t whole[MRRC_HUGE_SETS][MRRC_HUGE_WAYS];
	/*
	 * the token of each page's watch, if no part of the page has changed or
	 * was unwatched since the watch began; else 0
	 */
	uint64_t token[MRRC_HUGE_SETS][MRRC_HUGE_WAYS];
	unsigned way; /* the next way to replace, modulo the ways */
	/*
	 * pages found not to be huge, as several mappings share the page. After
	 * each try that fails, the next one waits for twice as many watches.
	 */
	struct {
		uintptr_t page;
		uint32_t wait; /* watches from the last try to the next one */
		uint32_t left; /* watches left until the next try */
	} split[MRRC_HUGE_SPLITS];
};

/*
 * The start of the huge page that contains @addr, and the end of the huge page
 * that contains @addr - 1.
 */
static inline uintptr_t mrrc_huge_floor(const struct mrrc_huge *huge,
					uintptr_t addr)
{
	return huge->size ? addr & ~(huge->size - 1) : addr;
}

static inline uintptr_t mrrc_huge_ceil(const struct mrrc_huge *huge,
				       uintptr_t addr)
{
	return huge->size ? (addr + huge->size - 1) & ~(huge->size - 1) : addr;
}

/*
 * mrrc_huge_whole(): is the huge page that contains @addr watched whole?
 * mrrc_huge_overlaps(): does the range overlap a huge page that is watched
 * whole?
 */
bool mrrc_huge_whole(const struct mrrc_huge *huge, uintptr_t addr);
bool mrrc_huge_overlaps(const struct mrrc_huge *huge, uintptr_t start,
			uintptr_t end);

/*
 * mrrc_huge_add() records that the page of @addr is watched whole,
 * mrrc_huge_remove() that no page that begins in the range is watched whole.
 */
void mrrc_huge_add(struct mrrc_huge *huge, uintptr_t addr, uint64_t token);
void mrrc_huge_remove(struct mrrc_huge *huge, uintptr_t start, uintptr_t end);

/*
 * The first page behind @addr that is watched whole; UINTPTR_MAX: there is
 * none. Reads the whole table.
 */
uintptr_t mrrc_huge_next(const struct mrrc_huge *huge, uintptr_t addr);

/* A part of the range changed, or is no longer watched. */
void mrrc_huge_changed(struct mrrc_huge *huge, uintptr_t start, uintptr_t end);

/*
 * The newest token of the huge pages in which the range lies. 0: a page of the
 * range is not watched whole, or has changed, or is not in the table.
 */
uint64_t mrrc_huge_seen(const struct mrrc_huge *huge, uintptr_t start,
			uintptr_t end);

/*
 * mrrc_huge_may(): may the page of @addr be a huge page? mrrc_huge_none()
 * records that the page is no huge page: the next calls of mrrc_huge_may() for
 * the page return false.
 */
bool mrrc_huge_may(struct mrrc_huge *huge, uintptr_t addr);
void mrrc_huge_none(struct mrrc_huge *huge, uintptr_t addr);

/* Other memory may be in the range now: pages in it may be huge again. */
void mrrc_huge_renew(struct mrrc_huge *huge, uintptr_t start, uintptr_t end);

#endif /* MRRC_HUGE_H */
