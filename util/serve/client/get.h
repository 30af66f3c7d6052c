/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fetches files, several at once, range by range, in the pipes of a session.
 * Answers are handled in the order of their requests, so that the ranges of a
 * file come in order. One thread calls these functions.
 */
#ifndef SERVE_GET_H
#define SERVE_GET_H

#include <jansson.h>

#include "serve/client/get_options.h"
#include "serve/client/local.h"
#include "serve/client/progress.h"
#include "serve/client/session.h"
#include "serve/client/tree.h"

enum fetch_state {
	FETCH_NONE,
	FETCH_BEGIN, /* OPEN is to be sent */
	FETCH_OPEN,  /* the answer to OPEN comes next */
	FETCH_SUM,   /* the partial file is compared, from its begin */
	FETCH_READ,
};

struct fetch {
	enum fetch_state state;
	uint64_t order; /* fetches with lower numbers go first */
	uint64_t phase; /* answers to requests of other phases are dropped */
	unsigned tries;
	bool is_source; /* the file was named on the command line */
	bool skips;	/* OPEN asks for no bytes */
	char *remote, *local_path;
	struct local local;
	struct serve_ident ident;
	/* bytes requested, and bytes handled, in the present state */
	uint64_t next, done, end;
};

struct asked {
	struct session_pipe *pipe;
	struct fetch *fetch;
	uint64_t phase;
	uint64_t off;
	uint32_t len;
};

struct get {
	const struct get_options *options;
	struct local_perms perms;
	/* directory that was not synced after a rename in it, or -1 */
	int renamed;
	struct session session;
	struct tree tree;
	struct progress progress;
	size_t sources; /* number of sources begun */
	struct fetch fetch[SERVE_SLOTS];
	struct asked asked[SERVE_PIPES_MAX]; /* a ring of requests */
	unsigned first, count;
	uint64_t phases, orders, failed;
	/* number of error messages, including those not printed */
	uint64_t complaints;
	json_t *messages; /* for --format=json, at most GET_COMPLAINTS */
	bool items;	  /* an item was printed */
};

/*
 * Exit status if all entries were fetched, except entries of unsupported kinds
 */
#define GET_LEFT_OUT 3

/* Fetches all sources. Returns the exit status. */
int get_run(const struct get_options *options, volatile sig_atomic_t *stop);

/* Lists the sources, for --list; returns as get_run(). */
int get_list(struct get *get);

/*
 * Maximum number of lines about paths on standard error, since a server could
 * cause any number of such lines
 */
#define GET_COMPLAINTS 1000

/* Print lines on standard error, and output. Any byte may be in path. */
void get_complain(struct get *get, const char *path, const char *why);
void get_print(struct get *get, const char *path);

/* get_json.c: prints the document item by item, since there may be many */

/* Makes JSON text, as on a terminal, of text that may have any byte. */
json_t *get_json_text(const char *text, size_t len);
/* Makes a JSON number; INT64_MAX for larger values, as integers are signed. */
json_t *get_json_count(uint64_t value);
void get_json_item(struct get *get, json_t *item);
void get_json_message(struct get *get, json_t *path, const char *why);
/* Prints the rest of the document. @error: the session's error, or "". */
void get_json_end(struct get *get, const char *error, int status);

/* fetch.c */

/* Begins the fetch of a new file; from now on the paths belong to the fetch. */
void fetch_begin(struct get *get, struct fetch *fetch, char *remote,
		 char *local);
bool fetch_wants(const struct fetch *fetch);
/* Sends the next request, when fetch_wants() is true and a pipe is idle. */
int fetch_post(struct get *get, struct fetch *fetch);
/* Handles the oldest answer. Errors end the session. */
int fetch_handle(struct get *get, const struct asked *asked);
void fetch_end(struct fetch *fetch);
/*
 * Syncs the last files' directory to the disk. Returns 0, or a negative errno.
 */
int fetch_sync(struct get *get);

#endif /* SERVE_GET_H */
