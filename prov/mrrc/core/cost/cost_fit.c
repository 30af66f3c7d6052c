/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fitting the cost model (cost_fit.h).
 */
#include "config.h"
#include "core/cost/cost_fit.h"

#include <errno.h>

#define NS_MAX 1e10 /* a longer time is an error */

/* Weighted sums of a line y = slope * x + base. */
struct mrrc_line {
	double w, x, y, xx, xy;
};

static void line_add(struct mrrc_line *line, double x, double y)
{
	const double w = 1 / (y * y);

	line->w += w;
	line->x += w * x;
	line->y += w * y;
	line->xx += w * x * x;
	line->xy += w * x * y;
}

static void line_fit(const struct mrrc_line *line, double *slope, double *base)
{
	const double det = line->w * line->xx - line->x * line->x;

	*slope = (line->w * line->xy - line->x * line->y) / det;
	*base = (line->xx * line->y - line->x * line->xy) / det;
	if (*slope < 0) {
		*slope = 0;
		*base = line->y / line->w;
	} else if (*base < 0) {
		*base = 0;
		*slope = line->xy / line->xx;
	}
}

/* Is the sample possible? The comparisons fail for NaN. */
static bool sample_sane(const struct mrrc_cost_sample *sample)
{
	return sample->pages && sample->reg > 0 && sample->reg < NS_MAX &&
	       sample->dereg > 0 && sample->dereg < NS_MAX &&
	       sample->copy >= 0 && sample->copy < NS_MAX;
}

int mrrc_cost_fit(const struct mrrc_cost_sample *sample, size_t count,
		  size_t page, struct mrrc_cost *out)
{
	struct mrrc_line reg = { 0 }, dereg = { 0 }, copy = { 0 };
	const struct mrrc_cost_sample *copied = NULL;
	struct mrrc_cost cost = { .page = page };
	bool sizes = false, copies = false;
	double pages;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!sample_sane(&sample[i]))
			return -EINVAL;
		sizes |= sample[i].pages != sample[0].pages;
		pages = (double) sample[i].pages;
		line_add(&reg, pages, sample[i].reg);
		line_add(&dereg, pages, sample[i].dereg);
		if (sample[i].copy <= 0)
			continue;
		line_add(&copy, pages, sample[i].copy);
		if (!copied)
			copied = &sample[i];
		copies |= sample[i].pages != copied->pages;
	}
	if (!sizes)
		return -EINVAL;
	line_fit(&reg, &cost.reg_page, &cost.reg);
	line_fit(&dereg, &cost.dereg_page, &cost.dereg);
	if (copies)
		line_fit(&copy, &cost.copy_page, &cost.copy);
	else if (copied)
		cost.copy_page = copied->copy / (double) copied->pages;
	/*
	 * the measured times do not grow with the size: assume a tiny cost per
	 * page
	 */
	if (copied && !(cost.copy_page > 0))
		cost.copy_page = cost.copy / (double) copied->pages / 1e3;
	if (mrrc_cost_check(&cost))
		return -EINVAL;
	*out = cost;
	return 0;
}

/*
 * Sums from which a line's R^2 is computed, in one pass after the pass that
 * computes the mean.
 */
struct mrrc_residue {
	double mean, total, left, worst;
};

static void residue_add(struct mrrc_residue *residue, double is, double want)
{
	const double off = is > want ? is - want : want - is;

	residue->total += (is - residue->mean) * (is - residue->mean);
	residue->left += off * off;
	if (off / is > residue->worst)
		residue->worst = off / is;
}

/*
 * Returns R^2. If all measured values are equal (total 0): 1 for an exact
 * model, else 0.
 */
static double residue_r2(const struct mrrc_residue *residue)
{
	if (residue->total > 0)
		return 1 - residue->left / residue->total;
	return residue->left > 0 ? 0 : 1;
}

int mrrc_cost_error(const struct mrrc_cost_sample *sample, size_t count,
		    const struct mrrc_cost *cost, struct mrrc_cost_error *out)
{
	struct mrrc_residue reg = { 0 }, dereg = { 0 };
	double pages;
	size_t i;

	if (!count)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		if (!sample_sane(&sample[i]))
			return -EINVAL;
		reg.mean += sample[i].reg / (double) count;
		dereg.mean += sample[i].dereg / (double) count;
	}
	for (i = 0; i < count; i++) {
		pages = (double) sample[i].pages;
		residue_add(&reg, sample[i].reg,
			    cost->reg_page * pages + cost->reg);
		residue_add(&dereg, sample[i].dereg,
			    cost->dereg_page * pages + cost->dereg);
	}
	*out = (struct mrrc_cost_error){
		.reg_r2 = residue_r2(&reg),
		.dereg_r2 = residue_r2(&dereg),
		.reg_worst = reg.worst,
		.dereg_worst = dereg.worst,
	};
	return 0;
}
