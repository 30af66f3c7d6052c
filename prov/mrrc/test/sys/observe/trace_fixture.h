/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of sys/observe/trace_file share: a folder for the file, records put
 * into it, and what a reader finds.
 */
#ifndef MRRC_TEST_TRACE_FIXTURE_H
#define MRRC_TEST_TRACE_FIXTURE_H

#include "sys/observe/trace_file.h"

#define CHUNK	(MRRC_TRACE_CHUNK / sizeof(struct mrrc_trace_rec))
#define ROOM(n) (MRRC_TRACE_HEAD + (uint64_t) (n) *MRRC_TRACE_CHUNK)

extern char trace_dir[64], trace_path[96];

void trace_setup(void);
void trace_teardown(void);

/* One record; false: dropped. addr tells it from others. */
bool trace_put(struct mrrc_trace_file *file, uint64_t addr);

/* One record of a chain. */
void trace_put_chained(struct mrrc_trace_file *file, uint64_t addr,
		       uint64_t *chain);

struct trace_found {
	struct mrrc_trace_head head;
	struct mrrc_trace_rec *rec;
	size_t count;
	size_t size; /* bytes */
};
extern struct trace_found trace_found;

/* What is in the file, as a reader finds it. */
void trace_load(const char *name);

/* Each of addr 0 to count - 1 is there once. */
void trace_check_all(size_t count);

#endif /* MRRC_TEST_TRACE_FIXTURE_H */
