/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Magazines: freed objects of a heap that a thread keeps. A thread refills its
 * magazines from the heap's depot.
 */
#include "config.h"
#include "sys/heap/heap_mag.h"

#include <string.h>
#include <sys/mman.h>

#include "sys/heap/heap_fast.h"
#include "sys/heap/heap_watch.h"
#include "sys/heap/heap_depot.h"
#include "sys/heap/heap_shard.h"

/*
 * Capacity of a magazine: many small objects, or enough larger objects for 16
 * operations in flight. A magazine is not larger, since its objects cannot
 * serve another size or thread, and leave the processor's caches.
 */
static const uint8_t mag_cap[MRRC_CLASSES] = {
	[0 ... 31] = MRRC_MAG, /* to 1 KiB */
	[32 ... 39] = 48,      /* to 2 KiB */
	[40 ... 55] = 32,      /* to 8 KiB */
	[56 ... MRRC_CLASSES - 1] = 20,
};

struct mrrc_class_table mrrc_class_table;

struct mrrc_mags mrrc_mags_none;

void mrrc_class_table_init(void)
{
	struct mrrc_class_table *table = &mrrc_class_table;
	size_t i;

	for (i = 0; i < MRRC_CLASSES; i++)
		table->shift[i] = mrrc_cut_shift(i);
	for (i = 0; i < sizeof(table->by_16); i++)
		table->by_16[i] = mrrc_class_of((i + 1) * 16);
	for (i = 0; i < sizeof(table->by_128); i++)
		table->by_128[i] = mrrc_class_of((i + 1) * 128);
	for (i = 0; i < sizeof(table->by_4096); i++)
		table->by_4096[i] = mrrc_class_of((i + 1) * 4096);
}

void *mrrc_mags_map(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

void mrrc_heap_usual(struct mrrc_heap *heap, uintptr_t key)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;
	struct mrrc_mags *small, *large;

	if (!mrrc_biased_enter(&tcache->biased))
		return;
	small = mrrc_heap_mags(heap, tcache, 0);
	large = mrrc_heap_mags(heap, tcache, MRRC_CLASS_SMALL);
	tcache->usual = (struct mrrc_usual){
		.key = key,
		.small = small ? small : &mrrc_mags_none,
		.large = large ? large : &mrrc_mags_none,
	};
	mrrc_biased_leave(&tcache->biased);
}

/*
 * Capacity of a magazine for objects of a shard from which the thread does not
 * allocate.
 */
#define MAG_AWAY 16u

static bool mags_away(const struct mrrc_heap *heap,
		      const struct mrrc_tcache *tcache, unsigned class)
{
	return class < MRRC_CLASS_SMALL &&
	       !mrrc_heap_serves(heap, tcache->shard);
}

struct mrrc_mags *mrrc_mags_get(struct mrrc_tcache *tcache,
				struct mrrc_heap *heap)
{
	struct mrrc_mags *set = tcache->mags[heap->slot];
	unsigned class;

	if (set || !heap->slot)
		return set;
	set = mrrc_mags_map(sizeof(*set));
	if (!set)
		return NULL;
	set->left = MRRC_HOT_MISSES;
	for (class = 0; class < MRRC_CLASSES; class ++) {
		set->of[class].top = set->entry[class];
		set->of[class].end =
			set->entry[class] + (mags_away(heap, tcache, class) ?
						     MAG_AWAY :
						     mag_cap[class]);
	}
	/*
	 * other threads read @mags under the lock of the list of threads, and
	 * with this biased lock shut
	 */
	tcache->mags[heap->slot] = set;
	return set;
}

/* ---- a thread's own magazines: inside its biased lock -------------------- */

unsigned mrrc_mags_refill(struct mrrc_heap *heap, struct mrrc_tcache *tcache,
			  unsigned class)
{
	struct mrrc_mag *mag = &tcache->mags[heap->slot]->of[class];
	const unsigned room = mag->end - mag->top;
	unsigned got = mag_cap[class] / 2;

	/* a thread that waits for its shard has smaller magazines here */
	if (got > room)
		got = room;
	mrrc_lock_acquire(&heap->lock);
	got = mrrc_depot_fill(heap, class, got, mag->top);
	mrrc_lock_release(&heap->lock);
	mag->top += got;
	tcache->count[heap->slot].in += got;
	return got;
}

/*
 * Gives the older half of a magazine to the depot; all objects, if they belong
 * to a shard from which the thread does not allocate.
 */
static void mags_flush(struct mrrc_heap *heap, struct mrrc_tcache *tcache,
		       unsigned class)
{
	struct mrrc_mags *set = tcache->mags[heap->slot];
	struct mrrc_mag *mag = &set->of[class];
	const unsigned n = mrrc_mag_n(mag);
	const unsigned half = mags_away(heap, tcache, class) ? n : (n + 1) / 2;
	struct mrrc_mag_entry *entry = set->entry[class];

	mrrc_lock_acquire(&heap->lock);
	mrrc_depot_give(heap, class, entry, half);
	mrrc_lock_release(&heap->lock);
	memmove(entry, entry + half, (n - half) * sizeof(*entry));
	mag->top -= half;
	tcache->count[heap->slot].out += half;
}

bool mrrc_mags_put(struct mrrc_heap *heap, struct mrrc_tcache *tcache,
		   unsigned class, const struct mrrc_mag_entry *entry)
{
	struct mrrc_mags *set = mrrc_mags_get(tcache, heap);
	struct mrrc_mag *mag;

	if (!set)
		return false;
	mag = &set->of[class];
	if (mag->top == mag->end)
		mags_flush(heap, tcache, class);
	*mag->top++ = *entry;
	return true;
}

