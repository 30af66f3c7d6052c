/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of what the processes of a node share.
 */
#include "config.h"
#include "suites.h"

int main(void)
{
	static Suite *(*const suites[])(void) = {
		node_shm_suite,	   budget_suite,       budget_give_suite,
		budget_node_suite, cache_budget_suite, cpus_suite,
	};

	return run_suites(suites, sizeof(suites) / sizeof(suites[0]));
}
