/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests that add themselves to the case of their file, in its order, so that
 * none is forgotten. A file with TEST_CASE() has a suite of one case; its tests
 * are Check's, without START_TEST and END_TEST.
 */
#ifndef MRRC_TEST_CASE_H
#define MRRC_TEST_CASE_H

#include <pthread.h>
#include <sys/types.h>

#include "suites.h"

struct case_test {
	const TTest *test;
	int start, end;
	struct case_test *next;
};

struct test_case {
	const char *name;
	SFun setup, teardown; /* NULL: none */
	struct case_test *first, *last;
};

void case_add(struct test_case *tcase, struct case_test *test);
Suite *case_suite(const struct test_case *tcase);

/* A thread, which must begin. */
pthread_t thread_start(void *(*run)(void *arg), void *arg);

/* Waits for a child to exit with 0, or to kill itself when all was well. */
void child_exits(pid_t pid);
void child_dies(pid_t pid);

/* id_suite(), with a case of the same name and these fixtures. */
#define TEST_CASE(id, setup, teardown)         \
	static struct test_case this_case;     \
	Suite *id##_suite(void);               \
	Suite *id##_suite(void)                \
	{                                      \
		return case_suite(&this_case); \
	}                                      \
	static struct test_case this_case = { #id, setup, teardown, NULL, NULL }

/* One test for each number from start to end - 1, which it has as _i. */
#define LOOP_TEST_IF(condition, id, start, end)                               \
	static void id##_fn(int _i);                                          \
	static const TTest id##_ttest = { #id, id##_fn, __FILE__, __LINE__ }; \
	__attribute__((constructor)) static void id##_add(void)               \
	{                                                                     \
		static struct case_test test = { &id##_ttest, start, end,     \
						 NULL };                      \
                                                                              \
		if (condition)                                                \
			case_add(&this_case, &test);                          \
	}                                                                     \
	static void id##_fn(int _i CK_ATTRIBUTE_UNUSED)

#define LOOP_TEST(id, start, end) LOOP_TEST_IF(true, id, start, end)
#define TEST_IF(condition, id)	  LOOP_TEST_IF(condition, id, 0, 1)
#define TEST(id)		  LOOP_TEST_IF(true, id, 0, 1)

#endif /* MRRC_TEST_CASE_H */
