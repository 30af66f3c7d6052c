/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options (stat/options.h), by argp.
 */
#include "config.h"
#include "stat/options.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/stats.h"
#include "core/text/text.h"
#include "tool_options.h"

#define INTERVAL_MIN 0.01
#define INTERVAL_MAX 86400

enum {
	OPTION_CHECK = 256,
	OPTION_LIBFABRIC,
	OPTION_JSON,
	OPTION_COUNT,
	OPTION_SORT
};

static const char doc[] =
	"Shows what the registration caches of ofi_mrrc do in running "
	"processes: those with the given PID, or all of this user.  With "
	"--code, says whether lookups of a program, a library or a process "
	"would ask the kernel, and for which code.  With "
	"--check, says why a program may gain nothing, and what helps.\v"
	"See fi_mrrc_stat(1).";

static const struct argp_option option_table[] = {
	{ "interval", 'i', "SECONDS", 0, "Between samples (default 1)", 0 },
	{ "count", OPTION_COUNT, "N", 0, "End after N samples", 0 },
	{ NULL, 'n', "N", OPTION_HIDDEN, NULL, 0 },
	{ "once", '1', NULL, 0, "The same as --count=1", 0 },
	{ "wait", 'w', NULL, 0, "Wait until a domain is open", 0 },
	{ NULL, 's', "COLUMN", OPTION_HIDDEN, NULL, 0 },
	{ "sort", OPTION_SORT, "COLUMN", 0,
	  "Sort lines: pid, command, lookups, hits, misses (default), evicted, "
	  "invalid, uncached, locked or saved",
	  0 },
	{ "format", 'f', "FORMAT", 0,
	  "text or json, in which each sample is a line (default text)", 0 },
	{ "json", OPTION_JSON, NULL, 0, "The same as --format=json", 0 },
	{ NULL, 'j', NULL, OPTION_HIDDEN, NULL, 0 },
	{ "code", 'c', NULL, 0,
	  "Look at the code of the arguments, each a "
	  "file or a PID, and end",
	  0 },
	{ "check", OPTION_CHECK, NULL, 0,
	  "Check provider and machine, and run APPLICATION if there is one",
	  0 },
	{ "libfabric", OPTION_LIBFABRIC, "FILE", 0,
	  "With --check, the libfabric that programs load, if the wrong one is "
	  "found",
	  0 },
	{ "list", 'l', NULL, 0, "List the counters and what they mean", 0 },
	{ 0 },
};

static void list(void)
{
	const struct mrrc_stat_text *text = mrrc_stat_text;
	int i;

	for (i = 0; i < MRRC_STAT_CNT; i++, text++)
		printf("%-26s %s%s%s%s%s\n", text->name, text->help,
		       text->kind == MRRC_STAT_KIND_GAUGE ? "; gauge" : "",
		       *text->unit ? "; " : "", text->unit,
		       i >= MRRC_STAT_SHARED ? "; for the process itself" : "");
}

static void set_interval(struct argp_state *state, const char *text,
			 double *interval)
{
	char *end;

	*interval = strtod(text, &end);
	if (end == text || *end ||
	    !(*interval >= INTERVAL_MIN && *interval <= INTERVAL_MAX))
		argp_error(state,
			   "interval: '%s' is not from %g to %d "
			   "seconds",
			   text, INTERVAL_MIN, INTERVAL_MAX);
}

static size_t get_count(struct argp_state *state, const char *what,
			const char *text, size_t max)
{
	size_t count = 0;

	if (mrrc_text_count(text, &count) || !count || count > max)
		argp_error(state, "%s: '%s' is no number from 1", what, text);
	return count;
}

static void set_order(struct argp_state *state, const char *text,
		      struct stat_order *order)
{
	char names[128];

	order->column = stat_column_find(text);
	if (order->column == STAT_COLUMNS)
		argp_error(state, "sort: '%s' is none of %s", text,
			   stat_column_names(names, sizeof(names)));
}

static void set_format(struct argp_state *state, struct stat_options *options,
		       const char *text)
{
	options->json = !strcmp(text, "json");
	if (!options->json && strcmp(text, "text"))
		argp_error(state, "'%s' is not text or json", text);
}

static void add_pid(struct argp_state *state, struct stat_options *options,
		    const char *text)
{
	const pid_t pid = get_count(state, "PID", text, INT_MAX);

	options->pid = reallocarray(options->pid, options->pids + 1,
				    sizeof(*options->pid));
	if (!options->pid)
		argp_failure(state, 1, ENOMEM, "options");
	options->pid[options->pids++] = pid;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct stat_options *options = state->input;
	size_t i;

	switch (key) {
	case 'i':
		set_interval(state, arg, &options->interval);
		break;
	case 'n':
	case OPTION_COUNT:
		options->count = get_count(state, "count", arg, SIZE_MAX);
		break;
	case '1':
		options->count = 1;
		break;
	case 'w':
		options->wait = true;
		break;
	case 's':
	case OPTION_SORT:
		set_order(state, arg, &options->order);
		break;
	case 'f':
		set_format(state, options, arg);
		break;
	case 'j':
	case OPTION_JSON:
		options->json = true;
		break;
	case 'l':
		list();
		exit(EXIT_SUCCESS);
	case 'c':
		options->code = true;
		break;
	case OPTION_CHECK:
		options->check = true;
		break;
	case OPTION_LIBFABRIC:
		options->libfabric = arg;
		break;
	case ARGP_KEY_ARGS:
		options->what = state->argv + state->next;
		options->whats = state->argc - state->next;
		break;
	case ARGP_KEY_END:
		if (options->code && !options->whats)
			argp_error(state, "code: of which file or PID?");
		if (options->code && options->check)
			argp_error(state, "either code or check");
		if (options->code && options->json)
			argp_error(state, "code: as text only");
		if (options->libfabric && !options->check)
			argp_error(state, "libfabric: with check only");
		if (options->code || options->check)
			break;
		for (i = 0; i < options->whats; i++)
			add_pid(state, options, options->what[i]);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void stat_options_parse(int argc, char **argv, struct stat_options *options)
{
	const struct argp argp = {
		.options = option_table,
		.parser = parse,
		.args_doc = "[PID]...\n--code PID|FILE...\n"
			    "--check [-- APPLICATION [ARGUMENT]...]",
		.doc = doc,
		.children = tool_options,
	};

	*options = (struct stat_options){ .interval = 1,
					  .order.column = STAT_MISSES };
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}
