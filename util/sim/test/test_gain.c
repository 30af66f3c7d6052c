/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a program would gain: the advice.
 */
#include "config.h"
#include "test/case.h"

#include <string.h>

#include "sim/gain.h"

#define PAGE 4096u

static struct sim_trace trace;
static struct sim_row row[SIM_GAIN_CNT];
static struct sim_gain gain;

static void setup(void)
{
	memset(row, 0, sizeof(row));
	ck_assert_int_eq(sim_trace_init(&trace, "hand"), 0);
}

static void teardown(void)
{
	sim_trace_fini(&trace);
}

TEST_CASE(gain, setup, teardown);

static void add(uint64_t time, uint32_t proc)
{
	const struct sim_req req = {
		.time = time,
		.len = PAGE,
		.proc = proc,
		.access = SIM_RW,
	};

	ck_assert_int_eq(sim_trace_append(&trace, &req), 0);
}

/* Percent of a run of one second, by each way; 0 seconds: requests at once. */
static void advised(unsigned seconds, const double percent[SIM_GAIN_CNT])
{
	int i;

	add(5, 0);
	add(5 + seconds * UINT64_C(1000000), 0);
	for (i = 0; i < SIM_GAIN_CNT; i++) {
		row[i].trace = &trace;
		row[i].count = 1024;
		row[i].result.reg_ns = percent[i] * 1e7;
	}
	sim_gain(row, &gain);
	ck_assert_uint_ge(gain.advices, 1);
	ck_assert_uint_le(gain.advices, SIM_GAIN_ADVICE);
	for (i = 0; i < (int) gain.advices; i++)
		ck_assert_uint_lt(strlen(gain.advice[i]), SIM_GAIN_LINE - 1);
}

static void says(unsigned i, const char *text)
{
	ck_assert_uint_lt(i, gain.advices);
	if (!strstr(gain.advice[i], text))
		ck_abort_msg("'%s' has no '%s'", gain.advice[i], text);
}

TEST(test_nothing)
{
	advised(1, (double[]){ .9, .1, .1, .1, .1, .1 });
	says(0, "Nothing to gain");
	ck_assert_uint_eq(gain.advices, 1);
	ck_assert_double_eq_tol(gain.share[SIM_GAIN_NONE], .009, 1e-9);
}

TEST(test_no_run)
{
	advised(0, (double[]){ 20, 1, 1, 1, 1, 1 });
	says(0, "no run");
	ck_assert_double_eq(gain.share[SIM_GAIN_NONE], 0);
}

TEST(test_keep)
{
	advised(1, (double[]){ 20, 2, 1.5, 1.5, 1.5, 1.5 });
	says(0, "Keep libfabric's cache: it saves 18.00 % of the run, "
		"ofi_mrrc would save 18.50 %");
	ck_assert_uint_eq(gain.advices, 1);
}

TEST(test_ours)
{
	row[SIM_GAIN_OURS].result.stats.value[MRRC_STAT_EVICTIONS] = 88;
	advised(1, (double[]){ 20, 12, 11, 6, 2, 1 });
	says(0, "Set FI_HOOK=mrrc: it saves 14.00 % of the run, "
		"libfabric's cache 8.00 %");
	says(1, "ofi_mrrc evicted 88 regions");
	says(2, "fi_mr_alloc(3): that saves another 4.00 %");
}

/* A larger limit of libfabric's cache does as much. */
TEST(test_count)
{
	row[SIM_GAIN_LF_ALL].result.regions_peak = 3000;
	advised(1, (double[]){ 20, 12, 6.5, 6, 6, 6 });
	says(0, "Set FI_MR_CACHE_MAX_COUNT=3001: libfabric's cache then saves "
		"13.50 % of the run, not 8.00 %; ofi_mrrc would save 14.00 %");
	ck_assert_uint_eq(gain.advices, 1);
}

/* Two domains of one recorded process are not two processes. */
TEST(test_parallel)
{
	trace.parallel = 1;
	add(0, 1);
	advised(1, (double[]){ 20, 2, 1.5, 1.5, 1.5, 1.5 });
	ck_assert_double_eq_tol(gain.share[SIM_GAIN_NONE], .2, 1e-4);
	trace.parallel = 0;
	sim_gain(row, &gain);
	ck_assert_double_eq_tol(gain.share[SIM_GAIN_NONE], .1, 1e-4);
}

/* The policies are those of the ways. */
TEST(test_names)
{
	ck_assert_str_eq(SIM_GAIN,
			 "none,libfabric,libfabric-all,gdl,alloc,static");
}
