/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A registered region: the value that index, policy and cache share.
 *
 * Part of core: no libfabric, threads or clock. The cache's lock
 * (sys/cache_mt.h) guards every field but two: `word` is atomic, and the fields
 * that describe the registration do not change while the region is held.
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
 * What the network may do with a region. A MRRC_RW region serves both kinds of
 * local lookup; memory mapped read-only can only be registered as MRRC_RO.
 * Peers never get more rights than were asked for: remote regions serve
 * requests of their own kind alone. One index per value: regions of one index
 * are disjoint.
 */
enum mrrc_access {
	MRRC_RO = 0, /* source of sends and writes */
	MRRC_RW = 1, /* source and target */
	/* together with one of those; the second needs MRRC_RW */
	MRRC_REMOTE_READ = 2,  /* source of peers' reads */
	MRRC_REMOTE_WRITE = 4, /* target of peers' writes */
	MRRC_ACCESS_CNT = 8
};

enum mrrc_region_state {
	MRRC_REGION_NEW,     /* registered, not (yet) in an index */
	MRRC_REGION_INDEXED, /* lookups find it */
	MRRC_REGION_DEAD,    /* left the index; deregister when unheld */
};

/*
 * The word of a region: operations in flight | INDEXED | generation. Its upper
 * part, the tag, is odd while the region is indexed, and is never used again
 * for a later region in the same memory. So a thread that remembers the tag can
 * hold the region without a lock, or finds that it is gone. Without INDEXED no
 * new hold is possible, so the last put knows that it is the last.
 */
#define MRRC_REGION_HOLDS     28 /* bits */
#define MRRC_REGION_INDEX_BIT (1ULL << MRRC_REGION_HOLDS)

struct mrrc_region {
	_Atomic uint64_t word;
	uintptr_t start; /* page-aligned */
	size_t len;	 /* bytes, whole pages */
	void *desc;	 /* local descriptor of the registration */
	void *cookie;	 /* the registration: a fid_mr in fi */
	enum mrrc_access access;
	enum mrrc_region_state state;
	bool watched;		    /* tell the monitor when it leaves */
	bool reused;		    /* served a request after its first */
	uint64_t policy[10];	    /* while INDEXED: the policy's own data */
	RB_ENTRY(mrrc_region) node; /* while INDEXED: index */
	TAILQ_ENTRY(mrrc_region) link; /* INDEXED: policy; DEAD: victim list */
};

TAILQ_HEAD(mrrc_region_list, mrrc_region);

/* The most regions that may serve one request. */
#define MRRC_PIECES_MAX 32

static inline bool mrrc_access_remote(enum mrrc_access access)
{
	return access & (MRRC_REMOTE_READ | MRRC_REMOTE_WRITE);
}

static inline uintptr_t mrrc_region_end(const struct mrrc_region *region)
{
	return region->start + region->len;
}

/* Operations in a value of the word. */
static inline unsigned mrrc_word_held(uint64_t word)
{
	return word & (MRRC_REGION_INDEX_BIT - 1);
}

/* Operations in flight; any thread may change it unless it is 0 and DEAD. */
static inline unsigned mrrc_region_held(const struct mrrc_region *region)
{
	return mrrc_word_held(atomic_load_explicit(
		&((struct mrrc_region *) region)->word, memory_order_relaxed));
}

static inline uint64_t mrrc_region_tag(const struct mrrc_region *region)
{
	return atomic_load_explicit(&((struct mrrc_region *) region)->word,
				    memory_order_relaxed) >>
	       MRRC_REGION_HOLDS;
}

/* One more operation; the caller knows that the region cannot be gone. */
static inline uint64_t mrrc_region_hold(struct mrrc_region *region)
{
	return atomic_fetch_add_explicit(&region->word, 1,
					 memory_order_acquire);
}

/*
 * Any thread, no lock; the memory may be that of another region by now.
 * false: the region whose word had that tag is no longer indexed.
 */
static inline bool mrrc_region_try_hold(struct mrrc_region *region,
					uint64_t had)
{
	uint64_t word =
		atomic_load_explicit(&region->word, memory_order_relaxed);

	do {
		if ((word ^ had) >> MRRC_REGION_HOLDS)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&region->word, &word,
							word + 1,
							memory_order_acquire,
							memory_order_relaxed));
	return true;
}

/*
 * One operation less; returns the word before. If it was the last one of an
 * indexed region, the region may be gone on return.
 */
static inline uint64_t mrrc_region_unhold(struct mrrc_region *region)
{
	return atomic_fetch_sub_explicit(&region->word, 1,
					 memory_order_acq_rel);
}

/*
 * Lookups may hold it from now on; or not any more, and returns the word
 * before.
 */
static inline void mrrc_region_publish(struct mrrc_region *region)
{
	atomic_fetch_or_explicit(&region->word, MRRC_REGION_INDEX_BIT,
				 memory_order_release);
}

static inline uint64_t mrrc_region_retire(struct mrrc_region *region)
{
	return atomic_fetch_and_explicit(&region->word, ~MRRC_REGION_INDEX_BIT,
					 memory_order_acq_rel);
}

/* A new region in the same memory, NEW and unheld; only the word is set. */
static inline void mrrc_region_renew(struct mrrc_region *region)
{
	const uint64_t tag = (mrrc_region_tag(region) | 1) + 1;

	atomic_store_explicit(&region->word, tag << MRRC_REGION_HOLDS,
			      memory_order_relaxed);
}

#endif /* MRRC_REGION_H */
