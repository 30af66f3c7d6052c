/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One cell of a simulation has a trace, a policy, limits and a cost model. The
 * cell drives the provider's own core (core/cache/cache.h) as the provider
 * does, with operations that complete at once.
 *
 * Each process of a trace has a cache of its own, with the limits of the cell.
 * Results are deterministic. Cells share nothing but the trace, so any number
 * of cells run in threads.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "core/cache/admit.h"
#include "core/cache/cache.h"
#include "sim/offline.h"
#include "sim/trace.h"

#define SIM_SERIES 200 /* points of the curve of pinned bytes */

enum sim_kind {
	SIM_CACHE,   /* a policy of sim/policies.h */
	SIM_NONE,    /* registers for each request */
	SIM_OFFLINE, /* a heuristic that knows the future */
};

struct sim_cell {
	const struct sim_trace *trace;
	enum sim_kind kind;
	const char *policy; /* SIM_CACHE */
	/* SIM_OFFLINE: next uses with this page size */
	const struct sim_future *future;
	size_t max_bytes;
	size_t max_regions;
	size_t page;
	const struct mrrc_cost *cost;
	bool bounce; /* copy where a copy is cheaper */
};

struct sim_result {
	uint64_t requests;
	uint64_t hits;	    /* requests without a registration */
	uint64_t bytes;	    /* requested, in whole pages */
	uint64_t hit_bytes; /* part of bytes: registered before */
	uint64_t pieces;    /* over all requests */
	uint64_t bounced;   /* requests that were copied */
	uint64_t used_once; /* regions that were registered but not kept */
	uint64_t registrations;
	uint64_t registered_pages; /* pages of the cost model */
	uint64_t deregistrations;
	uint64_t deregistered_pages;
	uint64_t batches;
	double reg_ns;
	double dereg_ns;
	double copy_ns;
	bool dereg_on_path;
	size_t pinned_peak;
	/* maximum of one process; with libfabric's cache only */
	size_t regions_peak;
	double pinned_mean;	   /* over requests */
	size_t pinned[SIM_SERIES]; /* bytes after each part of the trace */
	struct mrrc_stats stats;   /* summed over processes */
};

/*
 * Notes in @result that @pinned bytes are registered after request @i of
 * @count. The caller sets *part to 0 before the first request.
 */
static inline void sim_pinned(struct sim_result *result, size_t pinned,
			      size_t i, size_t count, size_t *part)
{
	result->pinned_mean += pinned;
	while (*part < SIM_SERIES &&
	       (i + 1) * SIM_SERIES >= (*part + 1) * count)
		result->pinned[(*part)++] = pinned;
	if (i + 1 == count)
		result->pinned_mean /= count;
}

/* Runs a cell. -ENOMEM, or the error of mrrc_cache_init(). */
int sim_run(const struct sim_cell *cell, struct sim_result *result);

/*
 * Returns the time for which operations wait; another thread can do the
 * remaining work.
 */
static inline double sim_on_path(const struct sim_result *result)
{
	return result->reg_ns + result->copy_ns +
	       (result->dereg_on_path ? result->dereg_ns : 0);
}

static inline double sim_total(const struct sim_result *result)
{
	return result->reg_ns + result->copy_ns + result->dereg_ns;
}

#endif /* SIM_ENGINE_H */
