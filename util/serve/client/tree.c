/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Walking directories (serve/client/tree.h).
 */
#include "config.h"
#include "serve/client/tree.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/client/local.h"
#include "serve/wire/path.h"

struct tree_level {
	struct tree_level *up;
	char *remote, *local;
	uint64_t cursor; /* position of the next page of the directory */
	bool more;	 /* there is a next page */
	mode_t mode;	 /* final mode of the directory */
	uint8_t page[SERVE_MSG_MAX];
	const uint8_t *entries; /* entries left of the page */
	size_t len;
};

static void leave(struct tree *tree)
{
	struct tree_level *level = tree->last;

	tree->last = level->up;
	free(level->remote);
	free(level->local);
	free(level);
}

static void complain(struct tree *tree, const char *path, const char *why)
{
	tree->failed++;
	tree->complain(tree->context, path, why);
}

/* Makes the directory, writable by its owner until all entries are in it. */
static int make(struct tree *tree, const struct tree_level *level)
{
	int ret;

	ret = path_mkdir(tree->dir, level->local, level->mode, tree->sync);
	/* a directory of another user may be writable nevertheless */
	if (!ret && tree->perms)
		path_dir_mode(tree->dir, level->local, ~(mode_t) 0, S_IRWXU);
	return ret;
}

int tree_enter(struct tree *tree, const char *remote, const char *local,
	       mode_t mode)
{
	struct tree_level *level = calloc(1, sizeof(*level));
	int ret;

	if (!level)
		return -ENOMEM;
	level->remote = strdup(remote);
	level->local = strdup(local);
	level->more = true;
	level->up = tree->last;
	tree->last = level;
	if (!level->remote || !level->local) {
		leave(tree);
		return -ENOMEM;
	}
	level->mode = mode & SERVE_MODE;
	ret = *local && !tree->dry_run ? make(tree, level) : 0;
	if (ret) {
		complain(tree, local,
			 ret == -ELOOP ? "a symbolic link is in the way" :
					 strerror(-ret));
		leave(tree);
	}
	return 0;
}

int tree_page(struct session *session, const char *path, uint64_t cursor,
	      struct session_pipe **pipe)
{
	struct serve_msg msg = {
		.type = SERVE_LIST,
		.path = path,
		.path_len = strlen(path),
		.cursor = cursor,
	};
	int ret;

	*pipe = session_idle(session);
	ret = session_request(session, *pipe, &msg);
	return ret ? ret : session_wait(session, *pipe);
}

/*
 * Fetches the next page of a directory; a directory that cannot be listed
 * counts as one without more entries.
 */
static int turn(struct tree *tree, struct tree_level *level)
{
	const struct serve_msg *answer;
	struct session_pipe *pipe;
	int ret;

	ret = tree_page(tree->session, level->remote, level->cursor, &pipe);
	if (ret)
		return ret;
	answer = &pipe->answer;
	level->more = answer->status == SERVE_OK && answer->cursor;
	level->cursor = answer->cursor;
	level->len = answer->entries_len;
	level->entries = level->page;
	memcpy(level->page, answer->entries, answer->entries_len);
	if (answer->status != SERVE_OK)
		complain(tree, level->remote,
			 serve_status_text(answer->status));
	session_release(pipe);
	return 0;
}

/* Joins path and name. Returns NULL without memory, or if they are too long. */
static char *below(const char *path, const struct serve_entry *entry)
{
	char *made;

	if (asprintf(&made, "%s%s%.*s", path, *path ? "/" : "",
		     (int) entry->name_len, entry->name) < 0)
		return NULL;
	if (!serve_path_valid(made, strlen(made))) {
		free(made);
		return NULL;
	}
	return made;
}

int tree_count(struct tree *tree)
{
	struct session *session = tree->session;

	if (++tree->entries <= tree->entries_max)
		return 0;
	snprintf(session->err, sizeof(session->err),
		 "the server lists more than %zu entries: --max-entries=N "
		 "allows more",
		 tree->entries_max);
	return -E2BIG;
}

static void leave_out(struct tree *tree, const char *path, const char *why,
		      uint64_t *count)
{
	++*count;
	tree->complain(tree->context, path, why);
}

/* Does a pattern exclude an entry? @local: the entry's path on the client */
static bool excluded(const struct tree *tree, const char *local)
{
	const char *slash = strrchr(local, '/');
	const char *name = slash ? slash + 1 : local;
	size_t i;

	for (i = 0; i < tree->excludes; i++) {
		if (!fnmatch(tree->exclude[i],
			     strchr(tree->exclude[i], '/') ? local : name,
			     FNM_PATHNAME))
			return true;
	}
	return false;
}

/*
 * Finishes a directory: sets its permissions; the client's machine chooses the
 * other bits of its mode. Returns -EAGAIN if the mode forbids the
 * owner to write, and files are still missing.
 */
static int finish(struct tree *tree, struct tree_level *level)
{
	int ret;

	if (tree->perms && !tree->dry_run && *level->local) {
		if ((level->mode & S_IRWXU) != S_IRWXU &&
		    tree->busy(tree->context))
			return -EAGAIN;
		ret = path_dir_mode(tree->dir, level->local,
				    ~(mode_t) SERVE_MODE, level->mode);
		if (ret)
			complain(tree, level->local, strerror(-ret));
	}
	leave(tree);
	return 0;
}

/*
 * Handles one entry. Returns 1 for a file, 0 for other entries, or an error
 * that ends the session.
 */
static int handle(struct tree *tree, struct tree_level *level,
		  const struct serve_entry *entry, char **remote, char **local)
{
	int ret = tree_count(tree);

	if (ret)
		return ret;
	*remote = below(level->remote, entry);
	*local = below(level->local, entry);
	if (!*remote || !*local)
		complain(tree, level->remote,
			 "an entry's path is too long, or no memory");
	else if (excluded(tree, *local))
		; /* the user excluded this entry */
	else if (entry->kind == SERVE_SYMLINK)
		leave_out(tree, *remote, "left out: a symbolic link",
			  &tree->links);
	else if (entry->kind == SERVE_OTHER)
		leave_out(tree, *remote,
			  "left out: neither a regular file nor a directory",
			  &tree->left_out);
	else if (local_is_part(entry->name, entry->name_len))
		leave_out(tree, *remote, "left out: the name of a partial file",
			  &tree->left_out);
	else if (entry->kind == SERVE_DIR)
		ret = tree_enter(tree, *remote, *local, (mode_t) entry->size);
	else
		return 1;
	free(*remote);
	free(*local);
	return ret;
}

int tree_next(struct tree *tree, char **remote, char **local)
{
	struct tree_level *level;
	struct serve_entry entry;
	int ret = 0;

	while (!ret && (level = tree->last)) {
		if (!serve_entry_next(&level->entries, &level->len, &entry))
			ret = handle(tree, level, &entry, remote, local);
		else if (level->more)
			ret = turn(tree, level);
		else
			ret = finish(tree, level);
	}
	return ret == 1 ? 0 : ret ? ret : -ENOENT;
}

void tree_close(struct tree *tree)
{
	while (tree->last)
		leave(tree);
}
