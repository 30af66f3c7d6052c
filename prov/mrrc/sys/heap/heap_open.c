/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator's domains and heaps: open, close, trim, count (heap.h).
 */
#include "config.h"
#include "sys/heap/heap_open.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sys/heap/heap_map.h"
#include "sys/heap/heap_watch.h"
#include "sys/base/pause.h"
#include "sys/base/pool.h"
#include "sys/heap/heap_thread.h"
#include "sys/heap/heap_depot.h"
#include "sys/heap/heap_shard.h"
#include "sys/heap/heap_block.h"
#include "sys/heap/heap_retire.h"

#define HEAP_BLOCKS_MAX (1u << 18) /* blocks of a domain, isolated or not */

/* ---- domains ------------------------------------------------------------- */

int mrrc_heaps_open(const struct mrrc_heap_ops *ops, void *arg,
		    size_t max_bytes, struct mrrc_heaps **out)
{
	struct mrrc_heaps *heaps;
	int ret;

	heaps = calloc(1, sizeof(*heaps));
	if (!heaps)
		return -ENOMEM;
	heaps->ops = ops;
	heaps->arg = arg;
	heaps->max_bytes = max_bytes;
	atomic_init(&heaps->own, heaps);
	TAILQ_INIT(&heaps->heaps);
	ret = mrrc_lock_init(&heaps->lock, MRRC_RANK_LEAF);
	if (ret)
		goto err_free;
	ret = mrrc_pool_open(sizeof(struct mrrc_heap_block), HEAP_BLOCKS_MAX,
			     &heaps->blocks);
	if (ret)
		goto err_lock;
	mrrc_heap_watch_init();
	mrrc_heap_retire_open(heaps);
	ret = mrrc_mags_domain_add(heaps);
	if (ret)
		goto err_pool;
	*out = heaps;
	return 0;

err_pool:
	mrrc_pool_close(heaps->blocks);
err_lock:
	mrrc_lock_fini(&heaps->lock);
err_free:
	free(heaps);
	return ret;
}

bool mrrc_heaps_forked(const struct mrrc_heaps *heaps)
{
	return atomic_load_explicit(&heaps->forked, memory_order_relaxed);
}

void mrrc_heaps_close(struct mrrc_heaps *heaps)
{
	struct mrrc_heap *heap;

	/* a child cannot close its parent's domain, whose blocks stay */
	if (mrrc_heaps_forked(heaps))
		return;
	while ((heap = TAILQ_FIRST(&heaps->heaps)))
		mrrc_heap_close(heap);
	mrrc_mags_domain_remove(heaps);
	mrrc_heap_retired_release(heaps);
	mrrc_pool_close(heaps->blocks);
	mrrc_lock_fini(&heaps->lock);
	free(heaps);
}

static void abandon_list(struct mrrc_heaps *heaps,
			 const struct mrrc_heap_blocks *list)
{
	const struct mrrc_heap_block *block;

	TAILQ_FOREACH(block, list, link) {
		mrrc_mags_settle(block->base, block->len);
		heaps->ops->dereg(heaps->arg, block->cookie, block->base,
				  block->len);
	}
}

void mrrc_heaps_abandon(struct mrrc_heaps *heaps)
{
	struct mrrc_heap *heap;

	atomic_store(&heaps->own, NULL);
	TAILQ_FOREACH(heap, &heaps->heaps, link) {
		mrrc_mags_detach(heap);
		abandon_list(heaps, &heap->own);
		abandon_list(heaps, &heap->own_idle);
		abandon_list(heaps, &heap->arena.blocks);
	}
	mrrc_heap_retired_release(heaps);
	atomic_store(&heaps->forked, true);
}

/*
 * The first open heap after @heap (NULL: the domain's first open heap). The
 * returned heap cannot be closed until the next call has it as @heap.
 */
static struct mrrc_heap *heaps_next(struct mrrc_heaps *heaps,
				    struct mrrc_heap *heap)
{
	struct mrrc_heap *next;

	mrrc_lock_acquire(&heaps->lock);
	next = heap ? TAILQ_NEXT(heap, link) : TAILQ_FIRST(&heaps->heaps);
	while (next && next->closing)
		next = TAILQ_NEXT(next, link);
	if (next)
		next->walkers++;
	if (heap)
		heap->walkers--;
	mrrc_lock_release(&heaps->lock);
	return next;
}

