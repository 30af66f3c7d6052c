/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Region hints: each thread has a table per cache, which maps pages to the
 * regions that the thread used before. Only the owner thread reads and writes
 * its table, so a hit takes no lock and shares no cache line except the
 * region's. A table's entry is only a hint: the region's word says whether the
 * hint is still valid (core/index/region.h).
 *
 * A table also counts operations (lanes): it has an integer for each region,
 * which only the owner writes, so that a hold takes no atomic operation. The
 * integer is negative if the owner ended operations that other threads began. A
 * region's number of operations is the sum of its integers in all tables and of
 * the region's own counter. A thread that retires a region makes the owners'
 * stores visible by membarrier(2); without membarrier(2) there are no tables.
 *
 * In its table the owner also counts its hits, and logs its requests for the
 * policy; the holder of the cache's lock collects counts and logs. The log has
 * the last MRRC_HINTS_LOG requests before a miss; older requests are lost.
 *
 * A thread's first slow lookup creates its table; the table is freed when the
 * thread or the cache ends. The table also keeps free operation records of the
 * cache's user, so that a thread can take and return records without the shared
 * pool.
 *
 * Threads: only the owner searches and uses its table; collect and detach name
 * the lock that they need.
 */
#ifndef MRRC_REGION_HINTS_H
#define MRRC_REGION_HINTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/queue.h>

#include "core/cache/cache.h"
#include "sys/base/lock.h"
#include "sys/base/pool.h"
#include "sys/cache/uses.h"

#define MRRC_HINTS_WAYS	  4    /* entries of a set, one cache line */
#define MRRC_HINTS_LOG	  256  /* requests, a power of two */
#define MRRC_HINTS_COUNT  1024 /* hits not yet in the cache's counters */
#define MRRC_HINTS_BIG	  21   /* log2 of the larger unit that is looked up */
#define MRRC_HINTS_IS_BIG (1u << 11) /* flag in a key */
#define MRRC_HINTS_SPARE  64	     /* records that a thread keeps */

/* Distance in bytes between two regions of a cache. */
#define MRRC_REGION_STRIDE ((sizeof(struct mrrc_region) + 63) & ~(size_t) 63)

struct mrrc_hint {
	uint64_t key; /* unit and access looked up; 0: no entry */
	uint64_t ref; /* the region's word: its index and tag */
};

struct mrrc_hints_note {
	_Atomic uintptr_t addr;
	_Atomic uint64_t what; /* length << 3 | access */
};

struct mrrc_hints {
	/* hits: written by the owner, read by the thread that collects */
	struct mrrc_hints_note note[MRRC_HINTS_LOG];
	_Atomic uint64_t hits;	 /* each hit has written a note */
	_Atomic uint64_t probes; /* probes of lookups in this table */
	_Atomic uint64_t cache;	 /* the cache's id; 0: the cache is gone */
	struct mrrc_hint *entry;
	uint64_t mask; /* mask of a set's offset in @entry */
	unsigned bits; /* log2 of the sets */
	bool big;      /* holds entries of the larger unit */
	char *lanes;   /* holds: mrrc_hints_lane */
	/* the cache's lock */
	uint64_t counted;	 /* hits already in the cache's counters */
	uint64_t probes_counted; /* probes in the cache's counters */
	uint64_t told;		 /* hits reported to the policy */
	TAILQ_ENTRY(mrrc_hints) link;
	/* used by the owner alone */
	unsigned spares;
	/* free for this thread, in use for the pool; the first entry is NULL */
	void *spare[1 + MRRC_HINTS_SPARE];
	size_t displaced;	 /* entries, since the table grew */
	struct mrrc_hints *next; /* the owner's next table */
	struct mrrc_uses *uses;	 /* where the owner notes uses, or NULL */
	/* HINTS lock */
	struct mrrc_hints_list *list; /* the list of @link; NULL: detached */
};

