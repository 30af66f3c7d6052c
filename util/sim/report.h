/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the rows of a grid, and rows of helpers, for people (table),
 * spreadsheets (CSV) and programs (JSON).
 */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "sim/helpers.h"

enum sim_format {
	SIM_TABLE,
	SIM_CSV,
	SIM_JSON,
};

/* Prints a report. Returns 0, or -errno of a write that failed. */
int sim_report(const struct sim_grid *grid, const struct sim_row *rows,
	       size_t cnt, enum sim_format format, FILE *out);
int sim_helpers_report(const struct sim_grid *grid,
		       const struct sim_helper_row *rows, size_t cnt,
		       enum sim_format format, FILE *out);

/* Shared by the reports of grids and helpers. */
void sim_csv_text(const char *text, FILE *out);
json_t *sim_json_text(const char *text);
json_t *sim_json_count(uint64_t count);
/* A figure: counts and bytes are integers, times and ratios are not. */
#define sim_json_figure(value) \
	_Generic((value), double : json_real, default : sim_json_count)(value)
int sim_report_end(FILE *out);

#endif /* SIM_REPORT_H */
