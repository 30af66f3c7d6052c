/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocate and free (heap.h), the fast path: enter the thread's biased lock,
 * and take or put one address, which is in the hot slot or in the thread's
 * magazine for heap and class. In all other cases, from an empty magazine to a
 * wrong free, the fast path changes nothing, and the functions named slow start
 * the call anew. Where tools watch (heap_watch.h) biased locks stay shut, so
 * that the tools see each call.
 */
#ifndef MRRC_HEAP_FAST_H
#define MRRC_HEAP_FAST_H

#include "sys/heap/heap_priv.h"
#include "sys/heap/heap_watch.h"

#define mrrc_always_inline inline __attribute__((always_inline))

/*
 * Tables that heap_mag.c fills: the class for a length, as computing the class
 * by a bit scan is slower; and how pages of a class are cut.
 */
extern MRRC_HIDDEN struct mrrc_class_table {
	uint8_t by_16[64];   /* to 1 KiB */
	uint8_t by_128[256]; /* to 32 KiB */
	uint8_t by_4096[512];
	uint8_t shift[MRRC_CLASSES]; /* mrrc_heap_cut.shift */
} mrrc_class_table;

/*
 * Returns len - 1, plus the canary of debug builds. For len 0 and too large
 * lengths the result has no class.
 */
static mrrc_always_inline size_t mrrc_heap_last(size_t len)
{
	return MRRC_HEAP_CANARY && len - 1 >= MRRC_HEAP_LEN_MAX ?
		       SIZE_MAX :
		       len - 1 + MRRC_HEAP_CANARY;
}

/*
 * Tells the compiler that the table has only valid classes, so that the
 * compiled code does not test for other numbers.
 */
static mrrc_always_inline unsigned mrrc_heap_some(unsigned class)
{
	if (class >= MRRC_CLASSES)
		__builtin_unreachable();
	return class;
}

/*
 * The class for len, found without a taken jump for small lengths;
 * MRRC_CLASSES: take the slow path.
 */
static mrrc_always_inline unsigned mrrc_heap_class(size_t len)
{
	const size_t last = mrrc_heap_last(len);

	if (mrrc_likely(last < 1024))
		return mrrc_heap_some(mrrc_class_table.by_16[last / 16]);
	if (last < 32768)
		return mrrc_heap_some(mrrc_class_table.by_128[last / 128]);
	if (mrrc_likely(last < MRRC_CLASS_MAX))
		return mrrc_heap_some(mrrc_class_table.by_4096[last / 4096]);
	return MRRC_CLASSES;
}

/* Like mrrc_heap_class(), for a multiple of align, a power of two. */
static inline unsigned mrrc_heap_class_aligned(size_t len, size_t align)
{
	unsigned class;

	if (!len || align > MRRC_HEAP_PAGE)
		return MRRC_CLASSES;
	class = mrrc_heap_class(len > align ? len : align);
	/* classes end with whole pages */
	while (class < MRRC_CLASSES && (mrrc_class_size(class) & (align - 1)))
		class ++;
	return class;
}

struct mrrc_heap_got {
	uintptr_t object;
	void *cookie;
};

/* ---- allocate: inside the biased lock ------------------------------------ */

/*
 * The magazines from which the thread allocates objects of a class: the heap's
 * magazines for large objects, the magazines of the thread's shard for small
 * objects. NULL: no magazines yet.
 */
static mrrc_always_inline struct mrrc_mags *
mrrc_heap_mags(struct mrrc_heap *heap, const struct mrrc_tcache *tcache,
	       unsigned class)
{
	/* computed without a jump */
	const unsigned at = tcache->shard & -(class < MRRC_CLASS_SMALL);

	return tcache->mags[atomic_load_explicit(&heap->serves[at],
						 memory_order_relaxed)];
}

/*
 * Allocates the object in the hot slot, if the object is of @class, and then
 * leaves the biased lock. false: the slot holds no such object.
 */