static void hot_set(struct mrrc_tcache *tcache, struct mrrc_heap *heap,
		    unsigned class, const struct mrrc_mag_entry *entry)
{
	struct mrrc_hot *hot = &tcache->hot;
	struct mrrc_heap_mib *mib = entry->mib;

	hot->home = &tcache->mags[heap->slot]->of[class];
	hot->class = class;
	hot->mib = mib;
	hot->mark = mrrc_mib_mark(mib, entry->object);
	hot->cut = mrrc_mib_cut(mib, entry->object);
	hot->cookie = mib->cookie;
	hot->count = &tcache->count[heap->slot].hot;
	hot->seen = *hot->count;
	atomic_store_explicit(&hot->domain, mib->domain, memory_order_relaxed);
	__atomic_store_n(&hot->object, entry->object, __ATOMIC_RELAXED);
}

void mrrc_hot_offer(struct mrrc_tcache *tcache, struct mrrc_heap *heap,
		    unsigned class, const struct mrrc_mag_entry *entry)
{
	struct mrrc_mags *set = tcache->mags[heap->slot];
	struct mrrc_hot *hot = &tcache->hot;
	const struct mrrc_mag_entry old = { hot->object, hot->mib };
	const bool of_use = hot->count && *hot->count != hot->seen;

	if (set->left <= 0) {
		set->allocs += MRRC_HOT_MISSES;
		set->left = MRRC_HOT_MISSES;
		if (hot->mag && !of_use &&
		    mrrc_mags_put(hot->mib->block->heap, tcache, hot->class,
				  &old))
			hot->mag = NULL;
		if (hot->count)
			hot->seen = *hot->count;
	}
	set->left--;
	if (!hot->mag && !of_use)
		hot_set(tcache, heap, class, entry);
}

/*
 * The number of allocations from these magazines, without calls that found a
 * magazine empty.
 */
static uint64_t mags_allocs(const struct mrrc_mags *set)
{
	return set->allocs + MRRC_HOT_MISSES - (set->left > 0 ? set->left : 0);
}

/*
 * The class of the free object of this heap in the hot slot; MRRC_CLASSES: the
 * slot has no such object. The biased lock is shut.
 */
static unsigned hot_class(const struct mrrc_tcache *tcache, unsigned slot)
{
	const struct mrrc_mags *set = tcache->mags[slot];
	const struct mrrc_hot *hot = &tcache->hot;

	return set && hot->mag == &set->of[hot->class] ? hot->class :
							 MRRC_CLASSES;
}

void mrrc_mags_empty(struct mrrc_heap *heap, struct mrrc_tcache *tcache)
{
	const unsigned hot = hot_class(tcache, heap->slot);
	uint64_t *out = &tcache->count[heap->slot].out;
	struct mrrc_mags *set = tcache->mags[heap->slot];
	struct mrrc_mag_entry entry;
	unsigned class, n;

	for (class = 0; set && class < MRRC_CLASSES; class ++) {
		n = mrrc_mag_n(&set->of[class]);
		mrrc_depot_give(heap, class, set->entry[class], n);
		set->of[class].top -= n;
		*out += n;
	}
	if (hot == MRRC_CLASSES)
		return;
	entry = (struct mrrc_mag_entry){ tcache->hot.object, tcache->hot.mib };
	tcache->hot.mag = NULL;
	mrrc_depot_give(heap, hot, &entry, 1);
	++*out;
}

void mrrc_mags_count(const struct mrrc_tcache *tcache, unsigned slot,
		     uint64_t *allocs, uint64_t *frees, size_t *bytes)
{
	const struct mrrc_mag_count *count = &tcache->count[slot];
	const struct mrrc_mags *set = tcache->mags[slot];
	const unsigned hot = hot_class(tcache, slot);
	uint64_t here = 0, sum = count->hot;
	unsigned class, n;

	/*
	 * objects that came from the heap or a free, and were not allocated,
	 * are still in the magazines, by which the number of frees is computed
	 */
	*bytes = 0;
	if (hot != MRRC_CLASSES) {
		*bytes = mrrc_class_size(hot);
		here = 1;
	}
	for (class = 0; set && class < MRRC_CLASSES; class ++) {
		n = mrrc_mag_n(&set->of[class]);
		here += n;
		*bytes += n * mrrc_class_size(class);
	}
	if (set)
		sum += mags_allocs(set);
	*allocs = sum;
	*frees = here + sum + count->out - count->in;
}

void mrrc_mags_retire(struct mrrc_heap *heap, struct mrrc_tcache *tcache)
{
	uint64_t allocs, frees;
	size_t bytes;

	mrrc_mags_count(tcache, heap->slot, &allocs, &frees, &bytes);
	mrrc_lock_acquire(&heap->lock);
	mrrc_mags_empty(heap, tcache);
	heap->allocs += allocs;
	heap->frees += frees;
	mrrc_lock_release(&heap->lock);
}

size_t mrrc_mags_bytes(const struct mrrc_tcache *tcache, unsigned slot)
{
	uint64_t allocs, frees;
	size_t bytes;

	mrrc_mags_count(tcache, slot, &allocs, &frees, &bytes);
	return bytes;
}

bool mrrc_mags_reclaim_own(struct mrrc_heap *heap, size_t least)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;
	size_t kept;

	if (!heap->slot || !mrrc_biased_enter(&tcache->biased))
		return false;
	mrrc_lock_acquire(&heap->lock);
	kept = mrrc_mags_bytes(tcache, heap->slot) + mrrc_depot_kept(heap);
	if (kept >= least) {
		mrrc_mags_empty(heap, tcache);
		mrrc_depot_drain(heap);
	}
	mrrc_lock_release(&heap->lock);
	mrrc_biased_leave(&tcache->biased);
	return kept >= least;
}
