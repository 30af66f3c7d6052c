/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Turns a sample into lines: a line of the sums over all domains, and a line
 * for each domain, sorted.
 */
#ifndef STAT_ROWS_H
#define STAT_ROWS_H

#include <stdbool.h>
#include <stdio.h>

#include "stat/pair.h"

/* In the order of the columns. */
enum stat_column {
	STAT_PID,
	STAT_COMMAND,
	STAT_LOOKUPS, /* lookups a second */
	STAT_HITS,    /* hits in percent of the lookups */
	STAT_MISSES,
	STAT_EVICTED,
	STAT_INVALID,
	STAT_UNCACHED,
	STAT_LOCKED, /* bytes */
	STAT_SAVED,  /* seconds */
	STAT_COLUMNS
};

struct stat_order {
	enum stat_column column;
	bool reverse; /* numbers begin with the smallest, PID with the largest */
};

struct stat_row {
	struct stat_pair pair;
	/* value; below 0: not known; unused for COMMAND */
	double value[STAT_COLUMNS];
	bool warns; /* the domain lacks something, or buffers are not kept */
};

struct stat_rows {
	struct stat_row *row;
	size_t count;
	struct stat_order order;
};

/* Lines before the first row. */
#define STAT_ROWS_HEAD 4

/*
 * Makes rows from samples, which must exist as long as the rows. Returns 0 or
 * -ENOMEM.
 */
int stat_rows_init(struct stat_rows *rows, const struct stat_sample *sample,
		   const struct stat_sample *before, struct stat_order order);
void stat_rows_fini(struct stat_rows *rows);

/*
 * Prints the head, and a line for each row, for any width of the terminal.
 */
void stat_rows_print(const struct stat_rows *rows, FILE *out);

/* Finds a column by name; returns STAT_COLUMNS if there is no such column. */
enum stat_column stat_column_find(const char *name);

/* Returns all names of columns, with a comma and a blank between them. */
const char *stat_column_names(char *text, size_t size);

#endif /* STAT_ROWS_H */
