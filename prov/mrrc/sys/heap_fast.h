/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocate and free (heap.h), the fast path: enter the thread's biased lock,
 * and take or put one address, which is in the hot slot (what the thread freed
 * last) or in its magazine for heap and class. Everything else, from an empty
 * magazine to a mistake, is for the functions named slow, which start from the
 * beginning: the fast path has changed nothing by then. Where tools watch
 * (heap_watch.h) biased locks stay shut, so that the tools see each call.
 *
 * Split so that the magazine path stays out of line: registers that a function
 * saves are saved on all its paths.
 */
#ifndef MRRC_HEAP_FAST_H
#define MRRC_HEAP_FAST_H

#include "sys/heap_priv.h"
#include "sys/heap_watch.h"

#define mrrc_always_inline inline __attribute__((always_inline))

/*
 * Filled by heap_mag.c: the mark of an object of the class for a length, since
 * there is no quick bit scan.
 */
extern MRRC_HIDDEN struct mrrc_live_table {
	uint8_t by_16[64];   /* to 1 KiB */
	uint8_t by_128[256]; /* to 32 KiB */
	uint8_t by_4096[512];
} mrrc_live_table;

/*
 * len - 1, and the canary of debug builds; the caller excludes 0 and too large
 */
static mrrc_always_inline size_t mrrc_heap_last(size_t len)
{
	return MRRC_HEAP_CANARY && len - 1 >= MRRC_HEAP_LEN_MAX ?
		       SIZE_MAX :
		       len - 1 + MRRC_HEAP_CANARY;
}

/*
 * The table is filled before the first heap exists: the compiler need not test
 * for 0.
 */
static mrrc_always_inline unsigned mrrc_heap_some(unsigned live)
{
	if (live == MRRC_OBJ_NONE)
		__builtin_unreachable();
	return live;
}

/*
 * MRRC_OBJ_LIVE() of the class for len; MRRC_OBJ_NONE: take the slow path.
 * Large lengths take no jump, the others one.
 */
static mrrc_always_inline unsigned mrrc_heap_live(size_t len)
{
	const size_t last = mrrc_heap_last(len);

	if (mrrc_likely(last >= 32768)) {
		if (!mrrc_likely(last < MRRC_CLASS_MAX))
			return MRRC_OBJ_NONE;
		return mrrc_heap_some(mrrc_live_table.by_4096[last / 4096]);
	}
	if (last < 1024)
		return mrrc_heap_some(mrrc_live_table.by_16[last / 16]);
	return mrrc_heap_some(mrrc_live_table.by_128[last / 128]);
}

/* The same for a multiple of align, a power of two. */
static inline unsigned mrrc_heap_live_aligned(size_t len, size_t align)
{
	unsigned live;

	if (!len || align > MRRC_HEAP_PAGE)
		return MRRC_OBJ_NONE;
	live = mrrc_heap_live(len > align ? len : align);
	/* classes end with whole pages */
	while (live != MRRC_OBJ_NONE &&
	       (mrrc_class_size(live - 1) & (align - 1)))
		live++;
	return live;
}

struct mrrc_heap_got {
	uintptr_t object; /* 0: none, take the slow path */
	void *cookie;
};

/* ---- allocate: inside the biased lock ------------------------------------------- */

/* From the hot slot, if it has the class. Then the biased lock is left. */
static mrrc_always_inline bool mrrc_heap_get_hot(struct mrrc_heap *heap,
						 struct mrrc_tcache *tcache,
						 unsigned live, size_t len,
						 struct mrrc_heap_got *got)
{
	struct mrrc_hot *hot = &tcache->hot;

	if (!mrrc_likely(hot->key == heap->key + live))
		return false;
	hot->key = 0;
	++*hot->count;
	got->object = hot->object;
	got->cookie = hot->cookie;
	__atomic_store_n(hot->mark, live, __ATOMIC_RELAXED);
	mrrc_heap_debug_alloc(heap->domain, hot->rec->block, got->object, len,
			      mrrc_class_size(live - 1));
	mrrc_biased_leave(&tcache->biased);
	return true;
}

