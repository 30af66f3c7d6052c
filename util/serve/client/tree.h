/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Walks directories of the server, and makes them on this machine, depth first.
 * The walk keeps one page of each directory on the way, so that a server cannot
 * make the client use more and more memory.
 */
#ifndef SERVE_TREE_H
#define SERVE_TREE_H

#include <sys/types.h>

#include "serve/client/session.h"

struct tree_level;

struct tree {
	struct session *session;
	/* directory of this machine beneath which all is made */
	int dir;
	bool sync;	      /* syncs each directory to the disk at once */
	bool dry_run;	      /* nothing is made */
	bool perms;	      /* directories get the original's permissions */
	char *const *exclude; /* patterns of names, or of paths */
	size_t excludes;
	struct tree_level *last; /* NULL: nothing to walk */
	uint64_t failed;	 /* entries that were reported as errors */
	uint64_t links;		 /* symbolic links, which are left out */
	/* number of other entries that cannot be fetched */
	uint64_t left_out;
	size_t entries, entries_max; /* entries of all directories */
	/* Is a file that tree_next() returned still being fetched? */
	bool (*busy)(void *context);
	void (*complain)(void *context, const char *path, const char *why);
	void *context;
};

/*
 * Begins at a directory of the server, which becomes a directory of this
 * machine. Both paths are relative and valid. 0, or -ENOMEM.
 */
int tree_enter(struct tree *tree, const char *remote, const char *local,
	       mode_t mode);

/*
 * Finds the next file; the caller frees its paths. -ENOENT: there is none.
 * -EAGAIN: a directory that may not be written to afterwards waits until busy()
 * is false. Other errors end the session.
 */
int tree_next(struct tree *tree, char **remote, char **local);

/*
 * Counts an entry. -E2BIG, which ends the session: the directories have more
 * entries than the user expects, perhaps without end.
 */
int tree_count(struct tree *tree);

void tree_close(struct tree *tree);

/*
 * Requests one page. Returns 0, with the status in pipe->answer; the caller
 * releases the pipe.
 */
int tree_page(struct session *session, const char *path, uint64_t cursor,
	      struct session_pipe **pipe);

#endif /* SERVE_TREE_H */
