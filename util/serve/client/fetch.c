/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fetches one file: opens the file at the server, compares the client's partial
 * file, and reads the rest range by range (serve/client/get.h).
 */
#include "config.h"
#include "serve/client/get.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include <xxhash.h>

#include "serve/wire/path.h"

#define TRIES	 20
#define PAUSE_MS 50

void fetch_begin(struct get *get, struct fetch *fetch, char *remote,
		 char *local)
{
	memset(fetch, 0, sizeof(*fetch));
	fetch->state = FETCH_BEGIN;
	fetch->order = ++get->orders;
	fetch->phase = ++get->phases;
	fetch->remote = remote;
	fetch->local_path = local;
	fetch->local.fd = fetch->local.dir = -1;
}

void fetch_end(struct fetch *fetch)
{
	local_close(&fetch->local);
	free(fetch->remote);
	free(fetch->local_path);
	fetch->state = FETCH_NONE;
	/* answers of the ended fetch that still arrive belong to no phase */
	fetch->phase = 0;
}

static void failed(struct get *get, struct fetch *fetch, const char *why)
{
	get_complain(get, fetch->remote, why);
	get->failed++;
	fetch_end(fetch);
}

static const char *local_error(int ret)
{
	switch (ret) {
	case -ELOOP:
		return "a symbolic link is in the way";
	case -EBUSY:
		return "another process fetches it";
	case -EPERM:
		return "its partial file is not a regular file of this user";
	case -EFBIG:
		return "File too large: see ulimit -f, and what the file "
		       "system can hold";
	default:
		return strerror(-ret);
	}
}

/*
 * Handles an error of the client's own machine: the error ends the program,
 * unless the next file may succeed.
 */
static int local_failed(struct get *get, struct fetch *fetch, int ret)
{
	const char *why = local_error(ret);
	char text[512];

	if (fetch->local.fd >= 0 && fetch->local.size) {
		snprintf(text, sizeof(text),
			 "%s (%llu bytes are kept; the next call goes on "
			 "there)",
			 why, (unsigned long long) fetch->local.size);
		why = text;
	}
	failed(get, fetch, why);
	return ret == -ENOSPC || ret == -EDQUOT || ret == -EIO ||
			       ret == -EROFS ?
		       -ENOSPC :
		       0;
}

/* ---- asking -------------------------------------------------------------- */

bool fetch_wants(const struct fetch *fetch)
{
	return fetch->state == FETCH_BEGIN ||
	       ((fetch->state == FETCH_SUM || fetch->state == FETCH_READ) &&
		fetch->next < fetch->end);
}

/* Finds the local file, before bytes of the remote file are requested. */
static int look(struct get *get, struct fetch *fetch)
{
	struct local *local = &fetch->local;
	struct stat st;
	int ret;

	/* if the source is a directory, its name may be empty */
	if (local->dir >= 0 || !*fetch->local_path)
		return 0;
	ret = local_find(get->tree.dir, fetch->local_path, local);
	fetch->skips = get->options->dry_run;
	if (fetch->skips && ret == -ENOENT)
		return 0;
	if (ret || fetch->skips)
		return ret;
	fetch->skips = local->size || !fstatat(local->dir, local->name, &st,
					       AT_SYMLINK_NOFOLLOW);
	return 0;
}

static void prepare(struct get *get, struct fetch *fetch, struct serve_msg *msg)
{
	const uint32_t part = get->session.part;

	msg->slot = (uint32_t) (fetch - get->fetch);
	if (fetch->state == FETCH_BEGIN) {
		msg->type = SERVE_OPEN;
		msg->path = fetch->remote;
		msg->path_len = strlen(fetch->remote);
		msg->len = fetch->skips		   ? 0 :
			   part < SERVE_INLINE_MAX ? part :
						     SERVE_INLINE_MAX;
		fetch->state = FETCH_OPEN;
		return;
	}
	msg->type = fetch->state == FETCH_SUM ? SERVE_SUM : SERVE_READ;
	msg->off = fetch->next;
	msg->len = fetch->end - fetch->next < part ?
			   (uint32_t) (fetch->end - fetch->next) :
			   part;
	fetch->next += msg->len;
}

