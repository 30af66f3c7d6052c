/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shows the lines of all domains, or the table of the domain that the user
 * selects by keys, on a terminal, in the terminal's size. Uses plain escape
 * sequences, which all terminals in use have.
 */
#ifndef STAT_TOP_H
#define STAT_TOP_H

#include <signal.h>
#include <termios.h>

#include "stat/rows.h"

struct stat_top {
	struct stat_rows rows; /* rows as drawn last */
	struct stat_order order;
	pid_t pid; /* process of the selected domain; 0: none */
	ino_t id;
	/* show the selected domain's table instead of lines */
	bool table;
	bool begun;	      /* the terminal's modes are changed */
	bool keys;	      /* standard input is a terminal, too */
	struct termios modes; /* the former modes */
	sigset_t mask;
};

/* Is standard output a terminal that knows escape sequences? */
bool stat_is_terminal(void);

/*
 * Draws @sample; @before is the previous sample, for rates. The caller keeps
 * both samples until the next call. Returns 0, -ENOMEM, or -EIO if the terminal
 * is gone.
 */
int stat_top_show(struct stat_top *top, const struct stat_sample *sample,
		  const struct stat_sample *before);

/*
 * Handles keys, signals and changes of the terminal's size for @seconds.
 * Returns false if the program is to end.
 */
bool stat_top_wait(struct stat_top *top, double seconds,
		   const struct stat_sample *sample,
		   const struct stat_sample *before);

/*
 * Restores the terminal's modes, and ends the program by the signal that was
 * caught.
 */
void stat_top_end(struct stat_top *top);

#endif /* STAT_TOP_H */