static mrrc_always_inline bool mrrc_heap_get_hot(struct mrrc_tcache *tcache,
						 const struct mrrc_mag *mag,
						 unsigned class, size_t len,
						 struct mrrc_heap_got *got)
{
	struct mrrc_hot *hot = &tcache->hot;

	if (!mrrc_likely(hot->mag == mag))
		return false;
	hot->mag = NULL;
	++*hot->count;
	got->object = hot->object;
	got->cookie = hot->cookie;
	__atomic_store_n(hot->mark, MRRC_MARK_LIVE(got->object),
			 __ATOMIC_RELAXED);
	mrrc_heap_debug_alloc(hot->mib->domain, hot->mib->block, got->object,
			      len, mrrc_class_size(class));
	mrrc_biased_leave(&tcache->biased);
	return true;
}

/*
 * Allocates from the hot slot, or else from the magazine, and leaves the biased
 * lock. false: take the slow path.
 */
static mrrc_always_inline bool mrrc_heap_get(struct mrrc_tcache *tcache,
					     struct mrrc_mags *set,
					     unsigned class, size_t len,
					     struct mrrc_heap_got *got)
{
	struct mrrc_mag *mag = &set->of[class];
	struct mrrc_mag_entry *top;
	struct mrrc_heap_mib *mib;

	if (mrrc_likely(mrrc_heap_get_hot(tcache, mag, class, len, got)))
		return true;
	if (!mrrc_likely(mrrc_mag_n(mag) && --set->left >= 0)) {
		mrrc_biased_leave(&tcache->biased);
		return false;
	}
	top = --mag->top;
	mib = top->mib;
	got->object = top->object;
	mrrc_biased_leave(&tcache->biased);
	got->cookie = mib->cookie;
	__atomic_store_n(mrrc_mib_mark_at(mib, got->object,
					  mrrc_class_table.shift[class]),
			 MRRC_MARK_LIVE(got->object), __ATOMIC_RELAXED);
	mrrc_heap_debug_alloc(mib->domain, mib->block, got->object, len,
			      mrrc_class_size(class));
	return true;
}

/*
 * ---- allocate, by a key ---------------------------------------------------
 */

/*
 * Allocates from the heap that mrrc_heap_usual() gave the key. false: the key
 * has another heap, or the slow path is needed. Does not call
 * mrrc_heap_class(), since choosing the magazines by the class would take two
 * of the 20 cycles of an allocation and its free.
 */
static mrrc_always_inline bool mrrc_heap_alloc_key(uintptr_t key, size_t len,
						   struct mrrc_heap_got *got)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;
	const size_t last = mrrc_heap_last(len);
	struct mrrc_mags *set;
	unsigned class;

	if (!mrrc_likely(mrrc_biased_enter(&tcache->biased)))
		return false;
	if (!mrrc_likely(tcache->usual.key == key))
		goto other;
	set = tcache->usual.small;
	if (mrrc_likely(last < 1024)) {
		class = mrrc_class_table.by_16[last / 16];
	} else if (last < 32768) {
		class = mrrc_class_table.by_128[last / 128];
	} else if (last < MRRC_CLASS_MAX) {
		class = mrrc_class_table.by_4096[last / 4096];
		set = tcache->usual.large;
	} else {
		goto other;
	}
	return mrrc_heap_get(tcache, set, mrrc_heap_some(class), len, got);
other:
	mrrc_biased_leave(&tcache->biased);
	return false;
}

/* ---- free: inside the biased lock ---------------------------------------- */

/*
 * Frees the hot slot's object, which the thread has allocated again or frees
 * twice. The slot's pointers are valid as long as the object's block and the
 * magazine exist: when the block or the magazine ends, the slot forgets its
 * domain. Leaves the biased lock.
 */
