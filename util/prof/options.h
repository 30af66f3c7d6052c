/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of fi_mrrc_prof. Errors in the command line are printed to
 * stderr, and end the program with status 2.
 */
#ifndef PROF_OPTIONS_H
#define PROF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "sys/base/pages.h"

#define PROF_PAGE ((size_t) 4096) /* page of the model */

enum prof_format { PROF_TABLE, PROF_CSV, PROF_JSON };

struct prof_options {
	const char *provider; /* NULL: verbs, else tcp */
	const char *domain;   /* NULL: the first domain */
	const char *source;   /* NULL: the address that the provider chooses */
	size_t *size;	      /* ascending, multiples of PROF_PAGE */
	size_t sizes;
	bool pages[MRRC_PAGES_CNT];
	bool pages_given; /* false: the default pages */
	unsigned rounds;
	double seconds;
	bool trace, bandwidth;
	enum prof_format format;
	const char *output; /* "-": standard output */
	const char *save;   /* NULL: the model is not saved */
	bool quiet;
	bool list;
};

/* The name of a kind of pages in options and tables. */
const char *prof_pages_name(enum mrrc_pages kind);

void prof_options_parse(int argc, char **argv, struct prof_options *options);
void prof_options_free(struct prof_options *options);

#endif /* PROF_OPTIONS_H */
