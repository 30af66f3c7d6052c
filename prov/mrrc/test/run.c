/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs suites (suites.h).
 */
#include "config.h"
#include "suites.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

unsigned rounds_of(unsigned all)
{
	return under_valgrind() ? all / 10 : all;
}

/* On a loaded machine each try takes longer. */
bool look_again(unsigned *tries)
{
	const char *hangs = getenv("FT_HANGS");

	usleep(1000);
	return ++*tries < (hangs ? strtoul(hangs, NULL, 10) * 100 : 60000);
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

	/* in parentheses it is Check's own */
	if (!only || !*only || !strcmp(only, test->name))
		(_tcase_add_test)(tcase, test, sig, exit_value, start, end);
}

static int run(SRunner *runner, enum fork_status fork)
{
	int failed;

	srunner_set_fork_status(runner, fork);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int run_suites(Suite *(*const *suites)(void), unsigned count)
{
	SRunner *runner = srunner_create(NULL);
	unsigned i;

	for (i = 0; i < count; i++)
		srunner_add_suite(runner, suites[i]());
	return run(runner, CK_NOFORK);
}

int run_suite(Suite *suite, enum fork_status fork)
{
	return run(srunner_create(suite), fork);
}
