/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rows of helpers (helpers.h).
 */
#include "config.h"
#include "sim/helpers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"

#define IDLE	 "timeout:us="
#define IDLE_MAX (UINT64_C(1) << 50) /* us */

int sim_helper_parse(const char *text, enum sim_helper_kind *kind,
		     uint64_t *idle_us)
{
	static const char *const names[] = {
		[SIM_HELPER_LEAVE] = "leave",
		[SIM_HELPER_TIMEOUT] = "timeout",
		[SIM_HELPER_PREDICT] = "predict",
		[SIM_HELPER_OFFLINE] = "offline",
	};
	size_t idle;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(text, names[i])) {
			*kind = i;
			*idle_us = 0;
			return 0;
		}
	}
	if (strncmp(text, IDLE, strlen(IDLE)) ||
	    mrrc_text_count(text + strlen(IDLE), &idle) || !idle ||
	    idle > IDLE_MAX)
		return -EINVAL;
	*kind = SIM_HELPER_TIMEOUT;
	*idle_us = idle;
	return 0;
}

/*
 * Runs one row. For a timeout without N, searches for a timeout that makes as
 * few requests late as the predictor does.
 */
static int run_row(const struct sim_timeline *timeline,
		   struct sim_helper_row *row)
{
	struct sim_helper_run run = {
		.timeline = timeline,
		.cost = row->cost,
	};
	int ret;

	ret = sim_helper_parse(row->helper, &row->kind, &row->idle_us);
	if (!ret && row->kind == SIM_HELPER_TIMEOUT && !row->idle_us) {
		run.kind = SIM_HELPER_PREDICT;
		ret = sim_helper_run(&run, &row->result);
		if (!ret)
			ret = sim_helper_equal(&run, row->result.late,
					       &row->idle_us);
	}
	run.kind = row->kind;
	run.idle_us = row->idle_us;
	return ret ? ret : sim_helper_run(&run, &row->result);
}

/*
 * Runs all rows of one trace and page size, and the row to which the other rows
 * are compared.
 */
static int run_trace(const struct sim_grid *grid,
		     const struct sim_timeline *timeline,
		     struct sim_helper_row *common, struct sim_helper_row *row)
{
	const struct sim_helper_run leave = {
		.timeline = timeline,
		.kind = SIM_HELPER_LEAVE,
		.cost = &grid->model[0].cost,
	};
	size_t m, h;
	int ret;

	ret = sim_helper_run(&leave, &common->result);
	common->leave_mean = common->result.mean_bytes;
	common->leave_peak = common->result.peak_bytes;
	for (m = 0; m < grid->models; m++) {
		common->cost = sim_model_cost(&grid->model[m], common->trace,
					      &common->model);
		for (h = 0; h < grid->helpers && !ret; h++, row++) {
			*row = *common;
			row->helper = grid->helper[h];
			ret = run_row(timeline, row);
		}
	}
	return ret;
}

static int run_page(const struct sim_grid *grid, size_t t, size_t p,
		    struct sim_helper_row *row)
{
	struct sim_helper_row common = {
		.trace = &grid->trace[t],
		.page = grid->page[p],
	};
	struct sim_timeline timeline;
	struct sim_future future;
	int ret;

	ret = sim_trace_footprint(common.trace, common.page, &common.footprint);
	if (ret)
		return ret;
	ret = sim_future_make(common.trace, common.page, &future);
	if (ret)
		return ret;
	ret = sim_timeline_make(&future, &timeline);
	if (!ret) {
		ret = run_trace(grid, &timeline, &common, row);
		sim_timeline_free(&timeline);
	}
	sim_future_free(&future);
	return ret;
}

int sim_helpers_run(const struct sim_grid *grid, struct sim_helper_row **rows,
		    size_t *cnt)
{
	const size_t each = grid->models * grid->helpers;
	const size_t count = grid->traces * grid->pages * each;
	struct sim_helper_row *row = calloc(count, sizeof(*row));
	size_t t, p, at = 0;
	int ret = row ? 0 : -ENOMEM;

	for (t = 0; t < grid->traces && !ret; t++) {
		for (p = 0; p < grid->pages && !ret; p++, at += each)
			ret = run_page(grid, t, p, row + at);
	}
	if (ret) {
		free(row);
		return ret;
	}
	*rows = row;
	*cnt = count;
	return 0;
}
