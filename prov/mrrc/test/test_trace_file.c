/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/trace_file: what is on disk after all that can happen to a process and
 * its disk.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "sys/board.h"
#include "sys/trace_file.h"

#define CHUNK	(MRRC_TRACE_CHUNK / sizeof(struct mrrc_trace_rec))
#define ROOM(n)	(MRRC_TRACE_HEAD + (uint64_t)(n) * MRRC_TRACE_CHUNK)

static char dir[64];
static char path[96];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_trace_file.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/t", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

/* One record; false: dropped. addr tells it from others. */
static bool put(struct mrrc_trace_file *file, uint64_t addr)
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

/* ---- what is in the file, as a reader finds it ---- */

static struct {
	struct mrrc_trace_head head;
	struct mrrc_trace_rec *rec;
	size_t count;
	size_t size;		/* bytes */
} found;

static void load(const char *name)
{
	static char data[8 << 20];
	const struct mrrc_trace_rec *rec;
	size_t at, i;
	ssize_t len;
	int fd;

	fd = open(name, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	len = read(fd, data, sizeof(data));
	close(fd);
	ck_assert_int_ge(len, MRRC_TRACE_HEAD);
	ck_assert_int_lt(len, sizeof(data));
	found.size = len;
	memcpy(&found.head, data, sizeof(found.head));
	mrrc_trace_swap_head(&found.head);
	ck_assert_ptr_null(mrrc_trace_check_head(&found.head));
	free(found.rec);
	found.rec = malloc(len);
	found.count = 0;
	for (at = MRRC_TRACE_HEAD; at < found.size; at += MRRC_TRACE_CHUNK) {
		rec = (const void *)(data + at);
		for (i = 0; i < CHUNK && rec[i].op; i++) {
			found.rec[found.count] = rec[i];
			mrrc_trace_swap_rec(&found.rec[found.count]);
			ck_assert_ptr_null(mrrc_trace_check_rec(
				&found.rec[found.count++]));
		}
		/* nothing after the first that was not written */
		for (; i < CHUNK; i++)
			ck_assert_uint_eq(rec[i].op, 0);
	}
}

/* Each of addr 0 to count - 1 is there once. */
static void check_all(size_t count)
{
	char *seen = calloc(count, 1);
	size_t i;

	ck_assert_uint_eq(found.count, count);
	for (i = 0; i < count; i++) {
		ck_assert_uint_lt(found.rec[i].addr, count);
		ck_assert_int_eq(seen[found.rec[i].addr]++, 0);
	}
	free(seen);
}

/* ---- one thread ---- */

START_TEST(test_written)
{
	const struct mrrc_board_info info = {
		.provider = "a;b", .policy = "lru:pieces=2",
		.monitor = "none", .max_bytes = 1 << 20, .max_regions = 7,
	};
	const size_t count = 2 * CHUNK + 3;
	struct mrrc_trace_file *file;
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(4), &file), 0);
	ck_assert_uint_eq(mrrc_trace_file_domain(file, &info), 0);
	ck_assert_uint_eq(mrrc_trace_file_domain(file, &info), 1);
	load(path);
	ck_assert_uint_eq(found.count, 0);
	for (i = 0; i < count; i++)
		ck_assert(put(file, i));
	/* while it is open */
	load(path);
	check_all(count);
	mrrc_trace_file_close(file);
	load(path);
	check_all(count);
	ck_assert_uint_eq(found.size, ROOM(3));
	ck_assert_uint_eq(found.head.pid, getpid());
	ck_assert_uint_eq(found.head.dropped, 0);
	ck_assert_uint_eq(found.head.domains, 2);
	ck_assert_str_eq(found.head.domain[1].provider, info.provider);
	ck_assert_str_eq(found.head.domain[1].policy, info.policy);
	ck_assert_uint_eq(found.head.domain[1].max_bytes, info.max_bytes);
	for (i = 1; i < count; i++) {
		ck_assert_uint_ge(found.rec[i].begin, found.rec[i - 1].begin);
		ck_assert_uint_eq(found.rec[i].thread, getpid());
	}
}
END_TEST

