/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fetching (serve/client/get.h).
 */
#include "config.h"
#include "serve/client/get.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/wire/path.h"

void get_complain(struct get *get, const char *path, const char *why)
{
	char *shown;

	if (++get->complaints > GET_COMPLAINTS)
		return;
	shown = path_shown(path, strlen(path));
	if (get->options->json)
		get_json_message(get, json_string(shown ? shown : ""), why);
	/* the line that shows the progress is erased */
	fprintf(stderr, "%sfi_mrrc_get: %s: %s\n",
		isatty(STDERR_FILENO) ? "\r\033[K" : "",
		shown && *shown ? shown : "the served directory", why);
	free(shown);
}

void get_print(struct get *get, const char *path)
{
	char *shown;

	if (get->options->json) {
		get_json_item(get, get_json_text(path, strlen(path)));
		return;
	}
	shown = path_shown(path, strlen(path));
	printf("%s\n", shown ? shown : "");
	fflush(stdout);
	free(shown);
}

/* ---- the next file ------------------------------------------------------- */

/*
 * Is an older fetch of the same file in progress? The older fetch comes first.
 */
static bool is_late(const struct get *get, const struct fetch *fetch)
{
	const struct fetch *other = get->fetch;

	for (; other < get->fetch + SERVE_SLOTS; other++) {
		if (other->state != FETCH_NONE && other->order < fetch->order &&
		    !strcmp(other->local_path, fetch->local_path))
			return true;
	}
	return false;
}

static struct fetch *oldest(struct get *get)
{
	struct fetch *found = NULL, *fetch = get->fetch;

	for (; fetch < get->fetch + SERVE_SLOTS; fetch++) {
		if (fetch_wants(fetch) && !is_late(get, fetch) &&
		    (!found || fetch->order < found->order))
			found = fetch;
	}
	return found;
}

static struct fetch *unused(struct get *get)
{
	unsigned i;

	for (i = 0; i < SERVE_SLOTS; i++) {
		if (get->fetch[i].state == FETCH_NONE)
			return &get->fetch[i];
	}
	return NULL;
}

static int begin_source(struct get *get, struct fetch *fetch)
{
	const char *path = get->options->path[get->sources++];
	const char *slash = strrchr(path, '/');
	char *remote = strdup(path), *local = strdup(slash ? slash + 1 : path);

	if (!remote || !local) {
		free(remote);
		free(local);
		return -ENOMEM;
	}
	fetch_begin(get, fetch, remote, local);
	fetch->is_source = true;
	return 0;
}

/* Begins to fetch another file, if there is one. */
static int begin_next(struct get *get, bool *begun)
{
	struct fetch *fetch = unused(get);
	char *remote = NULL, *local = NULL;
	int ret;

	*begun = false;
	if (!fetch)
		return 0;
	ret = tree_next(&get->tree, &remote, &local);
	if (!ret)
		fetch_begin(get, fetch, remote, local);
	else if (ret == -EAGAIN)
		/* -EAGAIN: try later, when other files are complete */
		return 0;
	else if (ret == -ENOENT && get->sources < get->options->paths)
		ret = begin_source(get, fetch);
	else if (ret == -ENOENT)
		return 0;
	*begun = !ret;
	return ret;
}

/* Sends requests until all pipes are in use. */
static int fill(struct get *get)
{
	struct fetch *fetch;
	bool begun = true;
	int ret = 0;

	while (!ret && begun && get->count < get->session.pipes) {
		fetch = oldest(get);
		if (fetch)
			ret = fetch_post(get, fetch);
		else
			ret = begin_next(get, &begun);
	}
	return ret;
}

static int fetch_all(struct get *get)
{
	struct asked asked;
	int ret;

	for (;;) {
		ret = fill(get);
		if (ret || !get->count)
			return ret;
		asked = get->asked[get->first];
		get->first = (get->first + 1) % SERVE_PIPES_MAX;
		get->count--;
		ret = fetch_handle(get, &asked);
		if (ret)
			return ret;
	}
}

