/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files beneath a directory: the kernel resolves the path, follows no symbolic
 * link, and never leaves the directory. Any thread may call these functions.
 */
#ifndef SERVE_PATH_H
#define SERVE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "serve/wire/wire.h"

/*
 * Opens the directory beneath which the other calls open paths, or returns a
 * negative errno: -ENOSYS if the kernel cannot resolve paths beneath a
 * directory.
 */
int path_root(const char *name);
/* Returns the text for an error of path_root(). */
const char *path_root_error(int error);

/*
 * Opens path ("" is the directory itself) and returns a descriptor, or a
 * negative errno: -ELOOP if path has a symbolic link, -EXDEV if path leads
 * outside.
 */
int path_open(int dir, const char *path, int flags, mode_t mode);

enum {
	/*
	 * Flag: do not wait for a disk or a network. -EAGAIN means that the
	 * call might have to wait; other errors of a call with PATH_NOW are not
	 * conclusive, either.
	 */
	PATH_NOW = 1,
	/* Flag: open only files that all users may read; others are -EACCES. */
	PATH_OTHERS = 2,
};

/*
 * Like path_open(), for reading a regular file or a directory; other kinds are
 * not opened, as opening a device or a FIFO may have effects. -ENOTSUP: path is
 * of another kind.
 */
int path_open_data(int dir, const char *path, unsigned flags, struct stat *st);

/* Have the directory, and all directories above it, mode o+x? */
bool path_root_others(int dir);

/*
 * Makes the last directory of path, with mode less umask. Returns 0 also if the
 * directory exists. sync: waits until the directory is on the disk.
 */
int path_mkdir(int dir, const char *path, mode_t mode, bool sync);

/*
 * Sets the mode of the file that a descriptor with O_PATH refers to. Returns 0,
 * or a negative errno.
 */
int path_chmod(int fd, mode_t mode);

/* Changes a directory's mode to (mode & keep) | others. */
int path_dir_mode(int dir, const char *path, mode_t keep, mode_t others);

void path_ident(const struct stat *st, struct serve_ident *ident);

/* Do both identities belong to one version of a file? */
bool path_ident_same(const struct serve_ident *a, const struct serve_ident *b);

/*
 * Formats len bytes as one line of a terminal: control characters, characters
 * that are invisible or change the order of others, bytes that are not UTF-8,
 * and backslashes become \ooo. All names from a peer or a disk pass through
 * this function. Returns a string to be freed, or NULL without memory.
 */
char *path_shown(const char *text, size_t len);

#endif /* SERVE_PATH_H */
