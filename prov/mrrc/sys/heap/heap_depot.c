/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The depot: freed objects that a heap keeps for the magazines of all threads,
 * before the objects go back to the heap's arena. The heap's lock held in all
 * functions except mrrc_depot_reclaim().
 */
#include "config.h"
#include "sys/heap/heap_depot.h"

#include <string.h>

#include "sys/heap/heap_map.h"
#include "sys/heap/heap_watch.h"
#include "sys/heap/heap_block.h"

/* Bytes that a magazine takes from the arena at once; at least one object */
#define REFILL_BYTES ((size_t) 32 << 10)
/* Bytes of a class that all shards' depots together keep */
#define DEPOT_BYTES ((size_t) 256 << 10)

/*
 * Maximum number of objects in the depot: fewer for large classes. The depots
 * of all shards together hold as many objects as the depot of one heap, but
 * each depot has room for enough objects to fill a magazine.
 */
static unsigned depot_cap(const struct mrrc_heap *heap, unsigned class)
{
	const unsigned least = class < 56 ? MRRC_MAG / 2 : 16;
	size_t cap = DEPOT_BYTES / mrrc_class_size(class);

	if (cap > MRRC_DEPOT)
		cap = MRRC_DEPOT;
	if (class < MRRC_CLASS_SMALL)
		cap /= heap->main->shards;
	return cap > least ? cap : least;
}

static void arena_give(struct mrrc_heap *heap, unsigned class,
		       const struct mrrc_mag_entry *entry, unsigned count)
{
	struct mrrc_heap_block *block;
	unsigned i;

	if (count)
		heap->arena.now = mrrc_heap_now();
	for (i = 0; i < count; i++) {
		block = entry[i].mib->block;
		mrrc_heap_debug_given(block, entry[i].object);
		mrrc_arena_give(&heap->arena, block, entry[i].object, class);
	}
}

static unsigned arena_take(struct mrrc_heap *heap, unsigned class,
			   unsigned count, struct mrrc_mag_entry *entry)
{
	uintptr_t object[MRRC_MAG];
	unsigned i;

	count = mrrc_arena_take(&heap->arena, class, count, object);
	for (i = 0; i < count; i++)
		entry[i] =
			(struct mrrc_mag_entry){ object[i],
						 mrrc_heap_map_mib(object[i]) };
	return count;
}

void mrrc_depot_give(struct mrrc_heap *heap, unsigned class,
		     const struct mrrc_mag_entry *entry, unsigned count)
{
	struct mrrc_depot *depot = heap->depot;
	unsigned n = depot->n[class], room = depot_cap(heap, class) - n;

	if (room > count)
		room = count;
	memcpy(&depot->entry[class][n], entry, room * sizeof(*entry));
	depot->n[class] = n + room;
	arena_give(heap, class, entry + room, count - room);
}

void mrrc_depot_drain(struct mrrc_heap *heap)
{
	struct mrrc_depot *depot = heap->depot;
	unsigned class;

	for (class = 0; class < MRRC_CLASSES; class ++) {
		arena_give(heap, class, depot->entry[class], depot->n[class]);
		depot->n[class] = 0;
	}
}

unsigned mrrc_depot_fill(struct mrrc_heap *heap, unsigned class, unsigned count,
			 struct mrrc_mag_entry *entry)
{
	struct mrrc_depot *depot = heap->depot;
	const unsigned n = depot->n[class];
	const size_t size = mrrc_class_size(class);

	if (!n) {
		while (count > 1 && count * size > REFILL_BYTES)
			count /= 2;
		return arena_take(heap, class, count, entry);
	}
	if (count > n)
		count = n;
	depot->n[class] = n - count;
	memcpy(entry, &depot->entry[class][n - count], count * sizeof(*entry));
	return count;
}

uintptr_t mrrc_depot_take(struct mrrc_heap *heap, unsigned class)
{
	struct mrrc_mag_entry entry;

	return mrrc_depot_fill(heap, class, 1, &entry) ? entry.object : 0;
}

size_t mrrc_depot_kept(const struct mrrc_heap *heap)
{
	size_t bytes = 0;
	unsigned class;

	for (class = 0; class < MRRC_CLASSES; class ++)
		bytes += heap->depot->n[class] * mrrc_class_size(class);
	return bytes;
}

bool mrrc_depot_reclaim(struct mrrc_heap *heap, size_t least)
{
	bool much;

	mrrc_lock_acquire(&heap->lock);
	much = mrrc_depot_kept(heap) >= least;
	if (much)
		mrrc_depot_drain(heap);
	mrrc_lock_release(&heap->lock);
	return much;
}
