/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator of registered memory: makes core/heap/heap_arena.h usable by
 * several threads, and maps and registers the arenas' memory.
 *
 * A domain (mrrc_heaps) has heaps. A heap has blocks, each one registration.
 * Allocated and freed objects pass through each thread's magazines
 * (heap_mag.c), which are refilled from the heap under its lock. The calling
 * thread maps, registers, deregisters and unmaps, with no lock held.
 *
 * All calls except open and close: any thread that holds no lock.
 */
#ifndef MRRC_HEAP_H
#define MRRC_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/index/region.h"
#include "sys/base/pages.h"

struct mrrc_heaps;
struct mrrc_heap;
struct mrrc_heap_block;
struct mrrc_tcache;

/* Events that the log reports. */
enum mrrc_heap_event {
	/* size: the requested kind of pages is not available */
	MRRC_HEAP_FALLBACK,
	MRRC_HEAP_LIMIT_HEAP, /* size exceeds the heap's limit; err */
	MRRC_HEAP_LIMIT_DOMAIN,
	MRRC_HEAP_LIMIT_OWNER, /* size exceeds the owner's limit */
	MRRC_HEAP_NO_MEMORY,   /* size cannot be mapped: err */
	MRRC_HEAP_NO_REG,      /* size at addr cannot be registered: err */
	/* addr: mistakes of the application */
	MRRC_HEAP_DOUBLE_FREE,	/* addr */
	MRRC_HEAP_FOREIGN,	/* addr */
	MRRC_HEAP_INSIDE,	/* addr lies inside the allocation at base */
	MRRC_HEAP_OTHER_DOMAIN, /* addr */
	MRRC_HEAP_OVERFLOW,	/* addr, size; offset of the overwritten byte */
	MRRC_HEAP_USED_FREED,	/* addr, size; offset of the written byte */
	MRRC_HEAP_LEAK,		/* size at addr */
	MRRC_HEAP_LEAKS		/* number of leaks, size of all */
};

struct mrrc_heap_note {
	enum mrrc_heap_event event;
	uintptr_t addr, base;
	size_t size, offset, count, limit;
	int err;
	bool again; /* the heap's limit was reached before */
};

/* Called with no lock held, by several threads at once. */
struct mrrc_heap_ops {
	/*
	 * Registers a block. Returns 0 or -E*; struct mrrc_reg_ops names the
	 * errors that mean a limit. -EDQUOT: a limit of the owner, which has
	 * already freed all memory that it can free.
	 */
	int (*reg)(void *arg, uintptr_t start, size_t len,
		   enum mrrc_access access, void **cookie);
	void (*dereg)(void *arg, void *cookie, uintptr_t start, size_t len);
	/*
	 * Evicts other registrations. false: no other registrations were left.
	 */
	bool (*reap)(void *arg);
	void (*note)(void *arg, const struct mrrc_heap_note *note);
	/*
	 * Called from time to time to report the allocations and frees since
	 * the last call. NULL: no report.
	 */
	void (*count)(void *arg, uint64_t allocs, uint64_t frees);
};

/* Number of leaks that are named one by one. */
#define MRRC_HEAP_LEAKS_MAX 16

/* heap_open.c: domain */

/* @max_bytes: limit of registered memory, 0: no limit. */
int mrrc_heaps_open(const struct mrrc_heap_ops *ops, void *arg,
		    size_t max_bytes, struct mrrc_heaps **heaps);

/* Closes the domain and its remaining heaps. No call may follow. */
void mrrc_heaps_close(struct mrrc_heaps *heaps);

/*
 * Closes the domain, but not its allocations: deregisters the blocks of
 * allocations, which stay mapped as long as the process lives. Freeing such an
 * allocation has no effect; no other call may follow.
 */
void mrrc_heaps_abandon(struct mrrc_heaps *heaps);

/*
 * Is this process a child of the process that opened the domain, or is the
 * domain abandoned?
 */
bool mrrc_heaps_forked(const struct mrrc_heaps *heaps);

void mrrc_heaps_trim(struct mrrc_heaps *heaps);
/*
 * Releases memory that has been idle for @ms, or for the time that its heap
 * has set if that is shorter, except in heaps that keep theirs.
 */
void mrrc_heaps_trim_idle(struct mrrc_heaps *heaps, uint64_t ms);

/* heap_open.c: heap */

#define MRRC_HEAP_BLOCK_MIN ((size_t) 1 << 20)
#define MRRC_HEAP_BLOCK_MAX ((size_t) 1 << 30)
#define MRRC_HEAP_LEN_MAX   ((size_t) 1 << 46)
#define MRRC_HEAP_ALIGN_MAX ((size_t) 1 << 40)
#define MRRC_HEAP_IDLE_KEEP UINT32_MAX

