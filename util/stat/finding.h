/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lines of --check (stat/check.h): each has a subject, a state, a text and
 * perhaps a cure, whose bytes are ASCII: JSON takes no others that are not
 * UTF-8. The program ends if memory cannot be allocated.
 */
#ifndef STAT_FINDING_H
#define STAT_FINDING_H

#include <stddef.h>
#include <stdio.h>

struct json_t;

enum stat_state {
	STAT_OK,
	STAT_NOTE, /* the gain is less than it could be */
	STAT_BAD,  /* the cache can't work */
};

struct stat_findings {
	struct stat_finding {
		enum stat_state state;
		const char *about;
		char *says, *cure; /* cure may be NULL */
	} * finding;
	size_t count;
	size_t printed;
};

/* @cure is NULL if there is no cure, or if the text has the cure. */
void stat_find(struct stat_findings *findings, enum stat_state state,
	       const char *about, const char *cure, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

enum stat_state stat_findings_worst(const struct stat_findings *findings);

/* Prints findings that were not printed before, in 80 columns. */
void stat_findings_print(struct stat_findings *findings, FILE *out);

/* Makes an array of objects; NULL: no memory. */
struct json_t *stat_findings_json(const struct stat_findings *findings);

void stat_findings_fini(struct stat_findings *findings);

#endif /* STAT_FINDING_H */
