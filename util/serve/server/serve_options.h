/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of fi_mrrc_serve. Errors in the command line are printed to
 * stderr, and end the program with status 2.
 */
#ifndef SERVE_OPTIONS_H
#define SERVE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "serve/server/allow.h"
#include "serve/wire/net.h"
#include "serve/wire/secret.h"
#include "serve/server/user.h"

struct serve_options {
	const char *dir;
	const char *address;
	const char *port;
	struct net_kind kind;
	unsigned max_clients;
	size_t memory; /* bytes for the ranges of one client */
	unsigned threads;
	unsigned timeout; /* seconds that a transfer may make no progress */
	unsigned idle;	  /* seconds that a client may make no request */
	unsigned grace;	  /* seconds for transfers when the server ends */
	bool copy;	  /* send no file from its own pages */
	bool others;	  /* serve only files that all users may read */
	struct allow allow;
	/* secret of which clients have to prove knowledge */
	struct secret secret;
	bool log; /* log a line for each file that is opened */
	bool verbose;
	bool root; /* root may be the user */
	/* user to run as; name NULL: the user who started the server */
	struct user user;
};

void serve_options_parse(int argc, char **argv, struct serve_options *options);

#endif /* SERVE_OPTIONS_H */
