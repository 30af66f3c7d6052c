/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs another program and reads its standard output. */
#ifndef STAT_LINES_H
#define STAT_LINES_H

/*
 * Calls @look with each line, without its end. The program @argv[0] is looked
 * for in PATH; its standard error is lost. Returns the program's status, or
 * -E*.
 */
int stat_lines(char *const argv[], void (*look)(void *arg, char *line),
	       void *arg);

/*
 * Returns the path of this program's loader, which can list the libraries of
 * another program.
 */
const char *stat_loader(void);

#endif /* STAT_LINES_H */