void mrrc_heaps_each(struct mrrc_heaps *heaps,
		     void (*call)(struct mrrc_heap *heap, void *arg), void *arg)
{
	struct mrrc_heap *heap = NULL;

	mrrc_lock_assert_none();
	while ((heap = heaps_next(heaps, heap)))
		call(heap, arg);
}

/* ---- heaps --------------------------------------------------------------- */

static bool attr_valid(const struct mrrc_heap_attr *attr)
{
	return !attr->block_size || (attr->block_size >= MRRC_HEAP_BLOCK_MIN &&
				     attr->block_size <= MRRC_HEAP_BLOCK_MAX);
}

int mrrc_heap_make(struct mrrc_heaps *heaps, const struct mrrc_heap_attr *attr,
		   struct mrrc_heap *main, unsigned shard,
		   struct mrrc_heap **out)
{
	struct mrrc_heap *heap;
	int ret;

	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	heap->domain = heaps;
	heap->attr = *attr;
	heap->main = main ? main : heap;
	heap->shard = shard;
	/*
	 * Transparent huge pages are used only if every page of the memory will
	 * be used: otherwise clearing 2 MiB for a few bytes takes longer and
	 * wastes memory.
	 */
	if (attr->pages == MRRC_PAGES_AUTO && !attr->populated &&
	    !attr->prefault)
		heap->attr.pages = MRRC_PAGES_4K;
	heap->tick = mrrc_heap_now();
	heap->attr.block_size = (attr->block_size + MRRC_HEAP_BLOCK_MIN - 1) &
				~(MRRC_HEAP_BLOCK_MIN - 1);
	heap->shards = main ? 1 : mrrc_heap_shards(heap);
	mrrc_arena_init(&heap->arena);
	TAILQ_INIT(&heap->own);
	TAILQ_INIT(&heap->own_idle);
	ret = mrrc_lock_init(&heap->lock, MRRC_RANK_LEAF);
	if (ret)
		goto err_free;
	/* the depot is mapped: little of its memory is used */
	heap->depot = mmap(NULL, sizeof(*heap->depot), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (heap->depot == MAP_FAILED) {
		ret = -ENOMEM;
		goto err_lock;
	}
	mrrc_mags_attach(heap);
	/* without magazines a shard would be slower than the heap alone */
	if (main && !heap->slot) {
		ret = -ENOSPC;
		goto err_depot;
	}
	mrrc_lock_acquire(&heaps->lock);
	TAILQ_INSERT_TAIL(&heaps->heaps, heap, link);
	mrrc_lock_release(&heaps->lock);
	atomic_store(&heap->main->part[shard], heap);
	*out = heap;
	return 0;

err_depot:
	munmap(heap->depot, sizeof(*heap->depot));
err_lock:
	mrrc_lock_fini(&heap->lock);
err_free:
	free(heap);
	return ret;
}

int mrrc_heap_open(struct mrrc_heaps *heaps, const struct mrrc_heap_attr *attr,
		   struct mrrc_heap **out)
{
	if (mrrc_heaps_forked(heaps))
		return -EOPNOTSUPP;
	if (!attr_valid(attr) || attr->pages >= MRRC_PAGES_CNT ||
	    (attr->node >= 0 && !mrrc_pages_node_exists(attr->node)))
		return -EINVAL;
	return mrrc_heap_make(heaps, attr, NULL, 0, out);
}

/* ---- close --------------------------------------------------------------- */

struct leaks {
	struct mrrc_heaps *heaps;
	size_t count, bytes;
};

static void leak(struct leaks *leaks, uintptr_t addr, size_t size)
{
	const struct mrrc_heap_note note = {
		.event = MRRC_HEAP_LEAK,
		.addr = addr,
		.size = size,
	};

	leaks->bytes += size;
	/*
	 * the object's memory is about to be unmapped: leak checkers must not
	 * search it any more
	 */
	if (mrrc_heap_watched)
		mrrc_heap_watch_free(addr, size);
	if (leaks->count++ < MRRC_HEAP_LEAKS_MAX)
		mrrc_heap_say(leaks->heaps, &note);
}

static void leaks_of(struct mrrc_heap *heap, struct leaks *leaks)
{
	struct mrrc_heap_block *block;
	uintptr_t object;
	unsigned class;
	size_t pos;

	TAILQ_FOREACH(block, &heap->own, link)
		leak(leaks, block->base, block->own_len);
	TAILQ_FOREACH(block, &heap->arena.blocks, link) {
		pos = 0;
		while (block->used &&
		       mrrc_arena_next(block, &pos, &object, &class))
			leak(leaks, object,
			     mrrc_heap_debug_asked(block, object,
						   mrrc_class_size(class)));
	}
}

static void leaks_say(const struct leaks *leaks)
{
	const struct mrrc_heap_note note = {
		.event = MRRC_HEAP_LEAKS,
		.count = leaks->count,
		.size = leaks->bytes,
	};

	if (leaks->count)
		mrrc_heap_say(leaks->heaps, &note);
}

static void end_list(struct mrrc_heap *heap, struct mrrc_heap_blocks *list)
{
	struct mrrc_heap_block *block;

	while ((block = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, block, link);
		mrrc_heap_block_end(heap, block);
	}
}

/* Wait for threads that trim or count all heaps of the domain. */
static void heap_unlink(struct mrrc_heap *heap)
{
	struct mrrc_lock *lock = &heap->domain->lock;
	unsigned tries = 0;

	mrrc_lock_acquire(lock);
	heap->closing = true;
	while (heap->walkers) {
		mrrc_lock_release(lock);
		mrrc_pause(&tries);
		mrrc_lock_acquire(lock);
	}
	TAILQ_REMOVE(&heap->domain->heaps, heap, link);
	mrrc_lock_release(lock);
}

static void heap_end(struct mrrc_heap *heap, struct leaks *leaks)
{
	heap_unlink(heap);
	mrrc_mags_detach(heap);
	mrrc_lock_acquire(&heap->lock);
	mrrc_depot_drain(heap);
	mrrc_lock_release(&heap->lock);
	mrrc_heap_tell(heap);
	leaks_of(heap, leaks);
	end_list(heap, &heap->own);
	end_list(heap, &heap->own_idle);
	end_list(heap, &heap->arena.blocks);
	munmap(heap->depot, sizeof(*heap->depot));
	mrrc_lock_fini(&heap->lock);
	free(heap);
}

void mrrc_heap_close(struct mrrc_heap *heap)
{
	struct leaks leaks = { .heaps = heap->domain };
	struct mrrc_heap *part;
	unsigned i;

	if (mrrc_heaps_forked(heap->domain))
		return;
	/* the heap itself comes last: its shards point to it */
	for (i = MRRC_SHARDS_MAX; i-- > 0;) {
		part = atomic_load(&heap->part[i]);
		if (part)
			heap_end(part, &leaks);
	}
	leaks_say(&leaks);
}

/* ---- trim ---------------------------------------------------------------- */

static void trim_one(struct mrrc_heap *heap, void *arg)
{
	mrrc_mags_drain(heap, false);
	mrrc_lock_acquire(&heap->lock);
	mrrc_depot_drain(heap);
	mrrc_lock_release(&heap->lock);
	mrrc_heap_tell(heap);
	mrrc_heap_release(heap, UINT64_MAX);
}

void mrrc_heap_trim(struct mrrc_heap *heap)
{
	struct mrrc_heap *part = NULL;

	if (mrrc_heaps_forked(heap->domain))
		return;
	while ((part = mrrc_heap_part(heap, part)))
		trim_one(part, NULL);
}

void mrrc_heaps_trim(struct mrrc_heaps *heaps)
{
	if (!mrrc_heaps_forked(heaps))
		mrrc_heaps_each(heaps, trim_one, NULL);
}

static void trim_one_idle(struct mrrc_heap *heap, void *arg)
{
	const uint64_t most = *(uint64_t *) arg;
	const uint64_t own = heap->attr.idle_ms;

	if (own != MRRC_HEAP_IDLE_KEEP)
		mrrc_heap_trim_idle(heap, mrrc_heap_now(),
				    own < most ? own : most);
}

void mrrc_heaps_trim_idle(struct mrrc_heaps *heaps, uint64_t ms)
{
	if (!mrrc_heaps_forked(heaps))
		mrrc_heaps_each(heaps, trim_one_idle, &ms);
}

/* ---- count --------------------------------------------------------------- */

static void count_idle(const struct mrrc_heap *heap,
		       struct mrrc_heap_stats *stats)
{
	const struct mrrc_heap_block *block;

