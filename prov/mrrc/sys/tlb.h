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
 * lookup, given up when the thread or the cache ends.
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

#define MRRC_TLB_WAYS	4	/* entries of a set, one cache line */
#define MRRC_TLB_LOG	256	/* requests, a power of two */
#define MRRC_TLB_COUNT	1024	/* hits that observers may not see yet */
#define MRRC_TLB_BIG	21	/* log2 of the larger unit that is looked up */

struct mrrc_tlb_entry {
	uint64_t key;		/* what was looked up; 0: nothing */
	uint64_t ref;		/* which region, and its tag */
};

struct mrrc_tlb_note {
	_Atomic uintptr_t addr;
	_Atomic uint64_t what;	/* length << 3 | access */
};

struct mrrc_tlb {
	_Atomic uint64_t cache;		/* id; 0: the cache is gone */
	struct mrrc_tlb_entry *entry;
	unsigned bits;			/* log2 of the sets */
	bool big;			/* holds entries of the larger unit */
	/* written by the owner, read by whoever collects */
	_Atomic uint64_t hits;		/* each has left a note */
	struct mrrc_tlb_note note[MRRC_TLB_LOG];
	/* the cache's lock */
	uint64_t counted;		/* hits in the cache's counters */
	uint64_t told;			/* hits that the policy knows of */
	TAILQ_ENTRY(mrrc_tlb) link;
	/* the owner's */
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
	uint64_t id;			/* of the cache, never used again */
};

extern _Thread_local struct mrrc_tlb *mrrc_tlb_recent
	__attribute__((tls_model("initial-exec")));

void mrrc_tlb_list_init(struct mrrc_tlb_list *list, struct mrrc_lock *lock,
			struct mrrc_cache *core);

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

/* Remember the region; @ref of mrrc_tlb_ref. No lock. */
void mrrc_tlb_fill(struct mrrc_tlb *tlb, uintptr_t addr,
		   enum mrrc_access access, uint64_t ref, bool big);

/* The same, where it is the one that the thread used last. */
static inline struct mrrc_tlb *mrrc_tlb_mine(const struct mrrc_tlb_list *list)
{
	struct mrrc_tlb *tlb = mrrc_tlb_recent;

	if (tlb && atomic_load_explicit(&tlb->cache, memory_order_relaxed) ==
		   list->id)
		return tlb;
	return mrrc_tlb_of(list);
}

/* Which region: its index in the pool, and the tag of its word. */
static inline uint64_t mrrc_tlb_ref(uint32_t index, uint64_t tag)
{
	return (uint64_t)index << (64 - MRRC_REGION_HOLDS) | tag;
}

static inline uint32_t mrrc_tlb_ref_index(uint64_t ref)
{
	return ref >> (64 - MRRC_REGION_HOLDS);
}

static inline uint64_t mrrc_tlb_ref_tag(uint64_t ref)
{
	return ref & (UINT64_MAX >> MRRC_REGION_HOLDS);
}

/* Never 0: the first page is nobody's. */
static inline uint64_t mrrc_tlb_key(uintptr_t addr, enum mrrc_access access)
{
	return (addr >> 12) << 3 | access;
}

static inline uint64_t mrrc_tlb_big_key(uintptr_t addr,
					enum mrrc_access access)
{
	return 1ULL << 63 | (addr >> MRRC_TLB_BIG) << 3 | access;
}

/*
 * The bits of the page folded: buffers lie a power of two apart more often
 * than not, and those never meet in a set as long as there is room.
 */
static inline struct mrrc_tlb_entry *
mrrc_tlb_set(const struct mrrc_tlb *tlb, uint64_t key)
{
	const uint64_t at = key >> 3;
	const unsigned bits = tlb->bits;
	const uint64_t set = at ^ at >> bits ^ at >> 2 * bits;

	return &tlb->entry[(set & ((1u << bits) - 1)) * MRRC_TLB_WAYS];
}

static inline uint64_t mrrc_tlb_look(const struct mrrc_tlb *tlb, uint64_t key)
{
	const struct mrrc_tlb_entry *set = mrrc_tlb_set(tlb, key);
	int i;

	for (i = 0; i < MRRC_TLB_WAYS; i++) {
		if (set[i].key == key)
			return set[i].ref;
	}
	return 0;
}

/* What may cover the range; 0: nothing known. A ref is never 0. */
static inline uint64_t mrrc_tlb_find(const struct mrrc_tlb *tlb,
				     uintptr_t addr, enum mrrc_access access)
{
	uint64_t ref;

	ref = mrrc_tlb_look(tlb, mrrc_tlb_key(addr, access));
	if (!ref && tlb->big)
		ref = mrrc_tlb_look(tlb, mrrc_tlb_big_key(addr, access));
	return ref;
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
