/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The processors on which this process may run, by its affinity and the quota
 * of its control groups (cpu.max, cfs_quota_us), and how idle these processors
 * are, by /proc/stat.
 *
 * Threading: one call at a time.
 */
#ifndef MRRC_CPUS_H
#define MRRC_CPUS_H

#include <stdbool.h>
#include <stdint.h>

struct mrrc_cpus {
	uint64_t mask; /* processors, modulo 64 */
	/* number of processors; no more than the quota, rounded down */
	unsigned allowed;
	/*
	 * idle processors among the allowed, since the last call; -1: unknown
	 */
	double idle;
	uint64_t slice; /* ns that a thread runs while others wait */
	/* private */
	uint64_t ticks; /* idle ticks of the allowed processors */
	uint64_t when;	/* ns */
	double quota;	/* 0: unlimited */
	uint64_t quota_when;
};

/*
 * Reads the processors' state; *cpus: all zero at first. @idle: also measures
 * the idle processors. Reading quotas takes long, and is done once a second.
 */
void mrrc_cpus_look(struct mrrc_cpus *cpus, bool idle);

/* The parts that read files, for tests; @root: in place of "/". */

/*
 * The sum of idle ticks of the processors of @set, a cpu_set_t, in the file
 * @path, which is like /proc/stat. 0: the file has no such processor.
 */
uint64_t mrrc_cpus_idle(const char *path, const void *set);

/* The smallest quota, in processors; 0: no quota. */
double mrrc_cpus_quota(const char *root);

#endif /* MRRC_CPUS_H */
