/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options of fi_mrrc_serve (serve/server/serve_options.h), by argp.
 */
#include "config.h"
#include "serve/server/serve_options.h"

#include <unistd.h>

#include "serve/server/jobs.h"
#include "serve/wire/net.h"
#include "serve/wire/text_arg.h"
#include "serve/wire/wire.h"
#include "tool_options.h"

enum {
	KEY_COPY = 256,
	KEY_TIMEOUT,
	KEY_IDLE,
	KEY_GRACE,
	KEY_THREADS,
	KEY_ROOT,
	KEY_PRIVATE,
	KEY_ALLOW,
	KEY_LOG,
	KEY_SECRET,
	KEY_MAX_CLIENTS,
	KEY_MEMORY,
};

static const char doc[] =
	"Serves the files beneath DIR to fi_mrrc_get(1), by RDMA writes over "
	"libfabric.  Every host that reaches the address can read them, unless "
	"--allow names some, or --secret asks for a secret; nothing is "
	"encrypted.\v"
	"Example: fi_mrrc_serve -a 10.0.0.1 /srv/data\n\n"
	"See fi_mrrc_serve(1).";

static const struct argp_option option_table[] = {
	{ "address", 'a', "ADDRESS", 0,
	  "Of this machine, to listen at (default "
	  "127.0.0.1: only this machine is served)",
	  0 },
	{ "port", 'p', "PORT", 0, "To listen at (default " NET_PORT ")", 0 },
	{ "endpoint", 'e', "TYPE", 0,
	  "msg or rdm, of server and client both (default msg)", 0 },
	{ "provider", 'P', "NAME", 0,
	  "Such as 'verbs;ofi_mrrc' (default that "
	  "of FI_PROVIDER, else verbs if it has the address, else tcp)",
	  0 },
	{ "max-clients", KEY_MAX_CLIENTS, "N", 0, "At once (default 64)", 0 },
	{ NULL, 'n', "N", OPTION_HIDDEN, NULL, 0 },
	{ NULL, 'm', "SIZE", OPTION_HIDDEN, NULL, 0 },
	{ "memory", KEY_MEMORY, "SIZE", 0,
	  "For the data of one client (default "
	  "2M)",
	  0 },
	{ "copy", KEY_COPY, NULL, 0,
	  "Read all ranges into memory, none is sent from the file's own pages",
	  0 },
	{ "threads", KEY_THREADS, "N", 0, "That read files (default 4)", 0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0,
	  "Disconnect a client that does "
	  "not take its data for so long (default 30)",
	  0 },
	{ "idle", KEY_IDLE, "SECONDS", 0,
	  "Disconnect a client that requests "
	  "nothing for so long (default 300)",
	  0 },
	{ "grace", KEY_GRACE, "SECONDS", 0,
	  "At the end, for ranges that are on "
	  "their way (default 10)",
	  0 },
	{ "user", 'u', "NAME", 0,
	  "Serve as this user, once what needs root is open", 0 },
	{ "root", KEY_ROOT, NULL, 0, "Serve as root, which is refused else",
	  0 },
	{ "allow", KEY_ALLOW, "NET|USER", 0,
	  "Serve these only: 10.0.0.0/8, an address, or a user of this "
	  "machine. "
	  "May be repeated",
	  0 },
	{ "private", KEY_PRIVATE, NULL, 0,
	  "Serve all that the server's user may read, not only what all users "
	  "of this machine may",
	  0 },
	{ "secret", KEY_SECRET, "FILE", 0,
	  "Serve only clients that prove that they have the same secret file",
	  0 },
	{ "log", KEY_LOG, NULL, 0, "Print who opens which file", 0 },
	{ "verbose", 'v', NULL, 0, "Report connections", 0 },
	{ 0 },
};

/*
 * Requires a user other than root, since root's files are not for every client
 * of the server.
 */
static void check_user(struct argp_state *state,
		       const struct serve_options *options)
{
	const uid_t uid = options->user.name ? options->user.uid : geteuid();

	if (!uid && !options->root)
		argp_error(state, "root would serve files: name another user "
				  "with --user, or say --root");
	if (uid != geteuid() && geteuid())
		argp_error(state, "user: only root can become '%s'",
			   options->user.name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct serve_options *options = state->input;

	switch (key) {
	case 'a':
		options->address = arg;
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
	case 'n':
	case KEY_MAX_CLIENTS:
		options->max_clients =
			arg_count(state, "max-clients", arg, 1, 4096);
		break;
	case 'm':
	case KEY_MEMORY:
		options->memory = arg_size(state, "memory", arg, SERVE_PART_MIN,
					   (size_t) 1 << 30);
		break;
	case KEY_COPY:
		options->copy = true;
		break;
	case KEY_THREADS:
		options->threads =
			arg_count(state, "threads", arg, 1, JOBS_THREADS_MAX);
		break;
	case KEY_TIMEOUT:
		options->timeout = arg_count(state, "timeout", arg, 1, 86400);
		break;
	case KEY_IDLE:
		options->idle = arg_count(state, "idle", arg, 1, 86400);
		break;
	case KEY_GRACE:
		options->grace = arg_count(state, "grace", arg, 0, 86400);
		break;
	case 'u':
		if (user_find(arg, &options->user))
			argp_error(state, "user: there is no '%s'", arg);
		break;
	case KEY_ROOT:
		options->root = true;
		break;
	case KEY_ALLOW:
		if (allow_add(&options->allow, arg))
			argp_error(state,
				   "allow: '%s' is no network and no "
				   "user, or there are too many",
				   arg);
		break;
	case KEY_PRIVATE:
		options->others = false;
		break;
	case KEY_SECRET:
		arg_secret(state, arg, &options->secret);
		break;
	case KEY_LOG:
		options->log = true;
		break;
	case 'v':
		options->verbose = true;
		break;
	case ARGP_KEY_ARG:
		if (options->dir)
			argp_error(state, "one DIR, not also '%s'", arg);
		options->dir = arg;
		break;
	case ARGP_KEY_END:
		if (!options->dir)
			argp_error(state, "which DIR is to be served?");
		check_user(state, options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void serve_options_parse(int argc, char **argv, struct serve_options *options)
{
	const struct argp argp = {
		.options = option_table,
		.parser = parse,
		.args_doc = "DIR",
		.doc = doc,
		.children = tool_options,
	};

	*options = (struct serve_options){
		.address = "127.0.0.1",
		.port = NET_PORT,
		.max_clients = 64,
		.memory = 2 << 20,
		.threads = 4,
		.timeout = 30,
		.idle = 300,
		.grace = 10,
		.others = true,
	};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}
