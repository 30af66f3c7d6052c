/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests add themselves to the case above them, and cases add themselves to
 * their program, in link order, so that no test is forgotten. A case is also a
 * suite of Check; the tests of a case need no START_TEST and END_TEST.
 */
#ifndef MRRC_TEST_CASE_H
#define MRRC_TEST_CASE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test/suites.h"

struct case_test {
	const TTest *test;
	int start, end;
	struct case_test *next;
};

struct test_case {
	const char *name;
	SFun setup, teardown; /* NULL: nothing to do */
	struct case_test *first, *last;
	struct test_case *next;
};

/* Called before main(): adds a case, and adds a test to the last case. */
void case_begin(struct test_case *tcase);
void case_add(struct case_test *test, int start, int end);
/*
 * Runs all cases of this program; main.c does so for programs without a main()
 * of their own. With CK_FORK_GETENV each test runs in a process, unless
 * CK_FORK=no. Tests have no time limit, unless CK_DEFAULT_TIMEOUT sets one.
 */
int run_cases(enum fork_status fork);

/* Starts a thread; a failure fails the test. */
pthread_t thread_start(void *(*run)(void *arg), void *arg);
/* Runs @count threads at once, to their end; each gets a number, from 0 on. */
void threads_run(unsigned count, void *(*run)(void *arg));

/* Wait for a child that exits with 0, or that kills itself if all was well. */
void child_exits(pid_t pid);
void child_dies(pid_t pid);

/* All tests from here on belong to this case, and use these fixtures. */
#define TEST_CASE(id, setup, teardown)                                  \
	static struct test_case id##_case;                              \
	__attribute__((constructor)) static void id##_case_begins(void) \
	{                                                               \
		case_begin(&id##_case);                                 \
	}                                                               \
	static struct test_case id##_case = { #id,  setup, teardown,    \
					      NULL, NULL,  NULL }

/* Defines one test for each number from start to end - 1; _i is the number. */
#define LOOP_TEST_IF(condition, id, start, end)                               \
	static void id##_fn(int _i);                                          \
	static const TTest id##_ttest = { #id, id##_fn, __FILE__, __LINE__ }; \
	__attribute__((constructor)) static void id##_add(void)               \
	{                                                                     \
		static struct case_test test = { &id##_ttest, 0, 0, NULL };   \
                                                                              \
		if (condition)                                                \
			case_add(&test, start, end);                          \
	}                                                                     \
	static void id##_fn(int _i CK_ATTRIBUTE_UNUSED)

/* Defines one test for each element of a table. */
#define EACH_TEST(id, table) \
	LOOP_TEST_IF(true, id, 0, sizeof(table) / sizeof((table)[0]))
#define LOOP_TEST(id, start, end) LOOP_TEST_IF(true, id, start, end)
#define TEST_IF(condition, id)	  LOOP_TEST_IF(condition, id, 0, 1)
#define TEST(id)		  LOOP_TEST_IF(true, id, 0, 1)

#endif /* MRRC_TEST_CASE_H */
