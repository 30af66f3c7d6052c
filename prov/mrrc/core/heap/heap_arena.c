/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocks cut into objects (heap_arena.h).
 *
 * Free spans lie in bins by length: a bin for each length up to 16 pages, then
 * eight bins for each doubling. A request tries BIN_TRIES spans of its bin,
 * which may be too short, then takes a span of the next bin. A span that is
 * freed joins its free neighbours. Each run has a bitmap of its free objects.
 */
#include "config.h"
#include "core/heap/heap_arena.h"

#include <string.h>

#define BIN_EXACT 16u
#define BIN_TRIES 8 /* spans tried in a bin whose spans may be too short */

static unsigned bin_of(uint32_t pages)
{
	unsigned bit;
	unsigned bin;

	if (pages <= BIN_EXACT)
		return pages - 1;
	bit = 31 - __builtin_clz(pages);
	bin = BIN_EXACT + 8 * (bit - 4) + ((pages >> (bit - 3)) & 7);
	return bin < MRRC_ARENA_BINS ? bin : MRRC_ARENA_BINS - 1;
}

/* The first bin from @bin on that is not empty, or MRRC_ARENA_BINS. */
static unsigned bin_next(const struct mrrc_arena *arena, unsigned bin)
{
	unsigned word = bin / 64;
	uint64_t bits;

	if (bin >= MRRC_ARENA_BINS)
		return MRRC_ARENA_BINS;
	bits = arena->bins[word] & ~UINT64_C(0) << bin % 64;
	while (!bits) {
		if (++word == sizeof(arena->bins) / sizeof(*arena->bins))
			return MRRC_ARENA_BINS;
		bits = arena->bins[word];
	}
	return word * 64 + __builtin_ctzll(bits);
}

static struct mrrc_heap_page *page_at(const struct mrrc_heap_block *block,
				      uint32_t i)
{
	return &block->page[i];
}

static uint32_t page_index(const struct mrrc_heap_page *page)
{
	return page - page->block->page;
}

static uintptr_t page_addr(const struct mrrc_heap_page *page)
{
	return page->block->base + page_index(page) * MRRC_HEAP_PAGE;
}

/* ---- free spans ---------------------------------------------------------- */