/* The tables of a cache. */
struct mrrc_hints_list {
	TAILQ_HEAD(, mrrc_hints) head; /* the cache's lock */
	struct mrrc_lock *lock;	       /* the cache's */
	struct mrrc_cache *core;
	struct mrrc_pool *records;   /* the pool of spare records, or NULL */
	uint64_t id;		     /* the cache's, never used again */
	struct mrrc_pool *regions;   /* the cache's */
	struct mrrc_holders holders; /* the tables' counts; cache's lock */
	bool notes, counter;	     /* threads note uses, with this clock */
	struct mrrc_uses_list uses;  /* the cache's lock; freed by the cache */
};

/* The empty table, for threads without one. */
extern struct mrrc_hints mrrc_hints_none;
extern _Thread_local struct mrrc_hints *mrrc_hints_recent
	__attribute__((tls_model("initial-exec")));

/* @regions: the cache's. @records: NULL, or a pool that outlives the list. */
void mrrc_hints_list_init(struct mrrc_hints_list *list, struct mrrc_lock *lock,
			  struct mrrc_cache *core, struct mrrc_pool *regions,
			  struct mrrc_pool *records);

/*
 * Lets threads note their uses (uses.h). To be called before the first table.
 */
void mrrc_hints_list_note(struct mrrc_hints_list *list, bool counter);

/*
 * To be called when the cache closes, and no thread uses the cache; with no
 * lock held, and not in a forked child.
 */
void mrrc_hints_detach(struct mrrc_hints_list *list);

/* The calling thread's table, or NULL. Any lock may be held. */
struct mrrc_hints *mrrc_hints_of(const struct mrrc_hints_list *list);

/* The calling thread's table, created if missing; NULL: no memory. No lock. */
struct mrrc_hints *mrrc_hints_get(struct mrrc_hints_list *list);

/* Collects the counters and requests of all threads. The cache's lock held. */
void mrrc_hints_collect(struct mrrc_hints_list *list);

/* Collects the counters of this table. The cache's lock held. */
void mrrc_hints_count(struct mrrc_hints *hints, struct mrrc_cache *core);

/* Remember a region of the cache; @ref is its word. No lock. */
void mrrc_hints_fill(struct mrrc_hints *hints, const char *regions,
		     uintptr_t addr, enum mrrc_access access, uint64_t ref,
		     bool big);

/* The table that the thread used last, if it is this cache's; else NULL. */
static inline struct mrrc_hints *
mrrc_hints_last(const struct mrrc_hints_list *list)
{
	struct mrrc_hints *hints = mrrc_hints_recent;

	/* never true; it lets the compiler omit tests of the result */
	if (!hints)
		__builtin_unreachable();
	return __builtin_expect(
		       list->id == atomic_load_explicit(&hints->cache,
							memory_order_relaxed),
		       1) ?
		       hints :
		       NULL;
}

static inline struct mrrc_hints *
mrrc_hints_mine(const struct mrrc_hints_list *list)
{
	struct mrrc_hints *hints = mrrc_hints_last(list);

	return hints ? hints : mrrc_hints_of(list);
}

/* A record of the thread's own, to be taken; NULL: no record is left. */
static inline void *mrrc_hints_spare(const struct mrrc_hints *hints)
{
	return hints->spare[hints->spares];
}

/* Takes the record that mrrc_hints_spare() returned. */
static inline void mrrc_hints_take_spare(struct mrrc_hints *hints)
{
	hints->spares--;
}

/* Keeps a record for the thread. false: the thread has enough records. */
static inline bool mrrc_hints_keep_spare(struct mrrc_hints *hints, void *record)
{
	if (__builtin_expect(hints->spares == MRRC_HINTS_SPARE, 0))
		return false;
	hints->spare[++hints->spares] = record;
	return true;
}

static inline uint32_t mrrc_hints_ref_index(uint64_t ref)
{
	return ref & (MRRC_REGION_INDEX_BIT - 1);
}

/* @regions: the cache's first region. */
static inline struct mrrc_region *mrrc_hints_region(const char *regions,
						    uint64_t ref)
{
	return (struct mrrc_region *) (uintptr_t) (regions +
						   mrrc_hints_ref_index(ref) *
							   MRRC_REGION_STRIDE);
}

