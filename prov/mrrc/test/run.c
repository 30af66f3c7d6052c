/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs test suites (suites.h). */
#include "config.h"
#include "test/suites.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

unsigned rounds_of(unsigned all)
{
	return under_valgrind() ? all / 10 : all;
}

/* A limit on tries allows more time on a loaded machine than a clock. */
bool look_again(unsigned *tries)
{
	const char *hangs = getenv("FT_HANGS");

	usleep(1000);
	return ++*tries < (hangs ? strtoul(hangs, NULL, 10) * 100 : 60000);
}

void expect_ended(pid_t pid)
{
	int status;

	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(!status, "child: status %#x", status);
}

void be_cancelled(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

bool kernel_answers(unsigned number, unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

void end_in(unsigned seconds)
{
	signal(SIGALRM, SIG_DFL);
	alarm(seconds);
}

void add_test(TCase *tcase, const TTest *test, int sig, int exit_value,
	      int start, int end)
{
	const char *only = getenv("MRRC_TEST");

	/* The parentheses prevent the macro: this is Check's own function. */
	if (!only || !*only || !strcmp(only, test->name))
		(_tcase_add_test)(tcase, test, sig, exit_value, start, end);
}

int run_all(SRunner *runner, enum fork_status fork)
{
	int failed;

	srunner_set_fork_status(runner, fork);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int run_suite(Suite *suite, enum fork_status fork)
{
	return run_all(srunner_create(suite), fork);
}
