/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test cases that register themselves (case.h). */
#include "config.h"
#include "test/case.h"

static struct test_case *first_case, *last_case;

void case_begin(struct test_case *tcase)
{
	if (last_case)
		last_case->next = tcase;
	else
		first_case = tcase;
	last_case = tcase;
}

void case_add(struct case_test *test, int start, int end)
{
	struct test_case *tcase = last_case;

	test->start = start;
	test->end = end;
	if (tcase->last)
		tcase->last->next = test;
	else
		tcase->first = test;
	tcase->last = test;
}

static Suite *case_suite(const struct test_case *tcase)
{
	Suite *suite = suite_create(tcase->name);
	TCase *all = tcase_create(tcase->name);
	const struct case_test *test;

	if (!getenv("CK_DEFAULT_TIMEOUT"))
		tcase_set_timeout(all, 0);
	tcase_add_checked_fixture(all, tcase->setup, tcase->teardown);
	for (test = tcase->first; test; test = test->next)
		tcase_add_loop_test(all, test->test, test->start, test->end);
	suite_add_tcase(suite, all);
	return suite;
}

int run_cases(enum fork_status fork)
{
	SRunner *runner = srunner_create(NULL);
	const struct test_case *tcase;

	for (tcase = first_case; tcase; tcase = tcase->next)
		srunner_add_suite(runner, case_suite(tcase));
	return run_all(runner, fork);
}

pthread_t thread_start(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

void threads_run(unsigned count, void *(*run)(void *arg))
{
	pthread_t thread[count];
	uintptr_t i;

	for (i = 0; i < count; i++)
		thread[i] = thread_start(run, (void *) i);
	for (i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

void child_exits(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

void child_dies(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		      "child: status %#x", status);
}
