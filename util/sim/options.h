/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of fi_mrrc_sim. Errors in the command line are printed to
 * stderr, and end the program with status 2.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include "sim/report.h"

struct sim_options {
	struct sim_grid grid; /* the grid, without traces */
	enum sim_format format;
	char **source; /* files, "-", or "gen:..." */
	size_t sources;
	bool together;	   /* the traces are the processes of one run */
	bool priced;	   /* the user asked for the trace's own cost model */
	uint64_t min_len;  /* requests below this length are left out */
	const char *write; /* file for the trace, or NULL */
};

void sim_options_parse(int argc, char **argv, struct sim_options *options);
void sim_options_free(struct sim_options *options);

/* Prints policies, models and generators. */
void sim_options_list(void);

#endif /* SIM_OPTIONS_H */
