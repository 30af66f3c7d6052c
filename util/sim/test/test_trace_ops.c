/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim/trace: appending, invariants, footprint, merging.
 */
#include "config.h"
#include "test/case.h"
#include "sim/trace.h"

/* omitted fields are 0 */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

static void make(struct sim_trace *trace, const struct sim_req *req, size_t cnt)
{
	size_t i;

	ck_assert_int_eq(sim_trace_init(trace, "made"), 0);
	for (i = 0; i < cnt; i++)
		ck_assert_int_eq(sim_trace_append(trace, &req[i]), 0);
}

TEST_CASE(trace_ops, NULL, NULL);

TEST(test_append)
{
	struct sim_trace trace;

	make(&trace, &(struct sim_req){ 5, 0, 1, 3, 0 }, 1);
	ck_assert_int_eq(sim_trace_append(&trace,
					  &(struct sim_req){ 4, 0, 1, 0, 0 }),
			 -EINVAL);
	ck_assert_int_eq(sim_trace_append(&trace,
					  &(struct sim_req){ 5, 0, 0, 0, 0 }),
			 -EINVAL);
	ck_assert_int_eq(sim_trace_append(&trace,
					  &(struct sim_req){ 5, SIM_ADDR_MAX, 1,
							     0, 0 }),
			 -EINVAL);
	ck_assert_int_eq(sim_trace_append(&trace,
					  &(struct sim_req){ 5, 0, 1, 0, 8 }),
			 -EINVAL);
	ck_assert_int_eq(sim_trace_append(&trace,
					  &(struct sim_req){
						  5, 0, 1, SIM_PROCS_MAX, 0 }),
			 -E2BIG);
	ck_assert_uint_eq(trace.count, 1);
	ck_assert_uint_eq(trace.procs, 4);
	ck_assert(sim_trace_valid(&trace));
	trace.procs = 3; /* T3 */
	ck_assert(!sim_trace_valid(&trace));
	trace.procs = 4;
	trace.req[0].len = 0; /* T2 */
	ck_assert(!sim_trace_valid(&trace));
	trace.req[0].len = 1;
	ck_assert_int_eq(sim_trace_append(&trace,
					  &(struct sim_req){ 6, 0, 1, 0, 0 }),
			 0);
	ck_assert(sim_trace_valid(&trace));
	trace.req[0].time = 7; /* T1 */
	ck_assert(!sim_trace_valid(&trace));
	sim_trace_fini(&trace);
}

static const struct {
	struct sim_req req[4];
	uint64_t page, bytes;
} prints[] = {
	{ { { 0, 0, 1, 0, 0 } }, 4096, 4096 },
	{ { { 0, 4095, 2, 0, 0 } }, 4096, 8192 },
	{ { { 0, 0, 1, 0, 0 }, { 0, 5, 1, 0, 0 } }, 4096, 4096 },
	{ { { 0, 0, 1, 0, 0 }, { 0, 5, 1, 0, 0 } }, 1, 2 },
	{ { { 0, 0, 1, 0, 0 }, { 0, 5, 1, 1, 0 } }, 4096, 8192 },
	/* nested ranges, a later range before them, a range across both */
	{ { { 0, 40960, 4096, 0, 0 },
	    { 0, 0, 8192, 0, 0 },
	    { 0, 4096, 1, 0, 0 } },
	  4096,
	  12288 },
	{ { { 0, 40960, 4096, 0, 0 },
	    { 0, 0, 8192, 0, 0 },
	    { 0, 4096, 40000, 0, 0 } },
	  4096,
	  45056 },
	{ { { 0, 0, 100, 0, 0 },
	    { 0, 10, 10, 0, 0 },
	    { 0, 50, 100, 0, 0 },
	    { 0, 150, 50, 0, 0 } },
	  1,
	  200 },
	{ { { 0, 0, SIM_ADDR_MAX, 0, 0 } }, 4096, SIM_ADDR_MAX },
	{ { { 0, 0, SIM_ADDR_MAX, 0, 0 }, { 0, 0, SIM_ADDR_MAX, 1, 0 } },
	  4096,
	  UINT64_MAX },
	{ { { 0, 1, 1, 0, 0 } }, SIM_ADDR_MAX, SIM_ADDR_MAX },
};

EACH_TEST(test_footprint, prints)
{
	const struct sim_req *req = prints[_i].req;
	struct sim_trace trace;
	uint64_t bytes = 1;
	size_t cnt = 0;

	while (cnt < 4 && req[cnt].len)
		cnt++;
	make(&trace, req, cnt);
	ck_assert_int_eq(sim_trace_footprint(&trace, prints[_i].page, &bytes),
			 0);
	ck_assert_uint_eq(bytes, prints[_i].bytes);
	ck_assert_int_eq(sim_trace_footprint(&trace, 0, &bytes), -EINVAL);
	ck_assert_int_eq(sim_trace_footprint(&trace, 12, &bytes), -EINVAL);
	trace.count = 0;
	ck_assert_int_eq(sim_trace_footprint(&trace, 4096, &bytes), 0);
	ck_assert_uint_eq(bytes, 0);
	sim_trace_fini(&trace);
}

TEST(test_merge)
{
	static const struct sim_req a[] = {
		{ 1, 10, 1, 0, 0 }, { 5, 11, 1, 1, 0 }, { 5, 12, 1, 0, 1 },
	}, b[] = {
		{ 0, 20, 1, 2, 0 }, { 5, 21, 1, 0, 0 },
	}, sum[] = {
		{ 0, 20, 1, 4, 0 }, { 1, 10, 1, 0, 0 }, { 5, 11, 1, 1, 0 },
		{ 5, 12, 1, 0, 1 }, { 5, 21, 1, 2, 0 },
	};
	struct sim_trace one, two, none, merged;
	const struct sim_trace *traces[] = { &one, &none, &two };

	make(&one, a, 3);
	make(&two, b, 2);
	make(&none, NULL, 0);
	ck_assert_int_eq(sim_trace_merge(traces, 3, "all", &merged), 0);
	ck_assert_str_eq(merged.name, "all");
	ck_assert_uint_eq(merged.count, 5);
	ck_assert_mem_eq(merged.req, sum, sizeof(sum));
	ck_assert_uint_eq(merged.procs, 5);
	ck_assert(sim_trace_valid(&merged));
	sim_trace_fini(&merged);

	ck_assert_int_eq(sim_trace_merge(traces, 0, "none", &merged), 0);
	ck_assert_uint_eq(merged.count, 0);
	sim_trace_fini(&merged);

	one.procs = SIM_PROCS_MAX;
	ck_assert_int_eq(sim_trace_merge(traces, 3, "all", &merged), -E2BIG);
	sim_trace_fini(&one);
	sim_trace_fini(&two);
	sim_trace_fini(&none);
}
