/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions by address (index.h).
 *
 * As no region contains another, ordering by start also orders by end, and a
 * descent by address finds the region that contains or follows the address.
 */
#include "config.h"
#include "core/index/index.h"

#include <assert.h>

static int region_cmp(struct mrrc_region *a, struct mrrc_region *b)
{
	return (a->start > b->start) - (a->start < b->start);
}

/* RB_GENERATE_STATIC of libbsd 0.11 wants a macro that it does not define. */
#define MRRC_UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(mrrc_index_tree, mrrc_region, node, region_cmp,
		      MRRC_UNUSED_STATIC)
RB_GENERATE_INTERNAL(mrrc_index_tree, mrrc_region, node, region_cmp,
		     MRRC_UNUSED_STATIC)

void mrrc_index_init(struct mrrc_index *index)
{
	RB_INIT(&index->tree);
	index->count = 0;
	index->bytes = 0;
}

struct mrrc_region *mrrc_index_from(const struct mrrc_index *index,
				    uintptr_t addr)
{
	struct mrrc_region *region = RB_ROOT(&index->tree);
	struct mrrc_region *best = NULL;

	while (region) {
		if (mrrc_region_end(region) > addr) {
			best = region;
			region = RB_LEFT(region, node);
		} else {
			region = RB_RIGHT(region, node);
		}
	}
	return best;
}

struct mrrc_region *mrrc_index_covers(struct mrrc_region *from, uintptr_t addr,
				      size_t len)
{
	for (; from && from->start <= addr; from = mrrc_index_next(from)) {
		if (len <= mrrc_region_end(from) - addr)
			return from;
	}
	return NULL;
}

struct mrrc_region *mrrc_index_find(const struct mrrc_index *index,
				    uintptr_t addr, size_t len)
{
	return mrrc_index_covers(mrrc_index_from(index, addr), addr, len);
}

struct mrrc_region *mrrc_index_first_overlap(const struct mrrc_index *index,
					     uintptr_t addr, size_t len)
{
	struct mrrc_region *region = mrrc_index_from(index, addr);

	return region && mrrc_region_overlaps(region, addr, len) ? region :
								   NULL;
}

struct mrrc_region *mrrc_index_next_overlap(struct mrrc_region *region,
					    uintptr_t addr, size_t len)
{
	region = mrrc_index_next(region);
	return region && mrrc_region_overlaps(region, addr, len) ? region :
								   NULL;
}

struct mrrc_region *mrrc_index_first(const struct mrrc_index *index)
{
	/* RB_MIN takes a mutable head, yet only reads it. */
	return RB_MIN(mrrc_index_tree, (struct mrrc_index_tree *) &index->tree);
}

struct mrrc_region *mrrc_index_next(struct mrrc_region *region)
{
	return RB_NEXT(mrrc_index_tree, NULL, region);
}

static void index_count(struct mrrc_index *index, int more)
{
	const size_t count =
		atomic_load_explicit(&index->count, memory_order_relaxed);

	atomic_store_explicit(&index->count, count + more,
			      memory_order_relaxed);
}

void mrrc_index_insert(struct mrrc_index *index, struct mrrc_region *region)
{
	struct mrrc_region *other;

	other = RB_INSERT(mrrc_index_tree, &index->tree, region);
	assert(!other);
	(void) other;
	index_count(index, 1);
	index->bytes += region->len;
}

void mrrc_index_remove(struct mrrc_index *index, struct mrrc_region *region)
{
	RB_REMOVE(mrrc_index_tree, &index->tree, region);
	index_count(index, -1);
	index->bytes -= region->len;
}

bool mrrc_index_valid(const struct mrrc_index *index)
{
	struct mrrc_region *region;
	struct mrrc_region *before = NULL;
	size_t count = 0;
	size_t bytes = 0;

	for (region = mrrc_index_first(index); region;
	     region = mrrc_index_next(region)) {
		/* I1 */
		if (!region->len || mrrc_region_end(region) < region->start)
			return false;
		if (before &&
		    (before->start >= region->start ||
		     mrrc_region_end(before) >= mrrc_region_end(region)))
			return false;
		before = region;
		count++;
		bytes += region->len;
	}
	return count == index->count && bytes == index->bytes; /* I2 */
}
