/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Declarations for the tests of sys/hooks/patch. */
#ifndef MRRC_PATCH_FIXTURE_H
#define MRRC_PATCH_FIXTURE_H

#include <stdbool.h>

struct mrrc_patch;

/* Returns the patch of a function of libc, or NULL. */
const struct mrrc_patch *patch_of(const char *name);

/* Sets whether this thread's hook makes the system calls itself. */
void patch_make(bool on);

/* Returns the number of calls of mrrc_patch_called() so far. */
unsigned long patch_calls(void);

#endif /* MRRC_PATCH_FIXTURE_H */
