/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks standard output at exit, for programs that exit in many places, such
 * as argp's --help: a failed write is an error at every exit.
 */
#ifndef OUT_H
#define OUT_H

#include <stdio.h>

/* Called once, first in main(). The program's name is not copied. */
void out_check_at_exit(const char *program);

/*
 * Writes the buffered output. Returns 0, or -errno of this write or of an
 * earlier failed write.
 */
int out_flush(FILE *out);

#endif /* OUT_H */
