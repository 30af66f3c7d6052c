/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cases of the tests of sys/patch.
 */
#ifndef MRRC_PATCH_FIXTURE_H
#define MRRC_PATCH_FIXTURE_H

#include <check.h>

/* Code of the test's own (test_patch_own.c). */
TCase *patch_own_tcase(void);

/* uprobes (test_patch_probe.c) */
TCase *patch_probe_tcase(void);

/* Calls of mrrc_patch_called() so far. */
unsigned long patch_calls(void);

#endif /* MRRC_PATCH_FIXTURE_H */