	TAILQ_FOREACH(block, &heap->arena.blocks, link) {
		if (block->used)
			continue;
		stats->idle_blocks++;
		stats->idle_bytes += block->len;
	}
	TAILQ_FOREACH(block, &heap->own_idle, link) {
		stats->idle_blocks++;
		stats->idle_bytes += block->len;
	}
}

/* Counts one shard. */
static void count_one(struct mrrc_heap *heap, struct mrrc_heap_stats *stats)
{
	uint64_t allocs, frees;
	size_t kept;

	*stats = (struct mrrc_heap_stats){ 0 };
	kept = mrrc_mags_kept(heap, &allocs, &frees);
	mrrc_lock_acquire(&heap->lock);
	stats->allocs = allocs;
	stats->frees = frees;
	/* threads go on meanwhile: the number must not fall below zero */
	if (stats->allocs > stats->frees)
		stats->live = stats->allocs - stats->frees;
	stats->kept_bytes = kept + mrrc_depot_kept(heap);
	stats->live_bytes = heap->own_bytes;
	if (heap->arena.out_bytes > stats->kept_bytes)
		stats->live_bytes += heap->arena.out_bytes - stats->kept_bytes;
	stats->blocks = heap->blocks;
	stats->bytes = heap->bytes;
	count_idle(heap, stats);
	stats->regs = heap->regs;
	stats->deregs = heap->deregs;
	stats->reg_fails = heap->reg_fails;
	stats->huge_bytes = heap->kind_bytes[MRRC_PAGES_2M] +
			    heap->kind_bytes[MRRC_PAGES_1G];
	stats->thp_bytes = heap->kind_bytes[MRRC_PAGES_THP];
	mrrc_lock_release(&heap->lock);
}

static void sum_one(struct mrrc_heap *heap, void *arg)
{
	struct mrrc_heap_stats *sum = arg, one;

	count_one(heap, &one);
	sum->allocs += one.allocs;
	sum->frees += one.frees;
	sum->live += one.live;
	sum->live_bytes += one.live_bytes;
	sum->kept_bytes += one.kept_bytes;
	sum->blocks += one.blocks;
	sum->bytes += one.bytes;
	sum->idle_blocks += one.idle_blocks;
	sum->idle_bytes += one.idle_bytes;
	sum->regs += one.regs;
	sum->deregs += one.deregs;
	sum->reg_fails += one.reg_fails;
	sum->huge_bytes += one.huge_bytes;
	sum->thp_bytes += one.thp_bytes;
}

void mrrc_heap_stats(struct mrrc_heap *heap, struct mrrc_heap_stats *stats)
{
	const size_t most = heap->domain->max_bytes;
	struct mrrc_heap *part = NULL;

	*stats = (struct mrrc_heap_stats){ 0 };
	if (mrrc_heaps_forked(heap->domain))
		return;
	while ((part = mrrc_heap_part(heap, part)))
		sum_one(part, stats);
	stats->bytes_peak = atomic_load(&heap->all_peak);
	stats->limit = heap->attr.max_bytes;
	if (!stats->limit || (most && most < stats->limit))
		stats->limit = most;
	stats->mistakes = atomic_load(&heap->domain->mistakes);
}

void mrrc_heaps_stats(struct mrrc_heaps *heaps, struct mrrc_heap_stats *stats)
{
	*stats = (struct mrrc_heap_stats){ 0 };
	if (mrrc_heaps_forked(heaps))
		return;
	mrrc_heaps_each(heaps, sum_one, stats);
	stats->bytes_peak = atomic_load(&heaps->bytes_peak);
	stats->limit = heaps->max_bytes;
	stats->mistakes = atomic_load(&heaps->mistakes);
}

const struct mrrc_heap_attr *mrrc_heap_attr(const struct mrrc_heap *heap)
{
	return &heap->attr;
}

bool mrrc_heap_valid(struct mrrc_heap *heap)
{
	struct mrrc_heap *part = NULL;
	bool ok = true;

	while ((part = mrrc_heap_part(heap, part))) {
		mrrc_lock_acquire(&part->lock);
		ok = ok && mrrc_arena_valid(&part->arena);
		mrrc_lock_release(&part->lock);
	}
	return ok;
}
