/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libfabric's own registration cache (libfabric.h).
 */
#include "config.h"
#include "sim/libfabric.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Compares regions like util_mr_find_within(): two regions are equal if one
 * contains the other. Regions in the tree are never equal, so they have an
 * order (L2).
 */
static int lf_within(const struct sim_lf_region *a,
		     const struct sim_lf_region *b)
{
	if (a->first < b->first && a->last < b->last)
		return -1;
	return a->first > b->first && a->last > b->last;
}

#define UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(sim_lf_tree, sim_lf_region, node, lf_within,
		      UNUSED_STATIC)
RB_GENERATE_INTERNAL(sim_lf_tree, sim_lf_region, node, lf_within, UNUSED_STATIC)

void sim_lf_init(struct sim_lf *lf, size_t max_count, uint64_t max_bytes)
{
	*lf = (struct sim_lf){
		.max_count = max_count,
		.max_bytes = max_bytes,
	};
	RB_INIT(&lf->tree);
	TAILQ_INIT(&lf->lru);
	TAILQ_INIT(&lf->dead);
}

static void lf_empty(struct sim_lf *lf, struct sim_lf_list *list)
{
	struct sim_lf_region *region;

	while ((region = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, region, link);
		if (lf->dereg)
			lf->dereg(lf->arg, region);
		free(region);
	}
}

void sim_lf_fini(struct sim_lf *lf)
{
	lf->dereg = NULL;
	lf_empty(lf, &lf->lru);
	lf_empty(lf, &lf->dead);
}

/* Takes a region from the cache; the next request deregisters the region. */
static void lf_uncache(struct sim_lf *lf, struct sim_lf_region *region)
{
	RB_REMOVE(sim_lf_tree, &lf->tree, region);
	TAILQ_REMOVE(&lf->lru, region, link);
	TAILQ_INSERT_TAIL(&lf->dead, region, link);
	lf->count--;
	lf->bytes -= region->last - region->first + 1;
}

static bool lf_full(const struct sim_lf *lf)
{
	return lf->count >= lf->max_count || lf->bytes >= lf->max_bytes;
}

/* As ofi_mr_cache_flush(). */
static void lf_flush(struct sim_lf *lf)
{
	while (lf_full(lf) && !TAILQ_EMPTY(&lf->lru)) {
		lf_uncache(lf, TAILQ_FIRST(&lf->lru));
		lf->evictions++;
	}
	lf_empty(lf, &lf->dead);
}

static void lf_insert(struct sim_lf *lf, struct sim_lf_region *region)
{
	RB_INSERT(sim_lf_tree, &lf->tree, region);
	TAILQ_INSERT_TAIL(&lf->lru, region, link);
	lf->count++;
	lf->bytes += region->last - region->first + 1;
}

/*
 * Serves a request as ofi_mr_cache_search() and, after the request,
 * ofi_mr_cache_delete() do.
 */
int sim_lf_request(struct sim_lf *lf, uint64_t addr, uint64_t len, bool *hit,
		   const struct sim_lf_region **out)
{
	struct sim_lf_region key = { .first = addr, .last = addr + len - 1 };
	struct sim_lf_region *region;

	lf_flush(lf);
	region = RB_FIND(sim_lf_tree, &lf->tree, &key);
	if (region && region->first <= key.first && region->last >= key.last) {
		TAILQ_REMOVE(&lf->lru, region, link);
		TAILQ_INSERT_TAIL(&lf->lru, region, link);
		*hit = true;
		*out = region;
		return 0;
	}
	for (; region; region = RB_FIND(sim_lf_tree, &lf->tree, &key))
		lf_uncache(lf, region);
	region = malloc(sizeof(*region));
	if (!region)
		return -ENOMEM;
	*region = key;
	lf_insert(lf, region);
	*hit = false;
	*out = region;
	return 0;
}

