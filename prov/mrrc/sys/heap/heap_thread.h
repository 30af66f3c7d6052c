/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tables of all threads, and their magazines of a heap. */
#ifndef MRRC_HEAP_THREAD_H
#define MRRC_HEAP_THREAD_H

#include "sys/heap/heap_priv.h"

/* This thread's table; NULL: no memory, or the thread is about to end. */
struct mrrc_tcache *mrrc_tcache_get(void);
/*
 * Gives the objects of all threads' magazines of a heap, or only of idle
 * magazines, to the depot and the arena.
 */
void mrrc_mags_drain(struct mrrc_heap *heap, bool idle_only);
/* Like mrrc_mags_reclaim_own() (heap_mag.h), for magazines of all threads. */
bool mrrc_mags_reclaim(struct mrrc_heap *heap, size_t least);
/*
 * The bytes in magazines, and the numbers of the heap's allocations and frees.
 */
size_t mrrc_mags_kept(struct mrrc_heap *heap, uint64_t *allocs,
		      uint64_t *frees);
/* Gives the heap a slot; slot 0 if no slot is left. */
void mrrc_mags_attach(struct mrrc_heap *heap);
void mrrc_mags_detach(struct mrrc_heap *heap);
/*
 * Called when a block has left the map: makes all threads forget the block's
 * objects, and waits for each thread that is inside its biased lock, or between
 * mrrc_heap_look() and mrrc_heap_looked().
 */
void mrrc_mags_settle(uintptr_t base, size_t len);
/* Adds a domain that a fork must mark, and removes it. */
int mrrc_mags_domain_add(struct mrrc_heaps *heaps);
void mrrc_mags_domain_remove(struct mrrc_heaps *heaps);

#endif /* MRRC_HEAP_THREAD_H */
