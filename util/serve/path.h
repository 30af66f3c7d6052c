/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files beneath a directory: the kernel resolves the path, follows no symbolic
 * link, and never leaves the directory. Any thread.
 */
#ifndef SERVE_PATH_H
#define SERVE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "serve/wire.h"

/*
 * The directory that the other calls begin at, or a negative errno: -ENOSYS if
 * the kernel cannot resolve paths beneath it.
 */
int path_root(const char *name);
/* The text for what path_root() returned. */
const char *path_root_error(int error);

/*
 * A descriptor of path, "" is the directory itself, or a negative errno:
 * -ELOOP if there is a symbolic link, -EXDEV if it leads outside.
 */
int path_open(int dir, const char *path, int flags, mode_t mode);

enum {
	/*
	 * Without waiting for a disk or a network. -EAGAIN: it might have to;
	 * other errors mean nothing, either.
	 */
	PATH_NOW = 1,
	/* Only what all users may read: -EACCES if it is anything else. */
	PATH_OTHERS = 2,
};

/*
 * As above, to read: a regular file or a directory; nothing else is opened,
 * as opening a device or a FIFO may have effects. -ENOTSUP: neither.
 */
int path_open_data(int dir, const char *path, unsigned flags, struct stat *st);

/* Has the directory, and each one above it, mode o+x? */
bool path_root_others(int dir);

/*
 * Makes the last directory of path, with mode less umask. 0 also if there is one.
 * sync: waits until it is on the disk.
 */
int path_mkdir(int dir, const char *path, mode_t mode, bool sync);

void path_ident(const struct stat *st, struct serve_ident *ident);

/* Two of one file: no version of it was between. */
bool path_ident_same(const struct serve_ident *a, const struct serve_ident *b);

/*
 * len bytes as one line of a terminal: control characters, characters that
 * change the order of others or are not seen, bytes that are not UTF-8, and
 * backslashes become \ooo. Names that a peer or a disk has go through this one
 * function. Returns a string to be freed, or NULL without memory.
 */
char *path_shown(const char *text, size_t len);

#endif /* SERVE_PATH_H */
