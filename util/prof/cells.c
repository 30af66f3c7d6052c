/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cells: see cells.h.
 */
#include "config.h"
#include "prof/cells.h"

#include <errno.h>
#include <stdlib.h>

const char *const prof_value_names[PROF_VALUE_CNT] = {
#define X(id, name) [PROF_##id] = name,
	PROF_VALUES(X)
#undef X
};

int prof_cell_add(struct prof_cell *cell, enum prof_value id, double value)
{
	struct prof_times *times = &cell->times[id];
	const unsigned max = times->max ? 2 * times->max : 32;
	double *more;

	if (times->count == times->max) {
		more = reallocarray(times->us, max, sizeof(*more));
		if (!more)
			return -ENOMEM;
		times->us = more;
		times->max = max;
	}
	times->us[times->count++] = value;
	return 0;
}

static int by_value(const void *left, const void *right)
{
	const double a = *(const double *) left, b = *(const double *) right;

	return (a > b) - (a < b);
}

void prof_cell_settle(struct prof_cell *cell)
{
	struct prof_times *times;
	unsigned count;
	int i;

	for (i = 0; i < PROF_VALUE_CNT; i++) {
		times = &cell->times[i];
		count = times->count;
		cell->value[i] = cell->least[i] = NAN;
		if (!count)
			continue;
		qsort(times->us, count, sizeof(*times->us), by_value);
		cell->least[i] = times->us[0];
		cell->value[i] =
			(times->us[(count - 1) / 2] + times->us[count / 2]) / 2;
	}
	cell->rounds = cell->times[PROF_REGISTER].count;
}

struct prof_cell *prof_cell_find(const struct prof_cells *cells,
				 enum mrrc_pages kind, bool touched,
				 size_t size)
{
	size_t i;

	for (i = 0; i < cells->count; i++) {
		if (cells->cell[i].kind == kind &&
		    cells->cell[i].touched == touched &&
		    cells->cell[i].size == size)
			return &cells->cell[i];
	}
	return NULL;
}

void prof_cells_free(struct prof_cells *cells)
{
	size_t i;
	int k;

	for (i = 0; i < cells->count; i++) {
		for (k = 0; k < PROF_VALUE_CNT; k++)
			free(cells->cell[i].times[k].us);
	}
	free(cells->cell);
	*cells = (struct prof_cells){ 0 };
}
