/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Would lookups of a program ask the kernel (fi_mrrc(7), Which code is
 * trusted)? By its code: of files and the libraries that they are linked to, or
 * of all that a process has mapped.
 */
#ifndef STAT_CODE_H
#define STAT_CODE_H

#include <stddef.h>

/*
 * Each of @what is a PID or a path. Says it on stdout; 0: they would not, 1:
 * they would, or it could not be looked at, which stderr says.
 */
int stat_code(char *const *what, size_t count);

#endif /* STAT_CODE_H */
