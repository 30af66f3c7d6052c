/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Steps of opening heaps, and the heaps of a domain. */
#ifndef MRRC_HEAP_OPEN_H
#define MRRC_HEAP_OPEN_H

#include "sys/heap/heap_priv.h"

/* Makes a heap, or one of main's shards, without blocks. */
int mrrc_heap_make(struct mrrc_heaps *heaps, const struct mrrc_heap_attr *attr,
		   struct mrrc_heap *main, unsigned shard,
		   struct mrrc_heap **heap);

/*
 * Calls a function, with no lock held, for each heap of the domain that is not
 * being closed.
 */
void mrrc_heaps_each(struct mrrc_heaps *heaps,
		     void (*call)(struct mrrc_heap *heap, void *arg),
		     void *arg);

#endif /* MRRC_HEAP_OPEN_H */