static mrrc_always_inline bool mrrc_heap_put_hot(struct mrrc_heaps *heaps,
						 struct mrrc_tcache *tcache,
						 uintptr_t addr)
{
	struct mrrc_hot *hot = &tcache->hot;

	if (!mrrc_likely(hot->object == addr &&
			 atomic_load_explicit(&hot->domain,
					      memory_order_relaxed) == heaps))
		return false;
	/*
	 * otherwise another thread has freed the object, or is freeing it; or
	 * an object of another class has this address now
	 */
	if (!mrrc_likely(__atomic_load_n(hot->mark, __ATOMIC_RELAXED) ==
				 MRRC_MARK_LIVE(addr) &&
			 hot->cut->class == hot->class))
		return false;
	if (!mrrc_likely(mrrc_heap_debug_intact(hot->mib->block, addr,
						mrrc_class_size(hot->class))))
		return false;
	mrrc_heap_debug_freed(hot->mib->block, addr,
			      mrrc_class_size(hot->class));
	__atomic_store_n(hot->mark, MRRC_MARK_FREED(addr), __ATOMIC_RELAXED);
	hot->mag = hot->home;
	mrrc_biased_leave(&tcache->biased);
	return true;
}

/*
 * Frees an object that is not the hot slot's, and leaves the biased lock.
 * false: take the slow path. heaps may be NULL: then the result is false.
 */
static mrrc_always_inline bool mrrc_heap_put_mag(struct mrrc_heaps *heaps,
						 struct mrrc_tcache *tcache,
						 uintptr_t addr)
{
	struct mrrc_heap_mib *mib = mrrc_heap_map_mib(addr);
	struct mrrc_mag_entry *top;
	struct mrrc_mags *set;
	struct mrrc_mag *mag;
	uint16_t *mark;
	size_t class;

	if (!mrrc_likely(mib && heaps &&
			 mib->domain ==
				 atomic_load_explicit(&heaps->own,
						      memory_order_relaxed)))
		goto other;
	mark = mrrc_mib_mark(mib, addr);
	/*
	 * otherwise the address is that of a block of one object, or of no live
	 * object; or another thread is freeing the object, too
	 */
	if (!mrrc_likely(__atomic_load_n(mark, __ATOMIC_RELAXED) ==
			 MRRC_MARK_LIVE(addr)))
		goto other;
	class = mrrc_mib_cut(mib, addr)->class;
	/* mistakes are not reported inside the biased lock */
	if (!mrrc_likely(mrrc_heap_debug_intact(mib->block, addr,
						mrrc_class_size(class))))
		goto other;
	set = tcache->mags[mib->slot];
	if (!mrrc_likely(set))
		goto other;
	mag = &set->of[class];
	top = mag->top;
	if (!mrrc_likely(top != mag->end))
		goto other;
	mrrc_heap_debug_freed(mib->block, addr, mrrc_class_size(class));
	__atomic_store_n(mark, MRRC_MARK_FREED(addr), __ATOMIC_RELAXED);
	*top = (struct mrrc_mag_entry){ addr, mib };
	mag->top = top + 1;
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
	unsigned class = MRRC_CLASSES;
	struct mrrc_heap_got got;
	struct mrrc_mags *set;

	if (mrrc_likely(!flags && align && !(align & (align - 1))))
		class = mrrc_likely(align <= MRRC_HEAP_GRAIN) ?
				mrrc_heap_class(len) :
				mrrc_heap_class_aligned(len, align);
	if (!mrrc_likely(class < MRRC_CLASSES &&
			 mrrc_biased_enter(&tcache->biased)))
		return mrrc_heap_alloc_slow(heap, align, len, flags, addr,
					    cookie);
	set = mrrc_heap_mags(heap, tcache, class);
	if (!mrrc_likely(set))
		mrrc_biased_leave(&tcache->biased);
	if (!mrrc_likely(set && mrrc_heap_get(tcache, set, class, len, &got)))
		return mrrc_heap_alloc_slow(heap, align, len, flags, addr,
					    cookie);
	*addr = (void *) got.object;
	*cookie = got.cookie;
	return 0;
}

/* Tries to free; false: take the slow path. */
static mrrc_always_inline bool mrrc_heap_free_try(struct mrrc_heaps *heaps,
						  void *addr)
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
