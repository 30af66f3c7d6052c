/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options (prof/options.h), by argp.
 */
#include "config.h"
#include "prof/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"
#include "tool_options.h"

#define SIZES_DEFAULT  "4K-16M"
#define SIZES_MAX      64
#define SIZE_MAX_BYTES ((size_t) 1 << 40)
#define ROUNDS_MAX     100000
#define SECONDS_MAX    86400

enum {
	KEY_SKIP = 256,
	KEY_SAVE,
	KEY_CSV,
	KEY_JSON,
	KEY_ROUNDS,
	KEY_SOURCE,
	KEY_TIME
};

static const char doc[] =
	"Measures what registering memory costs on a device, by size, kind of "
	"pages and whether they are present; what that is spent on; and what "
	"follows for ofi_mrrc.\v"
	"Examples:\n"
	"  fi_mrrc_prof --list\n"
	"  fi_mrrc_prof -P verbs -d mlx5_0\n"
	"  fi_mrrc_prof -P verbs --save=/etc/mrrc.cost\n"
	"  FI_OFI_MRRC_COST=file:/etc/mrrc.cost FI_PROVIDER=\"verbs;ofi_mrrc\" "
	"./app\n"
	"  fi_mrrc_prof -P tcp -s 4K-1M -k 4k --skip=bandwidth -f csv -o "
	"tcp.csv\n\n"
	"See fi_mrrc_prof(1).";

static const struct argp_option option_table[] = {
	{ NULL, 'p', "NAME", OPTION_HIDDEN, NULL, 0 },
	{ "provider", 'P', "NAME", 0,
	  "The core provider (default verbs, else "
	  "tcp)",
	  0 },
	{ "domain", 'd', "NAME", 0, "The device (default the provider's first)",
	  0 },
	{ "address", 'a', "ADDRESS", 0, "This machine's address on it", 0 },
	{ "source", KEY_SOURCE, "ADDRESS", OPTION_HIDDEN, NULL, 0 },
	{ "sizes", 's', "LIST", 0,
	  "Bytes (K, M, G), separated by commas, or "
	  "MIN-MAX for MIN and its doublings (default " SIZES_DEFAULT ")",
	  0 },
	{ "pages", 'k', "LIST", 0,
	  "4k, thp, 2m, 1g (default 4k,thp,2m, of "
	  "those that there are)",
	  0 },
	{ "rounds", KEY_ROUNDS, "N", 0,
	  "Most measurements of a size (default 30)", 0 },
	{ NULL, 'n', "N", OPTION_HIDDEN, NULL, 0 },
	{ "time", KEY_TIME, "SECONDS", OPTION_HIDDEN, NULL, 0 },
	{ "duration", 't', "SECONDS", 0, "About how long in all (default 20)",
	  0 },
	{ "skip", KEY_SKIP, "LIST", 0,
	  "Leave out trace (the kernel's "
	  "functions) or bandwidth",
	  0 },
	{ "save", KEY_SAVE, "FILE", 0,
	  "Write the model there, for "
	  "FI_OFI_MRRC_COST=file:FILE",
	  0 },
	{ "format", 'f', "FORMAT", 0, "text, csv or json (default text)", 0 },
	{ "csv", KEY_CSV, NULL, 0, "The same as --format=csv", 0 },
	{ "json", KEY_JSON, NULL, 0, "The same as --format=json", 0 },
	{ "output", 'o', "FILE", 0, "Write there, whole or not at all", 0 },
	{ "quiet", 'q', NULL, 0, "Do not say what is being measured", 0 },
	{ "list", 'l', NULL, 0, "List providers and devices", 0 },
	{ 0 },
};

static const char *const pages_names[MRRC_PAGES_CNT] = {
	[MRRC_PAGES_AUTO] = "auto", [MRRC_PAGES_4K] = "4k",
	[MRRC_PAGES_THP] = "thp",   [MRRC_PAGES_2M] = "2m",
	[MRRC_PAGES_1G] = "1g",
};

const char *prof_pages_name(enum mrrc_pages kind)
{
	return pages_names[kind];
}

/* ---- sizes ---- */

static size_t get_size(struct argp_state *state, const char *text)
{
	size_t bytes = 0;

	if (mrrc_text_size(text, &bytes) || !bytes || bytes > SIZE_MAX_BYTES)
		argp_error(state,
			   "sizes: '%s' is no size up to 1T; try 4096, "
			   "64K, or 4K-16M",
			   text);
	return (bytes + PROF_PAGE - 1) / PROF_PAGE * PROF_PAGE;
}

static void add_size(struct argp_state *state, struct prof_options *options,
		     size_t size)
{
	size_t at = options->sizes;

	if (at == SIZES_MAX)
		argp_error(state, "sizes: more than %d", SIZES_MAX);
	while (at && options->size[at - 1] > size)
		at--;
	if (at && options->size[at - 1] == size)
		return;
	memmove(&options->size[at + 1], &options->size[at],
		(options->sizes++ - at) * sizeof(*options->size));
	options->size[at] = size;
}

static void add_range(struct argp_state *state, struct prof_options *options,
		      const char *low, const char *high)
{
	const size_t from = get_size(state, low), to = get_size(state, high);
	size_t size;

	if (from > to)
		argp_error(state, "sizes: %s is more than %s", low, high);
	for (size = from; size <= to; size *= 2)
		add_size(state, options, size);
}

