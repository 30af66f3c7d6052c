/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether a descriptor still refers to the same file. Programs that turn
 * into daemons close descriptors that they do not know, and the numbers are
 * reused for other files. Not for eventfd and the like, which share one inode.
 *
 * All calls: any thread.
 */
#ifndef MRRC_FD_ID_H
#define MRRC_FD_ID_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

struct mrrc_fd_id {
	dev_t dev;
	ino_t ino;
};

/* 0 or -E* */
static inline int mrrc_fd_id(int fd, struct mrrc_fd_id *id)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	*id = (struct mrrc_fd_id){ stat.st_dev, stat.st_ino };
	return 0;
}

static inline bool mrrc_fd_is(int fd, const struct mrrc_fd_id *id)
{
	struct stat stat;

	return !fstat(fd, &stat) && stat.st_dev == id->dev &&
	       stat.st_ino == id->ino;
}

#endif /* MRRC_FD_ID_H */
