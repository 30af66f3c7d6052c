/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The depot of a heap. The heap's lock held, except in mrrc_depot_reclaim(). */
#ifndef MRRC_HEAP_DEPOT_H
#define MRRC_HEAP_DEPOT_H

#include "sys/heap/heap_priv.h"

/*
 * Takes at most count objects from the depot, or from the arena if the depot is
 * empty; returns the number of objects.
 */
unsigned mrrc_depot_fill(struct mrrc_heap *heap, unsigned class, unsigned count,
			 struct mrrc_mag_entry *entry);
/* Takes one object past the magazines. 0: no object is left. */
uintptr_t mrrc_depot_take(struct mrrc_heap *heap, unsigned class);
void mrrc_depot_give(struct mrrc_heap *heap, unsigned class,
		     const struct mrrc_mag_entry *entry, unsigned count);
void mrrc_depot_drain(struct mrrc_heap *heap);
size_t mrrc_depot_kept(const struct mrrc_heap *heap);
/* Like mrrc_mags_reclaim() (heap_thread.h), for a heap without magazines. */
bool mrrc_depot_reclaim(struct mrrc_heap *heap, size_t least);

#endif /* MRRC_HEAP_DEPOT_H */
