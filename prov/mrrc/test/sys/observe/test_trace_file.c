/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/observe/trace_file: records that one thread or many threads have written
 * are in the file; files that cannot be used are refused. test_trace_child.c
 * tests processes that end and full disks.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "test/fakes/fault.h"
#include "sys/observe/stats_shm.h"
#include "test/sys/observe/trace_fixture.h"

TEST_CASE(trace_file, trace_setup, trace_teardown);

/* ---- one thread ---- */

/* Costs come from files that any user may have written. */
TEST(test_bad_cost)
{
	struct mrrc_trace_head head;
	struct mrrc_trace_file *file;
	struct mrrc_cost cost = { .page = 4096 };

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(1), &file), 0);
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	head = trace_found.head;
	mrrc_trace_put_cost(&cost, &head.cost[MRRC_TRACE_COSTS - 1]);
	ck_assert_ptr_null(mrrc_trace_check_head(&head));
	cost.reg = -1;
	mrrc_trace_put_cost(&cost, &head.cost[MRRC_TRACE_COSTS - 1]);
	ck_assert_str_eq(mrrc_trace_check_head(&head), "damaged header");
	ck_assert(
		!mrrc_trace_get_cost(&head.cost[MRRC_TRACE_COSTS - 1], &cost));
	head.cost[MRRC_TRACE_COSTS - 1].reg = ~0ULL; /* not a number */
	ck_assert_ptr_nonnull(mrrc_trace_check_head(&head));
	head.cost[MRRC_TRACE_COSTS - 1].page = 0;
	ck_assert_ptr_null(mrrc_trace_check_head(&head));
	head.cost[0].page = 12345;
	ck_assert_ptr_nonnull(mrrc_trace_check_head(&head));
}

TEST(test_written)
{
	const struct mrrc_stats_shm_info info = {
		.provider = "a;b",
		.policy = "lru:pieces=2",
		.monitor = "none",
		.max_bytes = 1 << 20,
		.max_regions = 7,
	};
	const struct mrrc_cost cost = {
		.reg_page = 1.5,
		.reg = 1e9,
		.dereg_page = .1,
		.page = 4096,
		.copy_page = 300,
		.batch = true,
	};
	const size_t count = 2 * CHUNK + 3;
	struct mrrc_trace_file *file;
	struct mrrc_cost got;
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(4), &file), 0);
	ck_assert_uint_eq(mrrc_trace_file_domain(file, &info, &cost), 0);
	ck_assert_uint_eq(mrrc_trace_file_domain(file, &info, NULL), 1);
	trace_load(trace_path);
	ck_assert_uint_eq(trace_found.count, 0);
	for (i = 0; i < count; i++)
		ck_assert(trace_put(file, i));
	/* The file can be read while it is open. */
	trace_load(trace_path);
	trace_check_all(count);
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	trace_check_all(count);
	ck_assert_uint_eq(trace_found.size, ROOM(3));
	ck_assert_uint_eq(trace_found.head.pid, getpid());
	ck_assert_uint_eq(trace_found.head.dropped, 0);
	ck_assert_uint_eq(trace_found.head.domains, 2);
	ck_assert_str_eq(trace_found.head.domain[1].provider, info.provider);
	ck_assert_str_eq(trace_found.head.domain[1].policy, info.policy);
	ck_assert_uint_eq(trace_found.head.domain[1].max_bytes, info.max_bytes);
	ck_assert(mrrc_trace_get_cost(&trace_found.head.cost[0], &got));
	ck_assert(got.reg_page == cost.reg_page && got.reg == cost.reg &&
		  got.dereg_page == cost.dereg_page && !got.dereg &&
		  got.copy_page == cost.copy_page && got.page == cost.page &&
		  got.batch);
	ck_assert(!mrrc_trace_get_cost(&trace_found.head.cost[1], &got));
	for (i = 1; i < count; i++) {
		ck_assert_uint_ge(trace_found.rec[i].begin,
				  trace_found.rec[i - 1].begin);
		ck_assert_uint_eq(trace_found.rec[i].thread, getpid());
	}
}

/* Requests of a chain end together, across chunks; other requests stay open. */
TEST(test_chain)
{
	struct mrrc_trace_file *file;
	uint64_t chain = 0, other = 0;
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(4), &file), 0);
	for (i = 0; i < CHUNK + 10; i++)
		trace_put_chained(file, i, i % 2 ? &chain : &other);
	mrrc_trace_file_end(file, &chain, 5);
	ck_assert_uint_eq(chain, 0);
	trace_load(trace_path);
	for (i = 0; i < trace_found.count; i++)
		ck_assert_int_eq(!(trace_found.rec[i].end & MRRC_TRACE_OPEN),
				 i % 2);
	mrrc_trace_file_close(file);
}

/* ---- limits ---- */

LOOP_TEST(test_limit, 0, 2)
{
	struct mrrc_trace_file *file;
	size_t i;

	/* A limit below one chunk counts as one chunk. */
	ck_assert_int_eq(
		mrrc_trace_file_open(trace_path, _i ? ROOM(2) : 1, &file), 0);
	for (i = 0; i < 3000; i++)
		ck_assert_int_eq(trace_put(file, i), i < (1u + _i) * CHUNK);
	ck_assert_int_eq(file->error, -EOVERFLOW);
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	trace_check_all((1u + _i) * CHUNK);
	ck_assert_uint_eq(trace_found.size, ROOM(1 + _i));
	ck_assert_uint_eq(trace_found.head.dropped, 3000 - (1u + _i) * CHUNK);
}

/* ---- threads ---- */

#define THREADS 8
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
		done += trace_put(job->file, job->first + i);
	return (void *) done;
}

