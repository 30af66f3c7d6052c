/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Structs and inline functions that the files of the allocator (heap.h) share.
 */
#ifndef MRRC_HEAP_PRIV_H
#define MRRC_HEAP_PRIV_H

#include <limits.h>
#include <stdatomic.h>

#include "core/heap/heap_arena.h"
#include "sys/base/biased_lock.h"
#include "sys/heap/heap_map.h"
#include "sys/heap/heap.h"
#include "sys/base/lock.h"

#define MRRC_SLOTS	256u /* heaps with magazines; slot 0: no heap */
#define MRRC_SHARDS_MAX 16u
#define MRRC_MAG	63u  /* objects of a class that a thread keeps */
#define MRRC_DEPOT	512u /* objects of a class that a heap keeps */

#define mrrc_likely(x) __builtin_expect(!!(x), 1)

struct mrrc_pool;

struct mrrc_heaps {
	const struct mrrc_heap_ops *ops;
	void *arg;
	size_t max_bytes;
	struct mrrc_pool *blocks; /* struct mrrc_heap_block */
	atomic_size_t bytes, bytes_peak;
	atomic_uint_fast64_t mistakes;
	/* a bit for each kind of pages that was replaced by a smaller one */
	atomic_uint said_pages;
	atomic_uint_fast64_t tick; /* when all heaps were last searched */
	atomic_bool forked;	   /* or abandoned */
	/* this domain; another address if forked */
	void *_Atomic own;
	/* constant (heap_retire.c) */
	size_t retired_max_bytes, retired_purge;
	unsigned retired_max;
	bool retired_access;
	/* LEAF: guards heaps, walkers, closing, retired, and the rest */
	struct mrrc_lock lock;
	TAILQ_HEAD(, mrrc_heap) heaps;
	struct mrrc_heap_blocks retired; /* the oldest first */
	unsigned retired_cnt;
	size_t retired_bytes; /* of address space */
	/* bytes of blocks retired since the last purge */
	size_t retired_new;
	/* guarded by the lock of the list of threads */
	TAILQ_ENTRY(mrrc_heaps) link;
};

/*
 * An object, with a pointer to its MiB, so that a free need not search for it.
 */
struct mrrc_mag_entry {
	uintptr_t object;
	struct mrrc_heap_mib *mib;
};

/*
 * Freed objects of each class, taken out of the arena; the last entry was freed
 * last.
 */
struct mrrc_depot {
	unsigned n[MRRC_CLASSES];
	struct mrrc_mag_entry entry[MRRC_CLASSES][MRRC_DEPOT];
};

/*
 * A heap, or a shard of one: threads that allocate at the same time get small
 * objects from different shards, each with an arena, a depot and a lock, so
 * that they share neither locks nor the cache lines of objects and marks. Large
 * objects belong to the heap itself.
 */
struct mrrc_heap {
	struct mrrc_heaps *domain;
	struct mrrc_heap_attr attr;
	unsigned slot; /* index in mrrc_tcache; 0: no magazines */
	/*
	 * in a heap: for each value of mrrc_tcache.shard, the slot of the heap
	 * or shard that serves threads with this value, or 0
	 */
	atomic_uint serves[MRRC_SHARDS_MAX];
	struct mrrc_heap *main; /* a shard's heap; in a heap: itself */
	unsigned shards;	/* maximum number of shards; 1: only itself */
	unsigned shard;		/* number of the shard; in a heap: 0 */
	/* a heap's shards; NULL: not made yet */
	struct mrrc_heap *_Atomic part[MRRC_SHARDS_MAX];
	atomic_bool making;	     /* a shard is being made */
	atomic_size_t all, all_peak; /* bytes of all its shards */
	/* of all its shards: threads that are adding a block; blocks added */
	atomic_uint growing, grown;
	struct mrrc_lock lock; /* LEAF: guards the rest */
	struct mrrc_arena arena;
	struct mrrc_depot *depot;
	struct mrrc_heap_blocks own; /* live blocks of one object */
	struct mrrc_heap_blocks own_idle;
	size_t own_bytes; /* bytes requested for the live blocks */
	/* allocations and frees of ended threads, or past magazines */
	uint64_t allocs, frees;
	uint64_t told_allocs, told_frees; /* numbers told by mrrc_heap_tell() */
	size_t bytes, blocks;
	bool refused; /* the last block was refused, perhaps at a limit */
	size_t kind_bytes[MRRC_PAGES_CNT];
	uint64_t regs, deregs, reg_fails;
	atomic_bool limited; /* the heap's limit was reached */
	/* guarded by the domain's lock */
	unsigned walkers; /* number of threads that trim or count the heap */
	bool closing;
	TAILQ_ENTRY(mrrc_heap) link;
	atomic_uint_fast64_t tick; /* when idle blocks were last searched for */
	atomic_uint_fast64_t tell; /* when the counts were last reported */
};

