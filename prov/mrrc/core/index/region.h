/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A registered region: the value that index, policy and cache share.
 *
 * Part of core: no libfabric, threads or clock. The lock of the cache
 * (sys/cache/cache_mt.h) guards every field, with three exceptions: `word` is
 * read without the lock, `held` and `closed` are atomic, and the fields of the
 * registration do not change while the region is held.
 */
#ifndef MRRC_REGION_H
#define MRRC_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/tree.h>
#include <bsd/sys/queue.h>

/*
 * The access of the network device to a region. A MRRC_RW region serves both
 * kinds of local lookup; memory mapped read-only can only be registered as
 * MRRC_RO. Peers never get more rights than were requested: a remote region
 * serves only requests for the same access. The cache has one index per value
 * of access.
 */
enum mrrc_access {
	MRRC_RO = 0, /* source of sends and writes */
	MRRC_RW = 1, /* source and target */
	/*
	 * may be combined with MRRC_RO or MRRC_RW; REMOTE_WRITE needs MRRC_RW
	 */
	MRRC_REMOTE_READ = 2,  /* source of peers' reads */
	MRRC_REMOTE_WRITE = 4, /* target of peers' writes */
	MRRC_ACCESS_CNT = 8
};

enum mrrc_region_state {
	MRRC_REGION_NEW,     /* registered, not (yet) in an index */
	MRRC_REGION_INDEXED, /* lookups find it */
	MRRC_REGION_DEAD,    /* has left the index; deregistered when unheld */
};

/*
 * The word of a region: its tag in the upper bits, and below it the number of
 * the memory in which the region's struct lies. The tag is odd while the region
 * is indexed, and is never used again for the same memory. A thread that knows
 * the word can find the region and hold the region without a lock, or finds
 * that the region is gone.
 */
#define MRRC_REGION_TAG	      28 /* bits below the tag */
#define MRRC_REGION_INDEX_BIT (1ULL << MRRC_REGION_TAG)

struct mrrc_region;

/*
 * Counters of operations that are kept outside the region, which can make the
 * region's own counter negative. A thread that begins an operation counts it
 * first, and then checks that the tag is unchanged. A thread that ends an
 * operation counts it, and then checks whether the region is indexed: if the
 * region is not indexed, the operation may have been the last.
 */
struct mrrc_holders {
	/*
	 * Returns the number of operations on the region that the holders
	 * count, modulo 2^32.
	 */
	unsigned (*count)(const struct mrrc_holders *holders,
			  const struct mrrc_region *region);
	/*
	 * After settle(), count() includes each operation whose check read a
	 * word that was replaced before the call.
	 */
	void (*settle)(const struct mrrc_holders *holders);
};

struct mrrc_region {
	/* never reset, even when the memory becomes another region */
	_Atomic uint64_t word;
	/* operations, except operations that holders count */
	_Atomic uint32_t held;
	bool loose;	 /* held and not indexed */
	bool watched;	 /* the monitor must be told when the region leaves */
	bool reused;	 /* served a request after its first */
	uintptr_t start; /* page-aligned */
	size_t len;	 /* bytes, whole pages */
	void *desc;	 /* local descriptor of the registration */
	void *cookie;	 /* the registration: in fi a fid_mr */
	enum mrrc_access access;
	enum mrrc_region_state state;
	/*
	 * the period of the region's last close (revoke.h); 0: the key has no
	 * end
	 */
	_Atomic uint64_t closed;
	const struct mrrc_holders *holders; /* NULL: there are no holders */
	uint64_t policy[10];	    /* while INDEXED: the policy's own data */
	RB_ENTRY(mrrc_region) node; /* while INDEXED: in the index */
	/* INDEXED: in the policy; DEAD: in the victims */
	TAILQ_ENTRY(mrrc_region) link;
};

TAILQ_HEAD(mrrc_region_list, mrrc_region);

/* The maximum number of regions for one request. */
#define MRRC_PIECES_MAX 32

static inline bool mrrc_access_remote(enum mrrc_access access)
{
	return access & (MRRC_REMOTE_READ | MRRC_REMOTE_WRITE);
}

static inline uintptr_t mrrc_region_end(const struct mrrc_region *region)
{
	return region->start + region->len;
}

/*
 * Returns the number of operations in flight. If other threads can hold the
 * region by its tag, the number is an estimate while the region is indexed. The
 * number is exact once the region is not indexed and settle() was called,
 * except for threads that are about to find that the region is not indexed.
 */
static inline unsigned mrrc_region_held(const struct mrrc_region *region)
{
	unsigned held = atomic_load(&((struct mrrc_region *) region)->held);

	if (region->holders)
		held += region->holders->count(region->holders, region);
	return held;
}

static inline uint64_t mrrc_region_word(const struct mrrc_region *region)
{
	return atomic_load_explicit(&((struct mrrc_region *) region)->word,
				    memory_order_relaxed);
}

static inline uint64_t mrrc_region_tag(const struct mrrc_region *region)
{
	return mrrc_region_word(region) >> MRRC_REGION_TAG;
}

/*
 * Is this still the indexed region that had the word @had? Any thread may ask.
 */
static inline bool mrrc_region_is(const struct mrrc_region *region,
				  uint64_t had)
{
	return atomic_load(&((struct mrrc_region *) region)->word) == had;
}

static inline bool mrrc_region_indexed(const struct mrrc_region *region)
{
	return atomic_load(&((struct mrrc_region *) region)->word) &
	       MRRC_REGION_INDEX_BIT;
}

/* Counts an operation; the caller knows that the region still exists. */
static inline void mrrc_region_hold(struct mrrc_region *region)
{
	atomic_fetch_add(&region->held, 1);
}

/*
 * Ends an operation; returns the region's own counter. After the last operation
 * of an indexed region, the region may be gone on return.
 */
static inline uint32_t mrrc_region_unhold(struct mrrc_region *region)
{
	return atomic_fetch_sub(&region->held, 1) - 1;
}

/*
 * Marks the region as indexed: lookups may hold it until mrrc_region_retire().
 */
static inline void mrrc_region_publish(struct mrrc_region *region)
{
	atomic_fetch_or_explicit(&region->word, MRRC_REGION_INDEX_BIT,
				 memory_order_release);
}

static inline void mrrc_region_retire(struct mrrc_region *region)
{
	atomic_fetch_and(&region->word, ~MRRC_REGION_INDEX_BIT);
}

/*
 * Initialises the word of a new region, NEW and unheld, in the memory with the
 * number @number. Sets no other field.
 */
static inline void mrrc_region_renew(struct mrrc_region *region,
				     uint32_t number)
{
	const uint64_t tag = (mrrc_region_tag(region) | 1) + 1;

	atomic_store_explicit(&region->word, tag << MRRC_REGION_TAG | number,
			      memory_order_relaxed);
}

#endif /* MRRC_REGION_H */
