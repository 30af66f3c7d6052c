/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints results for people and programs. All calls flush; return 0 or -E*. */
#ifndef PROF_SHOW_H
#define PROF_SHOW_H

#include "prof/model.h"

struct prof_result {
	const struct prof_options *options;
	const struct prof_device *device;
	const struct prof_cells *cells;
	const struct prof_model *model;
};

int prof_show_table(const struct prof_result *result, FILE *out);
int prof_show_csv(const struct prof_result *result, FILE *out);
int prof_show_json(const struct prof_result *result, FILE *out);

static inline const char *prof_state_name(bool touched)
{
	return touched ? "touched" : "absent";
}

#endif /* PROF_SHOW_H */
