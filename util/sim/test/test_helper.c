/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests the registered bytes over time (helper.h): a few requests calculated by
 * hand, and properties of any trace.
 */
#include "config.h"
#include "test/case.h"

#include "sim/gen.h"
#include "sim/helpers.h"

#define PAGE 4096u

/* Registering: 10 us a page, 20 us a call; deregistering: 1 us, 4 us. */
static const struct mrrc_cost cost = {
	.reg_page = 10000,
	.reg = 20000,
	.dereg_page = 1000,
	.dereg = 4000,
	.page = PAGE,
};

static struct sim_trace trace;
static struct sim_future future;
static struct sim_timeline timeline;
static struct sim_helper_result result;

static void setup(void)
{
	ck_assert_int_eq(sim_trace_init(&trace, "hand"), 0);
}

static void teardown(void)
{
	sim_timeline_free(&timeline);
	sim_future_free(&future);
	sim_trace_fini(&trace);
}

static void add(uint64_t us, uint32_t proc, unsigned page, unsigned pages,
		uint64_t held)
{
	ck_assert_int_eq(
		sim_trace_append(&trace,
				 &(struct sim_req){
					 .time = us,
					 .addr = (uint64_t) page * PAGE,
					 .len = (uint64_t) pages * PAGE,
					 .proc = proc,
					 .access = SIM_RW,
					 .held = held,
					 .site = 1,
				 }),
		0);
}

/* Makes a trace in place of the empty one. */
static void make(const char *generator, uint64_t seed, size_t requests)
{
	sim_trace_fini(&trace);
	ck_assert_int_eq(sim_gen_find(generator)->make(seed, requests, &trace),
			 0);
}

static void ready(void)
{
	ck_assert_int_eq(sim_future_make(&trace, PAGE, &future), 0);
	ck_assert_int_eq(sim_timeline_make(&future, &timeline), 0);
}

static const struct sim_helper_result *run(enum sim_helper_kind kind,
					   uint64_t idle_us)
{
	const struct sim_helper_run helper = {
		.timeline = &timeline,
		.cost = &cost,
		.kind = kind,
		.idle_us = idle_us,
	};

	memset(&result, 0xff, sizeof(result));
	ck_assert_int_eq(sim_helper_run(&helper, &result), 0);
	ck_assert_uint_eq(result.requests, trace.count);
	return &result;
}

/* Checks the mean, in pages times microseconds, and the peak in pages. */
static void bytes(double page_us, unsigned peak)
{
	const uint64_t us = trace.req[trace.count - 1].time - trace.req[0].time;

	ck_assert_double_eq_tol(result.mean_bytes, page_us * PAGE / us, 1);
	ck_assert_uint_eq(result.peak_bytes, peak * PAGE);
}

static void counts(uint64_t first, uint64_t late, uint64_t registrations)
{
	ck_assert_uint_eq(result.first, first);
	ck_assert_uint_eq(result.late, late);
	ck_assert_uint_eq(result.registrations, registrations);
}

TEST_CASE(helper, setup, teardown);

/*
 * A buffer in use stays registered with any helper, and at the end of the
 * trace.
 */
TEST(test_held)
{
	add(0, 0, 0, 1, 5000);
	add(1000, 0, 2, 1, SIM_ENDLESS);
	add(2000, 0, 4, 1, 1000);
	add(2500, 0, 4, 1, 2000);
	add(10000, 0, 6, 1, 0);
	ready();
	run(SIM_HELPER_TIMEOUT, 100);
	bytes(5105 + 9000 + 2500 + 105, 3);
	counts(4, 0, 4);
	run(SIM_HELPER_OFFLINE, 0);
	bytes(5005 + 9000 + 30 + 2500 + 5 + 30 + 30, 3);
}

/* A buffer is as long as its longest request. */
TEST(test_grows)
{
	add(0, 0, 0, 1, 0);
	add(100, 0, 0, 3, 0);
	add(200, 0, 0, 1, 0);
	add(10000, 0, 0, 2, 0);
	add(11000, 0, 9, 1, 0);
	ready();
	run(SIM_HELPER_TIMEOUT, 1000);
	bytes(100 + 3 * (100 + 1007) + 3 * 1000, 4);
	counts(3, 1, 4);
}

/*
 * After a period is learned, the buffer is registered in time, and mostly not
 * between two uses.
 */
