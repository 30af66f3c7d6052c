/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/helper/schedule against a model that examines every region in each step.
 * Schedule and model use the same predictor.
 */
#include "config.h"
#include "test/case.h"

#include "core/helper/schedule.h"
#include "test/seed.h"

#define SITE  0x401000u
#define LEN   65536u
#define US    1000u
#define MS    1000000u
#define QUEUE 100u
#define MANY  40u

static const struct mrrc_cost costs = {
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

static struct {
	enum mrrc_scheduled_state state;
	uint64_t due, last, turn;
	size_t len;
	struct mrrc_signature signature;
} model[MANY];

static uint64_t model_costs(unsigned i)
{
	return 13000 * (model[i].len / 4096) + 7000 + 2 * QUEUE;
}

/*
 * Returns the region in @state with the earliest deadline; of regions with
 * equal deadlines, the first. MANY: no region.
 */
static unsigned model_first(enum mrrc_scheduled_state state)
{
	unsigned best = MANY, i;

	for (i = 0; i < MANY; i++) {
		if (model[i].state == state &&
		    (best == MANY || model[i].due < model[best].due))
			best = i;
	}
	return best;
}

static unsigned model_judged(uint64_t now)
{
	unsigned best = MANY, i;

	for (i = 0; i < MANY; i++) {
		if (model[i].state == MRRC_SCHEDULED_USED &&
		    (best == MANY || model[i].turn < model[best].turn))
			best = i;
	}
	if (best == MANY) {
		best = model_first(MRRC_SCHEDULED_KEPT);
		if (best < MANY && model[best].due > now)
			best = MANY;
	}
	return best;
}

/* Returns the latest time with room: the start of another item, or @due. */
static uint64_t model_fit(uint64_t due, uint64_t cost)
{
	uint64_t best = 0, at;
	unsigned i, k;

	for (i = 0; i <= MANY; i++) {
		if (i < MANY && model[i].state != MRRC_SCHEDULED_PLANNED)
			continue;
		at = i < MANY ? model[i].due - model_costs(i) : due;
		if (at > due || at < cost)
			continue;
		for (k = 0; k < MANY; k++) {
			if (model[k].state == MRRC_SCHEDULED_PLANNED &&
			    (model[k].due > at ?
				     model[k].due - model_costs(k) < at :
				     at - cost < model[k].due))
				break;
		}
		if (k == MANY && at > best)
			best = at;
	}
	return best;
}

static bool model_judge(unsigned i, uint64_t now)
{
	struct mrrc_prediction p;
	uint64_t due;

	mrrc_predict_next(&predict, &model[i].signature, &p);
	model[i].state = MRRC_SCHEDULED_OUT;
	due = model_fit(model[i].last + p.from, model_costs(i));
	if (p.from && due && due - model_costs(i) >= now) {
		model[i].state = MRRC_SCHEDULED_PLANNED;
		model[i].due = due;
		return true;
	}
	model[i].due = p.to == UINT64_MAX ? 2 * now - model[i].last +
						    64 * model_costs(i) + 1 :
					    model[i].last + p.to;
	if (model[i].due > now)
		model[i].state = MRRC_SCHEDULED_KEPT;
	return model[i].due <= now;
}

static enum mrrc_step model_next(uint64_t now, unsigned *i, uint64_t *wake)
{
	const unsigned first = model_first(MRRC_SCHEDULED_PLANNED);
	unsigned keep;

	if (first < MANY && model[first].due <= now + model_costs(first)) {
		*i = first;
		model[first].state = MRRC_SCHEDULED_COMING;
		return MRRC_STEP_REGISTER;
	}
	while ((*i = model_judged(now)) < MANY) {
		if (model_judge(*i, now))
			return MRRC_STEP_DEREGISTER;
	}
	keep = model_first(MRRC_SCHEDULED_KEPT);
	*wake = first < MANY ? model[first].due - model_costs(first) :
			       UINT64_MAX;
	if (keep < MANY && model[keep].due < *wake)
		*wake = model[keep].due;
	return MRRC_STEP_NONE;
}

/* Schedule and model must make the same steps, with the same effects. */
static uint64_t model_steps(uint64_t now)
{
	struct mrrc_scheduled *got;
	struct mrrc_prediction p;
	uint64_t wake = 0, at = 0;
	enum mrrc_step step;
	unsigned want, i;

	do {
		step = model_next(now, &want, &at);
		ck_assert_int_eq(
			mrrc_schedule_next(&schedule, now, &got, &wake), step);
		ck_assert(mrrc_schedule_valid(&schedule));
		if (step != MRRC_STEP_NONE)
			ck_assert_uint_eq(got - item, want);
		if (step == MRRC_STEP_REGISTER) {
			mrrc_schedule_registered(&schedule, got);
			mrrc_predict_next(&predict, &model[want].signature, &p);
			model[want].state = MRRC_SCHEDULED_KEPT;
			model[want].due = model[want].last + p.to;
		}
		for (i = 0; i < MANY; i++)
			ck_assert_int_eq(item[i].state, model[i].state);
		now += step == MRRC_STEP_NONE ? 0 : 1 + want * US;
	} while (step != MRRC_STEP_NONE);
	ck_assert_uint_eq(wake, at);
	return now;
}

static void model_use(unsigned i, uint64_t now, uint64_t turn)
{
	const bool registered = model[i].state == MRRC_SCHEDULED_USED ||
				model[i].state == MRRC_SCHEDULED_KEPT;

	mrrc_predict_sign(&thread, SITE, 4096 * i, LEN, &model[i].signature);
	ck_assert_int_eq(mrrc_schedule_use(&schedule, &item[i],
					   &model[i].signature, now),
			 registered);
	mrrc_schedule_done(&schedule, &item[i]);
	model[i].state = MRRC_SCHEDULED_USED;
	model[i].last = now;
	model[i].turn = turn;
}

TEST_CASE(schedule_model, NULL, NULL);

/*
 * Each round uses nearly all buffers in the same order, at slightly random
 * times; after each round the schedule forgets one buffer.
 */
LOOP_TEST(test_model, 0, 8)
{
	struct seed seed = seed_init("schedule", _i);
	const uint64_t pause = MS << seed_below(&seed, 4);
	uint64_t now = 0, turn = 0;
	unsigned round, i, k;

	memset(&thread, 0, sizeof(thread));
	memset(model, 0, sizeof(model));
	ck_assert_int_eq(mrrc_predict_init(&predict, 10000), 0);
	mrrc_schedule_init(&schedule, &predict, &costs, QUEUE);
	for (i = 0; i < MANY; i++) {
		model[i].len = 4096 * (1 + seed_below(&seed, 8));
		mrrc_scheduled_init(&item[i], model[i].len);
	}
	for (round = 0; round < rounds_of(60); round++) {
		for (i = 0; i < MANY; i++) {
			if (!seed_below(&seed, 30))
				continue;
			model_use(i, now, turn++);
			now = model_steps(now + seed_below(&seed, 40 * US));
		}
		for (k = 0; k < 4; k++)
			now = model_steps(now + pause +
					  seed_below(&seed, pause / 50));
		i = seed_below(&seed, MANY);
		mrrc_schedule_forget(&schedule, &item[i]);
		model[i].state = MRRC_SCHEDULED_OUT;
	}
	ck_assert_uint_gt(schedule.stats.planned, 0);
	ck_assert_uint_gt(schedule.stats.predicted, 0);
	mrrc_predict_fini(&predict);
}
