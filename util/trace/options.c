/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options (trace/options.h), by argp.
 */
#include "config.h"
#include "trace/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"
#include "tool_options.h"

enum {
	KEY_OP = 256,
	KEY_RESULT,
	KEY_THREAD,
	KEY_PEER,
	KEY_PROC,
	KEY_SIZE,
	KEY_TIME,
	KEY_SUMMARY,
	KEY_JSON
};

static const char doc[] =
	"Shows requests for registered memory that FI_OFI_MRRC_TRACE recorded, "
	"or CSV of such, perhaps compressed by xz; \"-\" is standard input. "
	"Several files are put on one clock. Lists are separated by commas.\v"
	"Examples:\n"
	"  FI_OFI_MRRC_TRACE=/tmp/app.%p.trace FI_PROVIDER=\"verbs;ofi_mrrc\" "
	"./app\n"
	"  fi_mrrc_trace --summary /tmp/app.*.trace\n"
	"  fi_mrrc_trace --result=miss --size=1M- app.4711.trace\n"
	"  fi_mrrc_trace -f csv -o app.csv app.4711.trace\n"
	"  fi_mrrc_trace -f raw -o app.trace app.csv.xz\n"
	"  fi_mrrc_sim -s 64M app.4711.trace\n\n"
	"See fi_mrrc_trace(1).";

static const struct argp_option option_table[] = {
	{ NULL, 's', NULL, OPTION_HIDDEN, NULL, 0 },
	{ "summary", KEY_SUMMARY, NULL, 0,
	  "Counts, and histograms of sizes, reuse "
	  "distances and overlaps, instead of the requests",
	  0 },
	{ "format", 'f', "FORMAT", 0,
	  "text, csv, json, or raw as it was "
	  "recorded (default text)",
	  0 },
	{ "json", KEY_JSON, NULL, 0, "The same as --format=json", 0 },
	{ "output", 'o', "FILE", 0, "Write there, whole or not at all", 0 },
	{ "op", KEY_OP, "LIST", 0,
	  "Only these operations: send, recv, tsend, "
	  "trecv, write, read, atomic, reg, expose, cwrite",
	  1 },
	{ "result", KEY_RESULT, "LIST", 0,
	  "Only these: hit, miss, core, "
	  "failed, copy",
	  1 },
	{ "thread", KEY_THREAD, "LIST", 0, "Only these threads", 1 },
	{ "peer", KEY_PEER, "LIST", 0,
	  "Only these peers: numbers, or epN for "
	  "connected endpoints",
	  1 },
	{ "proc", KEY_PROC, "LIST", 0, "Only these processes or domains", 1 },
	{ "size", KEY_SIZE, "MIN-MAX", 0,
	  "Only from MIN to MAX bytes (K, M, "
	  "G, T); either may be left out",
	  1 },
	{ "time", KEY_TIME, "FROM-TO", 0,
	  "Only from FROM to TO seconds after "
	  "the first request; either may be left out",
	  1 },
	{ "list", 'l', NULL, 0,
	  "List operations and results, and what they "
	  "mean",
	  0 },
	{ 0 },
};

static void list(void)
{
	int i;

	printf("Operations:\n");
	for (i = 1; i < MRRC_TRACE_OP_CNT; i++)
		printf("  %-8s %s\n", mrrc_trace_op_name(i),
		       mrrc_trace_op_help(i));
	printf("Results:\n");
	for (i = 0; i < MRRC_TRACE_RESULT_CNT; i++)
		printf("  %-8s %s\n", mrrc_trace_result_name(i),
		       mrrc_trace_result_help(i));
}

/* ---- lists ---- */

static void *grow(struct argp_state *state, void *array, size_t cnt,
		  size_t size)
{
	void *more = reallocarray(array, cnt + 1, size);

	if (!more)
		argp_failure(state, 1, ENOMEM, "options");
	return more;
}

static uint64_t get_number(struct argp_state *state, const char *what,
			   const char *text)
{
	size_t number = 0;

	if (mrrc_text_count(text, &number))
		argp_error(state, "%s: '%s' is no number", what, text);
	return number;
}

static void add_number(struct argp_state *state, const char *what,
		       const char *text, uint64_t **array, size_t *cnt)
{
	const uint64_t number = get_number(state, what, text);

	*array = grow(state, *array, *cnt, sizeof(**array));
	(*array)[(*cnt)++] = number;
}

static void add_thread(struct argp_state *state, struct trace_filter *filter,
		       const char *text)
{
	add_number(state, "thread", text, &filter->thread, &filter->threads);
}

static void add_proc(struct argp_state *state, struct trace_filter *filter,
		     const char *text)
{
	add_number(state, "proc", text, &filter->proc, &filter->procs);
}

static void add_peer(struct argp_state *state, struct trace_filter *filter,
		     const char *text)
{
	const bool ep = !strncmp(text, "ep", 2);
	const uint64_t peer = get_number(state, "peer", text + (ep ? 2 : 0));

	filter->peer =
		grow(state, filter->peer, filter->peers, sizeof(*filter->peer));
	filter->peer[filter->peers++] = (struct trace_peer){
		.kind = ep ? MRRC_TRACE_EP : MRRC_TRACE_ADDR,
		.peer = peer,
	};
}

