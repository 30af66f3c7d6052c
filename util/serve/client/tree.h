/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Walks directories of the server, and makes the same directories on the
 * client, depth first. The walk keeps one page of each directory on the current
 * path, so that a server cannot make the client use more and more memory.
 */
#ifndef SERVE_TREE_H
#define SERVE_TREE_H

#include <sys/types.h>

#include "serve/client/session.h"

struct tree_level;

struct tree {
	struct session *session;
	/* directory of the client beneath which all entries are made */
	int dir;
	bool sync;	      /* syncs each directory to the disk at once */
	bool dry_run;	      /* make no directories */
	bool perms;	      /* directories get the original's permissions */
	char *const *exclude; /* patterns of names, or of paths */
	size_t excludes;
	struct tree_level *last; /* NULL: nothing to walk */
	/* number of entries that were reported as errors */
	uint64_t failed;
	/* number of symbolic links, which are left out */
	uint64_t links;
	/* number of other entries that cannot be fetched */
	uint64_t left_out;
	size_t entries, entries_max; /* number of entries of all directories */
	/* Is a file that tree_next() returned still being fetched? */
	bool (*busy)(void *context);
	void (*complain)(void *context, const char *path, const char *why);
	void *context;
};

/*
 * Begins at the server's directory @remote, which becomes the client's
 * directory @local. Both paths are relative and valid. Returns 0, or -ENOMEM.
 */
int tree_enter(struct tree *tree, const char *remote, const char *local,
	       mode_t mode);

/*
 * Finds the next file; the caller frees its paths. Returns -ENOENT if there is
 * no next file, -EAGAIN if a directory that becomes read-only at its end has to
 * wait until busy() is false; other errors end the session.
 */
int tree_next(struct tree *tree, char **remote, char **local);

/*
 * Counts an entry. Returns -E2BIG, which ends the session, if the directories
 * have more entries than the user expects, perhaps without end.
 */
int tree_count(struct tree *tree);

void tree_close(struct tree *tree);

/*
 * Requests one page of the directory path. Returns 0, with the status in
 * pipe->answer; the caller releases the pipe.
 */
int tree_page(struct session *session, const char *path, uint64_t cursor,
	      struct session_pipe **pipe);

#endif /* SERVE_TREE_H */
