/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options (options.h), by argp.
 */
#include "config.h"
#include "sim/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text/text.h"
#include "sim/gain.h"
#include "sim/models.h"
#include "sim/policies.h"
#include "sys/observe/cost_file.h"
#include "tool_options.h"

#define DEFAULT_POLICIES "lru,fmrd,mre-text,mre-fig4,gdsf,gdl"
#define DEFAULT_LIMITS	 "5%,10%,20%"
#define JOBS_MAX	 1024

#define GAIN_MODEL "ucx" /* cost model for a trace without a model */

enum {
	KEY_COUNT = 256,
	KEY_MIN_LEN,
	KEY_TOGETHER,
	KEY_BOUNCE,
	KEY_HELPER,
	KEY_GAIN,
	KEY_POLICIES,
	KEY_WRITE,
	KEY_JSON
};

static const char doc[] =
	"Replays memory registration requests through the cache of ofi_mrrc "
	"and says what registering and deregistering would have cost.\v"
	"A TRACE is a CSV file (time_us,addr,len[,proc,access]), perhaps "
	"compressed by xz, \"-\" for standard input, or "
	"gen:NAME[:seed=N][:requests=N]. Lists are separated by commas; "
	"every combination is run. The first policy is what the others are "
	"compared with.\n\nExamples:\n"
	"  fi_mrrc_sim --gain app.4711.trace\n"
	"  fi_mrrc_sim --policies=lru,gdl,offline -s 10% gen:httpd\n"
	"  fi_mrrc_sim -m ou2009,ucx -s 64M,256M -f csv app.csv.xz\n"
	"  fi_mrrc_sim --write=nas.csv gen:nas:seed=7:requests=50000\n\n"
	"See fi_mrrc_sim(1).";

static const struct argp_option option_table[] = {
	{ NULL, 'p', "LIST", OPTION_HIDDEN, NULL, 0 },
	{ "policies", KEY_POLICIES, "LIST", 0,
	  "Policies with their parameters, as "
	  "gdl:pieces=2, or none, libfabric, alloc, static, offline, bound "
	  "(default " DEFAULT_POLICIES ")",
	  0 },
	{ "sizes", 's', "LIST", 0,
	  "Limits of a cache: bytes (K, M, G, T) or "
	  "percent of the trace's footprint (default " DEFAULT_LIMITS ")",
	  0 },
	{ "counts", KEY_COUNT, "LIST", 0, "Limits in regions (default none)",
	  0 },
	{ "models", 'm', "LIST", 0,
	  "Cost models, trace for the recorded one, "
	  "file:PATH, or one as " MRRC_COST_EXAMPLE
	  " (default trace, else " SIM_MODEL_DEFAULT ", with --gain " GAIN_MODEL
	  ")",
	  0 },
	{ "pages", 'k', "LIST", 0, "Page sizes (default 4K)", 0 },
	{ NULL, 'P', "LIST", OPTION_HIDDEN, NULL, 0 },
	{ "bounce", KEY_BOUNCE, NULL, 0,
	  "Copy where that is cheaper, by a "
	  "model with copy_page",
	  0 },
	{ "helper", KEY_HELPER, "LIST", OPTION_ARG_OPTIONAL,
	  "Registered bytes "
	  "over time instead, by helper thread: leave, timeout, timeout:us=N, "
	  "predict, offline (default " SIM_HELPERS ")",
	  0 },
	{ "gain", KEY_GAIN, NULL, 0,
	  "What the program would gain by a cache, and what to set, instead of "
	  "policies",
	  0 },
	{ "together", KEY_TOGETHER, NULL, 0,
	  "The traces are processes of one "
	  "run, each with a cache of its own",
	  0 },
	{ "min-len", KEY_MIN_LEN, "BYTES", 0, "Leave out shorter requests", 0 },
	{ "format", 'f', "FORMAT", 0, "text, csv or json (default text)", 0 },
	{ "json", KEY_JSON, NULL, 0, "The same as --format=json", 0 },
	{ "write", KEY_WRITE, "FILE", 0, "Write the trace and stop", 0 },
	{ NULL, 'w', "FILE", OPTION_HIDDEN, NULL, 0 },
	{ "jobs", 'j', "N", 0, "Threads (default one for each processor)", 0 },
	{ "quiet", 'q', NULL, 0, "No progress bar", 0 },
	{ "list", 'l', NULL, 0, "List policies, models and generators", 0 },
	{ 0 },
};

/* ---- lists ---- */

/* Makes room for one more entry, zeroed. */
static void *grow(struct argp_state *state, void *array, size_t cnt,
		  size_t size)
{
	char *more = realloc(array, (cnt + 1) * size);

	if (!more)
		argp_failure(state, 1, ENOMEM, "options");
	memset(more + cnt * size, 0, size);
	return more;
}

static size_t parse_size(struct argp_state *state, const char *what,
			 const char *text)
{
	size_t bytes = 0;

	if (mrrc_text_size(text, &bytes) || !bytes)
		argp_error(state, "%s: '%s' is no size; try 4096, 64K or 2G",
			   what, text);
	return bytes;
}

