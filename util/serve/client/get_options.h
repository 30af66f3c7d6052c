/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of fi_mrrc_get. Errors in the command line are printed to
 * stderr, and end the program with status 2.
 */
#ifndef SERVE_GET_OPTIONS_H
#define SERVE_GET_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/wire/net.h"
#include "serve/wire/secret.h"

struct get_options {
	char *host; /* the host of all sources */
	char **path;
	size_t paths;
	char **exclude; /* patterns of entries that are not fetched */
	size_t excludes;
	const char *dir; /* directory to which files are written */
	const char *port;
	struct net_kind kind;
	/* secret of which the server has to prove knowledge */
	struct secret secret;
	uint32_t part, pipes;
	unsigned timeout, max_entries;
	bool list, quiet, verbose, no_sync, dry_run, no_perms, json;
};

void get_options_parse(int argc, char **argv, struct get_options *options);
void get_options_free(struct get_options *options);

#endif /* SERVE_GET_OPTIONS_H */
