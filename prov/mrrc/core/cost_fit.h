/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From measured times to a model (cost.h).
 *
 * Pure functions of their arguments.
 */
#ifndef MRRC_COST_FIT_H
#define MRRC_COST_FIT_H

#include "core/cost.h"

/* Times of one size: of several the least, as what disturbs adds. */
struct mrrc_cost_sample {
	size_t pages;
	double reg, dereg, copy;	/* nanoseconds */
};

/*
 * Least squares of the relative errors, so that small sizes count as much as
 * large ones. What would come out negative is 0, and the rest fitted without.
 * Copying a page is what it took per page where that was most. -EINVAL: fewer
 * than two sizes, or times that none can be.
 */
int mrrc_cost_fit(const struct mrrc_cost_sample *sample, size_t count,
		  size_t page, struct mrrc_cost *cost);

#endif /* MRRC_COST_FIT_H */
