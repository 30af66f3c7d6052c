/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A registered region: the value that index, policy and cache share.
 *
 * Part of core: no libfabric, threads or clock. Whoever holds the cache
 * guards every field (sys/cache_mt.h names the lock).
 */
#ifndef MRRC_REGION_H
#define MRRC_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/tree.h>
#include <bsd/sys/queue.h>

/*
 * What the network may do with a region. A MRRC_RW region serves both kinds
 * of local lookup; memory mapped read-only can only be registered as MRRC_RO.
 * What peers may reach is never more than was asked for: the remote ones serve
 * their own kind alone. One index per value: regions of one are disjoint.
 */
enum mrrc_access {
	MRRC_RO = 0,		/* source of sends and writes */
	MRRC_RW = 1,		/* source and target */
	/* with one of those; the second with MRRC_RW */
	MRRC_REMOTE_READ = 2,	/* source of peers' reads */
	MRRC_REMOTE_WRITE = 4,	/* target of peers' writes */
	MRRC_ACCESS_CNT = 8
};

enum mrrc_region_state {
	MRRC_REGION_NEW,	/* registered, not (yet) in an index */
	MRRC_REGION_INDEXED,	/* lookups find it */
	MRRC_REGION_DEAD,	/* left the index; deregister when held == 0 */
};

struct mrrc_region {
	uintptr_t start;	/* page-aligned */
	size_t len;		/* bytes, whole pages */
	enum mrrc_access access;
	enum mrrc_region_state state;
	bool watched;		/* a monitor has to be told when it leaves */
	bool reused;		/* served a request after its first */
	unsigned held;		/* operations in flight; C2: none, to leave */
	void *cookie;		/* the registration: a fid_mr in fi */
	void *desc;		/* local descriptor of the registration */
	uint64_t policy[10];	/* while INDEXED: whatever the policy likes */
	RB_ENTRY(mrrc_region) node;	/* while INDEXED: index */
	TAILQ_ENTRY(mrrc_region) link;	/* INDEXED: policy; DEAD: victim list */
};

TAILQ_HEAD(mrrc_region_list, mrrc_region);

/* Regions that one request may be served by, at the very most. */
#define MRRC_PIECES_MAX	32

static inline bool mrrc_access_remote(enum mrrc_access access)
{
	return access & (MRRC_REMOTE_READ | MRRC_REMOTE_WRITE);
}

static inline uintptr_t mrrc_region_end(const struct mrrc_region *region)
{
	return region->start + region->len;
}

#endif /* MRRC_REGION_H */
