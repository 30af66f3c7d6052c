/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes and their segments, by way of /proc.
 */
#ifndef STAT_PROC_H
#define STAT_PROC_H

#include <stdbool.h>

#include "stat/segment.h"

/* One domain of a process, at one moment. */
struct stat_domain {
	pid_t pid; /* in our PID name space */
	char command[64];
	ino_t id;    /* inode of the open segment */
	double when; /* seconds, monotonic */
	struct stat_segment segment;
};

struct stat_sample {
	struct stat_domain *domain;
	size_t domains;
	unsigned unknown; /* segments of an unknown version */
};

/*
 * Adds the domains that a process has open. Returns -ESRCH if there is no such
 * process, or the process has ended, -EACCES if it may not be examined, or
 * -ENOMEM. Invalid segments are left out.
 */
int stat_proc_read(pid_t pid, struct stat_sample *sample);

/*
 * Adds the domains of all processes. Processes that may not be examined are
 * counted in @denied.
 */
int stat_proc_read_all(struct stat_sample *sample, unsigned *denied);

void stat_sample_fini(struct stat_sample *sample);

/* Returns the start of a process, in clock ticks; 0: the process has ended. */
unsigned long long stat_proc_started(pid_t pid);

#endif /* STAT_PROC_H */