/* From the magazine. The biased lock is left. */
static mrrc_always_inline struct mrrc_heap_got
mrrc_heap_get_mag(struct mrrc_heap *heap, struct mrrc_tcache *tcache,
		  unsigned live, size_t len)
{
	const unsigned class = live - 1;
	struct mrrc_mags *mag = tcache->mags[heap->slot];
	const uint64_t word = mag ? mag->n[class] : 0;
	struct mrrc_mag_entry entry;

	if (!mrrc_likely((word & MRRC_MAG_MASK) &&
			 !(tcache->hot.key &&
			   ++tcache->hot.missed >= MRRC_HOT_MISSES))) {
		mrrc_biased_leave(&tcache->biased);
		return (struct mrrc_heap_got){ 0 };
	}
	entry = mag->entry[class][(word & MRRC_MAG_MASK) - 1];
	mag->n[class] = word + MRRC_MAG_ALLOC;
	mrrc_biased_leave(&tcache->biased);
	__atomic_store_n(mrrc_rec_mark(entry.rec, entry.object), live,
			 __ATOMIC_RELAXED);
	mrrc_heap_debug_alloc(heap->domain, entry.rec->block, entry.object, len,
			      mrrc_class_size(class));
	return (struct mrrc_heap_got){ entry.object, entry.rec->block->cookie };
}

/* ---- free: inside the biased lock ----------------------------------------------- */

/*
 * Free of the hot slot's object, which the thread has allocated again or frees
 * twice. What the slot holds is valid as long as the object's block exists:
 * ending a block empties the slots (mrrc_mags_settle()). Leaves the biased
 * lock.
 */
static mrrc_always_inline bool mrrc_heap_put_hot(struct mrrc_heaps *heaps,
						 struct mrrc_tcache *tcache,
						 uintptr_t addr)
{
	struct mrrc_hot *hot = &tcache->hot;
	const unsigned id = hot->id;

	if (!mrrc_likely(hot->object == addr &&
			 atomic_load_explicit(&hot->domain,
					      memory_order_relaxed) == heaps))
		return false;
	/* another thread may have freed it, or be freeing it */
	if (!mrrc_likely(__atomic_load_n(hot->mark, __ATOMIC_RELAXED) ==
			 (uint8_t) id))
		return false;
	if (!mrrc_likely(mrrc_heap_debug_intact(
		    hot->rec->block, addr, mrrc_class_size((uint8_t) id - 1))))
		return false;
	mrrc_heap_debug_freed(hot->rec->block, addr,
			      mrrc_class_size((uint8_t) id - 1));
	__atomic_store_n(hot->mark, MRRC_OBJ_FREED, __ATOMIC_RELAXED);
	hot->key = id;
	mrrc_biased_leave(&tcache->biased);
	return true;
}

/* Fill the empty hot slot with an object that is marked as freed. */
static mrrc_always_inline void mrrc_hot_fill(struct mrrc_tcache *tcache,
					     uintptr_t addr,
					     struct mrrc_heap_rec *rec,
					     uint8_t *mark)
{
	struct mrrc_hot *hot = &tcache->hot;

	hot->id = hot->key = mrrc_hot_key(rec->slot, rec->live);
	hot->missed = 0;
	hot->rec = rec;
	hot->mark = mark;
	hot->cookie = rec->block->cookie;
	hot->count = &tcache->count[rec->slot].hot;
	atomic_store_explicit(&hot->domain, rec->domain, memory_order_relaxed);
	__atomic_store_n(&hot->object, addr, __ATOMIC_RELAXED);
}

/*
 * Free of any other object; false: take the slow path. The biased lock is left.
 * heaps may be NULL, which owns nothing.
 */
