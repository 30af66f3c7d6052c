/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For a program whose files have cases only (case.h): monitors and threads belong
 * to one process, so no test has one of its own.
 */
#include "config.h"
#include "test/case.h"

int main(void)
{
	return run_cases(CK_NOFORK);
}
