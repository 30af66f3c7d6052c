/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core/helper/schedule: the conditions of steps, exactly at the boundaries. */
#include "config.h"
#include "test/case.h"

#include "core/helper/schedule.h"

#define SITE  0x401000u
#define MS    1000000u
#define LEN   8192u  /* length of two pages */
#define REG   26000u /* registration: 2 * 10000 + 6000 ns */
#define DEREG 7000u  /* deregistration: 2 * 3000 + 1000 ns */
#define QUEUE 100u
#define COST  (REG + DEREG + 2 * QUEUE)
#define MANY  40u

static const struct mrrc_cost model_cost = {
	.reg_page = 10000,
	.reg = 6000,
	.dereg_page = 3000,
	.dereg = 1000,
	.page = 4096,
};

static struct mrrc_predict predict;
static struct mrrc_predict_context thread;
static struct mrrc_schedule schedule;
static struct mrrc_scheduled item[MANY];

static void setup(void)
{
	unsigned i;

	memset(&thread, 0, sizeof(thread));
	ck_assert_int_eq(mrrc_predict_init(&predict, 10000), 0);
	mrrc_schedule_init(&schedule, &predict, &model_cost, QUEUE);
	for (i = 0; i < MANY; i++)
		mrrc_scheduled_init(&item[i], LEN);
}

static void teardown(void)
{
	ck_assert(mrrc_schedule_valid(&schedule));
	mrrc_predict_fini(&predict);
}

static struct mrrc_signature sign(unsigned i)
{
	struct mrrc_signature signature;

	mrrc_predict_sign(&thread, SITE, 4096 * i, LEN, &signature);
	return signature;
}

/* Makes an operation that ends at once. */
static bool use(unsigned i, uint64_t now)
{
	const struct mrrc_signature signature = sign(i);
	const bool registered =
		mrrc_schedule_use(&schedule, &item[i], &signature, now);

	mrrc_schedule_done(&schedule, &item[i]);
	return registered;
}

static enum mrrc_step next(uint64_t now, unsigned *i, uint64_t *wake)
{
	struct mrrc_scheduled *done = NULL;
	enum mrrc_step step;

	*wake = 0;
	step = mrrc_schedule_next(&schedule, now, &done, wake);
	*i = done ? done - item : MANY;
	ck_assert(mrrc_schedule_valid(&schedule));
	return step;
}

/* The schedule says @step for @i, or that nothing is due before @wake. */
static void says(uint64_t now, enum mrrc_step step, unsigned i, uint64_t wake)
{
	unsigned got;
	uint64_t at;

	ck_assert_int_eq(next(now, &got, &at), step);
	if (step == MRRC_STEP_NONE)
		ck_assert_uint_eq(at, wake);
	else
		ck_assert_uint_eq(got, i);
}

/*
 * Makes a use after 4000 gaps of @period, so many that the guard is small. Does
 * not ask the schedule for its next step.
 */
static uint64_t learn(unsigned i, uint64_t period, uint64_t now)
{
	struct mrrc_signature signature;
	unsigned k;

	memset(&thread, 0, sizeof(thread));
	signature = sign(i);
	for (k = 0; k < 4000; k++)
		mrrc_predict_gap(&predict, &signature, period);
	mrrc_schedule_use(&schedule, &item[i], &signature, now);
	mrrc_schedule_done(&schedule, &item[i]);
	return now;
}

static uint64_t from(uint64_t period)
{
	return period - period / 32 - period / 8000;
}

static uint64_t until(uint64_t period)
{
	return period + period / 2 + 2 * (period / 4000);
}

TEST_CASE(schedule, setup, teardown);

TEST(test_first_use)
{
	ck_assert(!use(0, MS));
	ck_assert_int_eq(item[0].state, MRRC_SCHEDULED_USED);
	/* Without a prediction the region is kept, and judged again later. */
	says(MS, MRRC_STEP_NONE, 0, MS + 64 * COST + 1);
	ck_assert(mrrc_scheduled_registered(&item[0]));
	says(MS + 64 * COST, MRRC_STEP_NONE, 0, MS + 64 * COST + 1);
	/* The next judgement comes after twice the time. */
	says(2 * MS + 64 * COST, MRRC_STEP_NONE, 0,
	     2 * MS + 64 * COST + MS + 64 * COST + 64 * COST + 1);
	ck_assert(use(0, 3 * MS));
	ck_assert_uint_eq(schedule.stats.uses, 2);
	ck_assert_uint_eq(schedule.stats.again, 1);
	ck_assert_uint_eq(schedule.stats.late, 0);
	ck_assert_uint_eq(schedule.stats.predicted, 0);
}

/* The region is deregistered, and registered a guard before its next use. */
TEST(test_period)
{
	const uint64_t start = learn(0, 10 * MS, MS);
	const uint64_t due = start + from(10 * MS);

	says(start, MRRC_STEP_DEREGISTER, 0, 0);
	ck_assert(!mrrc_scheduled_registered(&item[0]));
	ck_assert_int_eq(item[0].state, MRRC_SCHEDULED_PLANNED);
	says(start, MRRC_STEP_NONE, 0, due - COST);
	says(due - COST - 1, MRRC_STEP_NONE, 0, due - COST);
	says(due - COST, MRRC_STEP_REGISTER, 0, 0);
	ck_assert(!mrrc_scheduled_registered(&item[0]));
	mrrc_schedule_registered(&schedule, &item[0]);
	ck_assert(mrrc_scheduled_registered(&item[0]));
	says(due, MRRC_STEP_NONE, 0, start + until(10 * MS));
	memset(&thread, 0, sizeof(thread));
	ck_assert(use(0, start + 10 * MS));
	ck_assert_uint_eq(schedule.stats.planned, 1);
	ck_assert_uint_eq(schedule.stats.late, 0);
	ck_assert_uint_eq(schedule.stats.within_05, 1);
}

