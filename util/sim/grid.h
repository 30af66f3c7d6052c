/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a grid of simulations in threads: every trace with every page size, cost
 * model, limit and policy. The rows of results and their order do not depend on
 * the number of threads.
 */
#ifndef SIM_GRID_H
#define SIM_GRID_H

#include "sim/engine.h"

/* Names of policies in addition to the provider's. */
#define SIM_NAME_NONE	 "none"
#define SIM_NAME_OFFLINE "offline"
#define SIM_NAME_BOUND	 "bound"
#define SIM_NAME_LF	 "libfabric"
#define SIM_NAME_LF_ALL	 "libfabric-all" /* without the limit on regions */
#define SIM_NAME_ALLOC	 "alloc"
#define SIM_NAME_STATIC	 "static"

/* Name of the cost model that was recorded with a trace. */
#define SIM_MODEL_TRACE "trace"

struct sim_model {
	char *name;
	/* SIM_MODEL_TRACE: the recorded model; false: use cost */
	bool recorded;
	const char *otherwise; /* name of the model in cost */
	struct mrrc_cost cost;
};

/*
 * The limit of each process's cache. If bytes and percent are 0, the limit is
 * the recorded limit; a trace without a recorded limit then has no limit.
 */
struct sim_limit {
	size_t bytes;	/* or */
	double percent; /* percent of the trace's footprint */
};

struct sim_grid {
	struct sim_trace *trace;
	size_t traces;
	size_t *page;
	size_t pages;
	struct sim_model *model;
	size_t models;
	struct sim_limit *limit;
	size_t limits;
	/* limits of regions of each process's cache; SIZE_MAX: no limit */
	size_t *count;
	size_t counts;
	/* names of policies: sim/policies.h, or the names above */
	char **policy;
	size_t policies;
	/* kinds of helpers (helpers.h), in place of policies and limits */
	char **helper;
	size_t helpers;
	bool bounce;
	bool gain; /* gain.h; the policies are SIM_GAIN */
	unsigned jobs;
	bool progress; /* show progress on stderr */
};

struct sim_row {
	const struct sim_trace *trace;
	size_t page;
	const char *model;
	const struct mrrc_cost *cost;
	const struct sim_limit *limit;
	size_t count;
	const char *policy;
	uint64_t footprint; /* bytes */
	size_t max_bytes;   /* the limit in bytes */
	const struct sim_future *future;
	struct sim_result result; /* "bound" sets only reg_ns, the total cost */
	int error;
};

/* Is the policy one of the names above? */
bool sim_name_known(const char *policy);

/* Finds the costs of a model for a trace, and their name. */
const struct mrrc_cost *sim_model_cost(const struct sim_model *model,
				       const struct sim_trace *trace,
				       const char **name);

/*
 * Runs all simulations; the caller frees *rows. Returns the error of the first
 * row, in the order of rows, that has an error.
 */
int sim_grid_run(const struct sim_grid *grid, struct sim_row **rows,
		 size_t *cnt);

#endif /* SIM_GRID_H */
