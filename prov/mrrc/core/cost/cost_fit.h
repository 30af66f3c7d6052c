/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fits the cost model (cost.h) to measured times.
 *
 * Pure functions of their arguments.
 */
#ifndef MRRC_COST_FIT_H
#define MRRC_COST_FIT_H

#include "core/cost/cost.h"

/*
 * The measured times of one size: each time is the minimum of several runs,
 * since disturbances only add time.
 */
struct mrrc_cost_sample {
	size_t pages;
	double reg, dereg; /* nanoseconds */
	double copy;	   /* time to copy; 0: not measured */
};

/*
 * Fits a model by the least squares of the relative errors, so that small sizes
 * count as much as large sizes. A coefficient that would be negative is 0, and
 * the other coefficients are fitted without this coefficient. The cost of
 * copying a page is the largest cost per page that was measured. -EINVAL: there
 * are fewer than two sizes, or impossible times.
 */
int mrrc_cost_fit(const struct mrrc_cost_sample *sample, size_t count,
		  size_t page, struct mrrc_cost *cost);

/* How well a model describes the measured times. */
struct mrrc_cost_error {
	/* R^2; 1: exact, 0: no better than the mean; can be below 0 */
	double reg_r2, dereg_r2;
	/* largest error, as a part of the measured time */
	double reg_worst, dereg_worst;
};

/* -EINVAL: no samples. */
int mrrc_cost_error(const struct mrrc_cost_sample *sample, size_t count,
		    const struct mrrc_cost *cost,
		    struct mrrc_cost_error *error);

#endif /* MRRC_COST_FIT_H */
