/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shards of a heap: made when a thread first needs one, and closed with the
 * heap.
 */
#include "config.h"
#include "sys/heap/heap_shard.h"

#include <sched.h>

#include "sys/heap/heap_watch.h"
#include "sys/heap/heap_thread.h"
#include "sys/heap/heap_block.h"
#include "sys/heap/heap_open.h"

/*
 * Bytes that a limit must allow for each shard, since a shard's blocks have at
 * least one MiB.
 */
#define SHARD_LIMIT ((size_t) 64 << 20)

static unsigned processors(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	return sched_getaffinity(0, sizeof(set), &set) ? MRRC_SHARDS_MAX :
							 CPU_COUNT(&set);
}

unsigned mrrc_heap_shards(const struct mrrc_heap *heap)
{
	const struct mrrc_heap_attr *attr = &heap->attr;
	const size_t limit = mrrc_heap_left(heap);
	unsigned shards = attr->shards ? attr->shards : processors();

	/*
	 * attributes that the application chose for a heap must not apply to
	 * each shard
	 */
	if (mrrc_heap_watched || attr->isolated || attr->prefault ||
	    attr->block_size || attr->pages >= MRRC_PAGES_2M)
		return 1;
	if (shards > MRRC_SHARDS_MAX)
		shards = MRRC_SHARDS_MAX;
	if (!attr->shards && shards > limit / SHARD_LIMIT)
		shards = limit / SHARD_LIMIT;
	return shards ? shards : 1;
}

struct mrrc_heap *mrrc_heap_mine(struct mrrc_heap *heap, unsigned class)
{
	struct mrrc_tcache *tcache;
	struct mrrc_heap *part;
	unsigned i;

	if (class >= MRRC_CLASS_SMALL || heap->shards == 1)
		return heap;
	tcache = mrrc_tcache_get();
	if (!tcache)
		return heap;
	i = tcache->shard % heap->shards;
	part = atomic_load(&heap->part[i]);
	/*
	 * until the shard exists the heap serves the thread; permanently if the
	 * shard cannot be made
	 */
	if (part || atomic_exchange(&heap->making, true))
		return part ? part : heap;
	part = atomic_load(&heap->part[i]);
	if (!part && mrrc_heap_make(heap->domain, &heap->attr, heap, i, &part))
		return heap;
	atomic_store(&heap->making, false);
	return part;
}

struct mrrc_heap *mrrc_heap_part(struct mrrc_heap *heap,
				 const struct mrrc_heap *before)
{
	struct mrrc_heap *part = NULL;
	unsigned i = before ? before->shard + 1 : 0;

	for (; i < MRRC_SHARDS_MAX && !part; i++)
		part = atomic_load(&heap->part[i]);
	return part;
}
