/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the allocator's record of the MiB around an address, in a table of two
 * levels with an entry for each MiB; a MiB belongs to one block. Any thread
 * reads the table without a lock; parts of the table are made when needed, and
 * stay.
 */
#ifndef MRRC_HEAP_MAP_H
#define MRRC_HEAP_MAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/heap/heap_arena.h"

#define MRRC_MAP_SLOT 20u /* log2 of the bytes of an entry */
#define MRRC_MAP_LEAF 13u /* log2 of entries in a leaf */
#define MRRC_MAP_TOP  15u /* log2 of leaves: addresses have 48 bits */

/* For variables of this module: their addresses need no table (GOT). */
#define MRRC_HIDDEN __attribute__((visibility("hidden")))

struct mrrc_map_leaf {
	struct mrrc_heap_mib *_Atomic mib[1u << MRRC_MAP_LEAF];
	char pad[15 * 64];
	uintptr_t tag; /* number of the leaf; constant */
};

extern MRRC_HIDDEN struct mrrc_map_leaf
	*_Atomic mrrc_heap_map[1u << MRRC_MAP_TOP];
/*
 * Most addresses are in this leaf, so that a predicted branch replaces a load.
 */
extern MRRC_HIDDEN struct mrrc_map_leaf *_Atomic mrrc_heap_map_hot;

/*
 * The record of the MiB at addr, which may be beyond its block's end. NULL: the
 * address belongs to no block. The record is valid as long as an object in that
 * block is allocated, or the thread is inside its biased lock: the thread that
 * ends a block takes it out of the map, and then waits for all biased locks
 * (mrrc_mags_settle()).
 */
static inline struct mrrc_heap_mib *mrrc_heap_map_mib(uintptr_t addr)
{
	const uintptr_t slot = addr >> MRRC_MAP_SLOT;
	struct mrrc_map_leaf *leaf =
		atomic_load_explicit(&mrrc_heap_map_hot, memory_order_acquire);

	if (__builtin_expect(leaf->tag != slot >> MRRC_MAP_LEAF, 0)) {
		if (slot >> (MRRC_MAP_LEAF + MRRC_MAP_TOP))
			return NULL;
		leaf = atomic_load_explicit(
			&mrrc_heap_map[slot >> MRRC_MAP_LEAF],
			memory_order_acquire);
		if (!leaf)
			return NULL;
	}
	return atomic_load_explicit(
		&leaf->mib[slot & ((1u << MRRC_MAP_LEAF) - 1)],
		memory_order_acquire);
}

/* The block that contains addr, or NULL; valid as long as the MiB's record. */
static inline struct mrrc_heap_block *mrrc_heap_map_find(uintptr_t addr)
{
	struct mrrc_heap_mib *mib = mrrc_heap_map_mib(addr);

	return mib && addr - mib->block->base < mib->block->len ? mib->block :
								  NULL;
}

/*
 * Enter a block into the map (returns 0, -ENOMEM, or -EFAULT: the address is
 * too high), and take a block out.
 */
int mrrc_heap_map_add(const struct mrrc_heap_block *block);
void mrrc_heap_map_remove(const struct mrrc_heap_block *block);

#endif /* MRRC_HEAP_MAP_H */