static size_t parse_count(struct argp_state *state, const char *what,
			  const char *text)
{
	size_t count = 0;

	if (mrrc_text_count(text, &count) || !count)
		argp_error(state, "%s: '%s' is no number from 1", what, text);
	return count;
}

static void add_policy(struct argp_state *state, struct sim_grid *grid,
		       const char *text)
{
	int ret = mrrc_policy_check(sim_policies, text);

	if (ret == -ENOENT && sim_name_known(text))
		ret = 0;
	switch (ret) {
	case 0:
		break;
	case -ENOENT:
		argp_error(state, "no policy is called '%s'; --list lists them",
			   text);
		break;
	case -ESRCH:
		argp_error(state,
			   "'%s': the policy has no such parameter; "
			   "--list lists them",
			   text);
		break;
	case -ERANGE:
		argp_error(state,
			   "'%s': a parameter is out of its range; "
			   "--list shows it",
			   text);
		break;
	default:
		argp_error(state, "'%s': parameters are NAME:KEY=NUMBER", text);
	}
	grid->policy = grow(state, grid->policy, grid->policies,
			    sizeof(*grid->policy));
	grid->policy[grid->policies] = strdup(text);
	if (!grid->policy[grid->policies++])
		argp_failure(state, 1, ENOMEM, "options");
}

static void add_limit(struct argp_state *state, struct sim_grid *grid,
		      const char *text)
{
	struct sim_limit limit = { 0 };
	char *end;

	if (text[0] && text[strlen(text) - 1] == '%') {
		limit.percent = strtod(text, &end);
		if (end == text || strcmp(end, "%") ||
		    !(limit.percent > 0 && limit.percent <= 100))
			argp_error(state,
				   "'%s': percent are more than 0, and "
				   "at most 100",
				   text);
	} else {
		limit.bytes = parse_size(state, "sizes", text);
	}
	grid->limit =
		grow(state, grid->limit, grid->limits, sizeof(*grid->limit));
	grid->limit[grid->limits++] = limit;
}

/* Adds the recorded limit, or no limit. */
static void add_no_limit(struct argp_state *state, struct sim_grid *grid)
{
	grid->limit = grow(state, NULL, 0, sizeof(*grid->limit));
	grid->limits = 1;
}

static void add_page(struct argp_state *state, struct sim_grid *grid,
		     const char *text)
{
	const size_t page = parse_size(state, "pages", text);

	if (page & (page - 1) || page > (size_t) 1 << 40)
		argp_error(state, "pages: '%s' is no power of two up to 1T",
			   text);
	grid->page = grow(state, grid->page, grid->pages, sizeof(*grid->page));
	grid->page[grid->pages++] = page;
}

static void add_count(struct argp_state *state, struct sim_grid *grid,
		      const char *text)
{
	grid->count =
		grow(state, grid->count, grid->counts, sizeof(*grid->count));
	grid->count[grid->counts++] = parse_count(state, "counts", text);
}

static void add_helper(struct argp_state *state, struct sim_grid *grid,
		       const char *text)
{
	enum sim_helper_kind kind;
	uint64_t idle_us;

	if (sim_helper_parse(text, &kind, &idle_us))
		argp_error(state,
			   "helper: '%s' is not leave, timeout, "
			   "timeout:us=N, predict or offline",
			   text);
	grid->helper =
		grow(state, grid->helper, grid->helpers, sizeof(*grid->helper));
	grid->helper[grid->helpers] = strdup(text);
	if (!grid->helper[grid->helpers++])
		argp_failure(state, 1, ENOMEM, "options");
}

/* Reads a model that fi_mrrc_prof saved. */
static void read_model(struct argp_state *state, const char *text,
		       struct mrrc_cost *cost)
{
	const char *path = text + strlen(MRRC_COST_FILE);
	const int ret = mrrc_cost_file_read(path, cost);

	if (ret)
		argp_error(state, "models: %s: %s", path,
			   ret == -EINVAL ?
				   "is no model as " MRRC_COST_EXAMPLE :
				   strerror(-ret));
}

static void add_model(struct argp_state *state, struct sim_grid *grid,
		      const char *text)
{
	const char *name = text;
	struct sim_model model = {
		.name = strdup(text),
		.recorded = !strcmp(text, SIM_MODEL_TRACE),
	};

	if (!model.name)
		argp_failure(state, 1, ENOMEM, "options");
	/* this model is for traces without a recorded model */
	if (model.recorded)
		name = model.otherwise = grid->gain ? GAIN_MODEL :
						      SIM_MODEL_DEFAULT;
	if (!strncmp(name, MRRC_COST_FILE, strlen(MRRC_COST_FILE)))
		read_model(state, name, &model.cost);
	else if (sim_cost_parse(name, &model.cost))
		argp_error(
			state,
			"models: '%s' is neither a model nor nanoseconds as %s",
			text, MRRC_COST_EXAMPLE);
	grid->model =
		grow(state, grid->model, grid->models, sizeof(*grid->model));
	grid->model[grid->models++] = model;
}

