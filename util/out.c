/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Standard output at the exit (out.h).
 */
#include "config.h"
#include "out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void out_check(int status, void *program)
{
	const int failed_before = ferror(stdout);

	/* a failed command has printed why */
	if (status || (!fflush(stdout) && !failed_before))
		return;
	fprintf(stderr, "%s: standard output: %s\n", (const char *) program,
		strerror(failed_before ? EIO : errno));
	_exit(EXIT_FAILURE);
}

void out_check_at_exit(const char *program)
{
	on_exit(out_check, (void *) program);
}

int out_flush(FILE *out)
{
	errno = 0;
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
