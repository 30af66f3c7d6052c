/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the tests of sys/hooks/patch.
 */
#ifndef MRRC_PATCH_FIXTURE_H
#define MRRC_PATCH_FIXTURE_H

#include <stdbool.h>

struct mrrc_patch;

/* The patch of a function of libc, or NULL. */
const struct mrrc_patch *patch_of(const char *name);

/* From now on, does this thread's hook make the calls? */
void patch_make(bool on);

/* Calls of mrrc_patch_called() so far. */
unsigned long patch_calls(void);

#endif /* MRRC_PATCH_FIXTURE_H */
