/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An arena: blocks of memory cut into objects of the size classes. Small
 * objects share runs of pages, larger ones are spans of pages.
 *
 * It only keeps accounts, which lie outside the memory: peers may write into
 * the memory. The caller maps blocks and serialises all calls.
 */
#ifndef MRRC_HEAP_ARENA_H
#define MRRC_HEAP_ARENA_H

#include <bsd/sys/queue.h>

#include "core/heap_class.h"

#define MRRC_RUN_OBJECTS 256u /* at most */
#define MRRC_ARENA_BINS	 160u /* free spans by their length */

/*
 * Marks: what is where an object may begin. Between take and give the caller
 * sets them: LIVE(class) while allocated, FREED after that. Otherwise a mark is
 * never LIVE.
 */
#define MRRC_OBJ_NONE	     0u
#define MRRC_OBJ_LIVE(class) ((class) + 1u)
#define MRRC_OBJ_OWN	     0xfdu /* live, of a block that is one object */
#define MRRC_OBJ_NEVER	     0xfeu /* never a mark */
#define MRRC_OBJ_FREED	     0xffu

/* What the fast path needs to know of a page. */
struct mrrc_heap_rec {
	struct mrrc_heap_block *block; /* NULL: no block's */
	void *domain;		       /* the block's */
	/*
	 * for each grain where an object may begin: the block's state, or first
	 */
	uint8_t *mark;
	uint32_t slot;	/* the caller's */
	uint16_t inner; /* bits that are 0 in each object's address */
	uint8_t live;	/* mark of objects here that are live */
	uint8_t first;	/* of objects that are whole pages */
};

/* A page that small objects share */
static inline bool mrrc_rec_run(const struct mrrc_heap_rec *rec)
{
	return rec->inner == MRRC_HEAP_GRAIN - 1;
}

static inline uint8_t *mrrc_rec_mark(const struct mrrc_heap_rec *rec,
				     uintptr_t object)
{
	return &rec->mark[object % MRRC_HEAP_PAGE / MRRC_HEAP_GRAIN];
}

/* A page where no small object begins, until the arena changes that. */
static inline void mrrc_rec_whole(struct mrrc_heap_rec *rec, unsigned live)
{
	rec->mark = &rec->first;
	rec->inner = MRRC_HEAP_PAGE - 1;
	rec->live = live;
	rec->first = MRRC_OBJ_NONE;
}

enum mrrc_page_use {
	MRRC_PAGE_INNER, /* no beginning of anything */
	MRRC_PAGE_FREE,	 /* ... and end of a free span */
	MRRC_PAGE_RUN,
	MRRC_PAGE_SPAN, /* one large object */
};

struct mrrc_heap_page {
	TAILQ_ENTRY(mrrc_heap_page) link; /* FREE: bin; RUN: partial */
	struct mrrc_heap_block *block;
	uint32_t head;	/* first page of run or free span */
	uint32_t count; /* at the head: pages */
	/* RUN, at its head */
	uint64_t free[MRRC_RUN_OBJECTS / 64];
	uint16_t nfree;
	uint8_t class; /* SPAN, too */
	uint8_t use;
};

TAILQ_HEAD(mrrc_heap_pages, mrrc_heap_page);

struct mrrc_heap_block {
	/* constant while it exists */
	uintptr_t base; /* a multiple of 1 MiB */
	size_t len;
	struct mrrc_heap_rec *rec; /* pages */
	uint8_t *state;		   /* len / 16; not of an own block */
	void *domain;		   /* its owner */
	void *heap;
	void *cookie;		     /* its registration */
	struct mrrc_heap_page *page; /* pages; not of an own block */
	uint32_t *asked; /* debug: bytes asked for, where state is */
	uint32_t pages;
	bool own;      /* one object alone */
	bool isolated; /* likewise, and ends once it is freed */
	uint8_t page_kind;
	void *meta; /* rec, state, page, asked */
	size_t meta_len;
	/* by the heap's lock */
	uint32_t used;	     /* pages in runs and spans */
	uint64_t idle_since; /* when used became 0 */
	size_t own_len;	     /* bytes asked for */
	TAILQ_ENTRY(mrrc_heap_block) link;
};

TAILQ_HEAD(mrrc_heap_blocks, mrrc_heap_block);

struct mrrc_arena {
	struct mrrc_heap_blocks blocks;
	struct mrrc_heap_pages bin[MRRC_ARENA_BINS];
	uint64_t bins[(MRRC_ARENA_BINS + 63) / 64]; /* those not empty */
	struct mrrc_heap_pages partial[MRRC_CLASS_SMALL];
	uint8_t run_pages[MRRC_CLASS_SMALL];
	size_t out[MRRC_CLASSES]; /* objects taken and not given */
	size_t out_bytes;
	size_t pages, used; /* of all blocks */
	uint64_t now;	    /* the caller's clock, for idle_since */
};

void mrrc_arena_init(struct mrrc_arena *arena);

/* A block with base, len, pages and zeroed arrays. */
void mrrc_arena_add(struct mrrc_arena *arena, struct mrrc_heap_block *block);

/* At most count objects of a class; returns how many there were. */
unsigned mrrc_arena_take(struct mrrc_arena *arena, unsigned class,
			 unsigned count, uintptr_t *object);

/*
 * One large object at a multiple of align, which is more than a page. 0: none.
 */
uintptr_t mrrc_arena_take_aligned(struct mrrc_arena *arena, unsigned class,
				  size_t align);

void mrrc_arena_give(struct mrrc_arena *arena, struct mrrc_heap_block *block,
		     uintptr_t object, unsigned class);

/* A block without objects since then or longer leaves the arena, or NULL. */
struct mrrc_heap_block *mrrc_arena_idle(struct mrrc_arena *arena,
					uint64_t since);

/* The live object that addr lies in. */
bool mrrc_arena_find(const struct mrrc_heap_block *block, uintptr_t addr,
		     uintptr_t *object, unsigned *class);

/* Live objects of a block, in order; start with *pos = 0. */
bool mrrc_arena_next(const struct mrrc_heap_block *block, size_t *pos,
		     uintptr_t *object, unsigned *class);

/*
 * A1 runs, spans and free spans tile each block. A2 free spans are in the
 * bin of their length, and never side by side. A3 a run's count of free
 * objects is that of its bits; it is listed while there are any, and is not
 * all free. A4 the sums are those of the blocks.
 */
bool mrrc_arena_valid(const struct mrrc_arena *arena);

#endif /* MRRC_HEAP_ARENA_H */
