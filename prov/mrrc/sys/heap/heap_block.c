/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocks: mapped, registered, counted, and ended.
 */
#include "config.h"
#include "sys/heap/heap_block.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "sys/heap/heap_map.h"
#include "sys/heap/heap_watch.h"
#include "sys/base/pool.h"
#include "sys/base/reg_error.h"
#include "sys/base/vm.h"
#include "sys/heap/heap_thread.h"
#include "sys/heap/heap_depot.h"
#include "sys/heap/heap_retire.h"

uint64_t mrrc_heap_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void mrrc_heap_say(struct mrrc_heaps *heaps, const struct mrrc_heap_note *note)
{
	mrrc_lock_assert_none();
	heaps->ops->note(heaps->arg, note);
}

/* ---- limits -------------------------------------------------------------- */

static size_t bytes_left(size_t bytes, size_t max)
{
	if (!max)
		return SIZE_MAX;
	return bytes < max ? max - bytes : 0;
}

static size_t domain_left(struct mrrc_heaps *heaps)
{
	return bytes_left(atomic_load(&heaps->bytes), heaps->max_bytes);
}

/* The limit of a heap counts the bytes of all its shards. */
static size_t heap_left(const struct mrrc_heap *heap)
{
	return bytes_left(atomic_load(&heap->main->all), heap->attr.max_bytes);
}

size_t mrrc_heap_left(const struct mrrc_heap *heap)
{
	const size_t own = heap_left(heap), all = domain_left(heap->domain);

	return own < all ? own : all;
}

/*
 * Reserves bytes within the domain's limit. The reserved bytes never exceed the
 * limit, even for a moment, as other threads' requests would fail.
 */
static bool domain_reserve(struct mrrc_heaps *heaps, size_t len)
{
	size_t bytes = atomic_load(&heaps->bytes);

	do {
		if (len > bytes_left(bytes, heaps->max_bytes))
			return false;
	} while (!atomic_compare_exchange_weak(&heaps->bytes, &bytes,
					       bytes + len));
	return true;
}

/*
 * Reserves len bytes within the limits of the heap and the domain; *note says
 * which limit would be exceeded.
 */
static int block_reserve(struct mrrc_heap *heap, size_t len,
			 struct mrrc_heap_note *note)
{
	int ret = -ENOMEM;

	*note = (struct mrrc_heap_note){
		.event = MRRC_HEAP_LIMIT_HEAP,
		.size = len,
		.limit = heap->attr.max_bytes,
		.err = -ENOMEM,
	};
	mrrc_lock_acquire(&heap->main->lock);
	if (len <= heap_left(heap)) {
		if (domain_reserve(heap->domain, len)) {
			atomic_fetch_add(&heap->main->all, len);
			ret = 0;
		} else {
			note->event = MRRC_HEAP_LIMIT_DOMAIN;
			note->limit = heap->domain->max_bytes;
		}
	}
	mrrc_lock_release(&heap->main->lock);
	if (ret)
		return ret;
	mrrc_lock_acquire(&heap->lock);
	heap->bytes += len;
	mrrc_lock_release(&heap->lock);
	return 0;
}

/*
 * Corrects the reservation when small pages were mapped in place of large ones.
 */
static void block_adjust(struct mrrc_heap *heap, long change)
{
	mrrc_lock_acquire(&heap->lock);
	heap->bytes += change;
	mrrc_lock_release(&heap->lock);
	atomic_fetch_add(&heap->main->all, change);
	atomic_fetch_add(&heap->domain->bytes, change);
}

static void peak_of(atomic_size_t *peak, const atomic_size_t *bytes)
{
	const size_t now = atomic_load(bytes);
	size_t most = atomic_load(peak);

	while (now > most && !atomic_compare_exchange_weak(peak, &most, now))
		;
}

/* Counts a new block. */
static void block_made(struct mrrc_heap *heap,
		       const struct mrrc_heap_block *block)
{
	struct mrrc_heaps *heaps = heap->domain;

	peak_of(&heaps->bytes_peak, &heaps->bytes);
	peak_of(&heap->main->all_peak, &heap->main->all);
	mrrc_lock_acquire(&heap->lock);
	heap->blocks++;
	heap->regs++;
	heap->kind_bytes[block->page_kind] += block->len;
	mrrc_lock_release(&heap->lock);
}

/* ---- making -------------------------------------------------------------- */