/* Requests that end together, across chunks; the others stay open. */
START_TEST(test_chain)
{
	struct mrrc_trace_file *file;
	uint64_t chain = 0, other = 0;
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(4), &file), 0);
	for (i = 0; i < CHUNK + 10; i++) {
		struct mrrc_trace_rec *rec = mrrc_trace_file_next(file);

		rec->addr = i;
		mrrc_trace_file_chain(file, rec, i % 2 ? &chain : &other);
		mrrc_trace_file_commit(rec, MRRC_TRACE_READ);
	}
	mrrc_trace_file_end(file, &chain, 5);
	ck_assert_uint_eq(chain, 0);
	load(path);
	for (i = 0; i < found.count; i++)
		ck_assert_int_eq(!(found.rec[i].end & MRRC_TRACE_OPEN), i % 2);
	/* damage, as by somebody else who writes to the file */
	chain = UINT64_MAX / 2;
	mrrc_trace_file_end(file, &chain, 5);
	mrrc_trace_file_close(file);
}
END_TEST

/* ---- limits ---- */

START_TEST(test_limit)
{
	struct mrrc_trace_file *file;
	size_t i;

	/* less than a chunk is one */
	ck_assert_int_eq(mrrc_trace_file_open(path, _i ? ROOM(2) : 1, &file),
			 0);
	for (i = 0; i < 3000; i++)
		ck_assert_int_eq(put(file, i), i < (1u + _i) * CHUNK);
	ck_assert_int_eq(file->error, -EOVERFLOW);
	mrrc_trace_file_close(file);
	load(path);
	check_all((1u + _i) * CHUNK);
	ck_assert_uint_eq(found.size, ROOM(1 + _i));
	ck_assert_uint_eq(found.head.dropped, 3000 - (1u + _i) * CHUNK);
}
END_TEST

/* What a child makes of it. */
static int run_child(int (*child)(void))
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		status = child();
		fprintf(stderr, "%s", status ? "the child is not content\n" :
					       "");
		/* a checker would miss what a child leaves */
		if (!status)
			raise(SIGKILL);
		_exit(status);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL ? 0 : -WTERMSIG(status);
	return WEXITSTATUS(status);
}

/* Beyond RLIMIT_FSIZE there would be a signal. */
static int child_fsize(void)
{
	const struct rlimit limit = { ROOM(1) + 5, ROOM(1) + 5 };
	struct mrrc_trace_file *file;
	size_t i;

	if (setrlimit(RLIMIT_FSIZE, &limit) ||
	    mrrc_trace_file_open(path, ROOM(9), &file))
		return 1;
	for (i = 0; i < 2 * CHUNK; i++) {
		if (put(file, i) != (i < CHUNK))
			return 2;
	}
	return file->error == -EFBIG ? 0 : 3;
}

START_TEST(test_fsize)
{
	ck_assert_int_eq(run_child(child_fsize), 0);
	load(path);
	check_all(CHUNK);
	ck_assert_uint_eq(found.head.dropped, CHUNK);
}
END_TEST

/* A disk of a header and one chunk. */
static int child_full(void)
{
	struct mrrc_trace_file *file;
	char second[128];
	size_t i;

	snprintf(second, sizeof(second), "%s.second", path);
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=68k"))
		return 77;
	if (mrrc_trace_file_open(path, ROOM(9), &file))
		return 1;
	for (i = 0; i < 2 * CHUNK; i++) {
		if (put(file, i) != (i < CHUNK))
			return 2;
	}
	if (file->error != -ENOSPC)
		return 3;
	/* the others go to the same: not even a header fits */
	return mrrc_trace_file_open(second, ROOM(9), &file) == -ENOSPC ? 0 : 4;
}

START_TEST(test_full)
{
	const int rc = run_child(child_full);

	if (rc == 77)
		skip("no file system can be mounted here");
	ck_assert_int_eq(rc, 0);
}
END_TEST

/* ---- the end of the process ---- */

static int told[2];

