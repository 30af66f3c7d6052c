/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of the allocator share (heap.h).
 */
#ifndef MRRC_HEAP_PRIV_H
#define MRRC_HEAP_PRIV_H

#include <stdatomic.h>

#include "core/heap_arena.h"
#include "sys/gate.h"
#include "sys/heap_map.h"
#include "sys/heap.h"
#include "sys/lock.h"

#define MRRC_SLOTS	256u	/* heaps with magazines; 0 is none's */
#define MRRC_MAG	64u	/* objects of a class that a thread keeps */
#define MRRC_DEPOT	128u	/* and that a heap keeps */

#define mrrc_likely(x)		__builtin_expect(!!(x), 1)

struct mrrc_pool;

struct mrrc_heaps {
	const struct mrrc_heap_ops *ops;
	void *arg;
	size_t max_bytes;
	struct mrrc_pool *blocks;	/* of struct mrrc_heap_block */
	atomic_size_t bytes, bytes_peak;
	atomic_uint_fast64_t mistakes;
	atomic_uint said_pages;		/* bit per kind fallen back from */
	atomic_bool forked;
	struct mrrc_lock lock;		/* LEAF: heaps, walkers, closing */
	TAILQ_HEAD(, mrrc_heap) heaps;
	TAILQ_ENTRY(mrrc_heaps) link;	/* the list of threads' lock */
};

/* Freed objects of each class, off the arena; the top was freed last. */
struct mrrc_depot {
	unsigned n[MRRC_CLASSES];
	uintptr_t object[MRRC_CLASSES][MRRC_DEPOT];
};

struct mrrc_heap {
	struct mrrc_heaps *domain;
	struct mrrc_heap_attr attr;
	unsigned slot;		/* in mrrc_tcache; 0: no magazines */
	struct mrrc_lock lock;	/* LEAF: from here on */
	struct mrrc_arena arena;
	struct mrrc_depot *depot;
	struct mrrc_heap_blocks own;	/* blocks of one object, live */
	struct mrrc_heap_blocks own_idle;
	size_t own_bytes;		/* asked for, of those live */
	uint64_t allocs, frees;		/* of threads gone, or past magazines */
	size_t bytes, bytes_peak, blocks;
	size_t kind_bytes[MRRC_PAGES_CNT];
	uint64_t regs, deregs, reg_fails;
	/* the domain's lock */
	unsigned walkers;		/* threads that trim or count it */
	bool closing;
	TAILQ_ENTRY(mrrc_heap) link;
	atomic_uint_fast64_t tick;	/* when idle blocks were last sought */
};

/* ---- magazines (heap_mag.c) ---------------------------------------------- */

/* An object, and its page's record, which spares looking for it. */
struct mrrc_mag_entry {
	uintptr_t object;
	struct mrrc_heap_rec *rec;
};

/*
 * One thread's for one heap. Behind the thread's gate; counters are also read
 * by others, at any time.
 */
struct mrrc_mags {
	char pad[10 * 64];
	/*
	 * Objects here, in the low bits, and allocations from here above
	 * them: one word for both, as each call changes it.
	 */
	_Atomic uint64_t n[MRRC_CLASSES];
	struct mrrc_mag_entry entry[MRRC_CLASSES][MRRC_MAG];
	_Atomic uint64_t in, out;	/* objects from the heap, and to it */
	uint64_t seen;		/* allocations and frees at the last tick */
};

/*
 * What is touched all the time lies at different places of a page each: else
 * a processor takes one for the other at first.
 */
struct mrrc_tcache {
	char pad[5 * 64];
	struct mrrc_gate gate;
	TAILQ_ENTRY(mrrc_tcache) link;	/* the list's lock */
	struct mrrc_mags *mags[MRRC_SLOTS];	/* slot 0: NULL */
};

/*
 * In static TLS: a module's other kind costs a call, and is allocated at a
 * thread's first access.
 */
extern _Thread_local struct mrrc_tcache *mrrc_tcache_self
	__attribute__((tls_model("initial-exec")));

extern const uint8_t mrrc_mag_cap[MRRC_CLASSES];

#define MRRC_MAG_BITS	8u	/* of n, for the objects */
#define MRRC_MAG_MASK	((1u << MRRC_MAG_BITS) - 1)
/* an allocation: one of them, and one object less */
#define MRRC_MAG_ALLOC	((UINT64_C(1) << MRRC_MAG_BITS) - 1)

