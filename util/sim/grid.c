/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rows of a grid, and the threads that run them (grid.h).
 */
#include "config.h"
#include "sim/grid.h"
#include "sim/libfabric.h"
#include "sim/once.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROGRESS_NS 200000000L
#define BAR	    30

struct sim_work {
	const struct sim_grid *grid;
	struct sim_row *row;
	size_t rows;
	struct sim_future *future; /* by trace and page */
	size_t futures;
	atomic_size_t taken;
	atomic_size_t done;
	atomic_int failed;
};

bool sim_name_known(const char *policy)
{
	static const char *const names[] = {
		SIM_NAME_NONE,	 SIM_NAME_OFFLINE, SIM_NAME_BOUND,  SIM_NAME_LF,
		SIM_NAME_LF_ALL, SIM_NAME_ALLOC,   SIM_NAME_STATIC,
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(policy, names[i]))
			return true;
	}
	return false;
}

static bool sim_looks_ahead(const char *policy)
{
	return !strcmp(policy, SIM_NAME_OFFLINE) ||
	       !strcmp(policy, SIM_NAME_BOUND);
}

static int sim_row_run(const struct sim_grid *grid, struct sim_row *row)
{
	struct sim_cell cell = {
		.trace = row->trace,
		.policy = row->policy,
		.max_bytes = row->max_bytes,
		.max_regions = row->count,
		.page = row->page,
		.cost = row->cost,
		.bounce = grid->bounce,
		.future = row->future,
	};

	if (!strcmp(row->policy, SIM_NAME_BOUND)) {
		row->result.requests = row->trace->count;
		return sim_bound(row->future, cell.cost, row->max_bytes,
				 grid->bounce, &row->result.reg_ns);
	}
	if (!strncmp(row->policy, SIM_NAME_LF, strlen(SIM_NAME_LF)))
		return sim_lf_run(&cell, &row->result);
	if (!strcmp(row->policy, SIM_NAME_STATIC))
		return sim_once_run(&cell, false, &row->result);
	if (!strcmp(row->policy, SIM_NAME_ALLOC))
		return sim_once_run(&cell, true, &row->result);
	if (!strcmp(row->policy, SIM_NAME_NONE))
		cell.kind = SIM_NONE;
	else if (!strcmp(row->policy, SIM_NAME_OFFLINE))
		cell.kind = SIM_OFFLINE;
	return sim_run(&cell, &row->result);
}

static void *sim_worker(void *arg)
{
	struct sim_work *work = arg;
	size_t i;

	while ((i = atomic_fetch_add(&work->taken, 1)) < work->rows) {
		work->row[i].error = sim_row_run(work->grid, &work->row[i]);
		if (work->row[i].error)
			atomic_store(&work->failed, 1);
		atomic_fetch_add(&work->done, 1);
		if (atomic_load(&work->failed))
			break;
	}
	return NULL;
}

static void sim_bar(size_t done, size_t rows)
{
	const int full = rows ? (int) (BAR * done / rows) : BAR;

	fprintf(stderr, "\r[%.*s%*s] %zu of %zu", full,
		"##############################", BAR - full, "", done, rows);
	fflush(stderr);
}

/* Shows progress until all rows are done. */
static void sim_progress(struct sim_work *work)
{
	const struct timespec pause = { 0, PROGRESS_NS };
	size_t done;

	do {
		done = atomic_load(&work->done);
		sim_bar(done, work->rows);
		if (done < work->rows)
			nanosleep(&pause, NULL);
	} while (done < work->rows && !atomic_load(&work->failed));
	fputc('\n', stderr);
}

