/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells memory checkers which memory is allocated: valgrind by client requests,
 * AddressSanitizer by weak functions, as it is linked to the program. Without a
 * checker each call costs one load. Without a checker, builds with MRRC_DEBUG
 * check memory themselves: they fill freed objects, and the bytes behind an
 * allocation, and check later whether these bytes have changed.
 */
#ifndef MRRC_HEAP_WATCH_H
#define MRRC_HEAP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/heap/heap_arena.h"

struct mrrc_heaps;

extern bool mrrc_heap_watched; /* set once, by mrrc_heap_watch_init() */

void mrrc_heap_watch_init(void);
/*
 * mrrc_heap_watch_map() marks memory as not accessible yet;
 * mrrc_heap_watch_unmap() undoes this before the memory is unmapped.
 */
void mrrc_heap_watch_map(uintptr_t addr, size_t len);
void mrrc_heap_watch_unmap(uintptr_t addr, size_t len);
void mrrc_heap_watch_alloc(uintptr_t addr, size_t asked, bool zeroed);
void mrrc_heap_watch_free(uintptr_t addr, size_t size);

#ifdef MRRC_DEBUG

/* Bytes added behind an allocation, to detect overflows */
#define MRRC_HEAP_CANARY 16u

void mrrc_heap_debug_alloc(struct mrrc_heaps *heaps,
			   struct mrrc_heap_block *block, uintptr_t addr,
			   size_t asked, size_t size);
/* Are the bytes behind the object unchanged? */
bool mrrc_heap_debug_intact(const struct mrrc_heap_block *block, uintptr_t addr,
			    size_t size);
/*
 * Called inside a biased lock, before an object goes to a magazine: so logs
 * nothing.
 */
void mrrc_heap_debug_freed(struct mrrc_heap_block *block, uintptr_t addr,
			   size_t size);
/*
 * Checks and fills a freed object; logs an overflow and returns -EOVERFLOW. No
 * lock and no biased lock held.
 */
int mrrc_heap_debug_free(struct mrrc_heaps *heaps,
			 struct mrrc_heap_block *block, uintptr_t addr,
			 size_t size);
/*
 * Notes that an object goes to the arena, which may cut its memory differently.
 */
void mrrc_heap_debug_given(struct mrrc_heap_block *block, uintptr_t addr);
/* The number of bytes that were requested for the object. */
size_t mrrc_heap_debug_asked(const struct mrrc_heap_block *block,
			     uintptr_t addr, size_t size);

#else

#define MRRC_HEAP_CANARY 0u

static inline void mrrc_heap_debug_alloc(struct mrrc_heaps *heaps,
					 struct mrrc_heap_block *block,
					 uintptr_t addr, size_t asked,
					 size_t size)
{
}

static inline bool mrrc_heap_debug_intact(const struct mrrc_heap_block *block,
					  uintptr_t addr, size_t size)
{
	return true;
}

static inline void mrrc_heap_debug_freed(struct mrrc_heap_block *block,
					 uintptr_t addr, size_t size)
{
}

static inline int mrrc_heap_debug_free(struct mrrc_heaps *heaps,
				       struct mrrc_heap_block *block,
				       uintptr_t addr, size_t size)
{
	return 0;
}

static inline void mrrc_heap_debug_given(struct mrrc_heap_block *block,
					 uintptr_t addr)
{
}

static inline size_t mrrc_heap_debug_asked(const struct mrrc_heap_block *block,
					   uintptr_t addr, size_t size)
{
	return size;
}

#endif /* MRRC_DEBUG */

#endif /* MRRC_HEAP_WATCH_H */