/* The lane of the region at @offset from the first region. */
static inline _Atomic uint32_t *mrrc_hints_lane(const struct mrrc_hints *hints,
						size_t offset)
{
	_Static_assert(!(MRRC_REGION_STRIDE % 64), "four bytes for each 64");
	return (_Atomic uint32_t *) (uintptr_t) (hints->lanes + offset / 16);
}

/*
 * Counts an operation, or its end. Owner only. After another thread's
 * membarrier(2) the owner's next loads are ordered after this store. Counts by
 * a single instruction, if the processor has one, so that no signal handler can
 * run between load and store.
 */
static inline __attribute__((always_inline)) void
mrrc_hints_count_hold(_Atomic uint32_t *lane, int more)
{
#if defined(__SANITIZE_THREAD__)
	/* ThreadSanitizer does not know membarrier */
	atomic_fetch_add(lane, more);
#elif defined(__x86_64__)
	__asm__ volatile("addl %1, %0"
			 : "+m"(*(uint32_t *) lane)
			 : "ir"(more)
			 : "cc", "memory");
#else
	atomic_store_explicit(
		lane, more + atomic_load_explicit(lane, memory_order_relaxed),
		memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/*
 * A key for the unit of an address; never 0, as the first page is never mapped.
 */
static inline uint64_t mrrc_hints_key(uintptr_t addr, enum mrrc_access access)
{
	return (addr & ~(uintptr_t) 4095) | access;
}

static inline uint64_t mrrc_hints_big_key(uintptr_t addr,
					  enum mrrc_access access)
{
	return addr >> MRRC_HINTS_BIG << MRRC_HINTS_BIG | MRRC_HINTS_IS_BIG |
	       access;
}

/*
 * Hashes by folding the bits of the unit: so buffers that are a power of two
 * apart, as buffers often are, share no set as long as there is room. A hash by
 * multiplication takes fewer instructions, but a quarter more time.
 */
static inline struct mrrc_hint *mrrc_hints_set(const struct mrrc_hints *hints,
					       uintptr_t addr, unsigned unit)
{
	/* an offset in sets of 64 bytes, before the mask */
	uintptr_t set = addr >> (unit - 6);
	uintptr_t more = set >> hints->bits;

	set ^= more;
	set ^= more >> hints->bits;
	return (struct mrrc_hint *) ((char *) hints->entry +
				     (set & hints->mask));
}

static inline __attribute__((always_inline)) const struct mrrc_hint *
mrrc_hints_look(const struct mrrc_hints *hints, uintptr_t addr, unsigned unit,
		uint64_t key)
{
	const struct mrrc_hint *set = mrrc_hints_set(hints, addr, unit);
	int i;

#pragma GCC unroll 4
	for (i = 0; i < MRRC_HINTS_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
	}
	return NULL;
}

/* The hint for the page of addr, or NULL. */
static inline __attribute__((always_inline)) const struct mrrc_hint *
mrrc_hints_find(const struct mrrc_hints *hints, uintptr_t addr,
		enum mrrc_access access)
{
	const struct mrrc_hint *entry;

	entry = mrrc_hints_look(hints, addr, 12, mrrc_hints_key(addr, access));
	/* forces a reload from memory, to keep registers free */
	__asm__("" : "+r"(hints));
	if (!entry && hints->big)
		entry = mrrc_hints_look(hints, addr, MRRC_HINTS_BIG,
					mrrc_hints_big_key(addr, access));
	return entry;
}

/*
 * Counts a request that a hint served. Returns whether the caller has to add
 * the hits to the cache's counters now.
 */
static inline bool mrrc_hints_hit(struct mrrc_hints *hints, uintptr_t addr,
				  size_t len, enum mrrc_access access)
{
	const uint64_t at =
		atomic_load_explicit(&hints->hits, memory_order_relaxed);
	struct mrrc_hints_note *note = &hints->note[at % MRRC_HINTS_LOG];

	atomic_store_explicit(&note->addr, addr, memory_order_relaxed);
	atomic_store_explicit(&note->what, (uint64_t) len << 3 | access,
			      memory_order_relaxed);
	atomic_store_explicit(&hints->hits, at + 1, memory_order_release);
	return __builtin_expect(!((at + 1) % MRRC_HINTS_COUNT), 0);
}

#endif /* MRRC_REGION_HINTS_H */
