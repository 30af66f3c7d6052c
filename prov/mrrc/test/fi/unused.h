/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stubs for tests of fi: functions of other folders that are never called. */
#ifndef MRRC_TEST_UNUSED_H
#define MRRC_TEST_UNUSED_H

#include <stdbool.h>
#include <stdlib.h>

#define UNUSED(type, function, ...) \
	type function(__VA_ARGS__)  \
	{                           \
		abort();            \
	}                           \
	_Static_assert(true, "")

#endif /* MRRC_TEST_UNUSED_H */
