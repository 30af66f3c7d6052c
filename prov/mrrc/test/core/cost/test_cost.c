/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cost/cost: models in numbers and by name, refused models, pages and
 * batches.
 */
#include "config.h"
#include "test/case.h"

#include <math.h>

#include "core/cost/cost.h"
#include "sim/models.h"

/* The costs are integers, so that every sum is exact. */
static const struct mrrc_cost simple = {
	.reg_page = 100,
	.reg = 1000,
	.dereg_page = 10,
	.dereg = 50,
	.page = 4096,
};

TEST_CASE(cost, NULL, NULL);

/* Each cost model of the simulator is found by its name. */
TEST(test_models)
{
	const struct sim_cost_model *model;
	struct mrrc_cost cost = simple;
	int count = 0;

	for (model = sim_cost_models; model->name; model++, count++) {
		ck_assert_str_ne(model->help, "");
		ck_assert_int_eq(mrrc_cost_check(&model->cost), 0);
		ck_assert(model->cost.reg > 0 && model->cost.reg_page > 0);
		/* No other model has the same name. */
		ck_assert_int_eq(sim_cost_parse(model->name, &cost), 0);
		ck_assert_double_eq(cost.reg_page, model->cost.reg_page);
		ck_assert_int_eq(cost.batch, model->cost.batch);
		ck_assert_int_eq(mrrc_cost_parse(model->name, &cost), -EINVAL);
	}
	ck_assert_int_ge(count, 2);
	ck_assert_int_eq(sim_cost_parse(SIM_MODEL_DEFAULT, &cost), 0);
	ck_assert_double_eq(cost.reg, mrrc_cost_default.reg);
	ck_assert_int_eq(sim_cost_parse(MRRC_COST_EXAMPLE, &cost), 0);
	ck_assert_double_eq(cost.copy_page, 300);
	ck_assert_int_eq(sim_cost_parse("ou200", &cost), -EINVAL);
}

/* The models of devices reproduce the points that they were made from. */
TEST(test_devices)
{
	struct mrrc_cost mlx5, efa;

	ck_assert_int_eq(sim_cost_parse("mlx5", &mlx5), 0);
	ck_assert_int_eq(sim_cost_parse("efa", &efa), 0);
	ck_assert_double_eq_tol(mrrc_cost_reg(&mlx5, 4 << 20) +
					mrrc_cost_dereg(&mlx5, 4 << 20),
				114500, 500);
	ck_assert_double_eq_tol(mrrc_cost_reg(&efa, 391000000), 580e6 / 32,
				1e5);
}

TEST(test_parse)
{
	static const char *const bad[] = {
		"",
		"measure",
		"rxe",
		"reg_page=1",
		"reg_page=1:reg=2:dereg_page=3",
		"reg_page=1:reg=2:dereg_page=3:dereg=",
		"reg_page=1:reg=2:dereg_page=3:dereg=4:",
		"reg_page=1:reg=2:dereg_page=3:dereg=4:e=5",
		"reg_page=1:reg_page=1:reg=2:dereg_page=3",
		"reg_page=1:reg=2:dereg_page=3:dereg=4 ",
		"reg_page=-1:reg=2:dereg_page=3:dereg=4",
		"reg_page=x:reg=2:dereg_page=3:dereg=4",
		"reg_page=1:reg=2:dereg_page=3:dereg=9999999999999999",
		"reg_page=.:reg=2:dereg_page=3:dereg=4",
		"reg_page=1;reg=2;dereg_page=3;dereg=4",
		"reg_page=1:reg=2:dereg_page=3:copy_page=4",
		"reg_page=1e3:reg=2:dereg_page=3:dereg=4",
		"reg_page=1:reg=2:dereg_page=3:dereg=4:page=5000",
		"reg_page=1:reg=2:dereg_page=3:dereg=4:page=9999999999999999",
		"reg_page=1:reg=2:dereg_page=3:dereg=4:batch=2",
		"a=1,b=2,c=3,d=4,copy=5",
	};
	struct mrrc_cost cost;
	size_t i;

	ck_assert_int_eq(
		mrrc_cost_parse("dereg=4:dereg_page=.25:reg=2:reg_page=1.5",
				&cost),
		0);
	ck_assert(cost.reg_page == 1.5 && cost.reg == 2 &&
		  cost.dereg_page == .25 && cost.dereg == 4);
	ck_assert(!cost.copy_page && cost.page == 4096 && !cost.batch);
	ck_assert_int_eq(
		mrrc_cost_parse(
			"reg_page=0:reg=1:dereg_page=0:dereg=0:copy_page=300",
			&cost),
		0);
	ck_assert_double_eq(cost.copy_page, 300);
	ck_assert_int_eq(mrrc_cost_parse(MRRC_COST_EXAMPLE
					 ":copy=5:page=65536:batch=1",
					 &cost),
			 0);
	ck_assert(cost.copy_page == 300 && cost.copy == 5 &&
		  cost.page == 65536 && cost.batch);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(mrrc_cost_parse(bad[i], &cost) == -EINVAL,
			      "\"%s\"", bad[i]);
	ck_assert_double_eq(cost.copy_page, 300);
}