static int child_killed(void)
{
	struct mrrc_trace_file *file;
	uint64_t i;

	if (mrrc_trace_file_open(path, ROOM(64), &file))
		return 1;
	for (i = 0;; i++) {
		if (!put(file, i) || write(told[1], &i, sizeof(i)) < 0)
			return 2;
	}
}

/* What was recorded before is there, and nothing half of it. */
START_TEST(test_killed)
{
	uint64_t last = 0, more;
	int status;
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
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (read(told[0], &more, sizeof(more)) == sizeof(more))
		last = more;
	close(told[0]);
	load(path);
	ck_assert_uint_ge(found.count, last + 1);
	ck_assert_uint_le(found.count, last + 2);
	check_all(found.count);
}
END_TEST

/* ---- fork ---- */

static struct mrrc_trace_file *parents;

static int child_forked(void)
{
	char own[128];
	struct mrrc_trace_file *file;
	size_t i;

	mrrc_trace_file_forked(parents);
	/* the parent writes to it */
	if (mrrc_trace_file_open(path, ROOM(4), &file) != -EBUSY)
		return 1;
	snprintf(own, sizeof(own), "%s.child", path);
	if (mrrc_trace_file_open(own, ROOM(4), &file))
		return 2;
	for (i = 0; i < 20; i++) {
		if (!put(file, i))
			return 3;
	}
	return 0;
}

START_TEST(test_forked)
{
	char own[128];
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(4), &parents), 0);
	for (i = 0; i < 10; i++)
		ck_assert(put(parents, i));
	ck_assert_int_eq(run_child(child_forked), 0);
	for (; i < 30; i++)
		ck_assert(put(parents, i));
	load(path);
	check_all(30);
	snprintf(own, sizeof(own), "%s.child", path);
	load(own);
	check_all(20);
	ck_assert_uint_ne(found.head.pid, getpid());
	unlink(own);
	mrrc_trace_file_close(parents);
}
END_TEST

/* ---- threads ---- */

#define THREADS	8
#define EACH	5000

struct job {
	struct mrrc_trace_file *file;
	uint64_t first;
	size_t count;
};

static void *run_job(void *arg)
{
	const struct job *job = arg;
	size_t i, done = 0;

	for (i = 0; i < job->count; i++)
		done += put(job->file, job->first + i);
	return (void *)done;
}

START_TEST(test_threads)
{
	struct mrrc_trace_file *file;
	struct job job[THREADS];
	pthread_t thread[THREADS];
	void *done;
	size_t i, j;

	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(64), &file), 0);
	for (i = 0; i < THREADS; i++) {
		job[i] = (struct job) { file, i * EACH, EACH };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, run_job,
						&job[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &done);
		ck_assert_uint_eq((size_t)done, EACH);
	}
	mrrc_trace_file_close(file);
	load(path);
	check_all(THREADS * EACH);
	/* in the order in which each wrote them */
	for (i = 0; i < THREADS; i++) {
		uint64_t time[EACH];

		for (j = 0; j < found.count; j++) {
			if (found.rec[j].addr / EACH == i)
				time[found.rec[j].addr % EACH] =
					found.rec[j].begin;
		}
		for (j = 1; j < EACH; j++)
			ck_assert_uint_ge(time[j], time[j - 1]);
	}
}
END_TEST

/* Threads that come and go share chunks. */
START_TEST(test_short_threads)
{
	struct mrrc_trace_file *file;
	struct job job;
	pthread_t thread;
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(64), &file), 0);
	for (i = 0; i < 400; i++) {
		job = (struct job) { file, 3 * i, 3 };
		ck_assert_int_eq(pthread_create(&thread, NULL, run_job, &job),
				 0);
		pthread_join(thread, NULL);
	}
	mrrc_trace_file_close(file);
	load(path);
	check_all(1200);
	ck_assert_uint_eq(found.size, ROOM(2));
}
END_TEST

