/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_sim --helper: runs every trace with every page size, cost model and
 * kind of helper, one after the other.
 */
#ifndef SIM_HELPERS_H
#define SIM_HELPERS_H

#include "sim/grid.h"
#include "sim/helper.h"

#define SIM_HELPERS "leave,timeout,predict,offline"

struct sim_helper_row {
	const struct sim_trace *trace;
	uint64_t footprint; /* bytes */
	size_t page;
	const char *model;
	const struct mrrc_cost *cost;
	const char *helper; /* the kind, as the user wrote it */
	enum sim_helper_kind kind;
	uint64_t idle_us;  /* N of a timeout */
	double leave_mean; /* mean of registered bytes under leave */
	uint64_t leave_peak;
	struct sim_helper_result result;
};

/*
 * Parses leave, timeout, predict, offline or timeout:us=N. *idle_us becomes 0
 * for a timeout that is to match the predictor's late requests. Returns -EINVAL
 * for other text.
 */
int sim_helper_parse(const char *text, enum sim_helper_kind *kind,
		     uint64_t *idle_us);

/* The caller frees *rows. */
int sim_helpers_run(const struct sim_grid *grid, struct sim_helper_row **rows,
		    size_t *cnt);

#endif /* SIM_HELPERS_H */