/* Parses a comma-separated list, in a copy. */
static void set_list(struct argp_state *state, struct prof_options *options,
		     const char *text,
		     void (*add)(struct argp_state *, struct prof_options *,
				 char *))
{
	char *copy = strdup(text), *rest = copy, *part;

	if (!copy)
		argp_failure(state, 1, ENOMEM, "options");
	while ((part = strsep(&rest, ",")))
		add(state, options, part);
	free(copy);
}

static void add_sizes(struct argp_state *state, struct prof_options *options,
		      char *part)
{
	char *high = strchr(part, '-');

	if (high) {
		*high++ = '\0';
		add_range(state, options, part, high);
	} else {
		add_size(state, options, get_size(state, part));
	}
}

/* ---- other options ---- */

static void add_pages(struct argp_state *state, struct prof_options *options,
		      char *part)
{
	enum mrrc_pages kind;

	for (kind = MRRC_PAGES_4K; kind < MRRC_PAGES_CNT; kind++) {
		if (!strcasecmp(part, pages_names[kind])) {
			options->pages[kind] = options->pages_given = true;
			return;
		}
	}
	argp_error(state, "pages: '%s' is none of 4k, thp, 2m and 1g", part);
}

static void add_skip(struct argp_state *state, struct prof_options *options,
		     char *part)
{
	if (!strcmp(part, "trace"))
		options->trace = false;
	else if (!strcmp(part, "bandwidth"))
		options->bandwidth = false;
	else
		argp_error(state, "skip: '%s' is neither trace nor bandwidth",
			   part);
}

static void set_rounds(struct argp_state *state, const char *text,
		       unsigned *rounds)
{
	size_t count = 0;

	if (mrrc_text_count(text, &count) || !count || count > ROUNDS_MAX)
		argp_error(state, "rounds: '%s' is no number from 1 to %d",
			   text, ROUNDS_MAX);
	*rounds = (unsigned) count;
}

static void set_seconds(struct argp_state *state, const char *text,
			double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end || !(*seconds > 0 && *seconds <= SECONDS_MAX))
		argp_error(state,
			   "duration: '%s' is no number of seconds up to "
			   "%d",
			   text, SECONDS_MAX);
}

static void set_format(struct argp_state *state, struct prof_options *options,
		       const char *text)
{
	static const char *const names[] = { "text", "csv", "json" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(text, names[i])) {
			options->format = i;
			return;
		}
	}
	if (strcmp(text, "table")) /* the former name of text */
		argp_error(state, "'%s' is not text, csv or json", text);
	options->format = PROF_TABLE;
}

/*
 * Refuses a provider whose name contains ofi_mrrc, since fi_mrrc_prof would
 * measure ofi_mrrc's cache.
 */
static void set_provider(struct argp_state *state, struct prof_options *options,
			 const char *text)
{
	if (strstr(text, "ofi_mrrc"))
		argp_error(state,
			   "provider: '%s' keeps registrations; name "
			   "what is beneath ofi_mrrc",
			   text);
	options->provider = text;
}

static void set_defaults(struct argp_state *state, struct prof_options *options)
{
	if (!options->sizes)
		set_list(state, options, SIZES_DEFAULT, add_sizes);
	if (!options->pages_given) {
		options->pages[MRRC_PAGES_4K] = true;
		options->pages[MRRC_PAGES_THP] = true;
		options->pages[MRRC_PAGES_2M] = true;
	}
	if (options->save &&
	    (!options->pages[MRRC_PAGES_4K] || options->sizes < 2))
		argp_error(state, "save: a model needs pages of 4k and two "
				  "sizes");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct prof_options *options = state->input;

	switch (key) {
	case 'p':
	case 'P':
		set_provider(state, options, arg);
		break;
	case 'd':
		options->domain = arg;
		break;
	case 'a':
	case KEY_SOURCE:
		options->source = arg;
		break;
	case 's':
		set_list(state, options, arg, add_sizes);
		break;
	case 'k':
		set_list(state, options, arg, add_pages);
		break;
	case 'n':
	case KEY_ROUNDS:
		set_rounds(state, arg, &options->rounds);
		break;
	case 't':
	case KEY_TIME:
		set_seconds(state, arg, &options->seconds);
		break;
	case KEY_SKIP:
		set_list(state, options, arg, add_skip);
		break;
	case KEY_SAVE:
		options->save = arg;
		break;
	case 'f':
		set_format(state, options, arg);
		break;
	case KEY_CSV:
		options->format = PROF_CSV;
		break;
	case KEY_JSON:
		options->format = PROF_JSON;
		break;
	case 'o':
		options->output = arg;
		break;
	case 'q':
		options->quiet = true;
		break;
	case 'l':
		options->list = true;
		break;
	case ARGP_KEY_END:
		set_defaults(state, options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void prof_options_parse(int argc, char **argv, struct prof_options *options)
{
	const struct argp argp = {
		.options = option_table,
		.parser = parse,
		.doc = doc,
		.children = tool_options,
	};

	*options = (struct prof_options){
		.rounds = 30,
		.seconds = 20,
		.trace = true,
		.bandwidth = true,
		.output = "-",
		.size = calloc(SIZES_MAX, sizeof(size_t)),
	};
	argp_err_exit_status = 2;
	if (!options->size) {
		fputs("fi_mrrc_prof: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	argp_parse(&argp, argc, argv, 0, NULL, options);
}

void prof_options_free(struct prof_options *options)
{
	free(options->size);
}
