/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Draws on a terminal, standard output, as much as fits on the screen. */
#ifndef STAT_SCREEN_H
#define STAT_SCREEN_H

#include "stat/rows.h"

void stat_screen_begin(void);
void stat_screen_end(void);

/*
 * Draws all rows. @selected is the number of the marked row, which is kept
 * visible, or rows->count if no row is marked. Returns 0, -ENOMEM or -EIO.
 */
int stat_screen_rows(const struct stat_rows *rows, size_t selected);

/* Draws a domain's table. Returns 0, -ENOMEM or -EIO. */
int stat_screen_table(const struct stat_row *row,
		      const struct stat_sample *before);

#endif /* STAT_SCREEN_H */
