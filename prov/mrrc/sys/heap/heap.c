/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator's calls (heap.h): allocate and free. heap_open.c has the rarely
 * used calls.
 *
 * The fast path is inline (heap_fast.h). This file handles all other cases,
 * from an empty magazine to a wrong free.
 */
#include "config.h"
#include "sys/heap/heap_priv.h"

#include <errno.h>
#include <string.h>

#include "sys/heap/heap_map.h"
#include "sys/heap/heap_watch.h"
#include "sys/base/pause.h"
#include "sys/heap/heap_mag.h"
#include "sys/heap/heap_thread.h"
#include "sys/heap/heap_depot.h"
#include "sys/heap/heap_shard.h"
#include "sys/heap/heap_block.h"

/* ---- allocate ------------------------------------------------------------ */

/* Completes an allocation: marks the object and tells memory checkers. */
static void alloc_done(struct mrrc_heap *heap, uintptr_t object, unsigned class,
		       size_t asked, bool zero, void **addr, void **cookie)
{
	struct mrrc_heap_mib *mib = mrrc_heap_map_mib(object);

	*mrrc_mib_mark(mib, object) = MRRC_MARK_LIVE(object);
	if (!mrrc_likely(!mrrc_heap_watched))
		mrrc_heap_watch_alloc(object, asked, zero);
	mrrc_heap_debug_alloc(heap->domain, mib->block, object, asked,
			      mrrc_class_size(class));
	if (zero)
		memset((void *) object, 0, asked);
	*addr = (void *) object;
	*cookie = mib->cookie;
}

/* Would a block of this length exceed the limits? Heap's lock held. */
static bool heap_tight(const struct mrrc_heap *heap, size_t len)
{
	return mrrc_heap_block_len(heap, len, false) > mrrc_heap_left(heap);
}

/* The length of the next block, so that len fits into it. Heap's lock held. */
static size_t heap_growth(const struct mrrc_heap *heap, size_t len)
{
	size_t size = heap->attr.block_size;

	if (!size) {
		size = MRRC_HEAP_BLOCK_MIN;
		while (size < heap->bytes / 16 &&
		       size < 64 * MRRC_HEAP_BLOCK_MIN)
			size *= 2;
		while (size > MRRC_HEAP_BLOCK_MIN && heap_tight(heap, size))
			size /= 2;
	}
	return size > len ? size :
			    (len + MRRC_HEAP_BLOCK_MIN - 1) &
				    ~(MRRC_HEAP_BLOCK_MIN - 1);
}

/*
 * Waits for blocks that other threads are adding: the limits count these blocks
 * already. Returns whether a block was added, to any shard, since @grown was
 * @seen.
 */
static bool heap_wait(struct mrrc_heap *heap, unsigned seen)
{
	unsigned tries = 0;
	bool more, growing;

	for (;;) {
		/* in this order: a thread is growing until it has grown */
		growing = atomic_load(&heap->main->growing);
		more = atomic_load(&heap->main->grown) != seen;
		if (more || !growing)
			return more;
		mrrc_pause(&tries);
	}
}

static int heap_add(struct mrrc_heap *heap, size_t size)
{
	struct mrrc_heap_block *block;
	int ret;

	ret = mrrc_heap_block_new(heap, size, MRRC_HEAP_BLOCK_MIN, 0, false,
				  &block);
	mrrc_lock_acquire(&heap->lock);
	if (!ret) {
		heap->arena.now = mrrc_heap_now();
		mrrc_arena_add(&heap->arena, block);
	}
	heap->refused = ret;
	mrrc_lock_release(&heap->lock);
	if (!ret)
		atomic_fetch_add(&heap->main->grown, 1);
	atomic_fetch_sub(&heap->main->growing, 1);
	return ret;
}

/* Steps to make room, in this order; each is done once for an allocation. */
enum grow_step { GROW_OWN, GROW_ALL, GROW_ADD };

/*
 * Makes room in the arena. If the last block was refused, or magazines and the
 * depot have many objects, they give their objects back, this thread's
 * magazines first, since emptying these takes no barrier. Otherwise adds a
 * block. Several threads that need room at once add a block each, if limits
 * allow.
 */
