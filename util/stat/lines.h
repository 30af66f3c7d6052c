/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs another program and reads its standard output. */
#ifndef STAT_LINES_H
#define STAT_LINES_H

/*
 * Runs @argv[0], which is looked for in PATH, and calls @look with each line of
 * the program's output, without the line's end. The program's standard error is
 * lost. Returns the program's status, or -E*.
 */
int stat_lines(char *const argv[], void (*look)(void *arg, char *line),
	       void *arg);

/*
 * Returns the path of this program's loader, which can list the libraries of
 * another program.
 */
const char *stat_loader(void);

#endif /* STAT_LINES_H */
