/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the lines of a file, plain or compressed by xz.
 *
 * Only one thread may use a struct sim_lines. The memory in use is bounded,
 * whatever the file contains.
 */
#ifndef SIM_LINES_H
#define SIM_LINES_H

#include "sim/trace.h"

#include <lzma.h>

struct sim_lines {
	FILE *file; /* the caller's */
	bool xz;
	bool end;	     /* no more data after next and left */
	lzma_stream strm;    /* while xz */
	uint8_t raw[16384];  /* the file's bytes */
	uint8_t text[65536]; /* xz: decompressed */
	const uint8_t *next; /* unread bytes, in raw or text */
	size_t left;
	uint64_t number;   /* number of the line last returned, from 1 */
	const char *cause; /* cause of the last failure; NULL: see errno */
	char line[SIM_LINE_MAX + 1];
};

/* Opens a file. lines->cause can be read after a failure, too. */
int sim_lines_open(struct sim_lines *lines, FILE *file);
void sim_lines_close(struct sim_lines *lines);

/*
 * Reads the next line, without its end (LF or CRLF), into lines->line. Returns
 * -ENODATA after the last line; other failures are final and have a cause.
 */
int sim_lines_next(struct sim_lines *lines);

/* Reads the next @size bytes in place of a line; fewer at the file's end. */
int sim_lines_bytes(struct sim_lines *lines, void *buf, size_t size,
		    size_t *len);

/* Does the file begin with @text? Call this before a line is read. */
int sim_lines_begin(struct sim_lines *lines, const char *text, size_t len,
		    bool *begins);

#endif /* SIM_LINES_H */