static int heap_grow(struct mrrc_heap *heap, size_t len, enum grow_step *step)
{
	size_t size, least;
	bool tight, wait;
	unsigned seen;
	int ret;

	seen = atomic_load(&heap->main->grown);
	mrrc_lock_acquire(&heap->lock);
	size = heap_growth(heap, len);
	tight = heap->refused || heap_tight(heap, size);
	least = tight ? 1 : heap->bytes / 16 + len;
	wait = tight && atomic_load(&heap->main->growing);
	if (!wait && *step == GROW_ADD)
		atomic_fetch_add(&heap->main->growing, 1);
	mrrc_lock_release(&heap->lock);
	if (wait) {
		heap_wait(heap, seen);
		return 0;
	}
	switch (*step) {
	case GROW_OWN:
		*step = GROW_ALL;
		if (mrrc_mags_reclaim_own(heap, least))
			return 0;
		/* fall through */
	case GROW_ALL:
		*step = GROW_ADD;
		mrrc_mags_reclaim(heap, least);
		return 0;
	default:
		ret = heap_add(heap, size);
		return ret && heap_wait(heap, seen) ? 0 : ret;
	}
}

/* Takes one object through the thread's magazines. 0: not possible. */
static uintptr_t take_magazine(struct mrrc_heap *heap, unsigned class)
{
	struct mrrc_tcache *tcache = mrrc_tcache_get();
	struct mrrc_mag_entry entry = { 0 };
	struct mrrc_mags *set;

	if (!tcache || !mrrc_biased_enter(&tcache->biased))
		return 0;
	set = mrrc_mags_get(tcache, heap);
	if (set && (mrrc_mag_n(&set->of[class]) ||
		    mrrc_mags_refill(heap, tcache, class))) {
		entry = *--set->of[class].top;
		mrrc_hot_offer(tcache, heap, class, &entry);
	}
	mrrc_biased_leave(&tcache->biased);
	return entry.object;
}

static uintptr_t take_direct(struct mrrc_heap *heap, unsigned class,
			     size_t align)
{
	uintptr_t object;

	mrrc_lock_acquire(&heap->lock);
	if (align > MRRC_HEAP_PAGE)
		object = mrrc_arena_take_aligned(&heap->arena, class, align);
	else
		object = mrrc_depot_take(heap, class);
	heap->allocs += object != 0;
	mrrc_lock_release(&heap->lock);
	return object;
}

static uintptr_t take(struct mrrc_heap *heap, unsigned class, size_t align)
{
	uintptr_t object = 0;

	if (align <= MRRC_HEAP_PAGE)
		object = take_magazine(heap, class);
	return object ? object : take_direct(heap, class, align);
}

/* Takes an object that another shard has, when limits allow no more memory. */
static uintptr_t take_other(struct mrrc_heap *heap, unsigned class,
			    size_t align)
{
	struct mrrc_heap *other = NULL;
	uintptr_t object = 0;

	while (!object && (other = mrrc_heap_part(heap->main, other)))
		object = take_direct(other, class, align);
	return object;
}

/* Would the next block exceed the limits, or was the last one refused? */
static bool heap_full(struct mrrc_heap *heap, size_t len)
{
	bool full;

	mrrc_lock_acquire(&heap->lock);
	full = heap->refused || heap_tight(heap, heap_growth(heap, len));
	mrrc_lock_release(&heap->lock);
	return full;
}

static int alloc_class(struct mrrc_heap *heap, unsigned class, size_t align,
		       uintptr_t *object)
{
	const size_t room =
		mrrc_class_size(class) + (align > MRRC_HEAP_PAGE ? align : 0);
	enum grow_step step = GROW_OWN;
	int ret = 0;

	*object = take(heap, class, align);
	while (!*object) {
		/*
		 * checks the limits first, because adding a block beyond them
		 * would trim all heaps
		 */
		if (ret || heap_full(heap, room))
			*object = take_other(heap, class, align);
		if (*object)
			break;
		if (ret)
			return ret;
		ret = heap_grow(heap, room, &step);
		/*
		 * tries again even if adding a block failed: magazines may have
		 * been emptied
		 */
		*object = take(heap, class, align);
	}
	mrrc_heap_tick(heap);
	return 0;
}

/* ---- allocations that are a block ---------------------------------------- */

/* Finds the idle block that was freed last among those not much too large. */
static struct mrrc_heap_block *own_reuse(struct mrrc_heap *heap, size_t len,
					 size_t align)
{
	const size_t want = mrrc_heap_block_len(heap, len, false);
	struct mrrc_heap_block *block;

	mrrc_lock_acquire(&heap->lock);
	TAILQ_FOREACH(block, &heap->own_idle, link) {
		if (block->len >= len && block->len <= want + want / 4 &&
		    !(block->base & (align - 1)))
			break;
	}
	if (block)
		TAILQ_REMOVE(&heap->own_idle, block, link);
	mrrc_lock_release(&heap->lock);
	return block;
}

