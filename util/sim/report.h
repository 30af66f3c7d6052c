/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rows of a grid for people (table), spreadsheets (CSV) and programs
 * (JSON).
 */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdio.h>

#include "sim/grid.h"

enum sim_format {
	SIM_TABLE,
	SIM_CSV,
	SIM_JSON,
};

/* 0, or -errno of a write that failed. */
int sim_report(const struct sim_grid *grid, const struct sim_row *rows,
	       size_t cnt, enum sim_format format, FILE *out);

#endif /* SIM_REPORT_H */
