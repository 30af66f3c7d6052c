/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of core.
 */
#include "config.h"
#include "suites.h"

int main(void)
{
	static Suite *(*const suites[])(void) = {
		index_suite, policy_suite, cache_suite,
	};

	return run_suites(suites, sizeof(suites) / sizeof(suites[0]));
}
