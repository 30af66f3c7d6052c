/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether a descriptor still refers to the same file. Programs that turn
 * into daemons close descriptors that they do not know, and the numbers of
 * these descriptors are reused for other files. Does not work for eventfds and
 * the like, all of which share one inode.
 *
 * All calls: any thread.
 */
#ifndef MRRC_FD_ID_H
#define MRRC_FD_ID_H

#include <stdbool.h>
#include <sys/stat.h>

#include "sys/base/raw.h"

struct mrrc_fd_id {
	dev_t dev;
	ino_t ino;
};

/*
 * As fstat(2), but returns 0 or -E*. glibc's fstat() passes an empty path to
 * the kernel, and copying this path takes longer than the rest of the call.
 */
static inline int mrrc_fd_stat(int fd, struct stat *stat)
{
#if MRRC_RAW
	return (int) mrrc_raw(SYS_fstat, fd, (long) stat, 0, 0, 0, 0);
#else
	return fstat(fd, stat) ? -errno : 0;
#endif
}

/* 0 or -E* */
static inline int mrrc_fd_id(int fd, struct mrrc_fd_id *id)
{
	struct stat stat;
	const int ret = mrrc_fd_stat(fd, &stat);

	if (!ret)
		*id = (struct mrrc_fd_id){ stat.st_dev, stat.st_ino };
	return ret;
}

static inline bool mrrc_fd_is(int fd, const struct mrrc_fd_id *id)
{
	struct stat stat;

	return !mrrc_fd_stat(fd, &stat) && stat.st_dev == id->dev &&
	       stat.st_ino == id->ino;
}

#endif /* MRRC_FD_ID_H */
