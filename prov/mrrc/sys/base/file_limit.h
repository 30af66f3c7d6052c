/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The limit of a process on the size of files (RLIMIT_FSIZE). The call that
 * writes or allocates beyond the limit, also in a memfd, raises SIGXFSZ, which
 * ends the process: the limit is to be asked before such a call.
 *
 * All calls: any thread.
 */
#ifndef MRRC_FILE_LIMIT_H
#define MRRC_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* May a file have @size bytes? */
static inline bool mrrc_file_may(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) ||
	       limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

#endif /* MRRC_FILE_LIMIT_H */
