/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opening regular files (regular.h).
 */
#include "config.h"
#include "sys/base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int regular_check(int fd, long type)
{
	struct statfs fs;
	struct stat stat;

	if (fstat(fd, &stat) || (type && fstatfs(fd, &fs)))
		return -errno;
	return S_ISREG(stat.st_mode) && (!type || fs.f_type == type) ? 0 :
								       -EINVAL;
}

int mrrc_regular_open(int dir, const char *path, long type)
{
	/* with O_PATH the file itself is not opened */
	const int found = openat(dir, path, O_PATH | O_CLOEXEC);
	char name[40];
	int ret;

	if (found < 0)
		return -errno;
	ret = regular_check(found, type);
	if (!ret) {
		/*
		 * the same file, whatever @path leads to by now; threads may
		 * have descriptors of their own
		 */
		snprintf(name, sizeof(name), "/proc/thread-self/fd/%d", found);
		ret = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (ret < 0)
			ret = -errno;
	}
	close(found);
	return ret;
}
