/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests the simulator: a few requests calculated by hand, and properties of any
 * trace.
 */
#include "config.h"
#include "test/case.h"

#include <math.h>
#include <sys/resource.h>

#include "sim/gen.h"
#include "sim/grid.h"

#define PAGE 4096u

/* Registering: 10 a page, 100 a call; deregistering: 1 and 50. */
static const struct mrrc_cost cost = { 10, 100, 1, 50, 0, 0, PAGE, false };
static const struct mrrc_cost batched = { 10, 100, 1, 50, 0, 0, PAGE, true };

static struct sim_trace trace;

static void setup(void)
{
	ck_assert_int_eq(sim_trace_init(&trace, "hand"), 0);
}

static void teardown(void)
{
	sim_trace_fini(&trace);
}

static void add(uint32_t proc, unsigned page, unsigned pages)
{
	const struct sim_req req = {
		.time = trace.count,
		.addr = (uint64_t) page * PAGE,
		.len = (uint64_t) pages * PAGE,
		.proc = proc,
		.access = SIM_RW,
	};

	ck_assert_int_eq(sim_trace_append(&trace, &req), 0);
}

static void run(const char *policy, unsigned pages, unsigned regions,
		const struct mrrc_cost *model, struct sim_result *result)
{
	const struct sim_cell cell = {
		.trace = &trace,
		.kind = policy ? SIM_CACHE : SIM_NONE,
		.policy = policy,
		.max_bytes = (size_t) pages * PAGE,
		.max_regions = regions,
		.page = PAGE,
		.cost = model,
	};

	ck_assert_int_eq(sim_run(&cell, result), 0);
}

TEST_CASE(simulator, setup, teardown);

TEST(test_by_hand)
{
	struct sim_result result;

	add(0, 0, 4);  /* missing */
	add(0, 1, 2);  /* a part of the first */
	add(0, 2, 4);  /* half of the first, and 2 pages more */
	add(0, 0, 6);  /* both regions */
	add(0, 10, 1); /* evicts the older region, or both as a batch */
	run("lru:pieces=4", 6, 9, &cost, &result);
	ck_assert_uint_eq(result.requests, 5);
	ck_assert_uint_eq(result.hits, 2);
	ck_assert_uint_eq(result.bytes, 17 * PAGE);
	ck_assert_uint_eq(result.hit_bytes, 10 * PAGE);
	ck_assert_uint_eq(result.pieces, 7);
	ck_assert_uint_eq(result.registrations, 3);
	ck_assert_uint_eq(result.registered_pages, 7);
	ck_assert_uint_eq(result.deregistrations, 1);
	ck_assert_uint_eq(result.deregistered_pages, 4);
	ck_assert_double_eq(result.reg_ns, 370);
	ck_assert_double_eq(result.dereg_ns, 54);
	ck_assert(result.dereg_on_path);
	ck_assert_double_eq(sim_on_path(&result), 424);
	/* the victim goes after the new registration, as in the provider */
	ck_assert_uint_eq(result.pinned_peak, 7 * PAGE);
	ck_assert_double_eq(result.pinned_mean,
			    PAGE * (4 + 4 + 6 + 6 + 3) / 5.0);
	ck_assert_uint_eq(result.pinned[SIM_SERIES - 1], 3 * PAGE);
}

TEST(test_errors)
{
	struct sim_result result;
	struct sim_cell cell = {
		.trace = &trace,
		.policy = "nothing",
		.max_bytes = PAGE,
		.max_regions = 1,
		.page = PAGE,
		.cost = &cost,
	};

	add(0, 0, 1);
	ck_assert_int_eq(sim_run(&cell, &result), -ENOENT);
	cell.policy = "gdsf:history=2";
	ck_assert_int_eq(sim_run(&cell, &result), -ERANGE);
	cell.policy = "gdsf";
	cell.max_bytes = 0;
	ck_assert_int_eq(sim_run(&cell, &result), -EINVAL);
}

/* ---- the future ---- */

static void check_stretch(const struct sim_future *future, size_t k,
			  uint32_t part, uint32_t next)
{
	ck_assert_uint_eq(future->stretch[k].part, part);
	ck_assert_uint_eq(future->stretch[k].next, next);
}

TEST(test_future)
{
	struct sim_future future;

	add(0, 0, 4);
	add(0, 2, 4);
	add(1, 0, 4);
	add(0, 3, 1);
	ck_assert_int_eq(sim_future_make(&trace, PAGE, &future), 0);
	/*
	 * the first process has the parts 0-2, 2-3, 3-4, 4-6 and the rest, the
	 * other process has 0-4 and the rest
	 */
	ck_assert_uint_eq(future.parts, 7);
	ck_assert_uint_eq(future.at[1], 2);
	check_stretch(&future, 0, 0, SIM_NEVER);
	check_stretch(&future, 1, 1, 1);
	ck_assert_uint_eq(sim_stretch_end(&future, 0, 1), 3);
	ck_assert_uint_eq(future.at[2], 5);
	check_stretch(&future, 2, 1, SIM_NEVER);
	check_stretch(&future, 3, 2, 3);
	check_stretch(&future, 4, 3, SIM_NEVER);
	ck_assert_uint_eq(sim_stretch_end(&future, 1, 4), 4);
	ck_assert_uint_eq(future.at[3], 6);
	sim_future_free(&future);
}

