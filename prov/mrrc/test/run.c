/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs suites in one process (suites.h).
 */
#include "config.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>

bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

int run_suites(Suite *(*const *suites)(void), unsigned count)
{
	SRunner *runner = srunner_create(NULL);
	unsigned i;
	int failed;

	for (i = 0; i < count; i++)
		srunner_add_suite(runner, suites[i]());
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
