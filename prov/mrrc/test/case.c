/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cases of tests that add themselves (case.h).
 */
#include "config.h"
#include "case.h"

#include <signal.h>
#include <sys/wait.h>

/* Before main(). */
void case_add(struct test_case *tcase, struct case_test *test)
{
	if (tcase->last)
		tcase->last->next = test;
	else
		tcase->first = test;
	tcase->last = test;
}

Suite *case_suite(const struct test_case *tcase)
{
	Suite *suite = suite_create(tcase->name);
	TCase *all = tcase_create(tcase->name);
	const struct case_test *test;

	tcase_set_timeout(all, 0); /* the clock ends no test */
	tcase_add_checked_fixture(all, tcase->setup, tcase->teardown);
	for (test = tcase->first; test; test = test->next)
		tcase_add_loop_test(all, test->test, test->start, test->end);
	suite_add_tcase(suite, all);
	return suite;
}

pthread_t thread_start(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
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
