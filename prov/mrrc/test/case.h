/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests that add themselves to the case above them, and cases that add themselves
 * to their program, so that none is forgotten: in the order of the files as they
 * are linked. A case is a suite, too; its tests are Check's, without START_TEST
 * and END_TEST.
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
	SFun setup, teardown; /* NULL: none */
	struct case_test *first, *last;
	struct test_case *next;
};

/* Before main(): a case, and a test of the last case. */
void case_begin(struct test_case *tcase);
void case_add(struct case_test *test, int start, int end);
/*
 * All of this program, as main.c does it for programs without a main() of their
 * own. With CK_FORK_GETENV each test has a process, unless CK_FORK=no. The clock
 * ends no test, unless CK_DEFAULT_TIMEOUT says when.
 */
int run_cases(enum fork_status fork);

/* A thread, which must begin. */
pthread_t thread_start(void *(*run)(void *arg), void *arg);
/* @count threads at once, until they end; each has its number, from 0 on. */
void threads_run(unsigned count, void *(*run)(void *arg));

/* Waits for a child to exit with 0, or to kill itself when all was well. */
void child_exits(pid_t pid);
void child_dies(pid_t pid);

/* The tests from here on are of this case, with these fixtures. */
#define TEST_CASE(id, setup, teardown)                                  \
	static struct test_case id##_case;                              \
	__attribute__((constructor)) static void id##_case_begins(void) \
	{                                                               \
		case_begin(&id##_case);                                 \
	}                                                               \
	static struct test_case id##_case = { #id,  setup, teardown,    \
					      NULL, NULL,  NULL }

/* One test for each number from start to end - 1, which it has as _i. */
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

/* One for each element of a table. */
#define EACH_TEST(id, table) \
	LOOP_TEST_IF(true, id, 0, sizeof(table) / sizeof((table)[0]))
#define LOOP_TEST(id, start, end) LOOP_TEST_IF(true, id, start, end)
#define TEST_IF(condition, id)	  LOOP_TEST_IF(condition, id, 0, 1)
#define TEST(id)		  LOOP_TEST_IF(true, id, 0, 1)

#endif /* MRRC_TEST_CASE_H */
