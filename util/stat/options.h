/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of fi_mrrc_stat. Errors in the command line are printed to
 * stderr, and end the program with status 2.
 */
#ifndef STAT_OPTIONS_H
#define STAT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "stat/rows.h"

struct stat_options {
	pid_t *pid; /* processes; without PIDs all processes */
	size_t pids;
	double interval; /* seconds */
	size_t count;	 /* number of samples; 0: until the processes end */
	struct stat_order order;
	bool wait; /* wait until a domain is open */
	bool json;
	bool code;	       /* examine the code of what */
	bool check;	       /* check provider and machine, and run what */
	const char *libfabric; /* with check; NULL: find it */
	char **what;	       /* the remaining arguments */
	size_t whats;
};

void stat_options_parse(int argc, char **argv, struct stat_options *options);

#endif /* STAT_OPTIONS_H */