TEST(test_threads)
{
	struct mrrc_trace_file *file;
	struct job job[THREADS];
	pthread_t thread[THREADS];
	void *done;
	size_t i, j;

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(64), &file), 0);
	for (i = 0; i < THREADS; i++) {
		job[i] = (struct job){ file, i * EACH, EACH };
		thread[i] = thread_start(run_job, &job[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &done);
		ck_assert_uint_eq((size_t) done, EACH);
	}
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	trace_check_all(THREADS * EACH);
	/* Records of a thread are in the order in which it wrote them. */
	for (i = 0; i < THREADS; i++) {
		uint64_t time[EACH];

		for (j = 0; j < trace_found.count; j++) {
			if (trace_found.rec[j].addr / EACH == i)
				time[trace_found.rec[j].addr % EACH] =
					trace_found.rec[j].begin;
		}
		for (j = 1; j < EACH; j++)
			ck_assert_uint_ge(time[j], time[j - 1]);
	}
}

/* Threads that come and go share chunks. */
TEST(test_short_threads)
{
	struct mrrc_trace_file *file;
	struct job job;
	size_t i;

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(64), &file), 0);
	for (i = 0; i < 400; i++) {
		job = (struct job){ file, 3 * i, 3 };
		pthread_join(thread_start(run_job, &job), NULL);
	}
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	trace_check_all(1200);
	ck_assert_uint_eq(trace_found.size, ROOM(2));
}

/* Many threads compete for little room: each record is written or counted. */
TEST(test_threads_limit)
{
	struct mrrc_trace_file *file;
	struct job job[THREADS];
	pthread_t thread[THREADS];
	size_t i, sum = 0;
	void *done;

	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(9), &file), 0);
	for (i = 0; i < THREADS; i++) {
		job[i] = (struct job){ file, i * EACH, EACH };
		thread[i] = thread_start(run_job, &job[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &done);
		sum += (size_t) done;
	}
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	ck_assert_uint_eq(trace_found.count, sum);
	ck_assert_uint_eq(trace_found.head.dropped, THREADS * EACH - sum);
	ck_assert_uint_eq(trace_found.size, ROOM(9));
	/* A thread may leave a part of the last chunk. */
	ck_assert_uint_le(sum, 9 * CHUNK);
	ck_assert_uint_gt(sum, 8 * CHUNK);
}

/* ---- refused files ---- */

TEST(test_refused)
{
	int ret;
	struct mrrc_trace_file *file = NULL, *other;
	struct stat stat_of;
	char path[128];

	ck_assert_int_eq(mrrc_trace_file_open("/nonexistent/t", ROOM(1), &file),
			 -ENOENT);
	ck_assert_int_eq(mrrc_trace_file_open("/dev/null", ROOM(1), &file),
			 -EINVAL);
	ck_assert_int_eq(mrrc_trace_file_open(trace_dir, ROOM(1), &file),
			 -EISDIR);
	snprintf(path, sizeof(path), "%s.fifo", trace_path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(1), &file), -EINVAL);
	unlink(path);
	/* The link leads to another file, which stays as it was. */
	snprintf(path, sizeof(path), "%s.link", trace_path);
	ck_assert_int_eq(mknod(trace_path, S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(truncate(trace_path, 7), 0);
	ck_assert_int_eq(symlink(trace_path, path), 0);
	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(1), &file), -ELOOP);
	unlink(path);
	ck_assert_int_eq(link(trace_path, path), 0);
	ck_assert_int_eq(mrrc_trace_file_open(path, ROOM(1), &file), -EPERM);
	unlink(path);
	ck_assert_int_eq(stat(trace_path, &stat_of), 0);
	ck_assert_uint_eq(stat_of.st_size, 7);
	ck_assert_int_eq(mrrc_trace_file_open(trace_path, UINT64_MAX, &file),
			 -E2BIG);
	/* The size is more than a file can have. */
	ret = mrrc_trace_file_open(trace_path, 1ULL << 60, &file);
	ck_assert(ret == -E2BIG || ret == -EINVAL);
	ck_assert_ptr_null(file);
	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(1), &file), 0);
	ck_assert(trace_put(file, 0));
	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(1), &other),
			 -EBUSY);
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	trace_check_all(1);
	/* The old file is replaced. */
	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(1), &file), 0);
	mrrc_trace_file_close(file);
	trace_load(trace_path);
	trace_check_all(0);
}

/* A program closes all descriptors, and opens a file with the same number. */
TEST(test_fd_reused)
{
	struct mrrc_trace_file *file;
	struct stat stat;
	char other[128];
	size_t i;
	int fd;

	snprintf(other, sizeof(other), "%s.other", trace_path);
	ck_assert_int_eq(mrrc_trace_file_open(trace_path, ROOM(4), &file), 0);
	fd = open(other, O_RDWR | O_CREAT, 0600);
	ck_assert_int_eq(dup2(fd, file->fd), file->fd);
	for (i = 0; i < 5; i++)
		ck_assert(!trace_put(file, i));
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

TEST(test_open_fails)
{
	const unsigned fds = fault_fds();
	struct mrrc_trace_file *file = NULL;
	unsigned n;
	int ret;

	for (n = 1;; n++) {
		fault_arm(n);
		ret = mrrc_trace_file_open(trace_path, ROOM(1), &file);
		if (!fault_disarm())
			break;
		ck_assert_uint_le(n, 2);
		ck_assert_int_lt(ret, 0);
		ck_assert_ptr_null(file);
		ck_assert_uint_eq(fault_leaks(), 0);
		ck_assert_uint_eq(fault_fds(), fds);
	}
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(ret, 0);
	mrrc_trace_file_close(file);
	ck_assert_uint_eq(fault_fds(), fds);
}
