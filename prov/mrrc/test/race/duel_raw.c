/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * duel_raw() (duel.h) makes a system call by an instruction of its own. The
 * function has a file of its own, as lookups ask the kernel in a process with
 * such code.
 */
#include "test/race/duel.h"

#include "sys/base/raw.h"

__attribute__((visibility("default"))) long
duel_raw(long number, long a, long b, long c, long d, long e, long f)
{
	return mrrc_raw(number, a, b, c, d, e, f);
}
