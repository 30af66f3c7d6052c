/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks standard output at exit, for programs that exit in many places, argp's
 * --help among them: a failed write is an error there, too.
 */
#ifndef OUT_H
#define OUT_H

#include <stdio.h>

/* Called once, first in main(). The name is not copied. */
void out_check_at_exit(const char *program);

/* Writes the buffered output. 0, or -errno of this or an earlier failure. */
int out_flush(FILE *out);

#endif /* OUT_H */