bool sim_lf_valid(const struct sim_lf *lf)
{
	struct sim_lf_tree *tree = (struct sim_lf_tree *) &lf->tree;
	struct sim_lf_region *region, *last = NULL;
	size_t listed = 0, count = 0;
	uint64_t bytes = 0;

	TAILQ_FOREACH(region, &lf->lru, link)
		listed++;
	RB_FOREACH(region, sim_lf_tree, tree) {
		if (last && (region->first <= last->first ||
			     region->last <= last->last))
			return false; /* L2 */
		bytes += region->last - region->first + 1;
		count++;
		last = region;
	}
	return count == lf->count && listed == count && bytes == lf->bytes &&
	       count <= lf->max_count; /* L1, L3 */
}

/* ---- a trace ---- */

struct lf_run {
	const struct sim_cell *cell;
	struct sim_result *result;
	size_t pinned;
};

/* Returns the bytes of the pages that a region has registered. */
static size_t lf_span(const struct lf_run *run,
		      const struct sim_lf_region *region)
{
	const uint64_t mask = run->cell->page - 1;

	return (region->last | mask) - (region->first & ~mask) + 1;
}

static void lf_registered(struct lf_run *run,
			  const struct sim_lf_region *region)
{
	const size_t span = lf_span(run, region);
	struct sim_result *result = run->result;

	result->registrations++;
	result->registered_pages += mrrc_cost_pages(run->cell->cost, span);
	result->reg_ns += mrrc_cost_reg(run->cell->cost, span);
	run->pinned += span;
	if (run->pinned > result->pinned_peak)
		result->pinned_peak = run->pinned;
}

static void lf_deregistered(void *arg, const struct sim_lf_region *region)
{
	struct lf_run *run = arg;
	const size_t span = lf_span(run, region);
	struct sim_result *result = run->result;

	result->deregistrations++;
	result->batches++;
	result->deregistered_pages += mrrc_cost_pages(run->cell->cost, span);
	result->dereg_ns += mrrc_cost_dereg(run->cell->cost, span);
	run->pinned -= span;
}

static int lf_serve(struct lf_run *run, struct sim_lf *lf,
		    const struct sim_req *req)
{
	const struct sim_lf_region key = {
		.first = req->addr,
		.last = req->addr + req->len - 1,
	};
	struct sim_result *result = run->result;
	const struct sim_lf_region *region;
	const size_t span = lf_span(run, &key);
	bool hit;
	int ret;

	ret = sim_lf_request(lf, req->addr, req->len, &hit, &region);
	if (ret)
		return ret;
	result->requests++;
	result->bytes += span;
	result->pieces++;
	if (hit) {
		result->hits++;
		result->hit_bytes += span;
	} else {
		lf_registered(run, region);
	}
	if (lf->count > result->regions_peak)
		result->regions_peak = lf->count;
	return 0;
}

int sim_lf_run(const struct sim_cell *cell, struct sim_result *result)
{
	const struct sim_trace *trace = cell->trace;
	struct lf_run run = { .cell = cell, .result = result };
	struct sim_lf *lf;
	size_t i, part = 0;
	int ret = 0;

	*result = (struct sim_result){ .dereg_on_path = true };
	lf = calloc(trace->procs, sizeof(*lf));
	if (!lf)
		return -ENOMEM;
	for (i = 0; i < trace->procs; i++) {
		sim_lf_init(&lf[i], cell->max_regions, cell->max_bytes);
		lf[i].dereg = lf_deregistered;
		lf[i].arg = &run;
	}
	for (i = 0; i < trace->count && !ret; i++) {
		ret = lf_serve(&run, &lf[trace->req[i].proc], &trace->req[i]);
		sim_pinned(result, run.pinned, i, trace->count, &part);
	}
	for (i = 0; i < trace->procs; i++) {
		result->stats.value[MRRC_STAT_EVICTIONS] += lf[i].evictions;
		sim_lf_fini(&lf[i]);
	}
	free(lf);
	return ret;
}
