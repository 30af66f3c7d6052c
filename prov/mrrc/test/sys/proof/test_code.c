/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of sys/proof/code.
 */
#include "config.h"
#include "test/suites.h"

int main(void)
{
	static Suite *(*const suites[])(void) = {
		code_number_suite, code_pair_suite,   code_gap_suite,
		code_over_suite,   code_filler_suite, code_file_suite,
	};

	return run_suites(suites, sizeof(suites) / sizeof(suites[0]));
}