/* The condition t_c + t_p <= t_d holds to the nanosecond. */
LOOP_TEST(test_deregistration_condition, 0, 2)
{
	const uint64_t start = learn(0, MS, MS);
	const uint64_t last = start + from(MS) - COST;

	if (_i)
		says(last, MRRC_STEP_DEREGISTER, 0, 0);
	else
		says(last + 1, MRRC_STEP_NONE, 0, start + until(MS));
}

/* While an operation uses the region, there is no step for it. */
TEST(test_in_use)
{
	struct mrrc_signature signature;
	uint64_t now = learn(0, 10 * MS, MS);

	signature = item[0].signature;
	ck_assert(mrrc_schedule_use(&schedule, &item[0], &signature, now));
	ck_assert(mrrc_schedule_use(&schedule, &item[0], &signature, now));
	says(now, MRRC_STEP_NONE, 0, UINT64_MAX);
	mrrc_schedule_done(&schedule, &item[0]);
	says(now, MRRC_STEP_NONE, 0, UINT64_MAX);
	mrrc_schedule_done(&schedule, &item[0]);
	ck_assert_int_eq(item[0].state, MRRC_SCHEDULED_USED);
}

/*
 * A use during the region's registration is late, and the registration serves
 * the use.
 */
TEST(test_used_while_coming)
{
	const uint64_t start = learn(0, 10 * MS, MS);
	const uint64_t due = start + from(10 * MS);

	says(start, MRRC_STEP_DEREGISTER, 0, 0);
	says(due - COST, MRRC_STEP_REGISTER, 0, 0);
	ck_assert(!mrrc_schedule_use(&schedule, &item[0], &item[0].signature,
				     due - COST + 1));
	ck_assert_uint_eq(schedule.stats.late, 1);
	mrrc_schedule_registered(&schedule, &item[0]);
	ck_assert_int_eq(item[0].state, MRRC_SCHEDULED_IN_USE);
	mrrc_schedule_done(&schedule, &item[0]);
}

/* A use earlier than any before is late, and ends the plan. */
TEST(test_used_while_planned)
{
	const uint64_t start = learn(0, 10 * MS, MS);

	says(start, MRRC_STEP_DEREGISTER, 0, 0);
	ck_assert(!mrrc_schedule_use(&schedule, &item[0], &item[0].signature,
				     start + 5 * MS));
	says(start + 20 * MS, MRRC_STEP_NONE, 0, UINT64_MAX);
	ck_assert_uint_eq(schedule.stats.late, 1);
	ck_assert_uint_eq(schedule.stats.predicted, 1);
	ck_assert_uint_eq(schedule.stats.within_5, 0);
	mrrc_schedule_done(&schedule, &item[0]);
	/* The shortest gap is 5 ms now. */
	says(start + 5 * MS + MS / 2, MRRC_STEP_DEREGISTER, 0, 0);
	says(start + 5 * MS + MS / 2, MRRC_STEP_NONE, 0,
	     start + 5 * MS + 5 * MS - 5 * MS / 32 - 5 * MS / 8002 - COST);
}

/* Registrations for many uses at once begin early enough: no use is late. */
TEST(test_spaced)
{
	uint64_t now, start = 0, wake;
	enum mrrc_step step;
	unsigned i, k = 0;

	for (i = 0; i < MANY; i++)
		start = learn(i, 10 * MS, MS);
	now = start;
	do {
		step = next(now, &i, &wake);
		if (step == MRRC_STEP_DEREGISTER) {
			now += DEREG;
		} else if (step == MRRC_STEP_REGISTER) {
			now += REG;
			mrrc_schedule_registered(&schedule, &item[i]);
			k++;
		} else {
			ck_assert_uint_gt(wake, now);
			now = wake;
		}
		ck_assert_uint_le(now, start + until(10 * MS));
	} while (k < schedule.stats.planned || now < start + from(10 * MS));
	ck_assert_uint_eq(schedule.stats.planned, MANY);
	for (i = 0; i < MANY; i++)
		ck_assert(use(i, start + from(10 * MS)));
}

/* With a cost model of zeroes the schedule ends, too. */
TEST(test_no_cost)
{
	static const struct mrrc_cost none = { .page = 4096 };

	mrrc_schedule_init(&schedule, &predict, &none, 0);
	use(0, 0);
	says(0, MRRC_STEP_NONE, 0, 1);
	says(1, MRRC_STEP_NONE, 0, 3);
}

/* A region with endless cost is never planned, and is kept for long. */
TEST(test_vast_cost)
{
	static const struct mrrc_cost vast = {
		.reg_page = 9e14,
		.reg = 9e14,
		.page = 4096,
	};
	const uint64_t period = 1000000ull * MS;

	mrrc_schedule_init(&schedule, &predict, &vast, QUEUE);
	mrrc_scheduled_init(&item[0], SIZE_MAX / 2);
	mrrc_scheduled_init(&item[1], SIZE_MAX / 2);
	use(1, MS);
	says(MS, MRRC_STEP_NONE, 0,
	     MS + 64 * (UINT64_C(10000000000000000) + 2 * QUEUE) + 1);
	learn(0, period, MS);
	says(MS, MRRC_STEP_NONE, 0, MS + until(period));
}