/* ---- magazines ----------------------------------------------------------- */

/* One class's objects: from the start of its entries to top. */
struct mrrc_mag {
	struct mrrc_mag_entry *top, *end; /* a full magazine: both are equal */
};

/* Bytes of an array of entries, and its alignment. */
#define MRRC_MAG_BYTES ((MRRC_MAG + 1) * sizeof(struct mrrc_mag_entry))

/* One thread's magazines for one heap. Guarded by the thread's biased lock. */
struct mrrc_mags {
	char pad[10 * 64];
	uint64_t allocs; /* allocations before @left was set */
	int64_t left;	 /* allocations until the next look at the hot slot */
	struct mrrc_mag of[MRRC_CLASSES];
	_Alignas(MRRC_MAG_BYTES) struct mrrc_mag_entry
		entry[MRRC_CLASSES][MRRC_MAG + 1];
};

/* Counters of a thread and a heap. Guarded by the thread's biased lock. */
struct mrrc_mag_count {
	uint64_t in, out; /* objects taken from the heap, and given to it */
	uint64_t hot;	  /* allocations from mrrc_tcache.hot */
	uint64_t seen;	  /* allocations and frees at the last tick */
};

/*
 * The hot slot: the one object that the thread frees into the slot, and
 * allocates from the slot. The slot's data stay when the object is allocated
 * again, so that a later free finds the data by the object's address. The slot
 * has a fixed place, so an allocation need not search for the slot. Guarded by
 * the biased lock.
 */
struct mrrc_hot {
	/* home; NULL: the slot is empty, or its object is allocated */
	struct mrrc_mag *mag;
	uintptr_t object; /* hot_forget() reads it outside the biased lock */
	struct mrrc_mag *home; /* the magazine to which the object belongs */
	unsigned class;
	struct mrrc_heap_mib *mib;
	uint16_t *mark; /* mrrc_mib_mark() */
	struct mrrc_heap_cut *cut;
	void *cookie; /* the cookie of the object's block */
	/*
	 * the domain of the object's block; an address that no domain has: the
	 * block may have ended
	 */
	void *_Atomic domain;
	uint64_t *count; /* mrrc_mag_count.hot of the object's heap */
	uint64_t seen;	 /* *count at the last look */
};

/* Re-evaluate the hot slot after this many allocations from magazines. */
#define MRRC_HOT_MISSES 512

/*
 * The magazines of the heap, or of its shard that serves the thread, from which
 * the thread allocated last, and the key that the user of heaps gave the heap:
 * an allocation with the same key needs no lookup. Guarded by the biased lock.
 */
struct mrrc_usual {
	uintptr_t key;			 /* 0: no key */
	struct mrrc_mags *small, *large; /* mrrc_mags_none: not made yet */
};

/* Offset within the page, to avoid 4 KiB aliasing with other hot data: */
#define MRRC_TCACHE_PAD (5 * 64)

struct mrrc_tcache {
	struct mrrc_biased_lock biased;
	unsigned shard; /* which shard of each heap serves this thread */
	struct mrrc_usual usual;
	struct mrrc_hot hot;
	TAILQ_ENTRY(mrrc_tcache) link; /* the list's lock */
	/* a thread's magazines by the heap's slot; slot 0 stays NULL */
	struct mrrc_mags *mags[MRRC_SLOTS];
	struct mrrc_mag_count count[MRRC_SLOTS];
};

/* Magazines that are always empty. */
extern MRRC_HIDDEN struct mrrc_mags mrrc_mags_none;
/* For threads that have no table: the biased lock is shut. */
extern struct mrrc_tcache mrrc_tcache_none;

/*
 * The thread's table. In static TLS: access to dynamic TLS takes a call, and a
 * thread's first access allocates memory.
 */
extern MRRC_HIDDEN _Thread_local struct mrrc_tcache *mrrc_tcache_self
	__attribute__((tls_model("initial-exec")));

/* The number of objects in a magazine; its entries are aligned. */
static inline unsigned mrrc_mag_n(const struct mrrc_mag *mag)
{
	return (uintptr_t) mag->top % MRRC_MAG_BYTES / sizeof(*mag->top);
}

/*
 * Changes the object's mark to FREED. If several threads free the object, one
 * thread succeeds.
 */
static inline bool mrrc_object_claim(uint16_t *mark, uintptr_t object,
				     uint16_t was)
{
	return __atomic_compare_exchange_n(mark, &was, MRRC_MARK_FREED(object),
					   false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

#endif /* MRRC_HEAP_PRIV_H */
