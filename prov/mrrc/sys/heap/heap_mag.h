/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A thread's magazines. */
#ifndef MRRC_HEAP_MAG_H
#define MRRC_HEAP_MAG_H

#include "sys/heap/heap_priv.h"

void mrrc_class_table_init(void);
/* Memory for bookkeeping. NULL: no memory is left. */
void *mrrc_mags_map(size_t len);

/* From now on mrrc_heap_alloc_key() allocates from @heap for @key. */
void mrrc_heap_usual(struct mrrc_heap *heap, uintptr_t key);

/* Finds or makes the magazines. Inside the biased lock. NULL: no memory. */
struct mrrc_mags *mrrc_mags_get(struct mrrc_tcache *tcache,
				struct mrrc_heap *heap);
/*
 * Refills an empty magazine, inside the biased lock; returns the number of
 * objects.
 */
unsigned mrrc_mags_refill(struct mrrc_heap *heap, struct mrrc_tcache *tcache,
			  unsigned class);
/* Puts an object. Inside the biased lock. false: there are no magazines. */
bool mrrc_mags_put(struct mrrc_heap *heap, struct mrrc_tcache *tcache,
		   unsigned class, const struct mrrc_mag_entry *entry);
/*
 * Called inside the biased lock when an object of a magazine is allocated:
 * makes this object the hot slot's, if the slot has no freed object and was of
 * no use since the last check.
 */
void mrrc_hot_offer(struct mrrc_tcache *tcache, struct mrrc_heap *heap,
		    unsigned class, const struct mrrc_mag_entry *entry);
/*
 * If this thread's magazines and the depot have at least @least bytes, gives
 * all their objects to the arena and returns true.
 */
bool mrrc_mags_reclaim_own(struct mrrc_heap *heap, size_t least);

/* For the following functions the biased lock is shut, or its owner calls. */

void mrrc_mags_count(const struct mrrc_tcache *tcache, unsigned slot,
		     uint64_t *allocs, uint64_t *frees, size_t *bytes);
size_t mrrc_mags_bytes(const struct mrrc_tcache *tcache, unsigned slot);
/*
 * Gives the objects of the magazines to the depot, or to the arena if the depot
 * is full. The heap's lock held.
 */
void mrrc_mags_empty(struct mrrc_heap *heap, struct mrrc_tcache *tcache);
/*
 * Empties the magazines, and adds their counts to the heap's; the caller unmaps
 * the magazines. The lock of the list of threads held.
 */
void mrrc_mags_retire(struct mrrc_heap *heap, struct mrrc_tcache *tcache);

#endif /* MRRC_HEAP_MAG_H */