static int alloc_own(struct mrrc_heap *heap, size_t align, size_t asked,
		     unsigned flags, void **addr, void **cookie)
{
	const bool isolated = flags & MRRC_HEAP_ISOLATED;
	/* an isolated block is as short as possible: a guard follows it */
	const size_t len = isolated ? asked : asked + MRRC_HEAP_CANARY;
	struct mrrc_heap_block *block = NULL;
	int ret;

	if (!isolated)
		block = own_reuse(heap, len, align);
	if (!block) {
		ret = mrrc_heap_block_new(heap, len, align, asked, isolated,
					  &block);
		if (ret)
			return ret;
	}
	mrrc_lock_acquire(&heap->lock);
	block->own_len = asked;
	TAILQ_INSERT_TAIL(&heap->own, block, link);
	heap->own_bytes += asked;
	heap->allocs++;
	mrrc_lock_release(&heap->lock);
	*mrrc_mib_mark(block->mib, block->base) = MRRC_MARK_OWN;
	if (mrrc_heap_watched)
		mrrc_heap_watch_alloc(block->base, asked,
				      flags & MRRC_HEAP_ZERO);
	mrrc_heap_debug_alloc(heap->domain, block, block->base, asked,
			      block->len);
	if (flags & MRRC_HEAP_ZERO)
		memset((void *) block->base, 0, asked);
	*addr = (void *) block->base;
	*cookie = block->cookie;
	mrrc_heap_tick(heap);
	return 0;
}

int mrrc_heap_alloc_slow(struct mrrc_heap *heap, size_t align, size_t asked,
			 unsigned flags, void **addr, void **cookie)
{
	const size_t len = asked + MRRC_HEAP_CANARY;
	uintptr_t object;
	unsigned class;
	int ret;

	if (!asked || asked > MRRC_HEAP_LEN_MAX || !align ||
	    (align & (align - 1)) || align > MRRC_HEAP_ALIGN_MAX)
		return -EINVAL;
	if (mrrc_heaps_forked(heap->domain))
		return -EOPNOTSUPP;
	if (heap->attr.isolated)
		flags |= MRRC_HEAP_ISOLATED;
	if ((flags & MRRC_HEAP_ISOLATED) || len > MRRC_CLASS_MAX ||
	    align > MRRC_HEAP_BLOCK_MIN)
		return alloc_own(heap, align, asked, flags, addr, cookie);
	if (align <= MRRC_HEAP_GRAIN)
		class = mrrc_class_of(len);
	else if (align <= MRRC_HEAP_PAGE)
		class = mrrc_class_aligned(len, align);
	else
		class = mrrc_class_of(len > MRRC_CLASS_SMALL_MAX ?
					      len :
					      MRRC_CLASS_SMALL_MAX + 1);
	heap = mrrc_heap_mine(heap, class);
	ret = alloc_class(heap, class, align, &object);
	if (ret)
		return ret;
	alloc_done(heap, object, class, asked, flags & MRRC_HEAP_ZERO, addr,
		   cookie);
	return 0;
}

/* ---- free ---------------------------------------------------------------- */

/*
 * Frees a block of one object. The caller has claimed the object, as for all
 * functions below that free.
 */
static int free_own(struct mrrc_heap *heap, struct mrrc_heap_block *block)
{
	const bool isolated = block->isolated;
	int ret;

	ret = mrrc_heap_debug_free(heap->domain, block, block->base,
				   block->len);
	if (mrrc_heap_watched)
		mrrc_heap_watch_free(block->base, block->own_len);
	mrrc_lock_acquire(&heap->lock);
	TAILQ_REMOVE(&heap->own, block, link);
	heap->own_bytes -= block->own_len;
	heap->frees++;
	block->idle_since = mrrc_heap_now();
	if (!isolated)
		TAILQ_INSERT_HEAD(&heap->own_idle, block, link);
	mrrc_lock_release(&heap->lock);
	/*
	 * from here on other threads may end the block, and map another block
	 * at its address
	 */
	if (isolated)
		mrrc_heap_block_end(heap, block);
	mrrc_heap_tick(heap);
	return ret;
}

/*
 * Puts an object into the thread's magazine if possible, else into the depot.
 */
static void free_class(struct mrrc_heap *heap, uintptr_t object, unsigned class)
{
	const struct mrrc_mag_entry entry = { object,
					      mrrc_heap_map_mib(object) };
	struct mrrc_tcache *tcache = mrrc_tcache_get();
	bool put = false;

	if (tcache && mrrc_biased_enter(&tcache->biased)) {
		put = mrrc_mags_put(heap, tcache, class, &entry);
		mrrc_biased_leave(&tcache->biased);
	}
	if (!put) {
		mrrc_lock_acquire(&heap->lock);
		mrrc_depot_give(heap, class, &entry, 1);
		heap->frees++;
		mrrc_lock_release(&heap->lock);
	}
	mrrc_heap_tick(heap);
}