/* Maps the arrays of a block; only the used part takes memory. */
static int block_meta(struct mrrc_heap_block *block)
{
	const size_t pages = block->pages;
	size_t mibs = MRRC_MIB_BYTES_OWN, page = 0, asked = 0;
	char *at;

	if (!block->own) {
		mibs = block->len / MRRC_MIB * MRRC_MIB_BYTES;
		page = pages * sizeof(*block->page);
		page = (page + 63) & ~(size_t) 63;
	}
#ifdef MRRC_DEBUG
	if (!block->own)
		asked = block->len / MRRC_HEAP_GRAIN * sizeof(*block->asked);
#endif
	block->meta_len = mibs + page + asked;
	at = mmap(NULL, block->meta_len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	block->meta = at;
	block->mib = (void *) at;
	block->page = page ? (void *) (at + mibs) : NULL;
	block->asked = asked ? (void *) (at + mibs + page) : NULL;
	return 0;
}

/* Makes a registered block visible; then any thread may find it. */
static int block_publish(struct mrrc_heap_block *block)
{
	const struct mrrc_heap *heap = block->heap;
	struct mrrc_heap_mib *mib;
	const uintptr_t end = block->own ? block->base + 1 :
					   block->base + block->len;
	uintptr_t addr;

	for (addr = block->base; addr < end; addr += MRRC_MIB) {
		mib = mrrc_block_mib(block, addr);
		mrrc_mib_init(mib, block, heap->slot);
	}
	return mrrc_heap_map_add(block);
}

static void block_fallback(struct mrrc_heap *heap, enum mrrc_pages want,
			   enum mrrc_pages got)
{
	const unsigned bit = 1u << want;
	const struct mrrc_heap_note note = {
		.event = MRRC_HEAP_FALLBACK,
		.size = mrrc_pages_size(want),
		.limit = mrrc_pages_size(got),
	};

	if (want < MRRC_PAGES_2M || got == want ||
	    atomic_fetch_or(&heap->domain->said_pages, bit) & bit)
		return;
	mrrc_heap_say(heap->domain, &note);
}

static void count_reg_fail(struct mrrc_heap *heap)
{
	mrrc_lock_acquire(&heap->lock);
	heap->reg_fails++;
	mrrc_lock_release(&heap->lock);
}

/*
 * Registers a block. At a limit, first deregisters the cache's idle regions and
 * tries again, if there were any; then deregisters the domain's idle blocks and
 * tries a last time.
 */
static int block_register(struct mrrc_heap *heap, struct mrrc_heap_block *block)
{
	struct mrrc_heaps *heaps = heap->domain;
	int ret, tries;

	for (tries = 0;; tries++) {
		ret = heaps->ops->reg(heaps->arg, block->base, block->len,
				      heap->attr.access, &block->cookie);
		if (!ret)
			return 0;
		count_reg_fail(heap);
		if (!mrrc_reg_limited(ret) || tries == 2)
			return ret;
		if (!tries && heaps->ops->reap(heaps->arg))
			continue;
		mrrc_heaps_trim(heaps);
		tries = 1;
	}
}

static int block_map(struct mrrc_heap *heap, struct mrrc_heap_block *block,
		     size_t len, size_t align, bool exact)
{
	const struct mrrc_pages_attr attr = {
		.kind = heap->attr.pages,
		.node = heap->attr.node,
		.prefault = heap->attr.prefault,
		.exact = exact,
	};
	enum mrrc_pages got;
	void *addr;
	int ret;

	if (align < MRRC_HEAP_BLOCK_MIN)
		align = MRRC_HEAP_BLOCK_MIN;
	ret = mrrc_pages_map(len, align, &attr, &addr, &block->len, &got);
	/* addresses, or mappings, may have run out */
	if (ret == -ENOMEM && mrrc_heap_retired_release(heap->domain))
		ret = mrrc_pages_map(len, align, &attr, &addr, &block->len,
				     &got);
	if (ret)
		return ret;
	block->base = (uintptr_t) addr;
	block->pages = block->len / MRRC_HEAP_PAGE;
	block->page_kind = got;
	block_fallback(heap, attr.kind, got);
	return 0;
}

size_t mrrc_heap_block_len(const struct mrrc_heap *heap, size_t len, bool exact)
{
	enum mrrc_pages kind = heap->attr.pages;

	if (kind == MRRC_PAGES_AUTO)
		kind = !exact && len >= mrrc_pages_size(MRRC_PAGES_THP) ?
			       MRRC_PAGES_THP :
			       MRRC_PAGES_4K;
	if (exact && kind == MRRC_PAGES_THP)
		kind = MRRC_PAGES_4K;
	return mrrc_pages_round(len, kind);
}

/* Maximum length of a block: its pages of any kind are counted in 32 bits. */
#define BLOCK_LEN_MAX (((size_t) 1 << 44) - MRRC_HEAP_BLOCK_MAX)

/* Makes a block, but does not count its bytes. */
static int block_make(struct mrrc_heap *heap, size_t len, size_t align,
		      size_t asked, bool isolated, struct mrrc_heap_note *note,
		      struct mrrc_heap_block **out)
{
	struct mrrc_heap_block *block;
	int ret = -ENOMEM;

	block = len > BLOCK_LEN_MAX ? NULL :
				      mrrc_pool_alloc(heap->domain->blocks);
	if (!block)
		goto err;
	*block = (struct mrrc_heap_block){
		.domain = heap->domain,
		.heap = heap,
		.own = asked != 0,
		.isolated = isolated,
		.own_len = asked,
	};
	ret = block_map(heap, block, len, align, isolated);
	if (ret)
		goto err_free;
	ret = block_meta(block);
	if (ret)
		goto err_unmap;
	/* registers the block before tools mark its memory as inaccessible */
	ret = block_register(heap, block);
	if (ret) {
		note->event = ret == -EDQUOT ? MRRC_HEAP_LIMIT_OWNER :
					       MRRC_HEAP_NO_REG;
		note->addr = block->base;
		note->size = block->len;
		goto err_meta;
	}
	if (mrrc_heap_watched)
		mrrc_heap_watch_map(block->base, block->len);
	ret = block_publish(block);
	if (ret)
		goto err_dereg;
	*out = block;
	return 0;

err_dereg:
	if (mrrc_heap_watched)
		mrrc_heap_watch_unmap(block->base, block->len);
	heap->domain->ops->dereg(heap->domain->arg, block->cookie, block->base,
				 block->len);
err_meta:
	mrrc_pages_return(block->meta, block->meta_len);
err_unmap:
	mrrc_pages_unmap((void *) block->base, block->len);
err_free:
	mrrc_pool_free(heap->domain->blocks, block);
err:
	note->err = ret;
	return ret;
}

static int block_new(struct mrrc_heap *heap, size_t len, size_t align,
		     size_t asked, bool isolated, struct mrrc_heap_block **out)
{
	const size_t want = mrrc_heap_block_len(heap, len, isolated);
	struct mrrc_heap_note note;
	struct mrrc_heap_block *block;
	int ret;

	mrrc_lock_assert_none();
	ret = block_reserve(heap, want, &note);
	if (ret) {
		mrrc_heaps_trim(heap->domain);
		ret = block_reserve(heap, want, &note);
	}
	if (ret) {
		if (note.event == MRRC_HEAP_LIMIT_HEAP)
			note.again =
				atomic_exchange(&heap->main->limited, true);
		mrrc_heap_say(heap->domain, &note);
		return ret;
	}
	note = (struct mrrc_heap_note){
		.event = MRRC_HEAP_NO_MEMORY,
		.size = want,
	};
	ret = block_make(heap, len, align, asked, isolated, &note, &block);
	if (ret) {
		block_adjust(heap, -(long) want);
		mrrc_heap_say(heap->domain, &note);
		return ret == -EDQUOT || mrrc_reg_limited(ret) ? -ENOMEM : ret;
	}
	if (block->len != want)
		block_adjust(heap, (long) block->len - (long) want);
	block_made(heap, block);
	*out = block;
	return 0;
}

/*
 * Disables cancellation of the thread in the core provider and while it logs:
 * other threads wait for the block.
 */
int mrrc_heap_block_new(struct mrrc_heap *heap, size_t len, size_t align,
			size_t asked, bool isolated,
			struct mrrc_heap_block **out)
{
	int cancel, ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = block_new(heap, len, align, asked, isolated, out);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

void mrrc_heap_block_end(struct mrrc_heap *heap, struct mrrc_heap_block *block)
{
	struct mrrc_heaps *heaps = heap->domain;
	const size_t len = block->len;
	int cancel;

	mrrc_lock_assert_none();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/*
	 * from here on no thread finds the block; mrrc_mags_settle() waits for
	 * threads that found the block before
	 */
	mrrc_heap_map_remove(block);
	mrrc_mags_settle(block->base, len);
	heaps->ops->dereg(heaps->arg, block->cookie, block->base, len);
	if (mrrc_heap_watched)
		mrrc_heap_watch_unmap(block->base, len);
	mrrc_lock_acquire(&heap->lock);
	heap->blocks--;
	heap->deregs++;
	heap->bytes -= len;
	heap->kind_bytes[block->page_kind] -= len;
	mrrc_lock_release(&heap->lock);
	atomic_fetch_sub(&heap->main->all, len);
	atomic_fetch_sub(&heaps->bytes, len);
	mrrc_pages_return(block->meta, block->meta_len);
	mrrc_heap_retire(heaps, block);
	pthread_setcancelstate(cancel, NULL);
}

#define TELL_MS	  100u /* ms between reports of the counts */
#define OTHERS_MS 100u /* ms between searches of all heaps of the domain */

/* ---- idle blocks --------------------------------------------------------- */

static struct mrrc_heap_block *own_idle(struct mrrc_heap *heap, uint64_t since)
{
	struct mrrc_heap_block *block;

	TAILQ_FOREACH(block, &heap->own_idle, link) {
		if (block->idle_since <= since) {
			TAILQ_REMOVE(&heap->own_idle, block, link);
			return block;
		}
	}
	return NULL;
}

size_t mrrc_heap_release(struct mrrc_heap *heap, uint64_t since)
{
	struct mrrc_heap_block *block;
	size_t count = 0;

	for (;;) {
		mrrc_lock_acquire(&heap->lock);
		block = mrrc_arena_idle(&heap->arena, since);
		if (!block)
			block = own_idle(heap, since);
		mrrc_lock_release(&heap->lock);
		if (!block)
			return count;
		mrrc_heap_block_end(heap, block);
		count++;
	}
}

void mrrc_heap_tell(struct mrrc_heap *heap)
{
	const struct mrrc_heap_ops *ops = heap->domain->ops;
	uint64_t allocs, frees, more_allocs = 0, more_frees = 0;

	if (!ops->count)
		return;
	mrrc_mags_kept(heap, &allocs, &frees);
	mrrc_lock_acquire(&heap->lock);
	/* else another thread has reported higher counts meanwhile */
	if (allocs >= heap->told_allocs && frees >= heap->told_frees) {
		more_allocs = allocs - heap->told_allocs;
		more_frees = frees - heap->told_frees;
		heap->told_allocs = allocs;
		heap->told_frees = frees;
	}
	mrrc_lock_release(&heap->lock);
	if (more_allocs || more_frees)
		ops->count(heap->domain->arg, more_allocs, more_frees);
}

/* Has the time passed? Returns true to only one of the threads that ask. */
static bool tick_due(atomic_uint_fast64_t *last, uint64_t now, uint64_t ms)
{
	uint64_t then = atomic_load_explicit(last, memory_order_relaxed);

	return !mrrc_likely(now - then < ms) &&
	       atomic_compare_exchange_strong(last, &then, now);
}

/*
 * Called often: twice in @idle ms, returns unused objects to the arena, and
 * ends blocks that were idle for @idle ms.
 */
void mrrc_heap_trim_idle(struct mrrc_heap *heap, uint64_t now, uint64_t idle)
{
	if (idle == MRRC_HEAP_IDLE_KEEP ||
	    !tick_due(&heap->tick, now, idle / 2 + 1))
		return;
	mrrc_mags_drain(heap, true);
	mrrc_lock_acquire(&heap->lock);
	heap->arena.now = now;
	mrrc_depot_drain(heap);
	mrrc_lock_release(&heap->lock);
	if (now >= idle)
		mrrc_heap_release(heap, now - idle);
}

/*
 * Does the heap's periodic work, in a thread whose allocation or free has taken
 * the heap's lock. Other heaps of the domain, and other shards, may have no
 * more calls, so their idle blocks are ended here, too.
 */
void mrrc_heap_tick(struct mrrc_heap *heap)
{
	const uint64_t now = mrrc_heap_now();

	if (tick_due(&heap->tell, now, TELL_MS))
		mrrc_heap_tell(heap);
	mrrc_heap_trim_idle(heap, now, heap->attr.idle_ms);
	if (tick_due(&heap->domain->tick, now, OTHERS_MS))
		mrrc_heaps_trim_idle(heap->domain, UINT64_MAX);
}
