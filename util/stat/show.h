/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints a sample, for people (show_table.c) and programs (show_json.c). */
#ifndef STAT_SHOW_H
#define STAT_SHOW_H

#include <stdio.h>

#include "stat/proc.h"

/*
 * Prints a sample. @before is the previous sample, for rates, or empty. Returns
 * 0 or -EIO.
 */
int stat_show_table(const struct stat_sample *sample,
		    const struct stat_sample *before, FILE *out);

/* Prints one line for a sample. Returns 0, -ENOMEM or -EIO. */
int stat_show_json(const struct stat_sample *sample, FILE *out);

#endif /* STAT_SHOW_H */
