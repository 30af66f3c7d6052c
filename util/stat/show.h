/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A sample, for people (show_table.c) and programs (show_json.c).
 */
#ifndef STAT_SHOW_H
#define STAT_SHOW_H

#include <stdio.h>

#include "stat/proc.h"

/* @before: the sample before, for the rates; perhaps empty. 0 or -EIO. */
int stat_show_table(const struct stat_sample *sample,
		    const struct stat_sample *before, FILE *out);

/* One line. 0, -ENOMEM or -EIO. */
int stat_show_json(const struct stat_sample *sample, FILE *out);

#endif /* STAT_SHOW_H */
