/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading a cost model (cost_file.h).
 */
#include "config.h"
#include "sys/observe/cost_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX 8192 /* one line and some remarks */

/* Reads the whole file, and adds a NUL. */
static int cost_file_load(int fd, char *text)
{
	size_t len = 0;
	ssize_t ret;

	do {
		ret = read(fd, text + len, FILE_MAX - len);
		if (ret < 0 && errno != EINTR)
			return -errno;
		len += ret > 0 ? (size_t) ret : 0;
		if (len == FILE_MAX)
			return -EFBIG;
	} while (ret);
	text[len] = '\0';
	return strlen(text) == len ? 0 : -EINVAL;
}

int mrrc_cost_file_read(const char *path, struct mrrc_cost *cost)
{
	char text[FILE_MAX];
	int fd, ret;

	/* O_NONBLOCK: opening a FIFO without a writer must not block */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ret = cost_file_load(fd, text);
	close(fd);
	return ret ? ret : mrrc_cost_parse_file(text, cost);
}
