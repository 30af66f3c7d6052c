/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Maps an address to its page's record in the allocator: a table of two levels,
 * with an entry for each MiB, which belongs to one block. Any thread reads it,
 * without a lock; parts of it are made as they are needed and stay.
 */
#ifndef MRRC_HEAP_MAP_H
#define MRRC_HEAP_MAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/heap_arena.h"

#define MRRC_MAP_SLOT 20u /* log2 of the bytes of an entry */
#define MRRC_MAP_LEAF 13u /* log2 of entries in a leaf */
#define MRRC_MAP_TOP  15u /* addresses have 48 bits */

/* pages of what an entry stands for */
#define MRRC_MAP_PAGES ((1u << MRRC_MAP_SLOT) / MRRC_HEAP_PAGE)

/* a variable of this module: no table of addresses is asked where it is */
#define MRRC_HIDDEN __attribute__((visibility("hidden")))

struct mrrc_map_leaf {
	struct mrrc_heap_rec *_Atomic rec[1u << MRRC_MAP_LEAF];
	char pad[15 * 64];
	uintptr_t tag; /* which leaf it is; constant */
};

extern MRRC_HIDDEN struct mrrc_map_leaf
	*_Atomic mrrc_heap_map[1u << MRRC_MAP_TOP];
/*
 * Most addresses are in this leaf, so that a predicted branch replaces a load.
 */
extern MRRC_HIDDEN struct mrrc_map_leaf *_Atomic mrrc_heap_map_hot;

/*
 * The record of the page at addr; it belongs to a block if its block is not
 * NULL. NULL: no record. Valid as long as something in that block is allocated,
 * or the memory is not the allocator's, or inside the thread's biased lock: a
 * block that ends leaves the map, and then waits for all biased locks
 * (mrrc_mags_settle()).
 */
static inline struct mrrc_heap_rec *mrrc_heap_map_rec(uintptr_t addr)
{
	const uintptr_t slot = addr >> MRRC_MAP_SLOT;
	struct mrrc_map_leaf *leaf =
		atomic_load_explicit(&mrrc_heap_map_hot, memory_order_acquire);
	struct mrrc_heap_rec *rec;

	if (__builtin_expect(leaf->tag != slot >> MRRC_MAP_LEAF, 0)) {
		if (slot >> (MRRC_MAP_LEAF + MRRC_MAP_TOP))
			return NULL;
		leaf = atomic_load_explicit(
			&mrrc_heap_map[slot >> MRRC_MAP_LEAF],
			memory_order_acquire);
		if (!leaf)
			return NULL;
	}
	rec = atomic_load_explicit(
		&leaf->rec[slot & ((1u << MRRC_MAP_LEAF) - 1)],
		memory_order_acquire);
	return __builtin_expect(rec != NULL, 1) ?
		       rec + addr / MRRC_HEAP_PAGE % MRRC_MAP_PAGES :
		       NULL;
}

static inline struct mrrc_heap_block *mrrc_heap_map_find(uintptr_t addr)
{
	struct mrrc_heap_rec *rec = mrrc_heap_map_rec(addr);

	return rec ? rec->block : NULL;
}

/*
 * Whole MiB's pages; rec NULL: none there. 0, -ENOMEM, or -EFAULT for too high
 * an address.
 */
int mrrc_heap_map_set(uintptr_t base, size_t len, struct mrrc_heap_rec *rec);

#endif /* MRRC_HEAP_MAP_H */