int fetch_post(struct get *get, struct fetch *fetch)
{
	struct session_pipe *pipe = session_idle(&get->session);
	struct serve_msg msg = { 0 };
	int ret;

	if (fetch->state == FETCH_BEGIN) {
		ret = look(get, fetch);
		if (ret)
			return local_failed(get, fetch, ret);
	}
	prepare(get, fetch, &msg);
	get->asked[(get->first + get->count++) % SERVE_PIPES_MAX] =
		(struct asked){ pipe, fetch, fetch->phase, msg.off, msg.len };
	return session_request(&get->session, pipe, &msg);
}

/* ---- answers ------------------------------------------------------------- */

static void go_to(struct get *get, struct fetch *fetch, enum fetch_state state,
		  uint64_t done, uint64_t end)
{
	fetch->state = state;
	fetch->phase = ++get->phases;
	fetch->next = fetch->done = done;
	fetch->end = end;
}

/* Starts the fetch again from the beginning, with the present local file. */
static void again(struct get *get, struct fetch *fetch, const char *why)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };

	if (++fetch->tries > TRIES) {
		failed(get, fetch, why);
		return;
	}
	nanosleep(&pause, NULL);
	local_close(&fetch->local);
	go_to(get, fetch, FETCH_BEGIN, 0, 0);
}

int fetch_sync(struct get *get)
{
	int ret;

	if (get->renamed < 0)
		return 0;
	ret = fsync(get->renamed) ? -errno : 0;
	close(get->renamed);
	get->renamed = -1;
	return ret;
}

static bool is_same_dir(int a, int b)
{
	struct stat st, other;

	return !fstat(a, &st) && !fstat(b, &other) &&
	       st.st_dev == other.st_dev && st.st_ino == other.st_ino;
}

/*
 * Notes that the directory of a renamed file has to be synced. Files are mostly
 * complete directory by directory, so each directory is synced about once.
 */
static int renamed(struct get *get, struct local *local)
{
	int ret;

	if (get->renamed >= 0 && is_same_dir(get->renamed, local->dir))
		return 0;
	ret = fetch_sync(get);
	get->renamed = local->dir;
	local->dir = -1;
	return ret;
}

static int finish(struct get *get, struct fetch *fetch)
{
	const bool sync = !get->options->no_sync;
	int ret;

	ret = local_finish(&fetch->local, &fetch->ident, &get->perms, sync);
	if (!ret && sync)
		ret = renamed(get, &fetch->local);
	if (ret)
		return local_failed(get, fetch, ret);
	get->progress.files++;
	if (get->options->verbose) {
		progress_clear(&get->progress);
		get_print(get, fetch->remote);
	}
	fetch_end(fetch);
	return 0;
}

static bool is_same_hash(const void *buf, size_t len, uint64_t hash)
{
	/* an unread range of length 0 has no hash */
	return !len || XXH3_64bits(buf, len) == hash;
}

static int take_range(struct get *get, struct fetch *fetch,
		      const struct session_pipe *pipe)
{
	const uint8_t *bytes = session_bytes(pipe);
	const uint32_t len = pipe->answer.len;
	int ret;

	if (!is_same_hash(bytes, len, pipe->answer.hash)) {
		again(get, fetch, "its checksum is wrong");
		return 0;
	}
	ret = local_append(&fetch->local, bytes, len);
	if (ret)
		return local_failed(get, fetch, ret);
	fetch->done += len;
	progress_add(&get->progress, fetch->remote, len, fetch->done,
		     fetch->ident.size);
	return fetch->done == fetch->ident.size ? finish(get, fetch) : 0;
}

