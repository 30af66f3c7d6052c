/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options of fi_mrrc_get (serve/client/get_options.h), by argp.
 */
#include "config.h"
#include "serve/client/get_options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "serve/wire/net.h"
#include "serve/wire/text_arg.h"
#include "serve/wire/wire.h"
#include "tool_options.h"

enum {
	KEY_PART = 256,
	KEY_PIPES,
	KEY_TIMEOUT,
	KEY_MAX_ENTRIES,
	KEY_NO_SYNC,
	KEY_SECRET,
	KEY_EXCLUDE,
	KEY_NO_PERMS,
	KEY_JSON,
};

static const char doc[] =
	"Fetches files and directories from fi_mrrc_serve(1), into the current "
	"directory.  PATH is beneath the served directory; without PATH all of "
	"it is fetched.  What an interrupted run has fetched is kept, and not "
	"sent again.\v"
	"Examples:\n"
	"  fi_mrrc_get 10.0.0.1:data/run1 10.0.0.1:README\n"
	"  fi_mrrc_get --list 10.0.0.1:\n"
	"  fi_mrrc_get -C /tmp [fe80::1]:data\n\n"
	"See fi_mrrc_get(1).";

static const struct argp_option option_table[] = {
	{ "directory", 'C', "DIR", 0, "Write beneath DIR (default '.')", 0 },
	{ "list", 'l', NULL, 0, "List the directories, and fetch nothing", 0 },
	{ "dry-run", 'n', NULL, 0,
	  "Print what would be fetched, and write nothing", 0 },
	{ "exclude", KEY_EXCLUDE, "PATTERN", 0,
	  "Leave out entries of directories with such a name, or, if PATTERN "
	  "has "
	  "a slash, such a path (more than once: any of them)",
	  0 },
	{ "port", 'p', "PORT", 0, "Of the server (default " NET_PORT ")", 0 },
	{ "endpoint", 'e', "TYPE", 0,
	  "msg or rdm, of server and client both (default msg)", 0 },
	{ "provider", 'P', "NAME", 0,
	  "Such as 'verbs;ofi_mrrc' (default that "
	  "of FI_PROVIDER, else verbs if it reaches the host, else tcp)",
	  0 },
	{ "secret", KEY_SECRET, "FILE", 0,
	  "Fetch only from a server that proves that it has the same secret "
	  "file",
	  0 },
	{ "format", 'f', "FORMAT", 0, "text or json (default text)", 0 },
	{ "json", KEY_JSON, NULL, 0, "The same as --format=json", 0 },
	{ "quiet", 'q', NULL, 0, "Print errors only", 0 },
	{ "verbose", 'v', NULL, 0, "Print the name of each complete file", 0 },
	{ "part", KEY_PART, "SIZE", 0, "Of a range (default 512K)", 0 },
	{ "pipes", KEY_PIPES, "N", 0, "Ranges on their way at once (default 4)",
	  0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0,
	  "Give up when the server does "
	  "not answer for so long (default 60)",
	  0 },
	{ "max-entries", KEY_MAX_ENTRIES, "N", 0,
	  "End when directories have more entries (default 10000000)", 0 },
	{ "no-perms", KEY_NO_PERMS, NULL, 0,
	  "Do not take permissions: files that are replaced keep theirs, new "
	  "ones have those that umask leaves",
	  0 },
	{ "no-sync", KEY_NO_SYNC, NULL, 0,
	  "Do not wait until files are on the "
	  "disk",
	  0 },
	{ 0 },
};

/*
 * Copies a path without slashes at its beginning and end, "//" and "/./".
 * Returns NULL if the path has "..", or is too long.
 */
static char *clean(const char *path)
{
	char *made = calloc(1, strlen(path) + 1), *end = made;
	size_t len;

	while (made && *path) {
		len = strcspn(path, "/");
		if (len && !(len == 1 && *path == '.')) {
			if (end > made)
				*end++ = '/';
			end = mempcpy(end, path, len);
		}
		path += len;
		path += *path == '/';
	}
	if (made && !serve_path_valid(made, end - made)) {
		free(made);
		return NULL;
	}
	return made;
}

