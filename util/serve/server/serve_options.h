/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of fi_mrrc_serve. Errors in it are printed to stderr, and
 * end the program with status 2.
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
	size_t memory; /* for the ranges of one client */
	unsigned threads;
	unsigned timeout; /* seconds without progress */
	unsigned idle;	  /* seconds without a request */
	unsigned grace;	  /* seconds that transfers have at the end */
	bool copy;	  /* no file is sent from its own pages */
	bool others;	  /* only what all users may read is served */
	struct allow allow;
	struct secret secret; /* that clients have to prove */
	bool log;	      /* a line for each file that is opened */
	bool verbose;
	bool root;	  /* may be the user */
	struct user user; /* name NULL: the one who began it */
};

void serve_options_parse(int argc, char **argv, struct serve_options *options);

#endif /* SERVE_OPTIONS_H */
