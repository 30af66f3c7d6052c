/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shards of a heap. */
#ifndef MRRC_HEAP_SHARD_H
#define MRRC_HEAP_SHARD_H

#include "sys/heap/heap_priv.h"

/*
 * The number of shards that a heap may have, by the heap's attributes and
 * limits and the number of processors.
 */
unsigned mrrc_heap_shards(const struct mrrc_heap *heap);

/* Do threads with the shard number @shard get small objects from @heap? */
static inline bool mrrc_heap_serves(const struct mrrc_heap *heap,
				    unsigned shard)
{
	return shard % heap->main->shards == heap->shard;
}

/* The heap or shard that serves this thread, made if needed and possible. */
struct mrrc_heap *mrrc_heap_mine(struct mrrc_heap *heap, unsigned class);
/*
 * The heap's next shard after @before; for @before NULL the first shard, which
 * is the heap itself.
 */
struct mrrc_heap *mrrc_heap_part(struct mrrc_heap *heap,
				 const struct mrrc_heap *before);

#endif /* MRRC_HEAP_SHARD_H */
