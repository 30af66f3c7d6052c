/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The checked content of a segment (sys/observe/stats_shm.h) of another
 * process, whose provider may be older or newer than this program. Strings are
 * printable ASCII.
 */
#ifndef STAT_SEGMENT_H
#define STAT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STAT_SEGMENT_MAX  65536 /* maximum bytes of a segment that are read */
#define STAT_COUNTERS_MAX 256
#define STAT_NAME_MAX	  64

struct stat_counter {
	char name[STAT_NAME_MAX]; /* [a-z0-9_]+, all names differ */
	uint64_t value;
};

struct stat_segment {
	pid_t pid;	 /* in the process's own PID name space */
	uint64_t opened; /* nanoseconds since 1970 */
	uint64_t max_bytes;
	uint64_t max_regions;
	char provider[32];
	char policy[64];
	char monitor[16];
	bool says_asks; /* false: an older provider */
	char asks[160];
	bool says_lacks; /* false: an older provider */
	char lacks[512]; /* the cache's lacks, and the cure */
	bool registers;	 /* false: the domain registers no buffers */
	size_t counters;
	struct stat_counter counter[STAT_COUNTERS_MAX];
};

/*
 * Parses a segment. Returns -EAGAIN for a segment that is still empty,
 * -EPROTONOSUPPORT for an unknown version, -EPROTO for other data or a broken
 * segment.
 */
int stat_segment_parse(const void *data, size_t size,
		       struct stat_segment *segment);

/* Returns the value of the counter @name; 0: no such counter. */
uint64_t stat_segment_value(const struct stat_segment *segment,
			    const char *name);

#endif /* STAT_SEGMENT_H */