/* Parses HOST:PATH, with HOST in brackets if it has colons. */
static void add_source(struct argp_state *state, struct get_options *options,
		       const char *arg)
{
	const bool brackets = *arg == '[';
	const char *end = strchr(arg, brackets ? ']' : ':');
	char *host, *path;

	if (!end || end == arg + brackets || (brackets && *++end != ':'))
		argp_error(state, "'%s' is not HOST:PATH", arg);
	host = strndup(arg + brackets, end - arg - 2 * brackets);
	path = clean(end + 1);
	options->path = reallocarray(options->path, options->paths + 1,
				     sizeof(*options->path));
	if (!host || !options->path)
		argp_failure(state, 1, ENOMEM, "options");
	if (!path)
		argp_error(state, "'%s': no path beneath the served directory",
			   arg);
	if (options->host && strcmp(options->host, host))
		argp_error(state, "'%s': one host a call, not also %s", arg,
			   options->host);
	free(options->host);
	options->host = host;
	options->path[options->paths++] = path;
}

static void add_exclude(struct argp_state *state, struct get_options *options,
			char *pattern)
{
	if (!*pattern)
		argp_error(state, "exclude: no pattern");
	options->exclude = reallocarray(options->exclude, options->excludes + 1,
					sizeof(*options->exclude));
	if (!options->exclude)
		argp_failure(state, 1, ENOMEM, "options");
	options->exclude[options->excludes++] = pattern;
}

static void set_format(struct argp_state *state, struct get_options *options,
		       const char *text)
{
	options->json = !strcmp(text, "json");
	if (!options->json && strcmp(text, "text"))
		argp_error(state, "format: text or json, not '%s'", text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct get_options *options = state->input;

	switch (key) {
	case 'C':
		options->dir = arg;
		break;
	case 'l':
		options->list = true;
		break;
	case 'p':
		options->port = arg_port(state, arg);
		break;
	case 'e':
		if (net_endpoints(arg, &options->kind.rdm))
			argp_error(state, "endpoint: msg or rdm, not '%s'",
				   arg);
		break;
	case 'P':
		options->kind.provider = arg;
		break;
	case 'q':
		options->quiet = true;
		break;
	case 'v':
		options->verbose = true;
		break;
	case KEY_PART:
		options->part = (uint32_t) arg_size(state, "part", arg,
						    SERVE_PART_MIN,
						    SERVE_PART_MAX);
		break;
	case KEY_PIPES:
		options->pipes =
			arg_count(state, "pipes", arg, 1, SERVE_PIPES_MAX);
		break;
	case KEY_TIMEOUT:
		options->timeout = arg_count(state, "timeout", arg, 1, 86400);
		break;
	case KEY_MAX_ENTRIES:
		options->max_entries =
			arg_count(state, "max-entries", arg, 1, UINT_MAX);
		break;
	case KEY_SECRET:
		arg_secret(state, arg, &options->secret);
		break;
	case 'n':
		options->dry_run = true;
		break;
	case KEY_EXCLUDE:
		add_exclude(state, options, arg);
		break;
	case 'f':
		set_format(state, options, arg);
		break;
	case KEY_JSON:
		options->json = true;
		break;
	case KEY_NO_PERMS:
		options->no_perms = true;
		break;
	case KEY_NO_SYNC:
		options->no_sync = true;
		break;
	case ARGP_KEY_ARG:
		add_source(state, options, arg);
		break;
	case ARGP_KEY_END:
		if (!options->paths)
			argp_error(state, "what is to be fetched? HOST:PATH");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void get_options_parse(int argc, char **argv, struct get_options *options)
{
	const struct argp argp = {
		.options = option_table,
		.parser = parse,
		.args_doc = "HOST:[PATH]...",
		.doc = doc,
		.children = tool_options,
	};

	*options = (struct get_options){
		.dir = ".",
		.port = NET_PORT,
		.part = 512 << 10,
		.pipes = 4,
		.timeout = 60,
		.max_entries = 10000000,
	};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}

void get_options_free(struct get_options *options)
{
	size_t i;

	for (i = 0; i < options->paths; i++)
		free(options->path[i]);
	free(options->path);
	free(options->exclude);
	free(options->host);
}