/* Compares the partial file, and cuts it where it differs. */
static int compare(struct get *get, struct fetch *fetch,
		   const struct session_pipe *pipe, const struct asked *asked)
{
	const uint64_t hash = pipe->answer.hash;
	bool differs;
	int ret;

	ret = local_read(&fetch->local, asked->off, pipe->data, asked->len);
	differs = !ret && !is_same_hash(pipe->data, asked->len, hash);
	if (!ret && !differs) {
		fetch->done += asked->len;
		get->progress.resumed += asked->len;
	}
	if (differs || fetch->done == fetch->end) {
		ret = ret ? ret : local_cut(&fetch->local, fetch->done);
		go_to(get, fetch, FETCH_READ, fetch->done, fetch->ident.size);
	}
	if (ret)
		return local_failed(get, fetch, ret);
	return fetch->done == fetch->ident.size ? finish(get, fetch) : 0;
}

static int opened(struct get *get, struct fetch *fetch,
		  const struct session_pipe *pipe)
{
	uint64_t there;
	int ret;

	fetch->ident = pipe->answer.ident;
	if (local_is_same(&fetch->local, &fetch->ident) &&
	    (!get->perms.keep || get->options->dry_run ||
	     !local_set_perms(&fetch->local, &fetch->ident))) {
		get->progress.same++;
		fetch_end(fetch);
		return 0;
	}
	if (get->options->dry_run) {
		get->progress.files++;
		get->progress.bytes += fetch->ident.size;
		if (!get->options->quiet)
			get_print(get, fetch->remote);
		fetch_end(fetch);
		return 0;
	}
	ret = local_begin(&fetch->local);
	if (ret)
		return local_failed(get, fetch, ret);
	there = fetch->local.size;
	if (there > fetch->ident.size)
		there = fetch->ident.size;
	if (there) {
		go_to(get, fetch, FETCH_SUM, 0, there);
		return 0;
	}
	go_to(get, fetch, FETCH_READ, 0, fetch->ident.size);
	ret = local_cut(&fetch->local, 0);
	if (ret)
		return local_failed(get, fetch, ret);
	fetch->next = pipe->answer.len;
	return pipe->answer.len || !fetch->ident.size ?
		       take_range(get, fetch, pipe) :
		       0;
}

static int refused(struct get *get, struct fetch *fetch,
		   const struct serve_msg *answer)
{
	const enum serve_status status = answer->status;
	char *remote, *local;
	int ret = 0;

	if (status == SERVE_IS_DIR && fetch->is_source) {
		remote = fetch->remote;
		local = fetch->local_path;
		fetch->remote = fetch->local_path = NULL;
		fetch_end(fetch);
		ret = tree_enter(&get->tree, remote, local, answer->ident.mode);
		free(remote);
		free(local);
	} else if (status == SERVE_BUSY || status == SERVE_CHANGED) {
		again(get, fetch, serve_status_text(status));
	} else {
		failed(get, fetch, serve_status_text(status));
	}
	return ret;
}

static int handle(struct get *get, const struct asked *asked)
{
	const struct serve_msg *answer = &asked->pipe->answer;
	struct fetch *fetch = asked->fetch;

	if (answer->status != SERVE_OK)
		return refused(get, fetch, answer);
	if (fetch->state == FETCH_OPEN) {
		if (!*fetch->local_path)
			return -EPROTO;
		return opened(get, fetch, asked->pipe);
	}
	if (answer->len != asked->len || answer->off != asked->off ||
	    !path_ident_same(&answer->ident, &fetch->ident)) {
		again(get, fetch, serve_status_text(SERVE_CHANGED));
		return 0;
	}
	if (fetch->state == FETCH_SUM)
		return compare(get, fetch, asked->pipe, asked);
	return take_range(get, fetch, asked->pipe);
}

int fetch_handle(struct get *get, const struct asked *asked)
{
	int ret;

	ret = session_wait(&get->session, asked->pipe);
	if (ret)
		return ret;
	if (asked->pipe->answer.status == SERVE_ENDING) {
		snprintf(get->session.err, sizeof(get->session.err), "%s",
			 serve_status_text(SERVE_ENDING));
		return -ECONNRESET;
	}
	if (asked->phase == asked->fetch->phase)
		ret = handle(get, asked);
	session_release(asked->pipe);
	return ret;
}
