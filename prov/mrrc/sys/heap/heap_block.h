/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Blocks of a heap; its regular work: reports, and release of idle memory. */
#ifndef MRRC_HEAP_BLOCK_H
#define MRRC_HEAP_BLOCK_H

#include "sys/heap/heap_priv.h"

/*
 * Maps and registers a block of at least len bytes; asked: the size of the
 * block's only object; 0: the block is for the arena. The caller has to link
 * the block.
 */
int mrrc_heap_block_new(struct mrrc_heap *heap, size_t len, size_t align,
			size_t asked, bool isolated,
			struct mrrc_heap_block **block);
/* The length of a block for len bytes; exact: as short as possible. */
size_t mrrc_heap_block_len(const struct mrrc_heap *heap, size_t len,
			   bool exact);
/* Bytes that the limits still allow. The heap's lock held. */
size_t mrrc_heap_left(const struct mrrc_heap *heap);
/* Ends a block that is unused, and to which nothing links. */
void mrrc_heap_block_end(struct mrrc_heap *heap, struct mrrc_heap_block *block);
/*
 * Ends blocks that have had no objects since the time @since, or longer.
 * Returns the number of ended blocks.
 */
size_t mrrc_heap_release(struct mrrc_heap *heap, uint64_t since);

uint64_t mrrc_heap_now(void); /* ms */
/* Reports the heap's allocations and frees, of all threads, to the owner. */
void mrrc_heap_tell(struct mrrc_heap *heap);
/*
 * Called from time to time: reports counts, and releases memory that was idle
 * too long.
 */
void mrrc_heap_tick(struct mrrc_heap *heap);
/* Releases memory that was idle for @idle ms, unless called shortly before. */
void mrrc_heap_trim_idle(struct mrrc_heap *heap, uint64_t now, uint64_t idle);

void mrrc_heap_say(struct mrrc_heaps *heaps, const struct mrrc_heap_note *note);

#endif /* MRRC_HEAP_BLOCK_H */
