/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/observe/trace_file in child processes: their limits, full disks, damaged
 * files, kill -9 and fork.
 */
#include "config.h"
#include "test/case.h"

#include <endian.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "test/sys/observe/trace_fixture.h"

/* Returns the result of a child. */
static int run_child(int (*child)(void))
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		status = child();
		fprintf(stderr, "%s",
			status ? "the child is not content\n" : "");
		/* A leak checker would report memory that the child leaves. */
		if (!status)
			raise(SIGKILL);
		_exit(status);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL ? 0 : -WTERMSIG(status);
	return WEXITSTATUS(status);
}

/* ---- damage and limits ---- */

/* Another process damages the file, so that a link leads beyond the file. */
static int child_damaged(void)
{
	struct mrrc_trace_file *file;
	struct mrrc_trace_rec *rec;
	uint64_t chain, i;

	if (mrrc_trace_file_open(trace_path, ROOM(64), &file))
		return 1;
	for (i = 0; i < 70; i++) {
		chain = 0;
		rec = mrrc_trace_file_next(file);
		mrrc_trace_file_chain(file, rec, &chain);
		mrrc_trace_file_commit(rec, MRRC_TRACE_READ);
		/* The file has one chunk of 64. */
		rec->end = htole64(MRRC_TRACE_OPEN |
				   (i ? CHUNK * i - i % 2 : UINT64_MAX / 2));
		mrrc_trace_file_end(file, &chain, 5);
		if (chain)
			return 2;
	}
	return 0;
}

TEST_CASE(trace_child, trace_setup, trace_teardown);

TEST(test_damaged)
{
	ck_assert_int_eq(run_child(child_damaged), 0);
}

/* A write beyond RLIMIT_FSIZE would raise a signal. */
static int child_fsize(void)
{
	const struct rlimit limit = { ROOM(1) + 5, ROOM(1) + 5 };
	struct mrrc_trace_file *file;
	size_t i;

	if (setrlimit(RLIMIT_FSIZE, &limit) ||
	    mrrc_trace_file_open(trace_path, ROOM(9), &file))
		return 1;
	for (i = 0; i < 2 * CHUNK; i++) {
		if (trace_put(file, i) != (i < CHUNK))
			return 2;
	}
	return file->error == -EFBIG ? 0 : 3;
}

TEST(test_fsize)
{
	ck_assert_int_eq(run_child(child_fsize), 0);
	trace_load(trace_path);
	trace_check_all(CHUNK);
	ck_assert_uint_eq(trace_found.head.dropped, CHUNK);
}

/* The disk has room for a header and one chunk. */
static int child_full(void)
{
	struct mrrc_trace_file *file;
	char second[128];
	size_t i;

	snprintf(second, sizeof(second), "%s.second", trace_path);
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", trace_dir, "tmpfs", 0, "size=68k"))
		return 77;
	if (mrrc_trace_file_open(trace_path, ROOM(9), &file))
		return 1;
	for (i = 0; i < 2 * CHUNK; i++) {
		if (trace_put(file, i) != (i < CHUNK))
			return 2;
	}
	if (file->error != -ENOSPC)
		return 3;
	/* The disk is full: not even another header fits. */
	return mrrc_trace_file_open(second, ROOM(9), &file) == -ENOSPC ? 0 : 4;
}

TEST(test_full)
{
	const int ret = run_child(child_full);

	if (ret == 77)
		skip("no file system can be mounted here");
	ck_assert_int_eq(ret, 0);
}

/* ---- the end of the process ---- */

static int told[2];

static int child_killed(void)
{
	struct mrrc_trace_file *file;
	uint64_t i;

	if (mrrc_trace_file_open(trace_path, ROOM(64), &file))
		return 1;
	for (i = 0;; i++) {
		if (!trace_put(file, i) || write(told[1], &i, sizeof(i)) < 0)
			return 2;
	}
}