static mrrc_always_inline bool mrrc_heap_put_mag(struct mrrc_heaps *heaps,
						 struct mrrc_tcache *tcache,
						 uintptr_t addr)
{
	struct mrrc_heap_rec *rec = mrrc_heap_map_rec(addr);
	struct mrrc_mags *mag;
	unsigned class, n;
	uint8_t *mark;
	uint64_t word;

	/* in a child of fork the parent's objects are not freed */
	if (!mrrc_likely(rec && rec->domain == heaps && heaps &&
			 !atomic_load_explicit(&heaps->forked,
					       memory_order_relaxed)))
		goto other;
	/* else it is a block of its own, or no object */
	mark = mrrc_rec_mark(rec, addr);
	/* another thread may be freeing it, too */
	if (!mrrc_likely(!(addr & rec->inner) &&
			 __atomic_load_n(mark, __ATOMIC_RELAXED) == rec->live))
		goto other;
	class = rec->live - 1;
	/* mistakes are not reported inside the biased lock */
	if (!mrrc_likely(mrrc_heap_debug_intact(rec->block, addr,
						mrrc_class_size(class))))
		goto other;
	if (!tcache->hot.key && rec->slot) {
		mrrc_heap_debug_freed(rec->block, addr, mrrc_class_size(class));
		__atomic_store_n(mark, MRRC_OBJ_FREED, __ATOMIC_RELAXED);
		mrrc_hot_fill(tcache, addr, rec, mark);
		mrrc_biased_leave(&tcache->biased);
		return true;
	}
	mag = tcache->mags[rec->slot];
	word = mag ? mag->n[class] : MRRC_MAG_MASK;
	n = word & MRRC_MAG_MASK;
	if (!mrrc_likely(n < mrrc_mag_cap[class]))
		goto other;
	mrrc_heap_debug_freed(rec->block, addr, mrrc_class_size(class));
	__atomic_store_n(mark, MRRC_OBJ_FREED, __ATOMIC_RELAXED);
	mag->entry[class][n] = (struct mrrc_mag_entry){ addr, rec };
	mag->n[class] = word + 1;
	mrrc_biased_leave(&tcache->biased);
	return true;
other:
	mrrc_biased_leave(&tcache->biased);
	return false;
}

/* ---- calls --------------------------------------------------------------- */

static inline int mrrc_heap_alloc(struct mrrc_heap *heap, size_t align,
				  size_t len, unsigned flags, void **addr,
				  void **cookie)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;
	struct mrrc_heap_got got = { 0 };
	unsigned live = MRRC_OBJ_NONE;

	if (mrrc_likely(!flags && align && !(align & (align - 1))))
		live = mrrc_likely(align <= MRRC_HEAP_GRAIN) ?
			       mrrc_heap_live(len) :
			       mrrc_heap_live_aligned(len, align);
	if (mrrc_likely(live && mrrc_biased_enter(&tcache->biased)) &&
	    !mrrc_heap_get_hot(heap, tcache, live, len, &got))
		got = mrrc_heap_get_mag(heap, tcache, live, len);
	if (!mrrc_likely(got.object))
		return mrrc_heap_alloc_slow(heap, align, len, flags, addr,
					    cookie);
	*addr = (void *) got.object;
	*cookie = got.cookie;
	return 0;
}

/* false: take the slow path. */
static inline bool mrrc_heap_free_try(struct mrrc_heaps *heaps, void *addr)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;

	return mrrc_likely(mrrc_biased_enter(&tcache->biased)) &&
	       (mrrc_heap_put_hot(heaps, tcache, (uintptr_t) addr) ||
		mrrc_heap_put_mag(heaps, tcache, (uintptr_t) addr));
}

static inline int mrrc_heap_free(struct mrrc_heaps *heaps, void *addr)
{
	return mrrc_likely(mrrc_heap_free_try(heaps, addr)) ?
		       0 :
		       mrrc_heap_free_slow(heaps, (uintptr_t) addr);
}

#endif /* MRRC_HEAP_FAST_H */
