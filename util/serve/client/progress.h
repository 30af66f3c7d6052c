/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The progress of a fetch: a line on a terminal, and the sum at the end.
 */
#ifndef SERVE_PROGRESS_H
#define SERVE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown; /* standard error is a terminal */
	uint64_t files, same, bytes, resumed;
	uint64_t started, last; /* ms */
};

void progress_open(struct progress *progress, bool quiet);

/* Shows this file's bytes so far, and adds bytes to the total of all files. */
void progress_add(struct progress *progress, const char *path, uint64_t bytes,
		  uint64_t done, uint64_t size);

double progress_seconds(const struct progress *progress);

/* Erases the progress line on the terminal. */
void progress_clear(const struct progress *progress);

/*
 * Prints the sums of all files on standard output. @would: a dry run, in which
 * nothing was written.
 */
void progress_print(const struct progress *progress, bool would, uint64_t links,
		    uint64_t left_out, uint64_t failed);

#endif /* SERVE_PROGRESS_H */
