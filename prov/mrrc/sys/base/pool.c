/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Object pool that raises no memory events (pool.h).
 *
 *	window:  | next[capacity] | pad | object 0 | object 1 | ... |
 *
 * The application may have a limit of addresses (RLIMIT_AS). So a pool reserves
 * addresses in steps, each step right behind the step before, and windows begin
 * far below all mappings, where the kernel places no mapping by itself. If the
 * next step's addresses are mapped already, or the limit is reached, the pool
 * gets no more objects.
 *
 * Freed objects form a stack linked by index through next[], outside the
 * objects. The stack's head has a tag that each free increments, so that a
 * thread that slept between load and exchange cannot take a stale link: an
 * object that left the head comes back only by a free. Objects from `fresh` on
 * have never been used.
 */
#include "config.h"
#include "sys/base/pool.h"
#include "sys/base/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sys/base/vm.h"

#define MRRC_POOL_ALIGN 64u
#define MRRC_POOL_CHUNK ((size_t) 256 << 10) /* bytes committed at a time */
#define MRRC_POOL_STEP	((size_t) 2 << 20)   /* bytes reserved at a time */
#define MRRC_POOL_LIVE	UINT32_MAX
#define MRRC_POOL_MAX	(UINT32_MAX - 2)

#define MRRC_POOL_WINDOW  ((uintptr_t) 1 << 30)
#define MRRC_POOL_WINDOWS 1024
#define MRRC_POOL_BELOW	  ((uintptr_t) 64 << 30) /* below all mappings */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static size_t pool_round(size_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static void *pool_object(const struct mrrc_pool *pool, uint32_t i)
{
	return pool->base + (size_t) i * pool->size;
}

/* pool_links(): the bytes of all links; pool_objects(): of all objects. */
static size_t pool_links(const struct mrrc_pool *pool)
{
	return pool_round(pool->capacity * sizeof(*pool->next), mrrc_vm_page());
}

static size_t pool_objects(const struct mrrc_pool *pool)
{
	return pool_round(pool->span, mrrc_vm_page());
}

/* ---- addresses ---- */

/*
 * Maps memory at @at, and replaces no mapping. 0; -EEXIST: a mapping is there.
 */
