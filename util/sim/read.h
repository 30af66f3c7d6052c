/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads requests, one after the other, from files of the provider's recorder
 * (core/text/trace.h) or CSV files (trace.h), plain or compressed by xz; a
 * file's first bytes tell the format. Only one thread calls these functions.
 */
#ifndef SIM_READ_H
#define SIM_READ_H

#include <stdio.h>

#include "core/text/trace.h"
#include "sim/lines.h"

/*
 * A request. Fields that a CSV file lacks are 0, except op (REG), result (MISS)
 * and peer (NOBODY).
 */
struct sim_rec {
	uint64_t time_us;
	uint64_t previous; /* call site of the thread's previous request */
	uint64_t held_us;  /* as in struct sim_req */
	uint32_t proc;
	struct mrrc_trace_rec rec; /* domain: see proc */
};

struct sim_sink {
	/*
	 * Adds a request. Returns 0, or -E* with the reason as a text in
	 * *cause; *cause is NULL if strerror(3) has the text.
	 */
	int (*add)(void *arg, const struct sim_rec *rec, const char **cause);
	/* The header of a recorded trace; NULL: not needed. */
	void (*head)(void *arg, const struct mrrc_trace_head *head);
	void *arg;
	/*
	 * true: the sink gets all columns; false: only the simulator's columns,
	 * without requests that did not reach the cache or that failed.
	 */
	bool full;
};

/*
 * Reads requests in order of time. On failure @err has the reason, "FILE:LINE:
 * cause", and the caller drops the requests that were added. Returns the same
 * errors as sim_trace_read().
 */
int sim_read(const char *path, char *err, size_t err_len,
	     const struct sim_sink *sink); /* "-" is stdin */
int sim_read_file(FILE *file, const char *path, char *err, size_t err_len,
		  const struct sim_sink *sink);

/* Returns the name in CSV of an access kind, 0 to 7. */
const char *sim_access_name(unsigned access);

/*
 * Called by sim_read_file(): reads the records after the header, sorted by
 * time; the caller frees the records. Returns -EINVAL etc. with *cause. @chunk
 * becomes the number of the faulty chunk, from 1; 0 is the header.
 */
int sim_recorded(struct sim_lines *lines, struct mrrc_trace_head *head,
		 struct mrrc_trace_rec **recs, size_t *count, uint64_t *chunk,
		 const char **cause);

#endif /* SIM_READ_H */
