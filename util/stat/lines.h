/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What another program prints on its standard output. */
#ifndef STAT_LINES_H
#define STAT_LINES_H

/*
 * Calls @look with each line, without its end. @argv[0] is looked for in PATH;
 * what it prints on standard error is lost. Its status, or -E*.
 */
int stat_lines(char *const argv[], void (*look)(void *arg, char *line),
	       void *arg);

/* The loader of this program, which can list what another is linked to. */
const char *stat_loader(void);

#endif /* STAT_LINES_H */
