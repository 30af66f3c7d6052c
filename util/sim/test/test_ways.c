/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to register besides the provider's cache, over a few requests worked out
 * by hand.
 */
#include "config.h"
#include "test/case.h"

#include "sim/libfabric.h"
#include "sim/once.h"

#define PAGE 4096u
#define MIB  (1u << 20)

/* 10 a page and 100 a call, 1 and 50. */
static const struct mrrc_cost cost = { 10, 100, 1, 50, 0, 0, PAGE, false };

static struct sim_trace trace;
static struct sim_result result;

static void setup(void)
{
	ck_assert_int_eq(sim_trace_init(&trace, "hand"), 0);
}

static void teardown(void)
{
	sim_trace_fini(&trace);
}

TEST_CASE(ways, setup, teardown);

static void add(uint32_t proc, uint64_t addr, uint64_t len)
{
	const struct sim_req req = {
		.addr = addr,
		.len = len,
		.proc = proc,
		.access = SIM_RW,
	};

	ck_assert_int_eq(sim_trace_append(&trace, &req), 0);
}

static struct sim_cell cell(void)
{
	return (struct sim_cell){
		.trace = &trace,
		.max_bytes = SIZE_MAX,
		.max_regions = 2,
		.page = PAGE,
		.cost = &cost,
	};
}

/* Two processes; one region lies across two pages. */
TEST(test_libfabric_run)
{
	const struct sim_cell run = cell();

	add(0, 4000, 200);
	add(1, 4000, 100);
	add(0, 4000, 100); /* a hit */
	add(0, 0, 100);
	add(0, 8192, 1); /* the first goes */
	ck_assert_int_eq(sim_lf_run(&run, &result), 0);
	ck_assert_uint_eq(result.requests, 5);
	ck_assert_uint_eq(result.hits, 1);
	ck_assert_uint_eq(result.registrations, 4);
	ck_assert_uint_eq(result.registered_pages, 6);
	ck_assert_uint_eq(result.deregistrations, 1);
	ck_assert_uint_eq(result.stats.value[MRRC_STAT_EVICTIONS], 1);
	ck_assert_uint_eq(result.regions_peak, 2);
	ck_assert_double_eq(result.reg_ns, 460);
	ck_assert_double_eq(result.dereg_ns, 52);
	ck_assert(result.dereg_on_path);
	ck_assert_uint_eq(result.pinned_peak, 5 * PAGE);
	ck_assert_uint_eq(result.pinned[SIM_SERIES - 1], 4 * PAGE);
}

/* Adjacent pages are one registration, those of each process apart. */
TEST(test_static)
{
	const struct sim_cell run = cell();

	add(0, PAGE, PAGE);
	add(0, 2 * PAGE, 1);
	add(1, 3 * PAGE, PAGE);
	add(0, 9 * PAGE, PAGE);
	add(0, PAGE, PAGE);
	ck_assert_int_eq(sim_once_run(&run, false, &result), 0);
	ck_assert_uint_eq(result.registrations, 3);
	ck_assert_uint_eq(result.pinned_peak, 4 * PAGE);
	ck_assert_double_eq(result.reg_ns, 340);
	ck_assert_double_eq(sim_total(&result), 340);
	ck_assert_double_eq(result.pinned_mean, 4 * PAGE);
	ck_assert_uint_eq(result.hits, 5);
}

/* Blocks of 1 MiB, one of its own for what is larger, larger ones for much. */
TEST(test_blocks)
{
	const struct sim_cell run = cell();
	unsigned i;

	add(0, 0, PAGE);
	add(0, 2 * PAGE, PAGE);
	ck_assert_int_eq(sim_once_run(&run, true, &result), 0);
	ck_assert_uint_eq(result.registrations, 1);
	ck_assert_uint_eq(result.pinned_peak, MIB);
	add(0, 64 * MIB, 2 * MIB + 1);
	ck_assert_int_eq(sim_once_run(&run, true, &result), 0);
	ck_assert_uint_eq(result.registrations, 2);
	ck_assert_uint_eq(result.pinned_peak, 4 * MIB);
	add(1, 0, PAGE);
	ck_assert_int_eq(sim_once_run(&run, true, &result), 0);
	ck_assert_uint_eq(result.registrations, 3);
	for (i = 0; i < 256; i++)
		add(0, (UINT64_C(100) + 2 * i) * MIB, MIB);
	ck_assert_int_eq(sim_once_run(&run, true, &result), 0);
	ck_assert_uint_lt(result.registrations, 100);
	ck_assert_uint_ge(result.pinned_peak, 260 * MIB);
}
