/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions for all test programs and their suites (case.h). */
#ifndef MRRC_TEST_SUITES_H
#define MRRC_TEST_SUITES_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <check.h>

/*
 * With MRRC_TEST=NAME in the environment, only tests of this name are added to
 * their cases; mutate.sh sets it.
 */
void add_test(TCase *tcase, const TTest *test, int sig, int exit_value,
	      int start, int end);
#define _tcase_add_test(...) add_test(__VA_ARGS__)

/* Valgrind translates code, and does not see that libc's code has changed. */
bool under_valgrind(void);

/* Returns @all rounds of a model, or a tenth under valgrind, which is slow. */
unsigned rounds_of(unsigned all);

int run_suite(Suite *suite, enum fork_status fork);
int run_all(SRunner *runner, enum fork_status fork);

/*
 * comes() returns whether a condition becomes true, and evaluates the condition
 * again and again, for a minute, or for a tenth of FT_HANGS seconds.
 */
#define comes(condition)                                    \
	({                                                  \
		unsigned tries_ = 0;                        \
                                                            \
		while (!(condition) && look_again(&tries_)) \
			;                                   \
		(condition);                                \
	})
bool look_again(unsigned *tries);

/* Makes the call in a child, where its result must be 0. */
#define expect_child(call)                 \
	do {                               \
		const pid_t pid_ = fork(); \
                                           \
		if (!pid_)                 \
			_exit(call);       \
		expect_ended(pid_);        \
	} while (0)
void expect_ended(pid_t pid);

/* The calling thread is cancelled at its next cancellation point. */
void be_cancelled(void);

/* From now on the kernel answers this system call with this error. */
bool kernel_answers(unsigned number, unsigned error);

/*
 * Ends this process after @seconds. alarm() cannot be used, since Check's
 * handler of SIGALRM ends the whole process group.
 */
void end_in(unsigned seconds);

/* Prints the reason and leaves the test, which then counts as passed. */
#define skip(...)                                       \
	do {                                            \
		fprintf(stderr, "skip %s: ", __func__); \
		fprintf(stderr, __VA_ARGS__);           \
		fprintf(stderr, "\n");                  \
		return;                                 \
	} while (0)

/*
 * CHILD_MAY_THREAD: may a child of a process with threads start a thread?
 * ThreadSanitizer forbids such threads, and another thread may have locked
 * AddressSanitizer's allocator at the fork.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHILD_MAY_THREAD 0
#else
#define CHILD_MAY_THREAD 1
#endif

#endif /* MRRC_TEST_SUITES_H */
