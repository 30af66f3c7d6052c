/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The huge pages that a monitor watches whole, though caches need a part of
 * them. Watching a part splits the mapping, and with it the huge page,
 * permanently: the application then reads its memory by small pages.
 *
 * The memory is fixed, so a few pages may be forgotten, which are then split
 * after all. Guarded by its owner.
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
	size_t size;  /* of a huge page; 0: there are none */
	size_t count; /* watched whole */
	uintptr_t whole[MRRC_HUGE_SETS][MRRC_HUGE_WAYS];
	/*
	 * when the watch of the page began, if no part of it changed or was
	 * unwatched since; else 0
	 */
	uint64_t token[MRRC_HUGE_SETS][MRRC_HUGE_WAYS];
	unsigned way; /* that makes room next */
	/*
	 * a page found not to be huge, as several mappings share it. The next
	 * try is due after twice as many watches as the last one.
	 */
	struct {
		uintptr_t page;
		uint32_t wait; /* watches from the last try to the next one */
		uint32_t left; /* those to come */
	} split[MRRC_HUGE_SPLITS];
};

/*
 * The start of the page that contains @addr, and the end of the page that
 * contains @addr - 1.
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
 * Is the page that contains @addr watched whole? Is any page that has a byte of
 * the range?
 */
bool mrrc_huge_whole(const struct mrrc_huge *huge, uintptr_t addr);
bool mrrc_huge_overlaps(const struct mrrc_huge *huge, uintptr_t start,
			uintptr_t end);

/*
 * Records that the page of @addr is watched whole, and no other page that
 * begins in the range.
 */
void mrrc_huge_add(struct mrrc_huge *huge, uintptr_t addr, uint64_t token);
void mrrc_huge_remove(struct mrrc_huge *huge, uintptr_t start, uintptr_t end);

/* A part of the range changed, or is no longer watched. */
void mrrc_huge_changed(struct mrrc_huge *huge, uintptr_t start, uintptr_t end);

/*
 * The token of a range, if it lies in huge pages that are watched whole and did
 * not change since: the newest token of these pages. 0: that is not so, or not
 * known.
 */
uint64_t mrrc_huge_seen(const struct mrrc_huge *huge, uintptr_t start,
			uintptr_t end);

/*
 * May the page of @addr be a huge page? Not for a while after it was found not
 * to be.
 */
bool mrrc_huge_may(struct mrrc_huge *huge, uintptr_t addr);
void mrrc_huge_none(struct mrrc_huge *huge, uintptr_t addr);

/* Other memory may be in the range now: pages in it may be huge again. */
void mrrc_huge_renew(struct mrrc_huge *huge, uintptr_t start, uintptr_t end);

#endif /* MRRC_HUGE_H */
