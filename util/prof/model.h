/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost models and settings of fi_mrrc_params(7), computed from measured times.
 * All these functions are pure functions of the cells (cells.h).
 */
#ifndef PROF_MODEL_H
#define PROF_MODEL_H

#include <stdio.h>

#include "core/cost/cost_fit.h"
#include "prof/cells.h"

#define PROF_SETTINGS 4 /* maximum number of settings */

struct prof_fit {
	enum mrrc_pages kind;
	bool touched;
	size_t sizes;
	struct mrrc_cost cost;
	struct mrrc_cost_error error;
};

struct prof_setting {
	const char *name;
	char value[160];
	char why[160];
};

struct prof_model {
	struct prof_fit fit[2 * MRRC_PAGES_CNT];
	size_t fits;
	/* line of touched pages of 4 KiB; NULL: no model */
	const struct prof_fit *best;
	struct prof_setting setting[PROF_SETTINGS];
	size_t settings;
};

/* @file: name of the file for the cost model, or NULL. */
void prof_model_make(const struct prof_cells *cells, const char *file,
		     struct prof_model *model);

/* Prints the model as mrrc_cost_parse() reads it. */
void prof_model_text(const struct mrrc_cost *cost, char *text, size_t size);

/* Writes the file of --save. */
int prof_model_put(const struct prof_device *device, const struct prof_fit *fit,
		   FILE *file);

#endif /* PROF_MODEL_H */
