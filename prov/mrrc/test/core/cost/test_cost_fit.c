/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cost/cost_fit: lines fitted to points that are on a line, near a line,
 * or far from any line.
 */
#include "config.h"
#include "test/case.h"

#include <math.h>

#include "core/cost/cost_fit.h"

#define PAGE 4096u

static const struct mrrc_cost untouched = { .reg = 77, .page = 1 };

static void near(double is, double want)
{
	ck_assert_msg(fabs(is - want) <= want * .001 + .001, "%g instead of %g",
		      is, want);
}

TEST_CASE(cost_fit, NULL, NULL);

TEST(test_line)
{
	const struct mrrc_cost_sample sample[] = {
		{ 1, 8190, 1320, 1000 },
		{ 16, 19740, 4620, 4000 },
		{ 64, 56700, 15180, 0 },
	};
	struct mrrc_cost cost;

	ck_assert_int_eq(mrrc_cost_fit(sample, 3, PAGE, &cost), 0);
	near(cost.reg_page, 770);
	near(cost.reg, 7420);
	near(cost.dereg_page, 220);
	near(cost.dereg, 1100);
	near(cost.copy_page, 200);
	near(cost.copy, 800);
	ck_assert_uint_eq(cost.page, PAGE);
	ck_assert(!cost.batch);
}

/* Samples deviate by ten percent up and down: the fitted line lies between. */
TEST(test_noise)
{
	struct mrrc_cost_sample sample[8];
	struct mrrc_cost cost;
	size_t i;

	for (i = 0; i < 8; i++) {
		const double pages = (double) (1u << i);
		const double off = i % 2 ? 1.1 : .9;

		sample[i] = (struct mrrc_cost_sample){
			1u << i,
			(100 * pages + 1000) * off,
			(10 * pages + 500) * off,
			30 * pages,
		};
	}
	ck_assert_int_eq(mrrc_cost_fit(sample, 8, PAGE, &cost), 0);
	ck_assert(cost.reg_page > 80 && cost.reg_page < 120);
	ck_assert(cost.reg > 850 && cost.reg < 1150);
}

/* A fit has no negative slope and no negative cost of an empty buffer. */
TEST(test_clamped)
{
	const struct mrrc_cost_sample falls[] = {
		{ 1, 1000, 1, 1 },
		{ 16, 900, 160, 1 },
	};
	struct mrrc_cost cost;

	ck_assert_int_eq(mrrc_cost_fit(falls, 2, PAGE, &cost), 0);
	ck_assert_double_eq(cost.reg_page, 0);
	ck_assert(cost.reg >= 900 && cost.reg <= 1000);
	/* A slope of 159 / 15 a page would be below zero at 0 pages. */
	ck_assert_double_eq(cost.dereg, 0);
	ck_assert(cost.dereg_page >= 1 && cost.dereg_page <= 10);
}

TEST(test_garbage)
{
	static const double bad[] = { 0, -1, NAN, INFINITY, 1e11 };
	const struct mrrc_cost_sample good[] = {
		{ 1, 1000, 100, 10 },
		{ 16, 2000, 200, 160 },
	};
	struct mrrc_cost_sample sample[2];
	struct mrrc_cost cost = untouched;
	double *field[3];
	size_t i, k;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (k = 0; k < 3; k++) {
			sample[0] = good[0];
			sample[1] = good[1];
			field[0] = &sample[1].reg;
			field[1] = &sample[1].dereg;
			field[2] = &sample[1].copy;
			*field[k] = bad[i];
			/* A copy time of 0 means that no copy was measured. */
			if (k == 2 && !bad[i])
				continue;
			ck_assert_int_eq(mrrc_cost_fit(sample, 2, PAGE, &cost),
					 -EINVAL);
		}
	}
	ck_assert_int_eq(mrrc_cost_fit(good, 0, PAGE, &cost), -EINVAL);
	ck_assert_int_eq(mrrc_cost_fit(good, 1, PAGE, &cost), -EINVAL);
	sample[0] = sample[1] = good[0];
	ck_assert_int_eq(mrrc_cost_fit(sample, 2, PAGE, &cost), -EINVAL);
	sample[1].pages = 0;
	ck_assert_int_eq(mrrc_cost_fit(sample, 2, PAGE, &cost), -EINVAL);
	/* A fit that fails leaves the cost unchanged. */
	ck_assert_double_eq(cost.reg, untouched.reg);
}

TEST(test_error)
{
	const struct mrrc_cost cost = {
		.reg_page = 100,
		.reg = 1000,
		.dereg_page = 0,
		.dereg = 50,
		.page = PAGE,
	};
	struct mrrc_cost_sample sample[] = {
		{ 1, 1100, 50, 1 },
		{ 10, 2000, 50, 1 },
		{ 19, 2900, 50, 1 },
	};
	struct mrrc_cost_error error = { .reg_r2 = 7 };

	ck_assert_int_eq(mrrc_cost_error(sample, 0, &cost, &error), -EINVAL);
	ck_assert_double_eq(error.reg_r2, 7);
	ck_assert_int_eq(mrrc_cost_error(sample, 3, &cost, &error), 0);
	near(error.reg_r2, 1);
	near(error.dereg_r2, 1);
	near(error.reg_worst, 0);
	/*
	 * The samples 2900 and 1100 are 900 off the mean; 2500 is 500 off the
	 * line.
	 */
	sample[1].reg = 2500;
	sample[0].dereg = 100;
	ck_assert_int_eq(mrrc_cost_error(sample, 3, &cost, &error), 0);
	near(error.reg_worst, .2);
	near(error.dereg_worst, .5);
	ck_assert(error.reg_r2 > .85 && error.reg_r2 < .9);
	/* The line is worse than the mean. */
	ck_assert(error.dereg_r2 < 0);
	sample[2].reg = NAN;
	ck_assert_int_eq(mrrc_cost_error(sample, 3, &cost, &error), -EINVAL);
}
