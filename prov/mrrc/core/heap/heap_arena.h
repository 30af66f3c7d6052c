/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An arena: blocks of memory cut into objects of the size classes. Small
 * objects share runs of pages; each larger object is a span of pages.
 *
 * The arena's records lie outside the blocks, since peers may write into the
 * blocks. The caller maps blocks and serialises all calls.
 */
#ifndef MRRC_HEAP_ARENA_H
#define MRRC_HEAP_ARENA_H

#include <bsd/sys/queue.h>

#include "core/heap/heap_class.h"

#define MRRC_RUN_OBJECTS 256u /* limit of objects in a run */
#define MRRC_ARENA_BINS	 160u /* number of bins, by length of free spans */

/*
 * Marks: whether an object begins at an address. A mark holds the low bits of
 * the object's address, so a mark fits one address alone: a free compares the
 * mark with the address. Between take and give the caller sets the mark: LIVE
 * while the object is allocated, FREED once it is freed. At any other time a
 * mark is never LIVE: NONE is zero, except for addresses that are multiples of
 * 32 KiB, whose LIVE or FREED mark is zero.
 */
#define MRRC_MARK_LIVE(addr)  ((uint16_t) (addr))
#define MRRC_MARK_FREED(addr) ((uint16_t) ((addr) ^ 0x8000u))
/* mark of a page without objects */
#define MRRC_MARK_NONE(addr) ((addr) % 0x8000u ? 0u : 0x4000u)
/* mark of a live block that is one object */
#define MRRC_MARK_OWN 0xc000u

#define MRRC_MIB	   ((size_t) 1 << 20)
#define MRRC_MIB_PAGES	   (MRRC_MIB / MRRC_HEAP_PAGE)
#define MRRC_CUT_SHIFT_MAX 10u	 /* shift of spans and of unused pages */
#define MRRC_CUT_NONE	   0xffu /* no class */

/* How a page is cut: in each part, 1 << shift bytes, one object may begin. */
struct mrrc_heap_cut {
	uint8_t shift;
	uint8_t class;
};

/*
 * Small objects, which are many, have the fewest marks possible. Objects from 2
 * KiB on have more marks, so that the marks of neighbours lie further apart,
 * and threads that use neighbours share few cache lines.
 */
static inline unsigned mrrc_cut_shift(unsigned class)
{
	const size_t size = mrrc_class_size(class);

	if (class >= MRRC_CLASS_SMALL)
		return MRRC_CUT_SHIFT_MAX;
	return size < 2048 ? 63 - __builtin_clzll(size) : 7;
}

/*
 * The record of a MiB of a block, which a free reads. The marks follow, in the
 * same memory: the marks of all pages that are cut alike lie side by side,
 * however far apart the objects are (mrrc_mib_mark()).
 */
struct mrrc_heap_mib {
	void *domain; /* the block's domain, as cookie is the block's */
	void *cookie;
	struct mrrc_heap_block *block;
	uint16_t slot; /* the caller's */
	_Alignas(64) struct mrrc_heap_cut cut[MRRC_MIB_PAGES];
};

/*
 * Address space of the record of a MiB. Because of the extra page, no two
 * records begin at the same cache set.
 */
#define MRRC_MIB_BYTES \
	(2 * MRRC_MIB / MRRC_HEAP_GRAIN * sizeof(uint16_t) + MRRC_HEAP_PAGE)
/* The part of a record that is used where no page is cut: */
#define MRRC_MIB_BYTES_OWN MRRC_HEAP_PAGE

static inline struct mrrc_heap_cut *mrrc_mib_cut(struct mrrc_heap_mib *mib,
						 uintptr_t addr)
{
	return &mib->cut[addr / MRRC_HEAP_PAGE % MRRC_MIB_PAGES];
}

/*
 * Returns the mark of the part with addr. Parts of N bytes have the marks 1 MiB
 * / N to 2 MiB / N - 1, so that the marks of the largest parts lie behind cut.
 */
static inline uint16_t *mrrc_mib_mark_at(struct mrrc_heap_mib *mib,
					 uintptr_t addr, unsigned shift)
{
	return (uint16_t *) mib + ((addr % MRRC_MIB + MRRC_MIB) >> shift);
}
_Static_assert(sizeof(struct mrrc_heap_mib) <=
		       (MRRC_MIB >> MRRC_CUT_SHIFT_MAX) * sizeof(uint16_t),
	       "the first mark");

static inline uint16_t *mrrc_mib_mark(struct mrrc_heap_mib *mib, uintptr_t addr)
{
	return mrrc_mib_mark_at(mib, addr, mrrc_mib_cut(mib, addr)->shift);
}

enum mrrc_page_use {
	MRRC_PAGE_INNER, /* no beginning of anything */
	MRRC_PAGE_FREE,	 /* first or last page of a free span */
	MRRC_PAGE_RUN,
	MRRC_PAGE_SPAN, /* one large object */
};

