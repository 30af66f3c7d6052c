/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Do a program's lookups ask the kernel (fi_mrrc_monitor(7))? The answer
 * depends on the code of the program's files and of the libraries that they are
 * linked to, or on all code that a process has mapped.
 */
#ifndef STAT_CODE_H
#define STAT_CODE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Prints whether lookups would ask the kernel in each program of @what, a PID
 * or a path. Returns 0 if no lookup would ask, else 1; also 1 if the check
 * failed, with the reason on @err.
 */
int stat_code(char *const *what, size_t count, FILE *out, FILE *err);

#endif /* STAT_CODE_H */
