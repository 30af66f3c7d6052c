/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions ordered by address (a red-black tree), none of which contains
 * another.
 *
 * The cache keeps one index per kind of access. Not thread-safe: the owner of
 * the cache guards the index. Allocates nothing.
 *
 * Invariants (mrrc_index_valid):
 *   I1 regions are ordered by start, and by end, too; no region is empty
 *   I2 count and bytes equal the sums over the tree
 */
#ifndef MRRC_INDEX_H
#define MRRC_INDEX_H

#include "core/index/region.h"

RB_HEAD(mrrc_index_tree, mrrc_region);

struct mrrc_index {
	struct mrrc_index_tree tree;
	_Atomic size_t count; /* regions; other threads may read it */
	size_t bytes;	      /* sum of the regions' lengths */
};

void mrrc_index_init(struct mrrc_index *index);

/* The lowest region that contains all of [addr, addr + len), or NULL. */
struct mrrc_region *mrrc_index_find(const struct mrrc_index *index,
				    uintptr_t addr, size_t len);

/*
 * Do region and range share a byte? Neither end is computed, as it might wrap.
 */
static inline bool mrrc_region_overlaps(const struct mrrc_region *region,
					uintptr_t addr, size_t len)
{
	return region->start < addr ? addr - region->start < region->len :
				      region->start - addr < len;
}

/*
 * Returns the lowest region that ends after @addr, or NULL: the start of a walk
 * over the regions from @addr on.
 */
struct mrrc_region *mrrc_index_from(const struct mrrc_index *index,
				    uintptr_t addr);

/*
 * Returns the first region from @from on that contains all of [addr, addr +
 * len), or NULL.
 */
struct mrrc_region *mrrc_index_covers(struct mrrc_region *from, uintptr_t addr,
				      size_t len);

/* The lowest region that shares a byte with [addr, addr + len), or NULL. */
struct mrrc_region *mrrc_index_first_overlap(const struct mrrc_index *index,
					     uintptr_t addr, size_t len);

/* The next region after @region that shares a byte with the range, or NULL. */
struct mrrc_region *mrrc_index_next_overlap(struct mrrc_region *region,
					    uintptr_t addr, size_t len);

/*
 * Walk all regions by address. A region may be removed once the next region is
 * known.
 */
struct mrrc_region *mrrc_index_first(const struct mrrc_index *index);
struct mrrc_region *mrrc_index_next(struct mrrc_region *region);

/*
 * The region must neither contain a region of the index, nor be contained in
 * one; the caller removes such regions first.
 */
void mrrc_index_insert(struct mrrc_index *index, struct mrrc_region *region);
void mrrc_index_remove(struct mrrc_index *index, struct mrrc_region *region);

bool mrrc_index_valid(const struct mrrc_index *index);

#endif /* MRRC_INDEX_H */