TEST(test_parse_file)
{
	static const char *const bad[] = {
		"",
		"\n",
		"# reg_page=1:reg=2:dereg_page=3:dereg=4\n",
		"reg_page=1:reg=2:dereg_page=3\n",
		("reg_page=1:reg=2:dereg_page=3:dereg=4\n"
		 "reg_page=1:reg=2:dereg_page=3:dereg=4\n"),
		"ucx\n",
		" reg_page=1:reg=2:dereg_page=3:dereg=4\n",
		"reg_page=1:reg=2:dereg_page=3:dereg=4\r\n",
		"measure\n",
		"file:/x\n",
	};
	static const char start[] = "reg_page=1:reg=2:dereg_page=3:dereg=";
	struct mrrc_cost cost;
	char text[600];
	size_t i;

	ck_assert_int_eq(mrrc_cost_parse_file("# of a device\n\n"
					      "reg_page=1.5:reg=2:dereg_page=."
					      "25:dereg=4:copy_page=9\n# end",
					      &cost),
			 0);
	ck_assert(cost.reg_page == 1.5 && cost.reg == 2 &&
		  cost.dereg_page == .25 && cost.dereg == 4 &&
		  cost.copy_page == 9 && cost.page == 4096);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(mrrc_cost_parse_file(bad[i], &cost) == -EINVAL,
			      "\"%s\"", bad[i]);
	memset(text, '0', sizeof(text));
	memcpy(text, start, sizeof(start) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(mrrc_cost_parse_file(text, &cost), -EINVAL);
	ck_assert_double_eq(cost.reg, 2);
}

TEST(test_check)
{
	static const double bad[] = { -1, -INFINITY, INFINITY, NAN, 1e15 };
	static const size_t pages[] = { 0, 3, 5000, SIZE_MAX };
	struct mrrc_cost cost = simple;
	double *const field[] = {
		&cost.reg_page, &cost.reg,	 &cost.dereg_page,
		&cost.dereg,	&cost.copy_page,
	};
	size_t i, k;

	ck_assert_int_eq(mrrc_cost_check(&cost), 0);
	for (i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
		for (k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
			*field[i] = bad[k];
			ck_assert_int_eq(mrrc_cost_check(&cost), -EINVAL);
		}
		*field[i] = 0;
		ck_assert_int_eq(mrrc_cost_check(&cost), 0);
	}
	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		cost.page = pages[i];
		ck_assert_int_eq(mrrc_cost_check(&cost), -EINVAL);
	}
	cost.page = 1;
	ck_assert_int_eq(mrrc_cost_check(&cost), 0);
}

TEST(test_pages)
{
	ck_assert_double_eq(mrrc_cost_pages(&simple, 0), 0);
	ck_assert_double_eq(mrrc_cost_pages(&simple, 1), 1);
	ck_assert_double_eq(mrrc_cost_pages(&simple, 4096), 1);
	ck_assert_double_eq(mrrc_cost_pages(&simple, 4097), 2);
	ck_assert_double_eq(mrrc_cost_reg(&simple, 1), 1100);
	ck_assert_double_eq(mrrc_cost_reg(&simple, 4097), 1200);
	ck_assert_double_eq(mrrc_cost_dereg(&simple, 4097), 70);
}

TEST(test_batch)
{
	struct mrrc_cost cost = simple;

	ck_assert_double_eq(mrrc_cost_dereg_batch(&cost, 3, 7), 70 + 150);
	cost.batch = true;
	ck_assert_double_eq(mrrc_cost_dereg_batch(&cost, 3, 7), 70 + 50);
	/* A batch of one region costs one deregistration. */
	ck_assert_double_eq(mrrc_cost_dereg_batch(&cost, 1, 2),
			    mrrc_cost_dereg(&cost, 2 * 4096));
	ck_assert_double_eq(mrrc_cost_dereg_batch(&cost, 0, 0), 0);
}