struct mrrc_heap_attr {
	enum mrrc_access access;
	enum mrrc_pages pages;
	bool prefault;
	bool populated;	   /* registering faults in each page of a block */
	bool isolated;	   /* every allocation is isolated */
	int node;	   /* NUMA node; -1: any */
	size_t block_size; /* minimum; 0: grows with the heap */
	size_t max_bytes;  /* 0: no limit */
	uint32_t idle_ms;  /* time until an idle block is released */
	/* number of shards; 0: as many as processors, if limits allow */
	unsigned shards;
	void *context; /* the owner's */
};

/* -EINVAL: an attribute is out of range; -EOPNOTSUPP: forked */
int mrrc_heap_open(struct mrrc_heaps *heaps, const struct mrrc_heap_attr *attr,
		   struct mrrc_heap **heap);

/*
 * Closes the heap, ends its live allocations, and reports them as leaks. No
 * call for the heap may follow.
 */
void mrrc_heap_close(struct mrrc_heap *heap);

void mrrc_heap_trim(struct mrrc_heap *heap);
const struct mrrc_heap_attr *mrrc_heap_attr(const struct mrrc_heap *heap);

/* heap.c: allocation */

#define MRRC_HEAP_ISOLATED 1u
#define MRRC_HEAP_ZERO	   2u

/*
 * The calls are inline, in sys/heap/heap_fast.h:
 *
 *	align: a power of two. -EINVAL, -ENOMEM, -EOPNOTSUPP.
 * int mrrc_heap_alloc(struct mrrc_heap *heap, size_t align, size_t len,
 *		       unsigned flags, void **addr, void **cookie);
 *
 *	Frees an object of any heap of the domain. -EALREADY, -EINVAL, -EDOM (in
 *	another domain), -EOVERFLOW.
 * int mrrc_heap_free(struct mrrc_heaps *heaps, void *addr);
 */
int mrrc_heap_alloc_slow(struct mrrc_heap *heap, size_t align, size_t len,
			 unsigned flags, void **addr, void **cookie);
int mrrc_heap_free_slow(struct mrrc_heaps *heaps, uintptr_t addr);

struct mrrc_heap_place {
	uintptr_t base; /* start of the allocation */
	size_t len;
	uintptr_t block; /* start of the registered block */
	size_t block_len;
	void *cookie;
	struct mrrc_heap *heap;
	enum mrrc_pages pages;
};

/*
 * heap_thread.c: begin and end the time in which the result of
 * mrrc_heap_query() is valid
 */
struct mrrc_tcache *mrrc_heap_look(void);
void mrrc_heap_looked(struct mrrc_tcache *look);

/* heap.c */

/*
 * Finds the live allocation around addr. -ENOENT: no such allocation. Unless
 * the caller knows that the allocation stays live, it calls mrrc_heap_query()
 * between mrrc_heap_look() and mrrc_heap_looked(), and uses *place only until
 * mrrc_heap_looked(). Between look and looked the caller calls no other
 * function of the allocator, and waits for no other thread.
 */
int mrrc_heap_query(struct mrrc_heaps *heaps, uintptr_t addr,
		    struct mrrc_heap_place *place);

/*
 * The registration of the block of this domain that contains the range; NULL:
 * no such block. The registration is valid as long as an object in the range is
 * allocated.
 */
void *mrrc_heap_cookie(const struct mrrc_heaps *heaps, const void *addr,
		       size_t len);

/* The domain that has a block with this address; or NULL. */
struct mrrc_heaps *mrrc_heap_owner(const void *addr);

/* heap_open.c: statistics */

struct mrrc_heap_stats {
	uint64_t allocs, frees, live, live_bytes, kept_bytes;
	uint64_t blocks, bytes, bytes_peak, idle_blocks, idle_bytes, limit;
	uint64_t regs, deregs, reg_fails, huge_bytes, thp_bytes, mistakes;
};

void mrrc_heap_stats(struct mrrc_heap *heap, struct mrrc_heap_stats *stats);
/* Sums over all heaps; bytes_peak and limit are the domain's. */
void mrrc_heaps_stats(struct mrrc_heaps *heaps, struct mrrc_heap_stats *stats);

/*
 * Checks the heap's invariants, for tests and debug builds; no other thread may
 * be in a call of the allocator.
 */
bool mrrc_heap_valid(struct mrrc_heap *heap);

#endif /* MRRC_HEAP_H */
