/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes a file completely or not at all: to a temporary file in the same
 * folder, which is renamed when all its bytes are on disk. A pipe or device,
 * such as /dev/null, is written in place.
 */
#ifndef SIM_WRITE_H
#define SIM_WRITE_H

#include <stdio.h>

/* Writes the whole content and flushes. Returns 0 or -E*. */
typedef int sim_put(FILE *file, void *arg);

/*
 * Writes the file at @path; "-" is stdout, as are its names in /dev and /proc.
 * A file that is replaced keeps its mode. On failure @err has the reason.
 */
int sim_write(const char *path, sim_put *put, void *arg, char *err,
	      size_t err_len);

#endif /* SIM_WRITE_H */