/* ---- begin and end ------------------------------------------------------- */

/* Reports an error of a directory */
static void complain(void *get, const char *path, const char *why)
{
	get_complain(get, path, why);
}

/* Is a file on its way? */
static bool is_busy(void *context)
{
	const struct get *get = context;
	unsigned i;

	for (i = 0; i < SERVE_SLOTS; i++) {
		if (get->fetch[i].state != FETCH_NONE)
			return true;
	}
	return false;
}

static void end_all(struct get *get, int ret)
{
	unsigned i;
	int synced;

	for (i = 0; i < SERVE_SLOTS; i++) {
		if (get->fetch[i].state != FETCH_NONE)
			fetch_end(&get->fetch[i]);
	}
	synced = fetch_sync(get);
	if (synced) {
		get->failed++;
		get_complain(get, get->options->dir, strerror(-synced));
	}
	get->failed += get->tree.failed;
	tree_close(&get->tree);
	progress_clear(&get->progress);
	if (get->complaints > GET_COMPLAINTS)
		fprintf(stderr,
			"fi_mrrc_get: %" PRIu64 " more messages were "
			"not printed\n",
			get->complaints - GET_COMPLAINTS);
	if (!ret || ret == -ENOSPC)
		return;
	get->failed++;
	fprintf(stderr, "fi_mrrc_get: %s: %s\n", get->options->host,
		ret == -ENOMEM	  ? "no memory" :
		*get->session.err ? get->session.err :
				    strerror(-ret));
	fprintf(stderr, "fi_mrrc_get: to continue the transfer, run the same "
			"command again\n");
}

static int fetch_sources(struct get *get)
{
	const struct get_options *options = get->options;
	int ret;

	get->tree.dir = path_root(options->dir);
	if (get->tree.dir < 0) {
		get_complain(get, options->dir, path_root_error(get->tree.dir));
		return EXIT_FAILURE;
	}
	get->tree.sync = !options->no_sync;
	get->tree.dry_run = options->dry_run;
	get->tree.perms = get->perms.keep;
	get->tree.busy = is_busy;
	get->tree.exclude = options->exclude;
	get->tree.excludes = options->excludes;
	get->tree.complain = complain;
	get->tree.context = get;
	progress_open(&get->progress, options->quiet);
	ret = fetch_all(get);
	end_all(get, ret);
	if (!options->quiet && !options->json)
		progress_print(&get->progress, options->dry_run,
			       get->tree.links, get->tree.left_out,
			       get->failed);
	close(get->tree.dir);
	return get->failed			     ? EXIT_FAILURE :
	       get->tree.links || get->tree.left_out ? GET_LEFT_OUT :
						       EXIT_SUCCESS;
}

int get_run(const struct get_options *options, volatile sig_atomic_t *stop)
{
	const struct session_attr attr = {
		.host = options->host,
		.port = options->port,
		.kind = options->kind,
		.secret = &options->secret,
		.part = options->part,
		.pipes = options->pipes,
		.timeout = options->timeout,
		.stop = stop,
	};
	struct get get = { .options = options, .renamed = -1 };
	int ret;

	/* umask(2) is the process's: set it before other threads begin */
	get.perms.mask = umask(0);
	umask(get.perms.mask);
	get.perms.keep = !options->no_perms;
	ret = session_open(&attr, &get.session);
	if (ret) {
		fprintf(stderr, "fi_mrrc_get: %s, port %s: %s\n", options->host,
			options->port, get.session.err);
		ret = *stop ? 130 : EXIT_FAILURE;
		if (options->json)
			get_json_end(&get, get.session.err, ret);
		return ret;
	}
	get.tree.session = &get.session;
	get.tree.entries_max = options->max_entries;
	ret = options->list ? get_list(&get) : fetch_sources(&get);
	session_close(&get.session);
	ret = *stop ? 130 : ret;
	if (options->json)
		get_json_end(&get, get.session.err, ret);
	return ret;
}
