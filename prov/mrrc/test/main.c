/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Main program for files that have cases only (case.h). Monitors and threads
 * belong to one process, so no test runs in a process of its own.
 */
#include "config.h"
#include "test/case.h"

int main(void)
{
	return run_cases(CK_NOFORK);
}