static void
add_list(struct argp_state *state, struct sim_grid *grid, const char *text,
	 void (*add)(struct argp_state *, struct sim_grid *, const char *))
{
	char *copy = strdup(text);
	char *rest = copy;
	char *part;

	if (!copy)
		argp_failure(state, 1, ENOMEM, "options");
	while ((part = strsep(&rest, ",")))
		add(state, grid, part);
	free(copy);
}

/* ---- argp ---- */

static void add_source(struct argp_state *state, struct sim_options *options,
		       char *text)
{
	options->source = grow(state, options->source, options->sources,
			       sizeof(*options->source));
	options->source[options->sources++] = text;
}

static void set_format(struct argp_state *state, struct sim_options *options,
		       const char *text)
{
	/* "table" is the former name of text */
	if (!strcmp(text, "text") || !strcmp(text, "table"))
		options->format = SIM_TABLE;
	else if (!strcmp(text, "csv"))
		options->format = SIM_CSV;
	else if (!strcmp(text, "json"))
		options->format = SIM_JSON;
	else
		argp_error(state, "'%s' is not text, csv or json", text);
}

/* Defaults for options that were not given. */
static void set_defaults(struct argp_state *state, struct sim_options *options)
{
	struct sim_grid *grid = &options->grid;
	size_t i;

	if (!options->sources)
		argp_error(state, "a TRACE is missing");
	if (grid->helpers &&
	    (grid->policies || grid->limits || grid->counts || grid->bounce))
		argp_error(state, "--helper has no limits, policies or copies");
	if (grid->gain && (grid->policies || grid->helpers || options->write))
		argp_error(state, "--gain has no policies and no helpers, and "
				  "writes no trace");
	if (!grid->policies)
		add_list(state, grid, grid->gain ? SIM_GAIN : DEFAULT_POLICIES,
			 add_policy);
	if (!grid->limits && grid->gain)
		add_no_limit(state, grid);
	if (!grid->limits)
		add_list(state, grid, DEFAULT_LIMITS, add_limit);
	for (i = 0; i < grid->models; i++)
		options->priced |= grid->model[i].recorded;
	if (!grid->models)
		add_model(state, grid, SIM_MODEL_TRACE);
	if (!grid->pages)
		add_page(state, grid, "4K");
	if (!grid->counts) {
		grid->count = grow(state, NULL, 0, sizeof(*grid->count));
		grid->count[grid->counts++] = SIZE_MAX;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct sim_options *options = state->input;
	struct sim_grid *grid = &options->grid;
	size_t jobs;

	switch (key) {
	case 'p':
	case KEY_POLICIES:
		add_list(state, grid, arg, add_policy);
		break;
	case 's':
		add_list(state, grid, arg, add_limit);
		break;
	case 'm':
		add_list(state, grid, arg, add_model);
		break;
	case 'P':
	case 'k':
		add_list(state, grid, arg, add_page);
		break;
	case KEY_COUNT:
		add_list(state, grid, arg, add_count);
		break;
	case KEY_TOGETHER:
		options->together = true;
		break;
	case KEY_BOUNCE:
		grid->bounce = true;
		break;
	case KEY_HELPER:
		add_list(state, grid, arg ? arg : SIM_HELPERS, add_helper);
		break;
	case KEY_GAIN:
		grid->gain = true;
		break;
	case KEY_MIN_LEN:
		options->min_len = parse_size(state, "min-len", arg);
		break;
	case 'f':
		set_format(state, options, arg);
		break;
	case KEY_JSON:
		options->format = SIM_JSON;
		break;
	case 'w':
	case KEY_WRITE:
		options->write = arg;
		break;
	case 'j':
		jobs = parse_count(state, "jobs", arg);
		grid->jobs = jobs < JOBS_MAX ? jobs : JOBS_MAX;
		break;
	case 'q':
		grid->progress = false;
		break;
	case 'l':
		sim_options_list();
		exit(EXIT_SUCCESS);
	case ARGP_KEY_ARG:
		add_source(state, options, arg);
		break;
	case ARGP_KEY_END:
		set_defaults(state, options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void sim_options_parse(int argc, char **argv, struct sim_options *options)
{
	const struct argp argp = {
		.options = option_table,
		.parser = parse,
		.args_doc = "TRACE...",
		.doc = doc,
		.children = tool_options,
	};
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*options = (struct sim_options){
		.grid.jobs = cpus > 0 ? cpus : 1,
		.grid.progress = isatty(STDERR_FILENO),
	};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}

void sim_options_free(struct sim_options *options)
{
	struct sim_grid *grid = &options->grid;
	size_t i;

	for (i = 0; i < grid->policies; i++)
		free(grid->policy[i]);
	for (i = 0; i < grid->models; i++)
		free(grid->model[i].name);
	for (i = 0; i < grid->helpers; i++)
		free(grid->helper[i]);
	free(grid->helper);
	free(grid->policy);
	free(grid->model);
	free(grid->limit);
	free(grid->page);
	free(grid->count);
	free(options->source);
}
