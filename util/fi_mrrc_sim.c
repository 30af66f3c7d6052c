/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_sim: simulates the cost of a registration cache (fi_mrrc_sim(1)).
 */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "sim/gain.h"
#include "sim/gen.h"
#include "sim/options.h"

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "fi_mrrc_sim: %s: %s\n", what, why);
	return EXIT_FAILURE;
}

/* Leaves out requests that are too short to be registered. */
static void shorten(struct sim_trace *trace, uint64_t min_len)
{
	size_t kept = 0;
	size_t i;

	trace->procs = 0;
	for (i = 0; i < trace->count; i++) {
		if (trace->req[i].len < min_len)
			continue;
		if (trace->req[i].proc >= trace->procs)
			trace->procs = trace->req[i].proc + 1;
		trace->req[kept++] = trace->req[i];
	}
	trace->count = kept;
}

static int load_one(const struct sim_options *options, const char *source,
		    struct sim_trace *trace)
{
	char err[SIM_ERR_MAX];
	int ret;

	if (strncmp(source, "gen:", 4)) {
		if (sim_trace_read(source, err, sizeof(err), trace)) {
			fprintf(stderr, "fi_mrrc_sim: %s\n", err);
			return EXIT_FAILURE;
		}
	} else {
		ret = sim_gen_spec(source + 4, trace);
		if (ret == -ENOENT)
			return complain(source, "no such generator; --list "
						"lists them");
		if (ret == -EINVAL)
			return complain(source, "it is gen:NAME[:seed=N]"
						"[:requests=N]");
		if (ret)
			return complain(source, strerror(-ret));
		/* the result has to show that the trace is synthetic */
		free(trace->name);
		trace->name = strdup(source);
		if (!trace->name)
			return complain(source, strerror(ENOMEM));
	}
	shorten(trace, options->min_len);
	if (trace->count && (trace->priced || !options->priced))
		return 0;
	ret = complain(source,
		       trace->count ? "no cost model was recorded "
				      "with it; choose another one (--models)" :
				      "no request is that long");
	sim_trace_fini(trace);
	return ret;
}

static int merge(struct sim_grid *grid)
{
	const struct sim_trace **list;
	struct sim_trace merged;
	size_t i;
	int ret = -ENOMEM;

	list = calloc(grid->traces, sizeof(*list));
	for (i = 0; list && i < grid->traces; i++)
		list[i] = &grid->trace[i];
	if (list)
		ret = sim_trace_merge(list, grid->traces, "together", &merged);
	free(list);
	if (ret)
		return complain("--together", strerror(-ret));
	for (i = 0; i < grid->traces; i++)
		sim_trace_fini(&grid->trace[i]);
	grid->trace[0] = merged;
	grid->traces = 1;
	return 0;
}

static int load(struct sim_options *options)
{
	struct sim_grid *grid = &options->grid;
	size_t i;
	int ret;

	grid->trace = calloc(options->sources, sizeof(*grid->trace));
	if (!grid->trace)
		return complain("traces", strerror(ENOMEM));
	for (i = 0; i < options->sources; i++) {
		ret = load_one(options, options->source[i], &grid->trace[i]);
		if (ret)
			return ret;
		grid->traces++;
	}
	return options->together ? merge(grid) : 0;
}

static int write_trace(const struct sim_options *options)
{
	char err[SIM_ERR_MAX];
	char comment[128];
	const bool made = !strncmp(options->source[0], "gen:", 4);

	if (options->grid.traces != 1)
		return complain("--write", "writes one trace; --together "
					   "makes one of several");
	snprintf(comment, sizeof(comment), "synthetic: %s", options->source[0]);
	if (sim_trace_write(options->grid.trace, made ? comment : NULL,
			    options->write, err, sizeof(err))) {
		fprintf(stderr, "fi_mrrc_sim: %s\n", err);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

static int simulate(const struct sim_options *options)
{
	struct sim_row *rows;
	size_t cnt;
	int ret;

	ret = sim_grid_run(&options->grid, &rows, &cnt);
	if (ret)
		return complain(
			"simulation",
			ret == -E2BIG ?
				"an address is too high for such pages" :
				strerror(-ret));
	ret = options->grid.gain ?
		      sim_gain_report(rows, cnt, options->format, stdout) :
		      sim_report(&options->grid, rows, cnt, options->format,
				 stdout);
	free(rows);
	return ret ? complain("standard output", strerror(-ret)) : EXIT_SUCCESS;
}

static int simulate_helpers(const struct sim_options *options)
{
	struct sim_helper_row *rows;
	size_t cnt;
	int ret;

	ret = sim_helpers_run(&options->grid, &rows, &cnt);
	if (ret)
		return complain(
			"simulation",
			ret == -E2BIG ?
				"an address is too high for such pages, or "
				"the trace too long" :
				strerror(-ret));
	ret = sim_helpers_report(&options->grid, rows, cnt, options->format,
				 stdout);
	free(rows);
	return ret ? complain("standard output", strerror(-ret)) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct sim_options options;
	size_t i;
	int ret;

	out_check_at_exit("fi_mrrc_sim");
	argp_program_version = PACKAGE_STRING;
	sim_options_parse(argc, argv, &options);
	ret = load(&options);
	if (!ret)
		ret = options.write	   ? write_trace(&options) :
		      options.grid.helpers ? simulate_helpers(&options) :
					     simulate(&options);
	for (i = 0; i < options.grid.traces; i++)
		sim_trace_fini(&options.grid.trace[i]);
	free(options.grid.trace);
	sim_options_free(&options);
	return ret;
}