struct mrrc_heap_page {
	/* FREE: in a bin; RUN: in the list of partial runs */
	TAILQ_ENTRY(mrrc_heap_page) link;
	struct mrrc_heap_block *block;
	uint32_t head;	/* first page of run or free span */
	uint32_t count; /* at the head: number of pages */
	/* RUN, at its head */
	uint64_t free[MRRC_RUN_OBJECTS / 64];
	uint16_t nfree;
	uint8_t class; /* size class, of a span, too */
	uint8_t use;
};

TAILQ_HEAD(mrrc_heap_pages, mrrc_heap_page);

struct mrrc_heap_block {
	/* constant while the block exists */
	uintptr_t base; /* a multiple of 1 MiB */
	size_t len;
	/* record of the first MiB, the only one of an own block */
	struct mrrc_heap_mib *mib;
	void *domain; /* owner of the block */
	void *heap;
	void *cookie;		     /* registration of the block */
	struct mrrc_heap_page *page; /* pages; not of an own block */
	uint32_t *asked;	     /* debug: bytes asked for, for each 16 */
	uint32_t pages;
	bool own;      /* the block is one object */
	bool isolated; /* an own block that ends when it is freed */
	uint8_t page_kind;
	void *meta; /* memory of mib, page and asked */
	size_t meta_len;
	/* guarded by the heap's lock: */
	uint32_t used;	     /* pages in runs and spans */
	uint64_t idle_since; /* when used became 0 */
	size_t own_len;	     /* bytes asked for, of an own block */
	TAILQ_ENTRY(mrrc_heap_block) link;
};

TAILQ_HEAD(mrrc_heap_blocks, mrrc_heap_block);

struct mrrc_arena {
	struct mrrc_heap_blocks blocks;
	struct mrrc_heap_pages bin[MRRC_ARENA_BINS];
	/* set of the bins that are not empty */
	uint64_t bins[(MRRC_ARENA_BINS + 63) / 64];
	struct mrrc_heap_pages partial[MRRC_CLASS_SMALL];
	uint8_t run_pages[MRRC_CLASS_SMALL];
	size_t out[MRRC_CLASSES]; /* objects taken and not yet given back */
	size_t out_bytes;
	size_t pages, used; /* sums over all blocks */
	uint64_t now;	    /* the caller's clock, for idle_since */
};

static inline struct mrrc_heap_mib *
mrrc_block_mib(const struct mrrc_heap_block *block, uintptr_t addr)
{
	const size_t i = block->own ? 0 : (addr - block->base) / MRRC_MIB;

	return (void *) ((char *) block->mib + i * MRRC_MIB_BYTES);
}

/* Fills in the record of a MiB of a block, which is all zero before. */
void mrrc_mib_init(struct mrrc_heap_mib *mib, struct mrrc_heap_block *block,
		   unsigned slot);

void mrrc_arena_init(struct mrrc_arena *arena);

/* Adds a block, with base, len, pages, MiBs and a zeroed array of pages set. */
void mrrc_arena_add(struct mrrc_arena *arena, struct mrrc_heap_block *block);

/*
 * Takes at most count objects of a class; returns the number of objects taken.
 */
unsigned mrrc_arena_take(struct mrrc_arena *arena, unsigned class,
			 unsigned count, uintptr_t *object);

/*
 * Takes one large object at a multiple of align, which is more than a page.
 * Returns 0 if there is no room.
 */
uintptr_t mrrc_arena_take_aligned(struct mrrc_arena *arena, unsigned class,
				  size_t align);

void mrrc_arena_give(struct mrrc_arena *arena, struct mrrc_heap_block *block,
		     uintptr_t object, unsigned class);

/*
 * Takes a block out of the arena that has had no objects since the time @since,
 * or longer. Returns NULL if there is no such block.
 */
struct mrrc_heap_block *mrrc_arena_idle(struct mrrc_arena *arena,
					uint64_t since);

/* Finds the live object that contains addr. */
bool mrrc_arena_find(const struct mrrc_heap_block *block, uintptr_t addr,
		     uintptr_t *object, unsigned *class);

/* Iterates over the live objects of a block, in order; start with *pos = 0. */
bool mrrc_arena_next(const struct mrrc_heap_block *block, size_t *pos,
		     uintptr_t *object, unsigned *class);

/*
 * A1 runs, spans and free spans tile each block. A2 free spans are in the
 * bin of their length, and never side by side. A3 a run's count of free objects
 * equals its number of set bits; a run is listed while it has free objects, and
 * never consists of free objects alone. A4 the arena's sums equal the sums over
 * its blocks.
 */
bool mrrc_arena_valid(const struct mrrc_arena *arena);

#endif /* MRRC_HEAP_ARENA_H */
