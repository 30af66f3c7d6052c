/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of sys/observe/trace_file: a folder for the file,
 * functions that write records, and what a reader finds.
 */
#ifndef MRRC_TEST_TRACE_FIXTURE_H
#define MRRC_TEST_TRACE_FIXTURE_H

#include "sys/observe/trace_file.h"

#define CHUNK	(MRRC_TRACE_CHUNK / sizeof(struct mrrc_trace_rec))
#define ROOM(n) (MRRC_TRACE_HEAD + (uint64_t) (n) *MRRC_TRACE_CHUNK)

extern char trace_dir[64], trace_path[96];

void trace_setup(void);
void trace_teardown(void);

/* Writes a record, which addr identifies; false: the record was dropped. */
bool trace_put(struct mrrc_trace_file *file, uint64_t addr);

/* Writes one record of a chain. */
void trace_put_chained(struct mrrc_trace_file *file, uint64_t addr,
		       uint64_t *chain);

struct trace_found {
	struct mrrc_trace_head head;
	struct mrrc_trace_rec *rec;
	size_t count;
	size_t size; /* size in bytes */
};
extern struct trace_found trace_found;

/* Reads the records of a file into trace_found. */
void trace_load(const char *name);

/* Checks that each of addr 0 to count - 1 was found once. */
void trace_check_all(size_t count);

#endif /* MRRC_TEST_TRACE_FIXTURE_H */