static void free_insert(struct mrrc_arena *arena, struct mrrc_heap_block *block,
			uint32_t at, uint32_t count)
{
	struct mrrc_heap_page *head = page_at(block, at);
	struct mrrc_heap_page *last = page_at(block, at + count - 1);
	unsigned bin = bin_of(count);

	head->block = last->block = block;
	head->use = last->use = MRRC_PAGE_FREE;
	head->head = last->head = at;
	head->count = count;
	/* a block that is wholly free comes last, so that it can leave */
	if (count == block->pages)
		TAILQ_INSERT_TAIL(&arena->bin[bin], head, link);
	else
		TAILQ_INSERT_HEAD(&arena->bin[bin], head, link);
	arena->bins[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void free_remove(struct mrrc_arena *arena, struct mrrc_heap_page *head)
{
	unsigned bin = bin_of(head->count);

	TAILQ_REMOVE(&arena->bin[bin], head, link);
	if (TAILQ_EMPTY(&arena->bin[bin]))
		arena->bins[bin / 64] &= ~(UINT64_C(1) << bin % 64);
	head->use = MRRC_PAGE_INNER;
	page_at(head->block, head->head + head->count - 1)->use =
		MRRC_PAGE_INNER;
}

static struct mrrc_heap_page *free_find(const struct mrrc_arena *arena,
					uint32_t pages)
{
	unsigned bin = bin_next(arena, bin_of(pages));
	struct mrrc_heap_page *head;
	/* the last bin has no upper limit */
	int tries;

	while (bin < MRRC_ARENA_BINS) {
		tries = bin == MRRC_ARENA_BINS - 1 ? INT32_MAX : BIN_TRIES;
		TAILQ_FOREACH(head, &arena->bin[bin], link) {
			if (head->count >= pages)
				return head;
			if (!--tries)
				break;
		}
		bin = bin_next(arena, bin + 1);
	}
	return NULL;
}

/* Cuts pages off a free span, from at on; the rest stays free. */
static struct mrrc_heap_page *span_cut(struct mrrc_arena *arena,
				       struct mrrc_heap_page *head, uint32_t at,
				       uint32_t pages, enum mrrc_page_use use)
{
	struct mrrc_heap_block *block = head->block;
	uint32_t start = head->head, end = start + head->count;
	struct mrrc_heap_page *page = page_at(block, at);

	free_remove(arena, head);
	if (at > start)
		free_insert(arena, block, start, at - start);
	if (end > at + pages)
		free_insert(arena, block, at + pages, end - at - pages);
	page->block = block;
	page->use = use;
	page->head = at;
	page->count = pages;
	block->used += pages;
	arena->used += pages;
	return page;
}

/*
 * Cuts pages of a MiB that hold no object. Sets the marks before the cut, since
 * other threads may read both.
 */
static void cut_mib(struct mrrc_heap_mib *mib, uint32_t first, uint32_t end,
		    struct mrrc_heap_cut cut)
{
	const uint32_t step = 0x8000 / MRRC_HEAP_PAGE;
	const size_t marks = (end - first) * (MRRC_HEAP_PAGE >> cut.shift);
	uintptr_t addr = first * MRRC_HEAP_PAGE;
	uint32_t i;

	memset(mrrc_mib_mark_at(mib, addr, cut.shift), 0,
	       marks * sizeof(uint16_t));
	for (i = (first + step - 1) & ~(step - 1); i < end; i += step) {
		addr = i * MRRC_HEAP_PAGE;
		*mrrc_mib_mark_at(mib, addr, cut.shift) = MRRC_MARK_NONE(addr);
	}
	for (i = first; i < end; i++)
		mib->cut[i] = cut;
}

/* Cuts the pages of a run or span. */
static void cut_pages(const struct mrrc_heap_page *page)
{
	const struct mrrc_heap_cut cut = { mrrc_cut_shift(page->class),
					   page->class };
	const uint32_t end = page->head + page->count;
	uint32_t i = page->head, next;

	for (; i < end; i = next) {
		next = (i / MRRC_MIB_PAGES + 1) * MRRC_MIB_PAGES;
		if (next > end)
			next = end;
		cut_mib(mrrc_block_mib(page->block,
				       page->block->base + i * MRRC_HEAP_PAGE),
			i % MRRC_MIB_PAGES, (next - 1) % MRRC_MIB_PAGES + 1,
			cut);
	}
}

static struct mrrc_heap_page *span_take(struct mrrc_arena *arena,
					uint32_t pages, enum mrrc_page_use use)
{
	struct mrrc_heap_page *head = free_find(arena, pages);

	return head ? span_cut(arena, head, head->head, pages, use) : NULL;
}

static void span_give(struct mrrc_arena *arena, struct mrrc_heap_page *page)
{
	struct mrrc_heap_block *block = page->block;
	uint32_t at = page_index(page), count = page->count;
	struct mrrc_heap_page *next;

	block->used -= count;
	arena->used -= count;
	if (!block->used)
		block->idle_since = arena->now;
	page->use = MRRC_PAGE_INNER;
	if (at && page_at(block, at - 1)->use == MRRC_PAGE_FREE) {
		next = page_at(block, page_at(block, at - 1)->head);
		free_remove(arena, next);
		at = next->head;
		count += next->count;
	}
	if (at + count < block->pages &&
	    page_at(block, at + count)->use == MRRC_PAGE_FREE) {
		next = page_at(block, at + count);
		free_remove(arena, next);
		count += next->count;
	}
	free_insert(arena, block, at, count);
}

/* ---- runs ---------------------------------------------------------------- */

static unsigned run_objects(const struct mrrc_arena *arena, unsigned class)
{
	return arena->run_pages[class] * MRRC_HEAP_PAGE /
	       mrrc_class_size(class);
}

/*
 * Returns the smallest number of pages for a run that has a minimum of objects
 * and wastes at most a 32nd of its bytes.
 */
static unsigned run_length(unsigned class)
{
	const size_t size = mrrc_class_size(class);
	const unsigned least = size <= 1024 ? 8 : size <= 8192 ? 4 : 1;
	size_t bytes;
	unsigned pages;

	for (pages = 1;; pages++) {
		bytes = pages * MRRC_HEAP_PAGE;
		if (bytes / size >= least && bytes % size <= bytes / 32)
			return pages;
	}
}

static struct mrrc_heap_page *run_new(struct mrrc_arena *arena, unsigned class)
{
	const uint32_t pages = arena->run_pages[class];
	const unsigned objects = run_objects(arena, class);
	struct mrrc_heap_page *run = span_take(arena, pages, MRRC_PAGE_RUN);
	unsigned i;

	if (!run)
		return NULL;
	run->class = class;
	run->nfree = objects;
	for (i = 0; i < MRRC_RUN_OBJECTS / 64; i++) {
		run->free[i] = 0;
		if (objects >= (i + 1) * 64)
			run->free[i] = ~UINT64_C(0);
		else if (objects > i * 64)
			run->free[i] = (UINT64_C(1) << (objects - i * 64)) - 1;
	}
	for (i = 0; i < pages; i++)
		page_at(run->block, run->head + i)->head = run->head;
	cut_pages(run);
	TAILQ_INSERT_HEAD(&arena->partial[class], run, link);
	return run;
}

static unsigned run_take(struct mrrc_heap_page *run, unsigned count,
			 uintptr_t *object)
{
	const size_t size = mrrc_class_size(run->class);
	const uintptr_t base = page_addr(run);
	unsigned got = 0, word = 0, bit;

	while (got < count && run->nfree) {
		while (!run->free[word])
			word++;
		bit = __builtin_ctzll(run->free[word]);
		run->free[word] &= run->free[word] - 1;
		run->nfree--;
		object[got++] = base + (word * 64 + bit) * size;
	}
	return got;
}

static unsigned run_index(const struct mrrc_heap_page *run, uintptr_t addr)
{
	return (addr - page_addr(run)) / mrrc_class_size(run->class);
}

static struct mrrc_heap_page *run_of(const struct mrrc_heap_block *block,
				     uintptr_t addr)
{
	uint32_t i = (addr - block->base) / MRRC_HEAP_PAGE;

	return page_at(block, page_at(block, i)->head);
}

static void run_give(struct mrrc_arena *arena, struct mrrc_heap_page *run,
		     uintptr_t object)
{
	const unsigned i = run_index(run, object);

	run->free[i / 64] |= UINT64_C(1) << i % 64;
	if (!run->nfree++)
		TAILQ_INSERT_HEAD(&arena->partial[run->class], run, link);
	if (run->nfree == run_objects(arena, run->class)) {
		TAILQ_REMOVE(&arena->partial[run->class], run, link);
		span_give(arena, run);
	}
}

/* ---- calls --------------------------------------------------------------- */

void mrrc_mib_init(struct mrrc_heap_mib *mib, struct mrrc_heap_block *block,
		   unsigned slot)
{
	const struct mrrc_heap_cut none = { MRRC_CUT_SHIFT_MAX, MRRC_CUT_NONE };

	mib->domain = block->domain;
	mib->cookie = block->cookie;
	mib->block = block;
	mib->slot = slot;
	cut_mib(mib, 0, MRRC_MIB_PAGES, none);
}

void mrrc_arena_init(struct mrrc_arena *arena)
{
	unsigned i;

	memset(arena, 0, sizeof(*arena));
	TAILQ_INIT(&arena->blocks);
	for (i = 0; i < MRRC_ARENA_BINS; i++)
		TAILQ_INIT(&arena->bin[i]);
	for (i = 0; i < MRRC_CLASS_SMALL; i++) {
		TAILQ_INIT(&arena->partial[i]);
		arena->run_pages[i] = run_length(i);
	}
}

void mrrc_arena_add(struct mrrc_arena *arena, struct mrrc_heap_block *block)
{
	block->used = 0;
	block->idle_since = arena->now;
	TAILQ_INSERT_TAIL(&arena->blocks, block, link);
	arena->pages += block->pages;
	free_insert(arena, block, 0, block->pages);
}

static void arena_count(struct mrrc_arena *arena, unsigned class, long n)
{
	arena->out[class] += n;
	arena->out_bytes += n * (long) mrrc_class_size(class);
}

static uintptr_t take_span(struct mrrc_arena *arena, unsigned class)
{
	const size_t size = mrrc_class_size(class);
	struct mrrc_heap_page *page;

	page = span_take(arena, size / MRRC_HEAP_PAGE, MRRC_PAGE_SPAN);
	if (!page)
		return 0;
	page->class = class;
	cut_pages(page);
	return page_addr(page);
}

unsigned mrrc_arena_take(struct mrrc_arena *arena, unsigned class,
			 unsigned count, uintptr_t *object)
{
	struct mrrc_heap_page *run;
	unsigned got = 0;

	while (got < count && class >= MRRC_CLASS_SMALL) {
		object[got] = take_span(arena, class);
		if (!object[got])
			break;
		got++;
	}
	while (got < count && class < MRRC_CLASS_SMALL) {
		run = TAILQ_FIRST(&arena->partial[class]);
		if (!run)
			run = run_new(arena, class);
		if (!run)
			break;
		got += run_take(run, count - got, object + got);
		if (!run->nfree)
			TAILQ_REMOVE(&arena->partial[class], run, link);
	}
	arena_count(arena, class, got);
	return got;
}

uintptr_t mrrc_arena_take_aligned(struct mrrc_arena *arena, unsigned class,
				  size_t align)
{
	const uint32_t pages = mrrc_class_size(class) / MRRC_HEAP_PAGE;
	const uint32_t extra = align / MRRC_HEAP_PAGE - 1;
	struct mrrc_heap_page *head = free_find(arena, pages + extra);
	uintptr_t addr;

	if (!head)
		return 0;
	addr = (page_addr(head) + align - 1) & ~(align - 1);
	head = span_cut(arena, head,
			(addr - head->block->base) / MRRC_HEAP_PAGE, pages,
			MRRC_PAGE_SPAN);
	head->class = class;
	cut_pages(head);
	arena_count(arena, class, 1);
	return addr;
}

void mrrc_arena_give(struct mrrc_arena *arena, struct mrrc_heap_block *block,
		     uintptr_t object, unsigned class)
{
	arena_count(arena, class, -1);
	if (class < MRRC_CLASS_SMALL)
		run_give(arena, run_of(block, object), object);
	else
		span_give(arena, page_at(block, (object - block->base) /
							MRRC_HEAP_PAGE));
}

struct mrrc_heap_block *mrrc_arena_idle(struct mrrc_arena *arena,
					uint64_t since)
{
	struct mrrc_heap_block *block;

	TAILQ_FOREACH(block, &arena->blocks, link) {
		if (block->used || block->idle_since > since)
			continue;
		free_remove(arena, page_at(block, 0));
		TAILQ_REMOVE(&arena->blocks, block, link);
		arena->pages -= block->pages;
		return block;
	}
	return NULL;
}

static bool is_live(const struct mrrc_heap_block *block, uintptr_t object)
{
	return *mrrc_mib_mark(mrrc_block_mib(block, object), object) ==
	       MRRC_MARK_LIVE(object);
}

bool mrrc_arena_find(const struct mrrc_heap_block *block, uintptr_t addr,
		     uintptr_t *object, unsigned *class)
{
	const struct mrrc_heap_page *run;
	const struct mrrc_heap_cut *cut;
	uintptr_t start = addr & ~(MRRC_HEAP_PAGE - 1);

	cut = mrrc_mib_cut(mrrc_block_mib(block, start), start);
	if (cut->class < MRRC_CLASS_SMALL) {
		run = run_of(block, addr);
		start = page_addr(run) +
			run_index(run, addr) * mrrc_class_size(run->class);
	} else {
		while (*mrrc_mib_mark(mrrc_block_mib(block, start), start) ==
			       MRRC_MARK_NONE(start) &&
		       start > block->base)
			start -= MRRC_HEAP_PAGE;
	}
	cut = mrrc_mib_cut(mrrc_block_mib(block, start), start);
	if (!is_live(block, start) ||
	    addr - start >= mrrc_class_size(cut->class))
		return false;
	*object = start;
	*class = cut->class;
	return true;
}

bool mrrc_arena_next(const struct mrrc_heap_block *block, size_t *pos,
		     uintptr_t *object, unsigned *class)
{
	const struct mrrc_heap_cut *cut;
	struct mrrc_heap_mib *mib;
	uintptr_t at;
	uint16_t mark;
	size_t part;

	while (*pos < block->len) {
		at = block->base + *pos;
		mib = mrrc_block_mib(block, at);
		cut = mrrc_mib_cut(mib, at);
		mark = *mrrc_mib_mark(mib, at);
		part = (size_t) 1 << cut->shift;
		at += mark % part;
		*pos += part;
		if (mark != MRRC_MARK_LIVE(at))
			continue;
		*object = at;
		*class = cut->class;
		return true;
	}
	return false;
}

/* ---- invariants ---------------------------------------------------------- */

static bool listed(const struct mrrc_heap_pages *list,
		   const struct mrrc_heap_page *page)
{
	const struct mrrc_heap_page *each;

	TAILQ_FOREACH(each, list, link) {
		if (each == page)
			return true;
	}
	return false;
}

static bool run_valid(const struct mrrc_arena *arena,
		      const struct mrrc_heap_page *run)
{
	unsigned i, bits = 0;
	uint64_t word;

	for (i = 0; i < MRRC_RUN_OBJECTS / 64; i++) {
		for (word = run->free[i]; word; word &= word - 1)
			bits++;
	}
	return bits == run->nfree &&
	       run->nfree < run_objects(arena, run->class) &&
	       run->count == arena->run_pages[run->class] &&
	       listed(&arena->partial[run->class], run) == !!run->nfree;
}

static bool block_valid(const struct mrrc_arena *arena,
			const struct mrrc_heap_block *block)
{
	uint32_t i, used = 0;
	const struct mrrc_heap_page *page;
	bool was_free = false;

	for (i = 0; i < block->pages; i += page->count) {
		page = page_at(block, i);
		if (page->use == MRRC_PAGE_INNER || !page->count ||
		    page->head != i || page->block != block)
			return false;
		if (page->use == MRRC_PAGE_FREE) {
			if (was_free ||
			    !listed(&arena->bin[bin_of(page->count)], page) ||
			    page_at(block, i + page->count - 1)->head != i)
				return false;
		} else {
			used += page->count;
		}
		if (page->use == MRRC_PAGE_RUN && !run_valid(arena, page))
			return false;
		was_free = page->use == MRRC_PAGE_FREE;
	}
	return i == block->pages && used == block->used;
}

bool mrrc_arena_valid(const struct mrrc_arena *arena)
{
	const struct mrrc_heap_block *block;
	size_t pages = 0, used = 0, bytes = 0;
	unsigned i;

	TAILQ_FOREACH(block, &arena->blocks, link) {
		if (!block_valid(arena, block))
			return false;
		pages += block->pages;
		used += block->used;
	}
	for (i = 0; i < MRRC_CLASSES; i++)
		bytes += arena->out[i] * mrrc_class_size(i);
	for (i = 0; i < MRRC_ARENA_BINS; i++) {
		if (TAILQ_EMPTY(&arena->bin[i]) !=
		    !(arena->bins[i / 64] >> i % 64 & 1))
			return false;
	}
	return pages == arena->pages && used == arena->used &&
	       bytes == arena->out_bytes;
}
