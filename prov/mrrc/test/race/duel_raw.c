/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A system call by an instruction of its own (duel.h), in a file of its own:
 * the provider asks the kernel where such code is.
 */
#include "test/race/duel.h"

#include "sys/base/raw.h"

__attribute__((visibility("default"))) long
duel_raw(long number, long a, long b, long c, long d, long e, long f)
{
	return mrrc_raw(number, a, b, c, d, e, f);
}