/* Many fight for little room: each is recorded or counted. */
START_TEST(test_threads_limit)
{
	struct mrrc_trace_file *file;
	struct job job[THREADS];
	pthread_t thread[THREADS];
	size_t i, sum = 0;
	void *done;

	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(9), &file), 0);
	for (i = 0; i < THREADS; i++) {
		job[i] = (struct job) { file, i * EACH, EACH };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, run_job,
						&job[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &done);
		sum += (size_t)done;
	}
	mrrc_trace_file_close(file);
	load(path);
	ck_assert_uint_eq(found.count, sum);
	ck_assert_uint_eq(found.head.dropped, THREADS * EACH - sum);
	ck_assert_uint_eq(found.size, ROOM(9));
	ck_assert_uint_eq(sum, 9 * CHUNK);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(test_refused)
{
	int rc;
	struct mrrc_trace_file *file = NULL, *other;
	char fifo[128];

	ck_assert_int_eq(mrrc_trace_file_open("/nonexistent/t", ROOM(1),
					      &file), -ENOENT);
	ck_assert_int_eq(mrrc_trace_file_open("/dev/null", ROOM(1), &file),
			 -EINVAL);
	ck_assert_int_eq(mrrc_trace_file_open(dir, ROOM(1), &file), -EISDIR);
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(mrrc_trace_file_open(fifo, ROOM(1), &file), -EINVAL);
	unlink(fifo);
	ck_assert_int_eq(mrrc_trace_file_open(path, UINT64_MAX, &file),
			 -E2BIG);
	/* or more than a file can have */
	rc = mrrc_trace_file_open(path, 1ULL << 60, &file);
	ck_assert(rc == -E2BIG || rc == -EINVAL);
	ck_assert_ptr_null(file);
	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(1), &file), 0);
	ck_assert(put(file, 0));
	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(1), &other), -EBUSY);
	mrrc_trace_file_close(file);
	load(path);
	check_all(1);
	/* replaced */
	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(1), &file), 0);
	mrrc_trace_file_close(file);
	load(path);
	check_all(0);
}
END_TEST

/* A program that closes all descriptors, and gets the number again. */
START_TEST(test_fd_reused)
{
	struct mrrc_trace_file *file;
	struct stat stat;
	char other[128];
	size_t i;
	int fd;

	snprintf(other, sizeof(other), "%s.other", path);
	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(4), &file), 0);
	fd = open(other, O_RDWR | O_CREAT, 0600);
	ck_assert_int_eq(dup2(fd, file->fd), file->fd);
	for (i = 0; i < 5; i++)
		ck_assert(!put(file, i));
	ck_assert_int_eq(file->error, -EBADF);
	ck_assert_int_eq(fstat(fd, &stat), 0);
	ck_assert_int_eq(stat.st_size, 0);
	i = file->fd;
	mrrc_trace_file_close(file);
	ck_assert_int_ne(fcntl(i, F_GETFD), -1);
	close(i);
	close(fd);
	unlink(other);
}
END_TEST

START_TEST(test_open_fails)
{
	const unsigned fds = fault_fds();
	struct mrrc_trace_file *file = NULL;
	unsigned n;
	int rc;

	for (n = 1;; n++) {
		fault_arm(n);
		rc = mrrc_trace_file_open(path, ROOM(1), &file);
		if (!fault_disarm())
			break;
		ck_assert_uint_le(n, 2);
		ck_assert_int_lt(rc, 0);
		ck_assert_ptr_null(file);
		ck_assert_uint_eq(fault_leaks(), 0);
		ck_assert_uint_eq(fault_fds(), fds);
	}
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(rc, 0);
	mrrc_trace_file_close(file);
	ck_assert_uint_eq(fault_fds(), fds);
}
END_TEST

Suite *trace_file_suite(void)
{
	Suite *suite = suite_create("trace_file");
	TCase *tcase = tcase_create("trace_file");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_written);
	tcase_add_test(tcase, test_chain);
	tcase_add_loop_test(tcase, test_limit, 0, 2);
	tcase_add_test(tcase, test_fsize);
	tcase_add_test(tcase, test_full);
	tcase_add_loop_test(tcase, test_killed, 0, 3);
	tcase_add_test(tcase, test_forked);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_short_threads);
	tcase_add_test(tcase, test_threads_limit);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_fd_reused);
	tcase_add_test(tcase, test_open_fails);
	suite_add_tcase(suite, tcase);
	return suite;
}
