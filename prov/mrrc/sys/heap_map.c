/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator's blocks by address (heap_map.h).
 */
#include "config.h"
#include "sys/heap_map.h"

#include <errno.h>
#include <sys/mman.h>

struct mrrc_map_leaf *_Atomic mrrc_heap_map[1u << MRRC_MAP_TOP];

/* No address's, for the beginning. */
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

int mrrc_heap_map_set(uintptr_t base, size_t len, struct mrrc_heap_rec *rec)
{
	uintptr_t slot = base >> MRRC_MAP_SLOT;
	const uintptr_t end = (base + len - 1) >> MRRC_MAP_SLOT;
	struct mrrc_map_leaf *leaf;
	uintptr_t i;

	if (end >> (MRRC_MAP_LEAF + MRRC_MAP_TOP))
		return -EFAULT;
	/* all that can fail comes first */
	for (i = slot; i <= end; i++) {
		if (!map_leaf(i))
			return -ENOMEM;
	}
	for (; slot <= end; slot++) {
		leaf = map_leaf(slot);
		atomic_store_explicit(
			&leaf->rec[slot & ((1u << MRRC_MAP_LEAF) - 1)], rec,
			memory_order_release);
		if (rec)
			rec += MRRC_MAP_PAGES;
	}
	return 0;
}