static int sim_work_run(struct sim_work *work)
{
	const unsigned jobs = work->grid->jobs;
	pthread_t *thread;
	unsigned i, n;

	thread = calloc(jobs, sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	/*
	 * the main thread waits for the worker threads, and runs the
	 * simulations itself if no thread could be started
	 */
	for (n = 0; n < jobs; n++) {
		if (pthread_create(&thread[n], NULL, sim_worker, work))
			break;
	}
	if (!n)
		sim_worker(work);
	else if (work->grid->progress)
		sim_progress(work);
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	for (i = 0; i < work->rows; i++) {
		if (work->row[i].error)
			return work->row[i].error;
	}
	return 0;
}

/* Returns the limit in bytes: whole pages, rounded down, at least one. */
static size_t sim_limit_bytes(const struct sim_limit *limit,
			      const struct sim_row *row)
{
	const double part = row->footprint * limit->percent / 100;
	size_t bytes = limit->bytes;

	/* 100 % may be 2^64, which a size_t cannot hold */
	if (!bytes && limit->percent > 0)
		bytes = part < (double) SIZE_MAX ? (size_t) part : SIZE_MAX;
	else if (!bytes)
		bytes = row->trace->max_bytes ? row->trace->max_bytes :
						SIZE_MAX;
	bytes &= ~(row->page - 1);
	return bytes ? bytes : row->page;
}

static size_t sim_limit_count(const struct sim_grid *grid,
			      const struct sim_row *row)
{
	if (!strcmp(row->policy, SIM_NAME_LF_ALL))
		return SIZE_MAX;
	if (row->count != SIZE_MAX)
		return row->count;
	if (!strcmp(row->policy, SIM_NAME_LF))
		return SIM_LF_COUNT;
	return grid->gain && row->trace->max_regions ? row->trace->max_regions :
						       SIZE_MAX;
}

const struct mrrc_cost *sim_model_cost(const struct sim_model *model,
				       const struct sim_trace *trace,
				       const char **name)
{
	const bool recorded = model->recorded && trace->priced;

	*name = recorded || !model->recorded ? model->name : model->otherwise;
	return recorded ? &trace->cost : &model->cost;
}

/* Makes all rows of one trace and page size; returns the next free row. */
static struct sim_row *sim_rows_of(const struct sim_grid *grid,
				   const struct sim_row *common,
				   struct sim_row *row)
{
	size_t m, l, c, p;

	for (m = 0; m < grid->models; m++) {
		for (l = 0; l < grid->limits; l++) {
			for (c = 0; c < grid->counts; c++) {
				for (p = 0; p < grid->policies; p++, row++) {
					*row = *common;
					row->cost =
						sim_model_cost(&grid->model[m],
							       row->trace,
							       &row->model);
					row->limit = &grid->limit[l];
					row->count = grid->count[c];
					row->policy = grid->policy[p];
					row->count = sim_limit_count(grid, row);
					row->max_bytes =
						sim_limit_bytes(row->limit,
								row);
				}
			}
		}
	}
	return row;
}

static int sim_work_rows(struct sim_work *work)
{
	const struct sim_grid *grid = work->grid;
	struct sim_row *row = work->row;
	struct sim_row common = { 0 };
	bool ahead = false;
	size_t t, g, p;
	int ret;

	for (p = 0; p < grid->policies; p++)
		ahead |= sim_looks_ahead(grid->policy[p]);
	for (t = 0; t < grid->traces; t++) {
		for (g = 0; g < grid->pages; g++) {
			common.trace = &grid->trace[t];
			common.page = grid->page[g];
			ret = sim_trace_footprint(common.trace, common.page,
						  &common.footprint);
			if (ret)
				return ret;
			if (ahead) {
				common.future = &work->future[work->futures];
				ret = sim_future_make(
					common.trace, common.page,
					&work->future[work->futures]);
				if (ret)
					return ret;
				work->futures++;
			}
			row = sim_rows_of(grid, &common, row);
		}
	}
	return 0;
}

int sim_grid_run(const struct sim_grid *grid, struct sim_row **rows,
		 size_t *cnt)
{
	struct sim_work work = {
		.grid = grid,
		.rows = grid->traces * grid->pages * grid->models *
			grid->limits * grid->counts * grid->policies,
	};
	size_t i;
	int ret = -ENOMEM;

	work.row = calloc(work.rows, sizeof(*work.row));
	work.future = calloc(grid->traces * grid->pages, sizeof(*work.future));
	if (!work.row || !work.future)
		goto out;
	ret = sim_work_rows(&work);
	if (!ret)
		ret = sim_work_run(&work);
out:
	for (i = 0; i < work.futures; i++)
		sim_future_free(&work.future[i]);
	for (i = 0; work.row && i < work.rows; i++)
		work.row[i].future = NULL;
	free(work.future);
	if (ret) {
		free(work.row);
		return ret;
	}
	*rows = work.row;
	*cnt = work.rows;
	return 0;
}