/* Nested requests cover many parts each, which are all used again. */
TEST(test_future_nested)
{
	const unsigned count = 20000;
	struct sim_future future;
	struct sim_result result;
	struct sim_cell cell = {
		.trace = &trace,
		.kind = SIM_OFFLINE,
		.future = &future,
		.max_bytes = count * PAGE,
		.max_regions = 9,
		.page = PAGE,
		.cost = &cost,
	};
	struct rusage before, after;
	unsigned i;
	double bound;

	for (i = 0; i < count; i++)
		add(0, i, 2 * (count - i));
	getrusage(RUSAGE_SELF, &before);
	ck_assert_int_eq(sim_future_make(&trace, PAGE, &future), 0);
	ck_assert_uint_eq(future.parts, 2 * count);
	ck_assert_uint_le(future.at[count], 3 * count);
	ck_assert_int_eq(sim_run(&cell, &result), 0);
	ck_assert_int_eq(
		sim_bound(&future, &cost, cell.max_bytes, false, &bound), 0);
	ck_assert_double_ge(sim_total(&result), bound);
	sim_future_free(&future);
	getrusage(RUSAGE_SELF, &after);
	/* KiB; a word for each part of each request would take 1.6 GB */
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 100 * 1024);
}

/* The lower bound of all policies, under random requests. */
TEST(test_bound)
{
	static const char *const policies[] = {
		"lru",	    "lru:pieces=4", "fmrd", "mre-text",
		"mre-fig4", "gdsf",	    "gdl",
	};
	/*
	 * copies are sometimes cheaper in the third model, always in the fourth
	 */
	const struct mrrc_cost copied = { 10, 100, 1, 50, 30, 0, PAGE, false };
	const struct mrrc_cost cheap = { 10, 100, 1, 50, 1, 0, PAGE, true };
	const struct mrrc_cost *models[] = {
		&cost,
		&batched,
		&copied,
		&cheap,
	};
	struct sim_future future;
	struct sim_result result;
	struct sim_cell cell = {
		.trace = &trace,
		.max_bytes = 64 * PAGE,
		.page = PAGE,
		.max_regions = SIZE_MAX,
		.future = &future,
	};
	uint32_t state = 1;
	unsigned i, m;
	double bound;

	for (i = 0; i < 20000; i++) {
		state = state * 1664525 + 1013904223;
		add(state >> 31, (state >> 8) % 16 * ((state >> 16) % 16),
		    1 + (state >> 24) % 8);
	}
	ck_assert_int_eq(sim_future_make(&trace, PAGE, &future), 0);
	for (m = 0; m < 4; m++) {
		cell.cost = models[m];
		cell.bounce = cell.cost->copy_page > 0;
		ck_assert_int_eq(sim_bound(&future, cell.cost, cell.max_bytes,
					   cell.bounce, &bound),
				 0);
		ck_assert_double_gt(bound, 0);
		cell.kind = SIM_OFFLINE;
		ck_assert_int_eq(sim_run(&cell, &result), 0);
		ck_assert_double_ge(sim_total(&result), bound);
		cell.kind = SIM_CACHE;
		for (i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
			cell.policy = policies[i];
			ck_assert_int_eq(sim_run(&cell, &result), 0);
			ck_assert_double_ge(sim_total(&result), bound);
			ck_assert_uint_eq(result.requests, trace.count);
		}
	}
	sim_future_free(&future);
}

/* ---- the grid ---- */

static void grid_run(unsigned jobs, struct sim_row **rows, size_t *cnt)
{
	struct sim_limit limits[] = { { 0, 5 }, { 64 * PAGE, 0 } };
	struct sim_model model = { .name = "hand", .cost = cost };
	char *policies[] = { "lru", "gdsf", "offline", "bound", "none" };
	size_t page = PAGE, count = SIZE_MAX;
	const struct sim_grid grid = {
		.trace = &trace,
		.traces = 1,
		.page = &page,
		.pages = 1,
		.model = &model,
		.models = 1,
		.limit = limits,
		.limits = 2,
		.count = &count,
		.counts = 1,
		.policy = policies,
		.policies = 5,
		.jobs = jobs,
	};

	ck_assert_int_eq(sim_grid_run(&grid, rows, cnt), 0);
	ck_assert_uint_eq(*cnt, 10);
}

TEST(test_grid_deterministic)
{
	struct sim_row *one, *three;
	size_t cnt, i;

	sim_trace_fini(&trace);
	ck_assert_int_eq(sim_gen_find("cello")->make(3, 20000, &trace), 0);
	grid_run(1, &one, &cnt);
	grid_run(3, &three, &cnt);
	for (i = 0; i < cnt; i++) {
		ck_assert_ptr_eq(one[i].policy, three[i].policy);
		ck_assert_uint_eq(one[i].max_bytes, three[i].max_bytes);
		ck_assert_mem_eq(&one[i].result, &three[i].result,
				 sizeof(one[i].result));
	}
	/* 5 % of the footprint, in whole pages */
	ck_assert_uint_eq(one[0].max_bytes,
			  one[0].footprint * 5 / 100 / PAGE * PAGE);
	ck_assert_uint_eq(one[5].max_bytes, 64 * PAGE);
	free(one);
	free(three);
}