static int pool_map(char *at, size_t len, int prot)
{
	char *map = mmap(at, len, prot,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				 MAP_FIXED_NOREPLACE,
			 -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	if (map == at)
		return 0;
	munmap(map, len); /* valgrind takes the flag for a hint */
	return -EEXIST;
}

/*
 * Reserves the addresses of the pool's first @end bytes of objects, and their
 * links.
 */
static int pool_reserve(struct mrrc_pool *pool, size_t end)
{
	size_t links = (end / pool->size + 1) * sizeof(*pool->next);
	int ret;

	links = pool_round(links, mrrc_vm_page());
	if (links > pool_links(pool))
		links = pool_links(pool);
	if (links > pool->linked) {
		ret = pool_map((char *) pool->next + pool->linked,
			       links - pool->linked, PROT_READ | PROT_WRITE);
		if (ret)
			return ret;
		pool->linked = links;
	}
	ret = pool_map(pool->base + pool->reserved, end - pool->reserved,
		       PROT_NONE);
	if (!ret)
		pool->reserved = end;
	return ret;
}

/*
 * Reserves addresses until at least the first @end bytes of objects are
 * reserved; beyond these bytes only if RLIMIT_AS allows it.
 */
static int pool_step(struct mrrc_pool *pool, size_t end)
{
	size_t more = pool->reserved + MRRC_POOL_STEP;
	int ret;

	if (more < end)
		more = end;
	if (more > pool_objects(pool))
		more = pool_objects(pool);
	ret = pool_reserve(pool, more);
	return ret == -ENOMEM && more > end ? pool_reserve(pool, end) : ret;
}

static void pool_unmap(struct mrrc_pool *pool)
{
	if (pool->linked)
		munmap(pool->next, pool->linked);
	if (pool->reserved)
		munmap(pool->base, pool->reserved);
	pool->linked = pool->reserved = 0;
}

/*
 * The address below which windows begin. 0: the address space is too small for
 * windows.
 */
static uintptr_t pool_area(const void *lowest)
{
	const uintptr_t below =
		MRRC_POOL_BELOW + MRRC_POOL_WINDOWS * MRRC_POOL_WINDOW;
	const uintptr_t at = (uintptr_t) lowest;

	return at / 2 > below ? (at - below) & ~(MRRC_POOL_WINDOW - 1) : 0;
}

/* Makes a window without objects at first, then reserves its first objects. */
static int pool_window(struct mrrc_pool *pool, uintptr_t area)
{
	const size_t one = pool_round(pool->size, mrrc_vm_page());
	static _Atomic unsigned last; /* the next window is most likely free */
	int ret = -EEXIST;
	size_t i, at;

	for (i = 0; ret == -EEXIST && i < MRRC_POOL_WINDOWS; i++) {
		/*
		 * tries the highest window first: ThreadSanitizer refuses low
		 * addresses
		 */
		at = ~atomic_fetch_add(&last, 1) % MRRC_POOL_WINDOWS;
		pool->next = (void *) (area + at * MRRC_POOL_WINDOW);
		pool->base = (char *) pool->next + pool_links(pool);
		ret = pool_step(pool, one);
		if (ret)
			pool_unmap(pool);
	}
	return ret;
}

/* Makes a window where the kernel chooses, with all addresses at once. */
static int pool_anywhere(struct mrrc_pool *pool)
{
	const size_t links = pool_links(pool), all = pool_objects(pool);
	char *map;

	map = mmap(NULL, links + all, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	pool->next = (void *) map;
	pool->base = map + links;
	pool->linked = links;
	pool->reserved = all;
	if (!mprotect(map, links, PROT_READ | PROT_WRITE))
		return 0;
	pool_unmap(pool);
	return -ENOMEM;
}

static int pool_place(struct mrrc_pool *pool)
{
	static _Atomic uintptr_t area;
	uintptr_t start = atomic_load(&area);
	int ret = -EEXIST;
	void *low;

	if (!start) {
		low = mmap(NULL, mrrc_vm_page(), PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (low == MAP_FAILED)
			return -errno;
		munmap(low, mrrc_vm_page());
		start = pool_area(low);
		atomic_store(&area, start);
	}
	if (start)
		ret = pool_window(pool, start);
	return ret == -EEXIST ? pool_anywhere(pool) : ret;
}

/* ---- life ---- */

int mrrc_pool_open(size_t size, uint32_t capacity, struct mrrc_pool **out)
{
	struct mrrc_pool *pool;
	int ret;

	if (!size || !capacity || capacity > MRRC_POOL_MAX ||
	    size > SIZE_MAX / 4 / capacity)
		return -EINVAL;

	pool = aligned_alloc(MRRC_POOL_ALIGN, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	*pool = (struct mrrc_pool){
		.size = pool_round(size, MRRC_POOL_ALIGN),
		.capacity = capacity,
	};
	pool->span = pool->size * capacity;

	ret = mrrc_lock_init(&pool->grow, MRRC_RANK_LEAF);
	if (ret)
		goto err_free;
	ret = pool_place(pool);
	if (ret)
		goto err_lock;
	*out = pool;
	return 0;

err_lock:
	mrrc_lock_fini(&pool->grow);
err_free:
	free(pool);
	return ret;
}

void mrrc_pool_close(struct mrrc_pool *pool)
{
	pool_unmap(pool);
	mrrc_lock_fini(&pool->grow);
	free(pool);
}

/* ---- objects ---- */

/*
 * Backs object @i with memory. Calling mmap and mprotect under a leaf lock is
 * safe here: nothing is unmapped, no monitor watches the pool's addresses, and
 * no monitor takes the leaf lock.
 */
static bool pool_commit(struct mrrc_pool *pool, uint32_t i)
{
	const size_t least =
		pool_round((size_t) (i + 1) * pool->size, mrrc_vm_page());
	size_t done, end;
	bool ok = true;

	mrrc_lock_acquire(&pool->grow);
	done = atomic_load(&pool->backed);
	if (done < (size_t) (i + 1) * pool->size) {
		end = least < done + MRRC_POOL_CHUNK ? done + MRRC_POOL_CHUNK :
						       least;
		if (end > pool_objects(pool))
			end = pool_objects(pool);
		if (end > pool->reserved)
			pool_step(pool, least);
		if (end > pool->reserved)
			end = pool->reserved;
		ok = end >= least && !mprotect(pool->base + done, end - done,
					       PROT_READ | PROT_WRITE);
		if (ok)
			atomic_store(&pool->backed,
				     end < pool->span ? end : pool->span);
	}
	mrrc_lock_release(&pool->grow);
	return ok;
}

static void *pool_take(struct mrrc_pool *pool, uint32_t i)
{
	atomic_store_explicit(&pool->next[i], MRRC_POOL_LIVE,
			      memory_order_relaxed);
	return pool_object(pool, i);
}

static void *__attribute__((noinline))
mrrc_pool_alloc_fresh(struct mrrc_pool *pool)
{
	uint32_t i = atomic_load_explicit(&pool->fresh, memory_order_relaxed);

	do {
		if (i == pool->capacity)
			return NULL;
		if ((size_t) (i + 1) * pool->size >
			    atomic_load_explicit(&pool->backed,
						 memory_order_acquire) &&
		    !pool_commit(pool, i))
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&pool->fresh, &i, i + 1,
							memory_order_acq_rel,
							memory_order_relaxed));
	return pool_take(pool, i);
}

static _Atomic uint32_t *pool_below(void *pool, uint32_t place)
{
	return &((struct mrrc_pool *) pool)->next[place - 1];
}

void *mrrc_pool_alloc(struct mrrc_pool *pool)
{
	const uint32_t place = mrrc_stack_pop(&pool->head, pool_below, pool);

	return place ? pool_take(pool, place - 1) : mrrc_pool_alloc_fresh(pool);
}

void mrrc_pool_free(struct mrrc_pool *pool, void *object)
{
	const size_t offset = (char *) object - pool->base;
	const uint32_t i = offset / pool->size;

	assert(mrrc_pool_owns(pool, object) && !(offset % pool->size));
	assert(atomic_load_explicit(&pool->next[i], memory_order_relaxed) ==
	       MRRC_POOL_LIVE);
	mrrc_stack_push(&pool->head, pool_below, pool, i + 1);
}

bool mrrc_pool_is_live(const struct mrrc_pool *pool, const void *ptr)
{
	const size_t offset = (uintptr_t) ptr - (uintptr_t) pool->base;

	return mrrc_pool_owns(pool, ptr) && !(offset % pool->size) &&
	       atomic_load_explicit(&pool->next[offset / pool->size],
				    memory_order_acquire) == MRRC_POOL_LIVE;
}

uint32_t mrrc_pool_live(const struct mrrc_pool *pool)
{
	const uint32_t end =
		atomic_load_explicit(&pool->fresh, memory_order_acquire);
	uint32_t live = 0;
	uint32_t i;

	for (i = 0; i < end; i++)
		live += atomic_load_explicit(&pool->next[i],
					     memory_order_relaxed) ==
			MRRC_POOL_LIVE;
	return live;
}

void mrrc_pool_foreach_live(struct mrrc_pool *pool, mrrc_pool_cb cb, void *arg)
{
	const uint32_t end =
		atomic_load_explicit(&pool->fresh, memory_order_acquire);
	uint32_t i;

	for (i = 0; i < end; i++) {
		if (atomic_load_explicit(&pool->next[i],
					 memory_order_acquire) ==
		    MRRC_POOL_LIVE)
			cb(pool_object(pool, i), arg);
	}
}