/* All earlier records are in the file, and no record is incomplete. */
LOOP_TEST(test_killed, 0, 3)
{
	uint64_t last = 0, more;
	pid_t pid;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (!pid)
		_exit(child_killed());
	close(told[1]);
	while (last < 2500 + 700u * _i)
		ck_assert_int_eq(read(told[0], &last, sizeof(last)),
				 sizeof(last));
	kill(pid, SIGKILL);
	child_dies(pid);
	while (read(told[0], &more, sizeof(more)) == sizeof(more))
		last = more;
	close(told[0]);
	trace_load(trace_path);
	ck_assert_uint_ge(trace_found.count, last + 1);
	ck_assert_uint_le(trace_found.count, last + 2);
	trace_check_all(trace_found.count);
}

/* ---- fork ---- */

static struct mrrc_trace_file *parents;
static uint64_t parents_chain;

static int child_forked(void)
{
	char own[128];
	struct mrrc_trace_file *file;
	size_t i;

	mrrc_trace_file_forked(parents);
	/* The parent writes to this file. */
	if (mrrc_trace_file_open(trace_path, ROOM(4), &file) != -EBUSY)
		return 1;
	snprintf(own, sizeof(own), "%s.child", trace_path);
	if (mrrc_trace_file_open(own, ROOM(4), &file))
		return 2;
	for (i = 0; i < 20; i++) {
		if (!trace_put(file, i))
			return 3;
	}
	return 0;
}

TEST(test_forked)
{
	char own[128];
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(4), &parents),
			 0);
	for (i = 0; i < 10; i++)
		ck_assert(trace_put(parents, i));
	ck_assert_int_eq(run_child(child_forked), 0);
	for (; i < 30; i++)
		ck_assert(trace_put(parents, i));
	trace_load(trace_path);
	trace_check_all(30);
	snprintf(own, sizeof(own), "%s.child", trace_path);
	trace_load(own);
	trace_check_all(20);
	ck_assert_uint_ne(trace_found.head.pid, getpid());
	unlink(own);
	mrrc_trace_file_close(parents);
}

/* Requests of its parent that a child ends are not in the child's file. */
static int child_inherits(void)
{
	uint64_t open = 0, chain = parents_chain, mixed = parents_chain;
	struct mrrc_trace_file *file;
	char own[128];

	mrrc_trace_file_forked(parents);
	snprintf(own, sizeof(own), "%s.child", trace_path);
	if (mrrc_trace_file_open(own, ROOM(4), &file))
		return 1;
	/* The child's file is not as long as the parent's chain. */
	mrrc_trace_file_end(file, &chain, 5);
	/* This record is at the same place as the parent's. */
	trace_put_chained(file, 0, &open);
	chain = parents_chain;
	mrrc_trace_file_end(file, &chain, 5);
	trace_put_chained(file, 1, &mixed);
	mrrc_trace_file_end(file, &mixed, 5);
	return chain || mixed;
}

LOOP_TEST(test_inherited_chain, 0, 2)
{
	size_t i, n = _i ? 3000 : 1;
	char own[128];

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(4), &parents),
			 0);
	for (i = 0; i < n; i++) {
		parents_chain = 0;
		trace_put_chained(parents, i, &parents_chain);
	}
	ck_assert_int_eq(run_child(child_inherits), 0);
	snprintf(own, sizeof(own), "%s.child", trace_path);
	trace_load(own);
	unlink(own);
	ck_assert_uint_eq(trace_found.count, 2);
	ck_assert_uint_eq(trace_found.rec[0].end, MRRC_TRACE_OPEN);
	ck_assert_uint_eq(trace_found.rec[1].end, 5);
	mrrc_trace_file_end(parents, &parents_chain, 7);
	mrrc_trace_file_close(parents);
	trace_load(trace_path);
	ck_assert_uint_eq(trace_found.rec[n - 1].end, 7);
}
