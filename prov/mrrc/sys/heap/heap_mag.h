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
 * Called inside the biased lock when an object of a magazine is allocated: the
 * hot slot takes this object, if it is empty, or was of no use since the last
 * check.
 */
void mrrc_hot_offer(struct mrrc_tcache *tcache, struct mrrc_heap *heap,
		    unsigned class, const struct mrrc_mag_entry *entry);
/*
 * If this thread's magazines and the depot have at least @least bytes, returns
 * all their objects to the arena, and true.
 */
bool mrrc_mags_reclaim_own(struct mrrc_heap *heap, size_t least);

/* For the following functions the biased lock is shut, or its owner calls. */

void mrrc_mags_count(const struct mrrc_tcache *tcache, unsigned slot,
		     uint64_t *allocs, uint64_t *frees, size_t *bytes);
size_t mrrc_mags_bytes(const struct mrrc_tcache *tcache, unsigned slot);
/*
 * Returns the objects of the magazines to the arena, by way of the depot. The
 * heap's lock held.
 */
void mrrc_mags_empty(struct mrrc_heap *heap, struct mrrc_tcache *tcache);
/*
 * Frees magazines that are empty and counted; the caller unmaps them. The lock
 * of the list of threads held.
 */
void mrrc_mags_retire(struct mrrc_heap *heap, struct mrrc_tcache *tcache);

#endif /* MRRC_HEAP_MAG_H */
