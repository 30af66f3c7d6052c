/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/node/budget: segments, other processes, helper threads. */
#include "config.h"
#include "test/case.h"
#include "test/sys/node/budget_fixture.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test/fakes/fault.h"

/* Returns the number of times that this thread gave up its processor. */
static long sleeps_so_far(void)
{
	struct rusage usage;

	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

TEST_CASE(budget_node, budget_setup, budget_teardown);

/* Without a segment, a process has a part of its own, not the whole budget. */
TEST(test_alone)
{
	const struct mrrc_budget_attr attr = {
		.bytes = ALL,
		.alone = 4 * GRAIN,
		.dir = "/nonexistent",
	};
	struct mrrc_budget_stats stats;
	struct mrrc_budget *budget;
	long sleeps;
	int alone;

	ck_assert_int_eq(mrrc_budget_open(&attr, &budget, &alone), 0);
	ck_assert_int_eq(alone, -ENOENT);
	ck_assert(mrrc_budget_take(budget, 4 * GRAIN));
	/* A wait would be useless, and would take 1000 sleeps. */
	sleeps = sleeps_so_far();
	ck_assert(!mrrc_budget_take_wait(budget, NULL, 4 * KIB, 1000));
	ck_assert(!mrrc_budget_take_wait(budget, NULL, 8 * GRAIN, 1000));
	ck_assert_int_lt(sleeps_so_far() - sleeps, 500);
	ck_assert(!mrrc_budget_take_over(budget, 4 * KIB));
	mrrc_budget_put(budget, 4 * KIB);
	mrrc_budget_stats(budget, &stats);
	ck_assert_uint_eq(stats.budget, 4 * GRAIN);
	ck_assert_uint_eq(stats.reserved, 4 * GRAIN);
	ck_assert(mrrc_budget_helper(budget, &has.member, MRRC_NODE_AGGRESSIVE,
				     true)
			  .may);
	mrrc_budget_close(budget);
}

TEST(test_open_fails)
{
	const struct mrrc_budget_attr attr = { .bytes = ALL, .dir = dir };
	/* These counts include those of the fixture's budgets. */
	const unsigned threads = fault_threads_left(FAULT_THREADS + 2);
	const unsigned fds = fault_fds();
	struct mrrc_budget *budget = NULL;
	bool fired = true;
	int n, alone, ret;

	for (n = 1; fired; n++) {
		fault_arm(n);
		ret = mrrc_budget_open(&attr, &budget, &alone);
		if (!ret)
			mrrc_budget_close(budget);
		fired = fault_disarm();
		ck_assert(!fault_leaks());
		ck_assert(fired || (!ret && !alone));
		ck_assert_uint_eq(fault_threads_left(threads), threads);
		ck_assert_uint_eq(fault_fds(), fds);
	}
	ck_assert_int_gt(n, 5);
}

/* The application closes the segment's descriptor: sharing ends. */
TEST(test_closed)
{
	struct stat want, got;
	int fd;

	ck_assert(mrrc_budget_take(a, GRAIN));
	ck_assert_int_eq(stat(path, &want), 0);
	for (fd = 3; fd < 256; fd++) {
		if (!fstat(fd, &got) && got.st_ino == want.st_ino &&
		    got.st_dev == want.st_dev)
			close(fd);
	}
	ck_assert(mrrc_budget_take(a, 3 * GRAIN));
	ck_assert(!mrrc_budget_take(a, GRAIN));
	mrrc_budget_put(a, 4 * GRAIN);
}

/* ---- other processes ---- */

static int told[2];

static pid_t start(size_t bytes)
{
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (!pid) {
		struct mrrc_budget *own;
		int alone;

		/* The child ends with its parent, even if it is stopped. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mrrc_budget_open(&(struct mrrc_budget_attr){ .bytes = ALL,
								 .dir = dir },
				     &own, &alone) ||
		    alone || !mrrc_budget_take(own, bytes))
			_exit(1);
		if (write(told[1], "p", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	ck_assert_int_eq(read(told[0], &c, 1), 1);
	close(told[0]);
	return pid;
}

TEST(test_killed)
{
	pid_t pid;

	if (!CHILD_MAY_THREAD)
		skip("the child has a thread\n");
	pid = start(12 * GRAIN);
	ck_assert(mrrc_budget_take(a, 4 * GRAIN));
	ck_assert(!mrrc_budget_take(b, GRAIN));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert(take_soon(b, 12 * GRAIN));
	ck_assert_uint_eq(node(), ALL);
}

/* A process has one shared budget, and a child has another one. */
TEST(test_join)
{
	const struct mrrc_budget_attr attr = { .bytes = ALL, .dir = dir };
	struct mrrc_budget *one, *two;
	int alone;
	pid_t pid;

	ck_assert_int_eq(mrrc_budget_join(&attr, &one, &alone), 0);
	ck_assert_int_eq(mrrc_budget_join(&attr, &two, &alone), 0);
	ck_assert_ptr_eq(one, two);
	ck_assert(mrrc_budget_take(one, GRAIN));
	pid = CHILD_MAY_THREAD ? fork() : 1;
	if (!pid) {
		mrrc_budget_leave(one);
		if (mrrc_budget_join(&attr, &two, &alone) || two == one ||
		    alone || !mrrc_budget_take(two, ALL - GRAIN) ||
		    mrrc_budget_take(two, GRAIN))
			_exit(1);
		mrrc_budget_leave(two);
		_exit(0);
	}
	if (CHILD_MAY_THREAD) {
		child_exits(pid);
	}
	mrrc_budget_leave(one);
	ck_assert_uint_eq(node(), GRAIN);
	mrrc_budget_leave(one);
	ck_assert_uint_eq(node(), 0);
}

static void *join_cancelled(void *arg)
{
	const struct mrrc_budget_attr attr = { .bytes = ALL, .dir = dir };
	struct mrrc_budget *one = NULL;
	int alone;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	mrrc_budget_join(&attr, &one, &alone);
	mrrc_budget_leave(one);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* A cancelled thread leaves no lock behind, for which a fork would wait. */
TEST(test_join_cancelled)
{
	void *ended;

	pthread_join(thread_start(join_cancelled, a), &ended);
	ck_assert_ptr_eq(ended, a);
	ck_assert_uint_eq(node(), 0);
}

/* ---- helper threads ---- */

static struct mrrc_budget_helper ask(struct mrrc_budget *budget,
				     struct member *member, bool would)
{
	return mrrc_budget_helper(budget, &member->member, MRRC_NODE_AGGRESSIVE,
				  would);
}

/* Returns the share of @a as @b sees it. */
static struct mrrc_node_share share_of_a(void)
{
	struct mrrc_node_share share;
	struct mrrc_node_view view;

	mrrc_lock_acquire(&b->lock);
	mrrc_budget_view(b, true, mrrc_budget_now(), &view);
	ck_assert_uint_eq(view.count, 2);
	share = b->share[!view.self];
	mrrc_lock_release(&b->lock);
	return share;
}

TEST(test_helper)
{
	struct member other = { 0 };

	ck_assert(mrrc_budget_take(a, GRAIN));
	ck_assert(ask(a, &has, true).may);
	ck_assert(!ask(b, &other, false).may);
	ck_assert(share_of_a().helper);
	ck_assert_uint_eq(share_of_a().used, GRAIN / MRRC_NODE_UNIT);
	ck_assert_uint_ne(share_of_a().cpus, 0);
	/* The answer stays until its time, unless the question changes. */
	ck_assert(!ask(a, &has, false).may);
	ck_assert(!share_of_a().helper);
	ck_assert(!ask(a, &has, false).may);
	ck_assert(ask(a, &has, true).may);
	ck_assert(share_of_a().helper);
}

/* While nothing changes, files are read less and less often. */
TEST(test_helper_period)
{
	unsigned i;

	ask(a, &has, true);
	ck_assert_uint_eq(a->ask_ms, MRRC_BUDGET_HELPER_MS);
	for (i = 0; i < 8; i++) {
		a->asked_at -= a->ask_ms;
		ask(a, &has, true);
	}
	ck_assert_uint_eq(a->ask_ms, MRRC_BUDGET_HELPER_MAX_MS);
	a->asked_at -= a->ask_ms;
	a->helper.may = false; /* The last answer was that no helper may run. */
	ask(a, &has, true);
	ck_assert_uint_eq(a->ask_ms, MRRC_BUDGET_HELPER_MS);
}

/* A process wants a helper while any of its members wants one. */
TEST(test_helper_members)
{
	struct member second = { 0 };

	ck_assert(ask(a, &has, true).may);
	ck_assert(ask(a, &second, true).may);
	ck_assert(!ask(a, &has, false).may);
	ck_assert(share_of_a().helper);
	ck_assert(ask(a, &second, true).may);
	ck_assert(!ask(a, &second, false).may);
	ck_assert(!share_of_a().helper);
}

#define ASKERS 4

static void *ask_often(void *arg)
{
	struct member own = { 0 };
	unsigned i;

	for (i = 0; i < 4000; i++) {
		if (!ask(arg, &own, true).may || !share_of_a().helper)
			return arg;
		ask(arg, &own, false);
	}
	return NULL;
}

/* Each domain asks for a helper thread of its own. */
TEST(test_helper_race)
{
	pthread_t thread[ASKERS];
	void *wrong;
	unsigned i;

	ck_assert(ask(a, &has, true).may);
	for (i = 0; i < ASKERS; i++)
		thread[i] = thread_start(ask_often, a);
	for (i = 0; i < ASKERS; i++) {
		pthread_join(thread[i], &wrong);
		ck_assert_ptr_null(wrong);
	}
	ck_assert(share_of_a().helper);
	ck_assert(!ask(a, &has, false).may);
	ck_assert(!share_of_a().helper);
}

/* Processes without a limit only count the bytes that they use. */
TEST(test_no_limit)
{
	struct mrrc_budget *free = open_one(MRRC_BUDGET_NONE);
	struct mrrc_budget_stats stats;

	ck_assert_uint_eq(mrrc_budget_limit(free), MRRC_BUDGET_NONE);
	ck_assert(!free->runs);
	mrrc_budget_add(free, &has.member);
	ck_assert(mrrc_budget_take(free, 4 * ALL));
	ck_assert(mrrc_budget_take_over(free, SIZE_MAX / 4));
	ck_assert(ask(free, &has, true).may);
	mrrc_budget_put(free, SIZE_MAX / 4);
	ck_assert_uint_eq(free->used, 4 * ALL / MRRC_NODE_UNIT);
	ck_assert_uint_eq(free->reserved, 0);
	mrrc_budget_stats(free, &stats);
	ck_assert_uint_eq(stats.budget | stats.node | stats.reserved, 0);
	/* Processes with a limit can take the whole budget. */
	ck_assert(mrrc_budget_take(b, ALL));
	ck_assert_uint_eq(node(), ALL);
	mrrc_budget_put(b, ALL);
	mrrc_budget_put(free, 4 * ALL);
	ck_assert_uint_eq(free->used, 0);
	ask(free, &has, false);
	mrrc_budget_remove(free, &has.member);
	mrrc_budget_close(free);
}
