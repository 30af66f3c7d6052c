/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files that the environment names (own_file.h).
 */
#include "config.h"
#include "sys/base/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_TRIES 3 /* another process may create and remove the file */

static int own_file_check(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	return S_ISCHR(stat.st_mode) || (stat.st_uid == geteuid() &&
					 stat.st_nlink == 1) ?
		       0 :
		       -EPERM;
}

/*
 * A file that mrrc_own_file_open() creates counts as the user's, even if a file
 * server reports another owner.
 */
int mrrc_own_file_open(const char *path, int flags)
{
	int fd, ret, tries = OWN_TRIES;

	flags |= O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW;
	do {
		fd = open(path, flags | O_CREAT | O_EXCL, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
		fd = open(path, flags);
	} while (fd < 0 && errno == ENOENT && --tries);
	if (fd < 0)
		return -errno;
	ret = own_file_check(fd);
	if (ret) {
		close(fd);
		return ret;
	}
	return fd;
}

const char *mrrc_own_file_why(int err)
{
	switch (-err) {
	case ELOOP:
		return "a symbolic link";
	case EPERM:
		return "another user's file, or one with several names";
	default:
		return NULL;
	}
}
