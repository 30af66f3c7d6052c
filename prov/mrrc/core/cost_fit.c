/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fitting the cost model (cost_fit.h).
 */
#include "config.h"
#include "core/cost_fit.h"

#include <errno.h>

#define NS_MAX	1e10	/* longer took none */

/* Weighted sums of a line y = slope * x + base. */
struct mrrc_line {
	double w, x, y, xx, xy;
};

static void mrrc_line_add(struct mrrc_line *line, double x, double y)
{
	const double w = 1 / (y * y);

	line->w += w;
	line->x += w * x;
	line->y += w * y;
	line->xx += w * x * x;
	line->xy += w * x * y;
}

static void mrrc_line_fit(const struct mrrc_line *line, double *slope,
			  double *base)
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

/* Written so that NaN fails. */
static bool mrrc_sample_sane(const struct mrrc_cost_sample *sample)
{
	return sample->pages && sample->reg > 0 && sample->reg < NS_MAX &&
	       sample->dereg > 0 && sample->dereg < NS_MAX &&
	       sample->copy > 0 && sample->copy < NS_MAX;
}

int mrrc_cost_fit(const struct mrrc_cost_sample *sample, size_t count,
		  size_t page, struct mrrc_cost *out)
{
	struct mrrc_line reg = { 0 }, dereg = { 0 };
	struct mrrc_cost cost = { .page = page };
	bool sizes = false;
	double pages;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!mrrc_sample_sane(&sample[i]))
			return -EINVAL;
		sizes |= sample[i].pages != sample[0].pages;
		pages = (double) sample[i].pages;
		mrrc_line_add(&reg, pages, sample[i].reg);
		mrrc_line_add(&dereg, pages, sample[i].dereg);
		if (sample[i].copy / pages > cost.copy_page)
			cost.copy_page = sample[i].copy / pages;
	}
	if (!sizes)
		return -EINVAL;
	mrrc_line_fit(&reg, &cost.reg_page, &cost.reg);
	mrrc_line_fit(&dereg, &cost.dereg_page, &cost.dereg);
	if (mrrc_cost_check(&cost))
		return -EINVAL;
	*out = cost;
	return 0;
}
