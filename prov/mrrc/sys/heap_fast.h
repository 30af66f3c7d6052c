/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocate and free (heap.h), the way of most: find the thread's magazine for
 * heap and class, pass its gate, take or put one address. All else, from an
 * empty magazine to a mistake, is for the functions named slow, which start
 * from the beginning: nothing has changed by then. Where tools watch
 * (heap_watch.h) gates are shut, so that they see each call.
 */
#ifndef MRRC_HEAP_FAST_H
#define MRRC_HEAP_FAST_H

#include "sys/heap_priv.h"
#include "sys/heap_watch.h"

#define mrrc_always_inline	inline __attribute__((always_inline))

/* Filled by heap_mag.c: mrrc_class_of(), for lack of a quick bit scan. */
extern struct mrrc_class_table {
	uint8_t by_16[64];	/* to 1 KiB */
	uint8_t by_128[256];	/* to 32 KiB */
	uint8_t by_4096[512];
} mrrc_class_table;

static mrrc_always_inline unsigned mrrc_class_fast(size_t len)
{
	if (len <= 1024)
		return mrrc_class_table.by_16[(len - 1) / 16];
	if (len <= 32768)
		return mrrc_class_table.by_128[(len - 1) / 128];
	return mrrc_class_table.by_4096[(len - 1) / 4096];
}

/* false: not this way. */
static mrrc_always_inline bool
mrrc_heap_alloc_try(struct mrrc_heap *heap, size_t align, size_t len,
		    void **addr, void **cookie)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;
	struct mrrc_mag_entry *entry;
	struct mrrc_heap_rec *rec;
	struct mrrc_mags *mag;
	uintptr_t object;
	uint64_t word;
	unsigned class;

	/* 1, 2, 4, 8 or 16 */
	if (!mrrc_likely(tcache && align - 1 < MRRC_HEAP_GRAIN &&
			 !(align & (align - 1)) &&
			 len - 1 < MRRC_CLASS_MAX - MRRC_HEAP_CANARY))
		return false;
	class = mrrc_class_fast(len + MRRC_HEAP_CANARY);
	if (!mrrc_likely(mrrc_gate_enter(&tcache->gate)))
		return false;
	mag = tcache->mags[heap->slot];
	word = mag ? mrrc_mag_read(&mag->n[class]) : 0;
	if (!mrrc_likely(word & MRRC_MAG_MASK)) {
		mrrc_gate_leave(&tcache->gate);
		return false;
	}
	entry = &mag->entry[class][(word & MRRC_MAG_MASK) - 1];
	object = entry->object;
	rec = entry->rec;
	mrrc_mag_write(&mag->n[class], word + MRRC_MAG_ALLOC);
	mrrc_gate_leave(&tcache->gate);
	mrrc_object_set(rec, object, class, MRRC_OBJ_LIVE(class));
	mrrc_heap_debug_alloc(heap->domain, rec->block, object, len,
			      mrrc_class_size(class));
	*addr = (void *) object;
	*cookie = rec->block->cookie;
	return true;
}

/* The same; *ret is what free answers. */
static mrrc_always_inline bool mrrc_heap_free_try(struct mrrc_heaps *heaps,
						  void *ptr, int *ret)
{
	const uintptr_t addr = (uintptr_t) ptr;
	struct mrrc_heap_rec *rec = mrrc_heap_map_rec(addr);
	struct mrrc_tcache *tcache = mrrc_tcache_self;
	struct mrrc_mags *mag;
	unsigned class, n;
	uint8_t *state = NULL;
	uint64_t word;

	if (!mrrc_likely(rec && rec->block && tcache &&
			 rec->block->domain == heaps))
		return false;
	class = rec->kind - 1;
	if (class >= MRRC_CLASSES) {
		class = class + 1 - MRRC_KIND_RUN;
		state = &rec->state[addr % MRRC_HEAP_PAGE / MRRC_HEAP_GRAIN];
		/* else it is an own block's, or nothing's */
		if (!mrrc_likely(class < MRRC_CLASS_SMALL &&
				 !(addr % MRRC_HEAP_GRAIN) &&
				 *state == MRRC_OBJ_LIVE(class)))
			return false;
	} else if (!mrrc_likely(!(addr % MRRC_HEAP_PAGE))) {
		return false;
	}
	if (!mrrc_likely(mrrc_gate_enter(&tcache->gate)))
		return false;
	mag = tcache->mags[rec->slot];
	word = mag ? mrrc_mag_read(&mag->n[class]) : MRRC_MAG_MASK;
	n = word & MRRC_MAG_MASK;
	if (!mrrc_likely(n < mrrc_mag_cap[class])) {
		mrrc_gate_leave(&tcache->gate);
		return false;
	}
	*ret = mrrc_heap_debug_free(heaps, rec->block, addr,
				    mrrc_class_size(class));
	if (state)
		*state = MRRC_OBJ_FREED;
	else
		rec->kind = MRRC_OBJ_FREED;
	mag->entry[class][n] = (struct mrrc_mag_entry) { addr, rec };
	mrrc_mag_write(&mag->n[class], word + 1);
	mrrc_gate_leave(&tcache->gate);
	return true;
}

static inline int mrrc_heap_alloc(struct mrrc_heap *heap, size_t align,
				  size_t len, unsigned flags, void **addr,
				  void **cookie)
{
	if (mrrc_likely(!flags && mrrc_heap_alloc_try(heap, align, len, addr,
						      cookie)))
		return 0;
	return mrrc_heap_alloc_slow(heap, align, len, flags, addr, cookie);
}

static inline int mrrc_heap_free(struct mrrc_heaps *heaps, void *addr)
{
	int ret;

	if (mrrc_likely(mrrc_heap_free_try(heaps, addr, &ret)))
		return ret;
	return mrrc_heap_free_slow(heaps, (uintptr_t) addr);
}

#endif /* MRRC_HEAP_FAST_H */
