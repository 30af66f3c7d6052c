/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What every test program does with its suites (case.h).
 */
#ifndef MRRC_TEST_SUITES_H
#define MRRC_TEST_SUITES_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <check.h>

/*
 * With MRRC_TEST=NAME in the environment only tests of this name are added to
 * their cases, as mutate.sh has it.
 */
void add_test(TCase *tcase, const TTest *test, int sig, int exit_value,
	      int start, int end);
#define _tcase_add_test(...) add_test(__VA_ARGS__)

/* It translates code, and does not see that libc's has changed. */
bool under_valgrind(void);

/* So many rounds of a model; a tenth under valgrind, which is slow. */
unsigned rounds_of(unsigned all);

int run_suite(Suite *suite, enum fork_status fork);
int run_all(SRunner *runner, enum fork_status fork);

/*
 * Whether a condition becomes true: it is looked at again and again, and given
 * up after a minute, or a tenth of FT_HANGS seconds.
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

/* A child makes the call, whose result is 0 there. */
#define expect_child(call)                 \
	do {                               \
		const pid_t pid_ = fork(); \
                                           \
		if (!pid_)                 \
			_exit(call);       \
		expect_ended(pid_);        \
	} while (0)
void expect_ended(pid_t pid);

/* The calling thread is cancelled where that is possible for the first time. */
void be_cancelled(void);

/* From now on the kernel answers a system call with that error. */
bool kernel_answers(unsigned number, unsigned error);

/*
 * This process ends after so many seconds. Not alarm(): Check's handler of it
 * ends the process group, whatever else is in there.
 */
void end_in(unsigned seconds);

/* Says why and leaves the test, which then counts as passed. */
#define skip(...)                                       \
	do {                                            \
		fprintf(stderr, "skip %s: ", __func__); \
		fprintf(stderr, __VA_ARGS__);           \
		fprintf(stderr, "\n");                  \
		return;                                 \
	} while (0)

/*
 * In a child of a process with threads: ThreadSanitizer refuses it, and
 * AddressSanitizer's allocator may have been locked by one of those.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHILD_MAY_THREAD 0
#else
#define CHILD_MAY_THREAD 1
#endif

#endif /* MRRC_TEST_SUITES_H */
