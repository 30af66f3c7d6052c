/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Object pool that raises no memory events (pool.h).
 *
 *	map:  | next[capacity] | pad | object 0 | object 1 | ... | reserved |
 *
 * Freed objects form a stack linked by index through next[], outside the
 * objects; its head carries a tag that each free increments, so that a thread
 * that slept between load and exchange cannot take a stale link: an object that
 * left the head comes back only by a free. Objects never used yet follow
 * `fresh`.
 */
#include "config.h"
#include "sys/pool.h"
#include "sys/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sys/vm.h"

#define MRRC_POOL_ALIGN 64u
#define MRRC_POOL_CHUNK ((size_t) 256 << 10) /* committed at a time */
#define MRRC_POOL_LIVE	UINT32_MAX
#define MRRC_POOL_MAX	(UINT32_MAX - 2)

static size_t pool_round(size_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static void *pool_object(const struct mrrc_pool *pool, uint32_t i)
{
	return pool->base + (size_t) i * pool->size;
}

int mrrc_pool_open(size_t size, uint32_t capacity, struct mrrc_pool **out)
{
	const size_t page = mrrc_vm_page();
	struct mrrc_pool *pool;
	size_t links;
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
	links = pool_round(capacity * sizeof(*pool->next), page);
	pool->span = pool->size * capacity;
	pool->map_len = links + pool_round(pool->span, page);

	ret = mrrc_lock_init(&pool->grow, MRRC_RANK_LEAF);
	if (ret)
		goto err_free;
	pool->map = mmap(NULL, pool->map_len, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool->map == MAP_FAILED) {
		ret = -errno;
		goto err_lock;
	}
	if (mprotect(pool->map, links, PROT_READ | PROT_WRITE)) {
		ret = -errno;
		goto err_unmap;
	}
	pool->next = pool->map;
	pool->base = (char *) pool->map + links;
	*out = pool;
	return 0;

err_unmap:
	munmap(pool->map, pool->map_len);
err_lock:
	mrrc_lock_fini(&pool->grow);
err_free:
	free(pool);
	return ret;
}

void mrrc_pool_close(struct mrrc_pool *pool)
{
	munmap(pool->map, pool->map_len);
	mrrc_lock_fini(&pool->grow);
	free(pool);
}

/*
 * Back object @i with memory. The kernel is asked under a leaf lock, which
 * is no danger here: no monitor watches this range and none takes this lock.
 */
static bool pool_commit(struct mrrc_pool *pool, uint32_t i)
{
	const size_t page = mrrc_vm_page();
	const size_t all = pool_round(pool->span, page);
	size_t done;
	size_t end;
	bool ok = true;

	mrrc_lock_acquire(&pool->grow);
	if (i >= atomic_load(&pool->committed)) {
		/* The committed part ends at a page or at the very end. */
		done = (size_t) atomic_load(&pool->committed) * pool->size;
		done = done / page * page;
		end = pool_round((size_t) (i + 1) * pool->size, page);
		if (end < done + MRRC_POOL_CHUNK)
			end = done + MRRC_POOL_CHUNK;
		if (end > all)
			end = all;
		ok = !mprotect(pool->base + done, end - done,
			       PROT_READ | PROT_WRITE);
		if (ok && end > pool->span)
			end = pool->span;
		if (ok)
			atomic_store(&pool->committed, end / pool->size);
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
		if (i >= atomic_load_explicit(&pool->committed,
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

	return offset < pool->span && !(offset % pool->size) &&
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
