/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator's blocks by address (heap_map.h).
 */
#include "config.h"
#include "sys/heap/heap_map.h"

#include <errno.h>
#include <sys/mman.h>

struct mrrc_map_leaf *_Atomic mrrc_heap_map[1u << MRRC_MAP_TOP];

/* A leaf that no address has, for the beginning. */
static struct mrrc_map_leaf map_none = { .tag = UINTPTR_MAX };
struct mrrc_map_leaf *_Atomic mrrc_heap_map_hot = &map_none;

static struct mrrc_map_leaf *map_leaf(uintptr_t slot)
{
	struct mrrc_map_leaf *_Atomic *at =
		&mrrc_heap_map[slot >> MRRC_MAP_LEAF];
	struct mrrc_map_leaf *leaf = atomic_load(at), *fresh;

	if (leaf)
		return leaf;
	fresh = mmap(NULL, sizeof(*fresh), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fresh == MAP_FAILED)
		return NULL;
	fresh->tag = slot >> MRRC_MAP_LEAF;
	if (atomic_compare_exchange_strong(at, &leaf, fresh)) {
		atomic_store(&mrrc_heap_map_hot, fresh);
		return fresh;
	}
	munmap(fresh, sizeof(*fresh));
	return leaf;
}

static void map_set(const struct mrrc_heap_block *block, bool there)
{
	uintptr_t addr = block->base, slot;

	for (; addr - block->base < block->len; addr += MRRC_MIB) {
		slot = addr >> MRRC_MAP_SLOT;
		atomic_store_explicit(
			&map_leaf(slot)
				 ->mib[slot & ((1u << MRRC_MAP_LEAF) - 1)],
			there ? mrrc_block_mib(block, addr) : NULL,
			memory_order_release);
	}
}

int mrrc_heap_map_add(const struct mrrc_heap_block *block)
{
	uintptr_t slot = block->base >> MRRC_MAP_SLOT;
	const uintptr_t end = (block->base + block->len - 1) >> MRRC_MAP_SLOT;

	if (end >> (MRRC_MAP_LEAF + MRRC_MAP_TOP))
		return -EFAULT;
	/* all that can fail comes first */
	for (; slot <= end; slot++) {
		if (!map_leaf(slot))
			return -ENOMEM;
	}
	map_set(block, true);
	return 0;
}

void mrrc_heap_map_remove(const struct mrrc_heap_block *block)
{
	map_set(block, false);
}