/*
 * Claims the object at addr for a free. Returns 0: the caller has claimed the
 * object, whose class is *class (MRRC_CLASSES: a block of one object), and has
 * to give the object back; its block exists until then. Otherwise the free is
 * wrong, *note says why, and nothing has changed. Called between
 * mrrc_heap_look() and mrrc_heap_looked().
 */
static int free_claim(struct mrrc_heaps *heaps, uintptr_t addr,
		      struct mrrc_heap_block **out, unsigned *class,
		      struct mrrc_heap_note *note)
{
	struct mrrc_heap_block *block = mrrc_heap_map_find(addr);
	struct mrrc_heap_place place;
	struct mrrc_heap_mib *mib;
	uint16_t *at, mark, live;

	note->event = MRRC_HEAP_FOREIGN;
	if (!block)
		return -EINVAL;
	if (block->domain != heaps) {
		note->event = MRRC_HEAP_OTHER_DOMAIN;
		return -EDOM;
	}
	*out = block;
	mib = mrrc_block_mib(block, addr);
	at = mrrc_mib_mark(mib, addr);
	mark = __atomic_load_n(at, __ATOMIC_RELAXED);
	live = block->own ? MRRC_MARK_OWN : MRRC_MARK_LIVE(addr);
	*class = block->own ? MRRC_CLASSES : mrrc_mib_cut(mib, addr)->class;
	if (!block->own || addr == block->base) {
		if (mark == live && mrrc_object_claim(at, addr, mark))
			return 0;
		/* perhaps another thread has just freed the object */
		if (mark == live || mark == MRRC_MARK_FREED(addr)) {
			note->event = MRRC_HEAP_DOUBLE_FREE;
			return -EALREADY;
		}
	}
	if (!mrrc_heap_query(heaps, addr, &place)) {
		note->event = MRRC_HEAP_INSIDE;
		note->base = place.base;
	}
	return -EINVAL;
}

int mrrc_heap_free_slow(struct mrrc_heaps *heaps, uintptr_t addr)
{
	struct mrrc_heap_note note = { .addr = addr };
	struct mrrc_heap_block *block;
	struct mrrc_tcache *look;
	unsigned class;
	int ret;

	if (!addr || mrrc_heaps_forked(heaps))
		return 0;
	look = mrrc_heap_look();
	ret = free_claim(heaps, addr, &block, &class, &note);
	mrrc_heap_looked(look);
	if (ret) {
		atomic_fetch_add(&heaps->mistakes, 1);
		mrrc_heap_say(heaps, &note);
		return ret;
	}
	if (class == MRRC_CLASSES)
		return free_own(block->heap, block);
	ret = mrrc_heap_debug_free(heaps, block, addr, mrrc_class_size(class));
	if (mrrc_heap_watched)
		mrrc_heap_watch_free(addr, mrrc_class_size(class));
	free_class(block->heap, addr, class);
	return ret;
}

/* ---- look up ------------------------------------------------------------- */

void *mrrc_heap_cookie(const struct mrrc_heaps *heaps, const void *addr,
		       size_t len)
{
	const struct mrrc_heap_block *block =
		mrrc_heap_map_find((uintptr_t) addr);

	if (!block || block->domain != heaps ||
	    len > block->len - ((uintptr_t) addr - block->base))
		return NULL;
	return block->cookie;
}

struct mrrc_heaps *mrrc_heap_owner(const void *addr)
{
	struct mrrc_tcache *look = mrrc_heap_look();
	const struct mrrc_heap_block *block =
		mrrc_heap_map_find((uintptr_t) addr);
	struct mrrc_heaps *heaps = block ? block->domain : NULL;

	mrrc_heap_looked(look);
	return heaps;
}

int mrrc_heap_query(struct mrrc_heaps *heaps, uintptr_t addr,
		    struct mrrc_heap_place *place)
{
	struct mrrc_heap_block *block = mrrc_heap_map_find(addr);
	uintptr_t object;
	unsigned class;
	size_t len;

	if (!block || block->domain != heaps)
		return -ENOENT;
	if (block->own) {
		object = block->base;
		len = block->own_len;
		if (*mrrc_mib_mark(block->mib, object) != MRRC_MARK_OWN ||
		    addr - object >= len)
			return -ENOENT;
	} else {
		if (!mrrc_arena_find(block, addr, &object, &class))
			return -ENOENT;
		len = mrrc_heap_debug_asked(block, object,
					    mrrc_class_size(class));
	}
	*place = (struct mrrc_heap_place){
		.base = object,
		.len = len,
		.block = block->base,
		.block_len = block->len,
		.cookie = block->cookie,
		.heap = ((struct mrrc_heap *) block->heap)->main,
		.pages = block->page_kind,
	};
	return 0;
}
