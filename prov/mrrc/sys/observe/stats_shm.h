/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A statistics segment: the counters of one cache, in a sealed memfd, where
 * other processes of the same user read them while they change
 * (/proc/PID/fd/N). The segment leaves no file, and describes its own content.
 *
 * The cache writes the counters in place under its lock. All other data are
 * written once, except the texts. One thread opens, publishes and closes a
 * segment.
 *
 * Threads count their hits in tables of their own (sys/cache/region_hints.h). A
 * reader that wants these hits wakes the segment's thread, by a futex that a
 * mapping without write access can wake; the thread adds the hits to the
 * counters. So a process without readers does no extra work.
 */
#ifndef MRRC_STATS_SHM_H
#define MRRC_STATS_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text/stats.h"
#include "sys/hooks/trust.h"

#define MRRC_STATS_SHM_NAME  "ofi_mrrc"		   /* name of the memfd */
#define MRRC_STATS_SHM_MAGIC 0x6372726d5f69666fULL /* "ofi_mrrc" */
#define MRRC_STATS_SHM_LACKS 512		   /* bytes of a text */

/*
 * New fields are added at the end of the head, and increase head_size; the
 * version changes only for a change that an older reader would misunderstand.
 */
#define MRRC_STATS_SHM_VERSION 1

/*
 * The head is at the start of the segment, in the machine's byte order. Offsets
 * count from the segment's start. Strings end with a NUL; the names of counters
 * follow each other.
 */
struct mrrc_stats_shm_head {
	uint64_t magic; /* written last: 0 until then */
	uint32_t version;
	uint32_t head_size;
	uint32_t size;	 /* bytes of the segment */
	uint32_t pid;	 /* in the process's own name space */
	uint64_t opened; /* nanoseconds since 1970 */
	uint64_t max_bytes;
	uint64_t max_regions;
	uint32_t counters;
	uint32_t values; /* offset of uint64_t[counters], aligned */
	uint32_t names;	 /* offset */
	uint32_t names_size;
	char provider[32]; /* the core provider */
	char policy[64];   /* with its parameters */
	char monitor[16];
	/*
	 * why lookups of a process with threads ask the kernel, in printable
	 * ASCII; empty: they do not ask. Two texts, of which asks_at names the
	 * valid one; the other one is written
	 */
	uint32_t asks_at; /* 0 or 1 */
	char asks[2][MRRC_TRUST_WHY];
	/* what the cache lacks, and the cure; two texts as for asks */
	uint32_t lacks_at;
	char lacks[2][MRRC_STATS_SHM_LACKS];
	uint32_t registers; /* 0: the domain registers no buffers */
	uint32_t serves;    /* 1: FUTEX_WAKE on wake updates everything */
	uint32_t wake;
	uint32_t updates; /* number of updates so far: a futex, too */
};

struct mrrc_stats_shm_info {
	const char *provider;
	const char *policy;
	const char *monitor;
	size_t max_bytes;
	size_t max_regions;
	/*
	 * Writes to why the present reason why lookups ask the kernel, from any
	 * thread. NULL: lookups do not ask.
	 */
	void (*asks)(void *arg, char why[MRRC_TRUST_WHY]);
	/*
	 * Writes to text what the cache lacks, from any thread; NULL: the cache
	 * lacks nothing.
	 */
	void (*lacks)(void *arg, char text[MRRC_STATS_SHM_LACKS]);
	/*
	 * Adds up the counters, in the segment's thread. NULL: the counters are
	 * always up to date, and the segment has no thread.
	 */
	void (*collect)(void *arg);
	void *arg;
	bool registers; /* the domain registers buffers */
};

struct mrrc_stats_shm;

/*
 * Opens a segment, which readers do not accept before it is published. Returns
 * 0, or the failed call's -E*.
 */
int mrrc_stats_shm_open(struct mrrc_stats_shm **segment);

/* The segment's counters, all zero, in which a cache counts. */
struct mrrc_stats *mrrc_stats_shm_stats(struct mrrc_stats_shm *segment);

/* Describes the cache, and makes the segment readable from now on. */
void mrrc_stats_shm_publish(struct mrrc_stats_shm *segment,
			    const struct mrrc_stats_shm_info *info);

/*
 * Writes the texts of all segments anew. Called by any thread when the reason
 * why lookups ask, or what a cache lacks, may have changed.
 */
void mrrc_stats_shm_update(void);

/*
 * Ends the segment's thread, if there is one; called before the cache is
 * closed. Does nothing in a forked child. @segment may be NULL.
 */
void mrrc_stats_shm_still(struct mrrc_stats_shm *segment);

/* Called after the cache is closed. @segment may be NULL. */
void mrrc_stats_shm_close(struct mrrc_stats_shm *segment);

#endif /* MRRC_STATS_SHM_H */
