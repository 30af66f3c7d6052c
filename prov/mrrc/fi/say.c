/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See say.h. */
#include "config.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fi/mrrc_fi.h"
#include "fi/say.h"

#define LINE_LEN (PATH_MAX + 512) /* the line has a path */

void mrrc_say(atomic_bool *said, enum fi_log_subsys subsys, const char *fmt,
	      ...)
{
	char line[LINE_LEN];
	va_list args;

	if (said && atomic_exchange(said, true))
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (getenv("FI_LOG_LEVEL"))
		FI_WARN(&mrrc_prov, subsys, "%s\n", line);
	else
		fprintf(stderr, "ofi_mrrc: %s\n", line);
}