/* Only the owner of a counter writes it; others read it to add up. */
static inline uint64_t mrrc_mag_read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void mrrc_mag_write(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

static inline unsigned mrrc_mag_n(const struct mrrc_mags *mags, unsigned class)
{
	return mrrc_mag_read(&mags->n[class]) & MRRC_MAG_MASK;
}

/* This thread's; NULL: no memory, or the thread is about to end. */
struct mrrc_tcache *mrrc_tcache_get(void);
/* Inside the gate. NULL: none to be had. */
struct mrrc_mags *mrrc_mags_get(struct mrrc_tcache *tcache,
				struct mrrc_heap *heap);

/* Inside the gate, for an empty one: how many the heap gave. */
unsigned mrrc_mags_refill(struct mrrc_heap *heap, struct mrrc_mags *mags,
			   unsigned class);
/* Inside the gate: make room for one. */
void mrrc_mags_flush(struct mrrc_heap *heap, struct mrrc_mags *mags,
		     unsigned class);

/* All threads' magazines of a heap, or those that were idle, to the arena. */
void mrrc_mags_drain(struct mrrc_heap *heap, bool idle_only);
/* Bytes in them. */
size_t mrrc_mags_kept(struct mrrc_heap *heap, uint64_t *allocs,
		      uint64_t *frees);
/* 0 if there is no slot left. */
void mrrc_mags_attach(struct mrrc_heap *heap);
void mrrc_mags_detach(struct mrrc_heap *heap);
/* Domains that a fork must mark. */
int mrrc_mags_domain_add(struct mrrc_heaps *heaps);
void mrrc_mags_domain_remove(struct mrrc_heaps *heaps);

/* The heap's lock held: one object past the magazines. 0: there is none. */
uintptr_t mrrc_depot_take(struct mrrc_heap *heap, unsigned class);
/* The heap's lock held. */
void mrrc_depot_give(struct mrrc_heap *heap, unsigned class,
		     const uintptr_t *object, unsigned count);
void mrrc_depot_drain(struct mrrc_heap *heap);
size_t mrrc_depot_kept(const struct mrrc_heap *heap);

/* ---- blocks (heap_block.c) ----------------------------------------------- */

/*
 * Map and register len bytes or more; asked is what an own block is for, 0:
 * for the arena. Not yet linked anywhere.
 */
int mrrc_heap_block_new(struct mrrc_heap *heap, size_t len, size_t align,
			size_t asked, bool isolated,
			struct mrrc_heap_block **block);
/* How long one for len bytes would be; exact: not longer than it must. */
size_t mrrc_heap_block_len(const struct mrrc_heap *heap, size_t len,
			   bool exact);
/* Nothing of it is in use, and nothing links to it. */
void mrrc_heap_block_end(struct mrrc_heap *heap,
			 struct mrrc_heap_block *block);
/* Blocks without objects since then or longer. Returns how many went. */
size_t mrrc_heap_release(struct mrrc_heap *heap, uint64_t since);

uint64_t mrrc_heap_now(void);	/* ms */
/* Now and then: release what has been idle for too long. */
void mrrc_heap_tick(struct mrrc_heap *heap);

void mrrc_heap_say(struct mrrc_heaps *heaps,
		   const struct mrrc_heap_note *note);

/* For each heap of the domain that is not being closed, no lock held. */
void mrrc_heaps_each(struct mrrc_heaps *heaps,
		     void (*call)(struct mrrc_heap *heap, void *arg),
		     void *arg);

/* Where the object's entry is. */
static inline unsigned mrrc_object_mark(const struct mrrc_heap_rec *rec,
					uintptr_t object)
{
	return rec->kind & MRRC_KIND_RUN ?
	       rec->state[object % MRRC_HEAP_PAGE / MRRC_HEAP_GRAIN] :
	       rec->kind;
}

static inline void mrrc_object_set(struct mrrc_heap_rec *rec,
				   uintptr_t object, unsigned class,
				   unsigned mark)
{
	if (class < MRRC_CLASS_SMALL)
		rec->state[object % MRRC_HEAP_PAGE / MRRC_HEAP_GRAIN] = mark;
	else
		rec->kind = mark;
}

#endif /* MRRC_HEAP_PRIV_H */
