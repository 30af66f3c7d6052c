/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a trace through the provider's core (engine.h).
 *
 * A request: lookup -> hold the regions found -> for each gap: register,
 * insert, deregister the victims -> put all regions. sys/cache/cache_mt.c and
 * miss.c serve a request in the same steps, under locks.
 */
#include "config.h"
#include "sim/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/policies.h"
#include "core/cache/plan.h"

struct sim_run {
	const struct sim_cell *cell;
	struct sim_result *result;
	/* the cache of one process of the trace, opened at its first request */
	struct mrrc_cache *cache; /* policy NULL: the cache is not opened */
	struct mrrc_admit *admit; /* or NULL */
	struct sim_offline *offline;
	struct mrrc_region_list idle; /* regions to use again */
	size_t pinned;
};

static struct mrrc_region *sim_region(struct sim_run *run)
{
	struct mrrc_region *region = TAILQ_FIRST(&run->idle);

	if (region) {
		TAILQ_REMOVE(&run->idle, region, link);
		return region;
	}
	return malloc(sizeof(*region));
}

static uint64_t sim_pages(const struct sim_run *run, size_t len)
{
	return mrrc_cost_pages(run->cell->cost, len);
}

/* Deregisters in batches as the provider does. */
static void sim_dereg(struct sim_run *run, struct mrrc_cache *cache,
		      struct mrrc_region_list *list)
{
	struct sim_result *result = run->result;
	struct mrrc_region *region;
	uint64_t pages = 0;
	size_t count = 0;

	while ((region = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, region, link);
		mrrc_cache_deregistered(cache, region->len);
		run->pinned -= region->len;
		pages += sim_pages(run, region->len);
		count++;
		if (count == MRRC_DEREG_BATCH || TAILQ_EMPTY(list)) {
			result->deregistrations += count;
			result->deregistered_pages += pages;
			result->batches++;
			result->dereg_ns +=
				mrrc_cost_dereg_batch(run->cell->cost, count,
						      pages);
			pages = 0;
			count = 0;
		}
		TAILQ_INSERT_HEAD(&run->idle, region, link);
	}
}

/* Registers a missing piece; the piece's region is held, indexed or not. */
static int sim_register(struct sim_run *run, struct mrrc_cache *cache,
			enum mrrc_access access, bool keep,
			struct mrrc_piece *piece)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);
	struct sim_result *result = run->result;
	struct mrrc_region *region = sim_region(run);

	if (!region)
		return -ENOMEM;
	*region = (struct mrrc_region){
		.start = piece->start,
		.len = piece->len,
		.access = access == MRRC_RO ? MRRC_RW : access,
		.state = MRRC_REGION_NEW,
	};
	piece->region = region;
	mrrc_cache_registered(cache, region->len);
	result->registrations++;
	result->registered_pages += sim_pages(run, region->len);
	result->reg_ns += mrrc_cost_reg(run->cell->cost, region->len);
	run->pinned += region->len;
	if (run->pinned > result->pinned_peak)
		result->pinned_peak = run->pinned;

	if (region->len > cache->max_bytes)
		mrrc_cache_count(cache, MRRC_STAT_UNCACHED_TOO_BIG);
	else if (!keep)
		result->used_once++;
	else if (mrrc_cache_insert(cache, region, &victims))
		mrrc_cache_count(cache, MRRC_STAT_UNCACHED_FULL);
	mrrc_cache_hold(cache, region);
	sim_dereg(run, cache, &victims);
	return 0;
}

/*
 * Puts the regions of a plan after use: all regions, unless memory was short.
 */
static void sim_put(struct sim_run *run, struct mrrc_cache *cache,
		    struct mrrc_plan *plan)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	unsigned i;

	for (i = 0; i < plan->count; i++) {
		if (!plan->piece[i].region ||
		    !mrrc_cache_put(cache, plan->piece[i].region))
			continue;
		TAILQ_INSERT_TAIL(&list, plan->piece[i].region, link);
		sim_dereg(run, cache, &list);
	}
}

/* Counts the registered pages of a request. */
static void sim_count(struct sim_run *run, const struct mrrc_cache *cache,
		      const struct sim_req *req, const struct mrrc_plan *plan)
{
	const uintptr_t mask = cache->page - 1;
	const uintptr_t lo = req->addr & ~mask;
	const uintptr_t hi = ((req->addr + req->len - 1) | mask) + 1;
	struct sim_result *result = run->result;
	unsigned i;

	result->requests++;
	result->hits += !plan->missing;
	result->bytes += hi - lo;
	result->pieces += plan->count;
	for (i = 0; i < plan->count; i++) {
		if (plan->piece[i].region)
			result->hit_bytes += plan->piece[i].len;
	}
}

static enum mrrc_admission sim_admit(struct sim_run *run,
				     const struct sim_req *req,
				     const struct mrrc_plan *plan)
{
	size_t missing = 0;
	unsigned i;

	if (run->cell->kind == SIM_NONE)
		return MRRC_ADMIT_ONCE;
	if (!run->admit || !plan->missing)
		return MRRC_ADMIT_KEEP;
	for (i = 0; i < plan->count; i++)
		missing += plan->piece[i].region ? 0 : plan->piece[i].len;
	return mrrc_admit(&run->admit[req->proc], &run->cache[req->proc],
			  req->addr, req->len, missing);
}