static void add_op(struct argp_state *state, struct trace_filter *filter,
		   const char *text)
{
	int i;

	for (i = 1; i < MRRC_TRACE_OP_CNT; i++) {
		if (!strcmp(text, mrrc_trace_op_name(i))) {
			filter->ops |= 1U << i;
			return;
		}
	}
	argp_error(state, "op: '%s' is none; --list lists them", text);
}

static void add_result(struct argp_state *state, struct trace_filter *filter,
		       const char *text)
{
	int i;

	for (i = 0; i < MRRC_TRACE_RESULT_CNT; i++) {
		if (!strcmp(text, mrrc_trace_result_name(i))) {
			filter->results |= 1U << i;
			return;
		}
	}
	argp_error(state, "result: '%s' is none; --list lists them", text);
}

static void add_list(struct argp_state *state, struct trace_filter *filter,
		     char *text,
		     void (*add)(struct argp_state *state,
				 struct trace_filter *filter, const char *text))
{
	char *part;

	while ((part = strsep(&text, ",")))
		add(state, filter, part);
}

/* ---- ranges ---- */

static uint64_t get_size(struct argp_state *state, const char *text,
			 uint64_t otherwise)
{
	size_t bytes = 0;

	if (!*text)
		return otherwise;
	if (mrrc_text_size(text, &bytes))
		argp_error(state, "size: '%s' is no number of bytes", text);
	return bytes;
}

static uint64_t get_seconds(struct argp_state *state, const char *text,
			    uint64_t otherwise)
{
	double seconds;
	char *end;

	if (!*text)
		return otherwise;
	seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0 && seconds < 9e9))
		argp_error(state, "time: '%s' is no number of seconds", text);
	return (uint64_t) (seconds * 1e9);
}

/* A single number is both ends of a range. */
static void set_range(struct argp_state *state, const char *what, char *text,
		      uint64_t (*get)(struct argp_state *state,
				      const char *text, uint64_t otherwise),
		      uint64_t *from, uint64_t *to)
{
	char *high = strchr(text, '-');

	if (!*text || !strcmp(text, "-"))
		argp_error(state, "%s: a number is missing", what);
	if (high)
		*high++ = '\0';
	*from = get(state, text, 0);
	*to = get(state, high ? high : text, UINT64_MAX);
	if (*from > *to)
		argp_error(state, "%s: %s is more than %s", what, text, high);
}

static void set_format(struct argp_state *state, struct trace_options *options,
		       const char *text)
{
	static const char *const name[] = { "text", "csv", "json", "raw" };
	size_t i;

	for (i = 0; i < sizeof(name) / sizeof(*name); i++) {
		if (!strcmp(text, name[i])) {
			options->format = i;
			return;
		}
	}
	if (strcmp(text, "table")) /* "table" is the former name of text */
		argp_error(state, "'%s' is not text, csv, json or raw", text);
	options->format = TRACE_TABLE;
}

static void check(struct argp_state *state, const struct trace_options *options)
{
	if (!options->paths)
		argp_error(state, "a TRACE is missing");
	if (options->summary && options->format != TRACE_TABLE &&
	    options->format != TRACE_JSON)
		argp_error(state, "a summary is text or json");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct trace_options *options = state->input;
	struct trace_filter *filter = &options->filter;

	switch (key) {
	case 's':
	case KEY_SUMMARY:
		options->summary = true;
		break;
	case 'f':
		set_format(state, options, arg);
		break;
	case KEY_JSON:
		options->format = TRACE_JSON;
		break;
	case 'o':
		options->output = arg;
		break;
	case KEY_OP:
		add_list(state, filter, arg, add_op);
		break;
	case KEY_RESULT:
		add_list(state, filter, arg, add_result);
		break;
	case KEY_THREAD:
		add_list(state, filter, arg, add_thread);
		break;
	case KEY_PEER:
		add_list(state, filter, arg, add_peer);
		break;
	case KEY_PROC:
		add_list(state, filter, arg, add_proc);
		break;
	case KEY_SIZE:
		set_range(state, "size", arg, get_size, &filter->min_len,
			  &filter->max_len);
		break;
	case KEY_TIME:
		set_range(state, "time", arg, get_seconds, &filter->from,
			  &filter->to);
		break;
	case 'l':
		list();
		exit(EXIT_SUCCESS);
	case ARGP_KEY_ARG:
		options->path = grow(state, options->path, options->paths,
				     sizeof(*options->path));
		options->path[options->paths++] = arg;
		break;
	case ARGP_KEY_END:
		check(state, options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void trace_options_parse(int argc, char **argv, struct trace_options *options)
{
	const struct argp argp = {
		.options = option_table,
		.parser = parse,
		.args_doc = "TRACE...",
		.doc = doc,
		.children = tool_options,
	};

	*options = (struct trace_options){
		.output = "-",
		.filter.max_len = UINT64_MAX,
		.filter.to = UINT64_MAX,
	};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}

void trace_options_free(struct trace_options *options)
{
	free(options->path);
	free(options->filter.thread);
	free(options->filter.proc);
	free(options->filter.peer);
}
