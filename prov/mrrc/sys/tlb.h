/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a thread used before: a table of regions of one cache, by page, that
 * its thread alone reads and writes, so that a hit takes no lock and shares no
 * line but the region's own. An entry is a hint: the region's word says
 * whether it is still true (core/region.h).
 *
 * The owner also counts here what it did without the cache, and notes its
 * requests for the policy; whoever holds the cache's lock collects both. The
 * last MRRC_TLB_LOG requests before a miss are known, more are forgotten.
 *
 * A thread has a table for each cache that it used, made by the first slow
 * lookup, given up when the thread or the cache ends. With it come some of
 * the records of whoever uses the cache, to be taken and given back without
 * asking the pool that all threads share.
 *
 * Threads: find and what needs a table is the owner's; collect and detach
 * say which lock they need.
 */
#ifndef MRRC_TLB_H
#define MRRC_TLB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/queue.h>

#include "core/cache.h"
#include "sys/lock.h"
#include "sys/pool.h"

#define MRRC_TLB_WAYS	4	/* entries of a set, one cache line */
#define MRRC_TLB_LOG	256	/* requests, a power of two */
#define MRRC_TLB_COUNT	1024	/* hits that observers may not see yet */
#define MRRC_TLB_BIG	21	/* log2 of the larger unit that is looked up */
#define MRRC_TLB_IS_BIG	(1u << 11)	/* in a key */
#define MRRC_TLB_SPARE	64	/* records that a thread keeps */

/* From one region of a cache to the next. */
#define MRRC_REGION_STRIDE	((sizeof(struct mrrc_region) + 63) & ~(size_t)63)

struct mrrc_tlb_entry {
	uint64_t key;		/* what was looked up; 0: nothing */
	uint64_t ref;		/* which region, and its tag */
};

struct mrrc_tlb_note {
	_Atomic uintptr_t addr;
	_Atomic uint64_t what;	/* length << 3 | access */
};

struct mrrc_tlb {
	/* hits: written by the owner, read by whoever collects */
	struct mrrc_tlb_note note[MRRC_TLB_LOG];
	_Atomic uint64_t hits;		/* each has left a note */
	_Atomic uint64_t probes;	/* of lookups that tried it */
	_Atomic uint64_t cache;		/* id; 0: the cache is gone */
	struct mrrc_tlb_entry *entry;
	uint64_t mask;			/* of a set's offset in entry */
	unsigned bits;			/* log2 of the sets */
	bool big;			/* holds entries of the larger unit */
	/* the cache's lock */
	uint64_t counted;		/* hits in the cache's counters */
	uint64_t probes_counted;	/* probes there */
	uint64_t told;			/* hits that the policy knows of */
	TAILQ_ENTRY(mrrc_tlb) link;
	/* the owner's */
	unsigned spares;
	void *spare[MRRC_TLB_SPARE];	/* free, though live to the pool */
	size_t displaced;		/* since the table grew */
	struct mrrc_tlb *next;		/* its tables */
	/* TLB lock */
	struct mrrc_tlb_list *list;	/* where link is; NULL: detached */
};

/* The tables of a cache. */
struct mrrc_tlb_list {
	TAILQ_HEAD(, mrrc_tlb) head;	/* the cache's lock */
	struct mrrc_lock *lock;		/* the cache's */
	struct mrrc_cache *core;
	struct mrrc_pool *records;	/* that spares are of, or NULL */
	uint64_t id;			/* of the cache, never used again */
};

/* That of no cache, where the thread has none. */
extern struct mrrc_tlb mrrc_tlb_none;
extern _Thread_local struct mrrc_tlb *mrrc_tlb_recent
	__attribute__((tls_model("initial-exec")));

/* @records: NULL, or a pool that outlives the list. */
void mrrc_tlb_list_init(struct mrrc_tlb_list *list, struct mrrc_lock *lock,
			struct mrrc_cache *core, struct mrrc_pool *records);

/* The cache ends: no thread uses it, no lock is held; not in a child. */
void mrrc_tlb_detach(struct mrrc_tlb_list *list);

/* The calling thread's, if it has one. Any lock. */
struct mrrc_tlb *mrrc_tlb_of(const struct mrrc_tlb_list *list);

/* The calling thread's, made if need be; NULL without memory. No lock. */
struct mrrc_tlb *mrrc_tlb_get(struct mrrc_tlb_list *list);

/* The cache's lock held: counters and requests of all threads. */
void mrrc_tlb_collect(struct mrrc_tlb_list *list);

/* The cache's lock held: the counters of this one. */
void mrrc_tlb_count(struct mrrc_tlb *tlb, struct mrrc_cache *core);

/* Remember a region of the cache's; @ref of mrrc_tlb_ref. No lock. */
void mrrc_tlb_fill(struct mrrc_tlb *tlb, const char *regions, uintptr_t addr,
		   enum mrrc_access access, uint64_t ref, bool big);

