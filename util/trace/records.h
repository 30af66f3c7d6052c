/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recorded requests in memory, of one file or several. Invariants: once sorted,
 * requests are in order of time; every request's proc is less than procs.
 * Ranges may be invalid: an application may ask for memory that does not exist.
 */
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include "sim/read.h"

struct trace_records {
	struct sim_rec *rec;
	size_t count;
	size_t max;
	size_t files;
	uint32_t procs; /* number of processes and their domains */
	uint64_t start; /* ns since 1970; 0: not known */
	uint64_t page;	/* bytes */
	/* records that were dropped when they were recorded */
	uint64_t dropped;
	/* sources of the recorded files, one for each domain; to be freed */
	struct trace_source {
		uint32_t proc;
		uint32_t pid;
		char program[64];
		struct mrrc_trace_domain domain;
		struct mrrc_trace_cost cost; /* page 0: not known */
	} * source;
	size_t sources;
};

/*
 * Adds a file ("-" is stdin). The file's processes get numbers after the
 * processes of earlier files, and its times are moved to one common clock. On
 * failure @err has the message.
 */
int trace_records_read(struct trace_records *records, const char *path,
		       char *err, size_t err_len);
int trace_records_read_file(struct trace_records *records, FILE *file,
			    const char *path, char *err, size_t err_len);

/* Sorts the requests by time. Called after the last file. */
void trace_records_sort(struct trace_records *records);

void trace_records_fini(struct trace_records *records);

/* Selects requests. */
struct trace_filter {
	unsigned ops; /* bits of operations; 0: all operations */
	unsigned results;
	uint64_t min_len, max_len;
	uint64_t from, to; /* ns since the first request */
	/* lists; an empty list selects all */
	uint64_t *thread, *proc;
	size_t threads, procs;
	struct trace_peer {
		enum mrrc_trace_peer kind;
		uint64_t peer;
	} * peer;
	size_t peers;
};

/* Drops the requests that are not selected. */
void trace_records_filter(struct trace_records *records,
			  const struct trace_filter *filter);

#endif /* TRACE_RECORDS_H */
