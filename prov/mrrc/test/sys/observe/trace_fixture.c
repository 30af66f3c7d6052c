/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of sys/observe/trace_file (trace_fixture.h). */
#include "config.h"
#include "test/suites.h"
#include "test/sys/observe/trace_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char trace_dir[64], trace_path[96];
struct trace_found trace_found;

void trace_setup(void)
{
	snprintf(trace_dir, sizeof(trace_dir), "/tmp/test_trace_file.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(trace_dir));
	snprintf(trace_path, sizeof(trace_path), "%s/t", trace_dir);
}

void trace_teardown(void)
{
	unlink(trace_path);
	rmdir(trace_dir);
}

bool trace_put(struct mrrc_trace_file *file, uint64_t addr)
{
	struct mrrc_trace_rec *rec = mrrc_trace_file_next(file);

	if (!rec)
		return false;
	rec->begin = mrrc_trace_file_now(file);
	rec->addr = addr;
	rec->len = 1;
	mrrc_trace_file_commit(rec, MRRC_TRACE_WRITE);
	return true;
}

void trace_put_chained(struct mrrc_trace_file *file, uint64_t addr,
		       uint64_t *chain)
{
	struct mrrc_trace_rec *rec = mrrc_trace_file_next(file);

	rec->addr = addr;
	mrrc_trace_file_chain(file, rec, chain);
	mrrc_trace_file_commit(rec, MRRC_TRACE_READ);
}

void trace_load(const char *name)
{
	static char data[8 << 20];
	struct trace_found *found = &trace_found;
	const struct mrrc_trace_rec *rec;
	size_t at, i, count;
	ssize_t len;
	int fd;

	fd = open(name, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	len = read(fd, data, sizeof(data));
	close(fd);
	ck_assert_int_ge(len, MRRC_TRACE_HEAD);
	ck_assert_int_lt(len, sizeof(data));
	found->size = len;
	memcpy(&found->head, data, sizeof(found->head));
	mrrc_trace_swap_head(&found->head);
	ck_assert_ptr_null(mrrc_trace_check_head(&found->head));
	free(found->rec);
	found->rec = malloc(len);
	found->count = 0;
	for (at = MRRC_TRACE_HEAD; at < found->size; at += MRRC_TRACE_CHUNK) {
		rec = (const void *) (data + at);
		/* A process killed in a growing file leaves part of a chunk. */
		count = (found->size - at) / sizeof(*rec);
		if (count > CHUNK)
			count = CHUNK;
		for (i = 0; i < count && rec[i].op; i++) {
			found->rec[found->count] = rec[i];
			mrrc_trace_swap_rec(&found->rec[found->count]);
			ck_assert_ptr_null(mrrc_trace_check_rec(
				&found->rec[found->count++]));
		}
		/* No record follows the first one that was not written. */
		for (; i < count; i++)
			ck_assert_uint_eq(rec[i].op, 0);
	}
}

void trace_check_all(size_t count)
{
	char *seen = calloc(count, 1);
	size_t i;

	ck_assert_uint_eq(trace_found.count, count);
	for (i = 0; i < count; i++) {
		ck_assert_uint_lt(trace_found.rec[i].addr, count);
		ck_assert_int_eq(seen[trace_found.rec[i].addr]++, 0);
	}
	free(seen);
}