/* If it is the one that the thread used last; else NULL. */
static inline struct mrrc_tlb *mrrc_tlb_last(const struct mrrc_tlb_list *list)
{
	struct mrrc_tlb *tlb = mrrc_tlb_recent;

	/* it never is; saying so spares tests of what this returns */
	if (!tlb)
		__builtin_unreachable();
	return __builtin_expect(list->id ==
				atomic_load_explicit(&tlb->cache,
						     memory_order_relaxed), 1) ?
	       tlb : NULL;
}

static inline struct mrrc_tlb *mrrc_tlb_mine(const struct mrrc_tlb_list *list)
{
	struct mrrc_tlb *tlb = mrrc_tlb_last(list);

	return tlb ? tlb : mrrc_tlb_of(list);
}

/* A record of the thread's own. */
static inline bool mrrc_tlb_has_spare(const struct mrrc_tlb *tlb)
{
	return tlb->spares;
}

static inline void *mrrc_tlb_take_spare(struct mrrc_tlb *tlb)
{
	return tlb->spare[--tlb->spares];
}

/* false: it has enough. */
static inline bool mrrc_tlb_keep_spare(struct mrrc_tlb *tlb, void *record)
{
	if (__builtin_expect(tlb->spares == MRRC_TLB_SPARE, 0))
		return false;
	tlb->spare[tlb->spares++] = record;
	return true;
}

/* Which region: its index in the pool, where its word has the holds. */
static inline uint64_t mrrc_tlb_ref(uint32_t index, uint64_t tag)
{
	return tag << MRRC_REGION_HOLDS | index;
}

static inline uint32_t mrrc_tlb_ref_index(uint64_t ref)
{
	return ref & (MRRC_REGION_INDEX_BIT - 1);
}

/* @regions: where the cache has them. */
static inline struct mrrc_region *mrrc_tlb_region(const char *regions,
						  uint64_t ref)
{
	return (struct mrrc_region *)(uintptr_t)
	       (regions + mrrc_tlb_ref_index(ref) * MRRC_REGION_STRIDE);
}

/* Never 0: the first page is nobody's. */
static inline uint64_t mrrc_tlb_key(uintptr_t addr, enum mrrc_access access)
{
	return (addr & ~(uintptr_t)4095) | access;
}

static inline uint64_t mrrc_tlb_big_key(uintptr_t addr,
					enum mrrc_access access)
{
	return addr >> MRRC_TLB_BIG << MRRC_TLB_BIG | MRRC_TLB_IS_BIG | access;
}

/*
 * The bits of the unit folded: buffers lie a power of two apart more often
 * than not, and those never meet in a set as long as there is room. Multiplied
 * they are looked up with fewer instructions, but a quarter slower.
 */
static inline struct mrrc_tlb_entry *
mrrc_tlb_set(const struct mrrc_tlb *tlb, uintptr_t addr, unsigned unit)
{
	/* an offset in sets of 64 bytes, with what the mask takes off */
	uintptr_t set = addr >> (unit - 6);
	uintptr_t more = set >> tlb->bits;

	set ^= more;
	set ^= more >> tlb->bits;
	return (struct mrrc_tlb_entry *)
	       ((char *)tlb->entry + (set & tlb->mask));
}

static inline __attribute__((always_inline)) const struct mrrc_tlb_entry *
mrrc_tlb_look(const struct mrrc_tlb *tlb, uintptr_t addr, unsigned unit,
	      uint64_t key)
{
	const struct mrrc_tlb_entry *set = mrrc_tlb_set(tlb, addr, unit);
	int i;

#pragma GCC unroll 4
	for (i = 0; i < MRRC_TLB_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
	}
	return NULL;
}

/* What is known of the page of addr, or NULL. */
static inline __attribute__((always_inline)) const struct mrrc_tlb_entry *
mrrc_tlb_find(const struct mrrc_tlb *tlb, uintptr_t addr,
	      enum mrrc_access access)
{
	const struct mrrc_tlb_entry *entry;

	entry = mrrc_tlb_look(tlb, addr, 12, mrrc_tlb_key(addr, access));
	/* begin anew: all that would be kept in registers for this */
	__asm__("" : "+r"(tlb));
	if (!entry && tlb->big)
		entry = mrrc_tlb_look(tlb, addr, MRRC_TLB_BIG,
				      mrrc_tlb_big_key(addr, access));
	return entry;
}

/* A request was served from here. Returns whether it is time to count. */
static inline bool mrrc_tlb_hit(struct mrrc_tlb *tlb, uintptr_t addr,
				size_t len, enum mrrc_access access)
{
	const uint64_t at = atomic_load_explicit(&tlb->hits,
						 memory_order_relaxed);
	struct mrrc_tlb_note *note = &tlb->note[at % MRRC_TLB_LOG];

	atomic_store_explicit(&note->addr, addr, memory_order_relaxed);
	atomic_store_explicit(&note->what, (uint64_t)len << 3 | access,
			      memory_order_relaxed);
	atomic_store_explicit(&tlb->hits, at + 1, memory_order_release);
	return __builtin_expect(!((at + 1) % MRRC_TLB_COUNT), 0);
}

#endif /* MRRC_TLB_H */