static int sim_cache_init(struct sim_run *run, uint32_t proc)
{
	const struct sim_cell *cell = run->cell;
	static const struct mrrc_policy_ops *const offline[] = {
		&sim_offline_ops,
		NULL,
	};
	struct mrrc_cache_conf conf = {
		.max_bytes = cell->max_bytes,
		.max_regions = cell->max_regions,
		.page = cell->page,
		.policies = sim_policies,
		.policy = cell->kind == SIM_NONE ? "lru" : cell->policy,
		.cost = cell->cost,
	};
	struct mrrc_cache *cache = &run->cache[proc];
	int ret;

	if (cell->kind == SIM_OFFLINE) {
		conf.policies = offline;
		conf.policy = sim_offline_ops.name;
		conf.policy_arg = run->offline;
		sim_offline_proc(run->offline, proc);
	}
	ret = mrrc_cache_init(cache, &conf);
	if (ret)
		goto err_none;
	if (run->admit)
		ret = mrrc_admit_init(&run->admit[proc], cell->cost,
				      cell->max_bytes, cell->max_regions);
	if (ret)
		goto err_fini;
	run->result->dereg_on_path =
		cell->kind == SIM_NONE ||
		(cache->policy->batch == 1 && !cache->policy->ops->more);
	return 0;

err_fini:
	mrrc_cache_fini(cache);
err_none:
	cache->policy = NULL;
	return ret;
}

static int sim_request(struct sim_run *run, const struct sim_req *req,
		       size_t now)
{
	struct mrrc_cache *cache = &run->cache[req->proc];
	const enum mrrc_access access = req->access;
	enum mrrc_admission admission;
	struct mrrc_plan plan;
	unsigned i;
	int ret = 0;

	if (!cache->policy) {
		ret = sim_cache_init(run, req->proc);
		if (ret)
			return ret;
	}
	if (run->offline)
		sim_offline_now(run->offline, now);
	mrrc_cache_lookup(cache, req->addr, req->len, access, 0, &plan);
	sim_count(run, cache, req, &plan);
	admission = sim_admit(run, req, &plan);
	if (admission == MRRC_ADMIT_BOUNCE) {
		run->result->bounced++;
		run->result->copy_ns +=
			run->cell->cost->copy +
			run->cell->cost->copy_page * sim_pages(run, req->len);
		return 0;
	}
	for (i = 0; i < plan.count; i++) {
		if (plan.piece[i].region)
			mrrc_cache_hold(cache, plan.piece[i].region);
	}
	for (i = 0; i < plan.count && !ret; i++) {
		if (!plan.piece[i].region)
			ret = sim_register(run, cache, access,
					   admission == MRRC_ADMIT_KEEP,
					   &plan.piece[i]);
	}
	sim_put(run, cache, &plan);
	return ret || !run->offline ? ret : sim_offline_error(run->offline);
}

static int sim_requests(struct sim_run *run)
{
	const struct sim_trace *trace = run->cell->trace;
	size_t part = 0;
	size_t i;
	int ret;

	for (i = 0; i < trace->count; i++) {
		ret = sim_request(run, &trace->req[i], i);
		if (ret)
			return ret;
		sim_pinned(run->result, run->pinned, i, trace->count, &part);
	}
	return 0;
}

/* Empties and closes a cache; the result does not include closing. */
static void sim_close(struct sim_run *run, uint32_t proc)
{
	struct mrrc_region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct mrrc_cache *cache = &run->cache[proc];

	mrrc_cache_evict_all(cache, &list);
	TAILQ_CONCAT(&run->idle, &list, link);
	mrrc_cache_fini(cache);
	if (run->admit)
		mrrc_admit_fini(&run->admit[proc]);
}

static void sim_add_stats(struct mrrc_stats *sum,
			  const struct mrrc_stats *stats)
{
	int i;

	for (i = 0; i < MRRC_STAT_CNT; i++)
		sum->value[i] += stats->value[i];
}

int sim_run(const struct sim_cell *cell, struct sim_result *result)
{
	struct sim_run run = { .cell = cell, .result = result };
	const uint32_t procs = cell->trace->procs;
	struct mrrc_region *region;
	uint32_t i;
	int ret = -ENOMEM;

	*result = (struct sim_result){ 0 };
	TAILQ_INIT(&run.idle);
	run.cache = calloc(procs, sizeof(*run.cache));
	if (!run.cache)
		return -ENOMEM;
	if (cell->bounce && cell->kind != SIM_NONE) {
		run.admit = calloc(procs, sizeof(*run.admit));
		if (!run.admit)
			goto out;
	}
	if (cell->kind == SIM_OFFLINE) {
		run.offline = sim_offline_open(cell->future);
		if (!run.offline)
			goto out;
	}
	ret = sim_requests(&run);
	for (i = 0; i < procs; i++) {
		if (run.cache[i].policy)
			sim_add_stats(&result->stats, run.cache[i].stats);
	}
out:
	for (i = 0; i < procs; i++) {
		if (run.cache[i].policy)
			sim_close(&run, i);
	}
	while ((region = TAILQ_FIRST(&run.idle))) {
		TAILQ_REMOVE(&run.idle, region, link);
		free(region);
	}
	sim_offline_close(run.offline);
	free(run.admit);
	free(run.cache);
	return ret;
}