TEST(test_predict)
{
	unsigned i;

	for (i = 0; i < 400; i++)
		add(i * 10000, 0, 0, 64, 0);
	ready();
	run(SIM_HELPER_PREDICT, 0);
	ck_assert_uint_eq(result.first, 1);
	ck_assert_uint_eq(result.late, 0);
	/* the context is the same from the seventh use on */
	ck_assert_uint_eq(result.predicted, 392);
	ck_assert_uint_eq(result.within_05, 392);
	ck_assert_uint_gt(result.registrations, 390);
	ck_assert_double_lt(result.mean_bytes, 64 * PAGE * .25);
	ck_assert_double_gt(result.mean_bytes, 64 * PAGE * .05);
	/* 2.5 ms after a use */
	ck_assert_uint_eq(result.bytes[150], 0);
}

/* Each thread has its own context, each process its own addresses. */
TEST(test_predict_apart)
{
	unsigned i;

	for (i = 0; i < 400; i++) {
		ck_assert_int_eq(sim_trace_append(&trace,
						  &(struct sim_req){
							  .time = 10000 * i,
							  .len = PAGE,
							  .site = 1,
							  .thread = 1,
							  .access = SIM_RW }),
				 0);
		/* another thread, at random: no part of the context */
		ck_assert_int_eq(sim_trace_append(&trace,
						  &(struct sim_req){
							  .time = 10000 * i + 1,
							  .len = PAGE,
							  .site = 2 + i,
							  .addr = (i + 1) *
								  PAGE,
							  .thread = 2,
							  .access = SIM_RW }),
				 0);
	}
	ready();
	run(SIM_HELPER_PREDICT, 0);
	ck_assert_uint_eq(result.predicted, 392);
	ck_assert_uint_eq(result.within_05, 392);
	ck_assert_uint_eq(result.late, 0);
}

/* The timeout found makes few enough requests late, a shorter one too many. */
TEST(test_equal)
{
	struct sim_helper_run helper = { .timeline = &timeline, .cost = &cost };
	uint64_t idle, late;

	make("nas", 3, 4000);
	ready();
	for (late = 0; late < 400; late += 37) {
		ck_assert_int_eq(sim_helper_equal(&helper, late, &idle), 0);
		ck_assert_uint_le(run(SIM_HELPER_TIMEOUT, idle)->late, late);
		ck_assert(!idle ||
			  run(SIM_HELPER_TIMEOUT, idle - 1)->late > late);
	}
}

/* Properties of any trace. */
LOOP_TEST(test_bounds, 0, 4)
{
	static const char *const names[] = { "nas", "kv", "cello", "httpd" };
	struct sim_helper_result leave;
	uint64_t footprint;
	int kind;

	make(names[_i], 7, 3000);
	ready();
	leave = *run(SIM_HELPER_LEAVE, 0);
	ck_assert_int_eq(sim_trace_footprint(&trace, PAGE, &footprint), 0);
	ck_assert_uint_eq(leave.peak_bytes, footprint);
	ck_assert_uint_eq(leave.late, 0);
	for (kind = SIM_HELPER_TIMEOUT; kind <= SIM_HELPER_OFFLINE; kind++) {
		run(kind, 1000);
		ck_assert_double_le(result.mean_bytes,
				    leave.mean_bytes * 1.001);
		ck_assert_uint_le(result.peak_bytes, leave.peak_bytes);
		ck_assert_uint_ge(result.registrations, leave.registrations);
		ck_assert_uint_eq(result.first, leave.first);
	}
}

TEST(test_parse)
{
	static const char *const bad[] = {
		"",
		"Leave",
		"leave ",
		"timeout:",
		"timeout:us=",
		"timeout:us=0",
		"timeout:us=x",
		"timeout:us=1125899906842625",
		"timeout:ms=1",
		"predict:us=1",
	};
	enum sim_helper_kind kind;
	uint64_t idle;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(sim_helper_parse(bad[i], &kind, &idle),
				 -EINVAL);
	ck_assert_int_eq(sim_helper_parse("offline", &kind, &idle), 0);
	ck_assert_int_eq(kind, SIM_HELPER_OFFLINE);
	ck_assert_int_eq(sim_helper_parse("timeout", &kind, &idle), 0);
	ck_assert_int_eq(kind, SIM_HELPER_TIMEOUT);
	ck_assert_uint_eq(idle, 0);
	ck_assert_int_eq(sim_helper_parse("timeout:us=7", &kind, &idle), 0);
	ck_assert_uint_eq(idle, 7);
}
