/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/helper/predict: against a model that keeps every gap, and a case for
 * each step of the fallback.
 */
#include "config.h"
#include "test/case.h"

#include "core/helper/predict.h"
#include "test/fakes/fault.h"
#include "test/seed.h"

#define SIGNATURES 1000u
#define SITE	   0x401000u
#define ADDR	   0x7f0000000000u
#define LEN	   65536u
#define MS	   1000000u

static struct mrrc_predict predict;
static struct mrrc_predict_context thread;

static void setup(void)
{
	memset(&thread, 0, sizeof(thread));
	ck_assert_int_eq(mrrc_predict_init(&predict, SIGNATURES), 0);
}

static void teardown(void)
{
	mrrc_predict_fini(&predict);
}

static struct mrrc_signature use_len(uint64_t site, uint64_t addr, size_t len)
{
	struct mrrc_signature signature;

	mrrc_predict_sign(&thread, site, addr, len, &signature);
	mrrc_predict_use(&predict, &signature);
	return signature;
}

static struct mrrc_signature use(uint64_t site, uint64_t addr)
{
	return use_len(site, addr, LEN);
}

static void gaps(const struct mrrc_signature *signature, uint64_t gap,
		 unsigned count)
{
	while (count--)
		mrrc_predict_gap(&predict, signature, gap);
}

static struct mrrc_prediction next(const struct mrrc_signature *signature)
{
	struct mrrc_prediction prediction;

	memset(&prediction, 0xff, sizeof(prediction));
	mrrc_predict_next(&predict, signature, &prediction);
	return prediction;
}

static void is(struct mrrc_prediction prediction, uint64_t period,
	       uint64_t from, uint64_t to)
{
	ck_assert_uint_eq(prediction.period, period);
	ck_assert_uint_eq(prediction.from, from);
	ck_assert_uint_eq(prediction.to, to);
}

TEST_CASE(predict, setup, teardown);

TEST(test_nothing_known)
{
	const struct mrrc_signature signature = use(SITE, ADDR);

	is(next(&signature), 0, 0, MRRC_PREDICT_NEVER);
	/* One gap gives a prediction, which is not acted upon yet. */
	gaps(&signature, MS, 1);
	is(next(&signature), MS, 0, MRRC_PREDICT_NEVER);
}

/*
 * The guard is a 32nd of the shortest gap before a use, and half of the longest
 * gap after the use; the guard is larger while gaps are few.
 */
TEST(test_guard)
{
	const struct mrrc_signature signature = use(SITE, ADDR);

	gaps(&signature, MS, 2);
	is(next(&signature), MS, MS - MS / 32 - MS / 4, 2 * MS + MS / 2);
	gaps(&signature, MS, 2);
	is(next(&signature), MS, MS - MS / 32 - MS / 8, 2 * MS);
	gaps(&signature, MS, 36);
	is(next(&signature), MS, MS - MS / 32 - MS / 80, MS + MS / 2 + MS / 20);
	gaps(&signature, MS, 4000 - 40);
	is(next(&signature), MS, MS - MS / 32 - MS / 8000,
	   MS + MS / 2 + MS / 2000);
}

/* The shortest and the longest gap count, whatever the order of the gaps. */
LOOP_TEST(test_shortest_and_longest, 0, 4)
{
	static const uint64_t order[][3] = {
		{ MS, 2 * MS, 4 * MS },
		{ 4 * MS, 2 * MS, MS },
		{ 2 * MS, MS, 4 * MS },
		{ 2 * MS, 4 * MS, MS },
	};
	const struct mrrc_signature signature = use(SITE, ADDR);
	int i;

	for (i = 0; i < 3; i++)
		gaps(&signature, order[_i][i], i == 2 ? 198 : 1);
	is(next(&signature), MS, MS - MS / 32 - MS / 400,
	   4 * MS + 2 * MS + 2 * (4 * MS / 200));
}

/*
 * The same use after other points has another signature, if the difference is
 * within the window; point @_i before the use differs.
 */
LOOP_TEST(test_window, 0, MRRC_PREDICT_WINDOW + 2)
{
	const bool within = _i < MRRC_PREDICT_WINDOW;
	struct mrrc_signature after[2];
	int i, k;

	for (i = 0; i < 2; i++) {
		/* This point differs for each of the two uses. */
		use(SITE, ADDR + i);
		for (k = 0; k < _i; k++)
			use(SITE + 8, ADDR + 9 + k);
		after[i] = use(SITE, ADDR);
	}
	ck_assert_int_eq(after[0].context != after[1].context, within);
	ck_assert_uint_eq(after[0].buffer, after[1].buffer);
	ck_assert_uint_eq(after[0].site, after[1].site);
	gaps(&after[0], MS, 4);
	gaps(&after[1], 10 * MS, 4);
	ck_assert_uint_eq(next(&after[0]).period, MS);
	ck_assert_uint_eq(next(&after[1]).period, within ? 10 * MS : MS);
}

/*
 * Lengths between the same powers of two have one signature, other lengths have
 * another signature.
 */
TEST(test_length)
{
	static const size_t len[] = { 0, 1, LEN, 2 * LEN - 1, 2 * LEN };
	struct mrrc_signature is[5], after;
	int i;

	for (i = 0; i < 5; i++) {
		thread = (struct mrrc_predict_context){ 0 };
		is[i] = use_len(SITE, ADDR, len[i]);
		after = use(SITE + 8, ADDR);
		if (!i)
			continue;
		ck_assert_int_eq(is[i].context == is[i - 1].context, i == 3);
		ck_assert_int_eq(is[i].buffer == is[i - 1].buffer, i == 3);
		ck_assert_int_eq(is[i].site == is[i - 1].site, i == 3);
		/* The length is also part of the next use's context. */
		thread = (struct mrrc_predict_context){ 0 };
		use_len(SITE, ADDR, len[i - 1]);
		ck_assert_int_eq(use(SITE + 8, ADDR).context == after.context,
				 i == 3);
	}
}

/* Buffers of a call site are used once each: from the fourth, none is kept. */
TEST(test_once)
{
	struct mrrc_signature signature, again;
	int i;

	for (i = 0; i < 4; i++) {
		signature = use(SITE, ADDR + 4096 * i);
		ck_assert_uint_eq(next(&signature).to,
				  i < 3 ? MRRC_PREDICT_NEVER : 0);
	}
	ck_assert_uint_eq(next(&signature).from, 0);
	/* One buffer is used again: one in 32 is too many, one in 33 is not. */
	again = signature;
	gaps(&again, MS, 1);
	for (; i < 33; i++) {
		ck_assert_uint_eq(next(&signature).to, MRRC_PREDICT_NEVER);
		signature = use(SITE, ADDR + 4096 * i);
	}
	ck_assert_uint_eq(next(&signature).to, 0);
	/* The buffer itself is known to be used again. */
	ck_assert_uint_eq(next(&again).to, MRRC_PREDICT_NEVER);
	signature = use(SITE + 8, ADDR);
	ck_assert_uint_eq(next(&signature).to, MRRC_PREDICT_NEVER);
}

/* An unknown buffer is kept as long as the longest gap of any buffer. */
TEST(test_longest_of_all)
{
	struct mrrc_signature other = use(SITE, ADDR), signature;

	gaps(&other, MS, 6);
	gaps(&other, 8 * MS, 1);
	signature = use(SITE + 8, ADDR);
	ck_assert_uint_eq(next(&signature).to, MRRC_PREDICT_NEVER);
	gaps(&other, MS, 1);
	is(next(&signature), 0, 0, 8 * MS + 4 * MS + 2 * MS);
}

/*
 * With more gaps, one long gap no longer counts: an unknown buffer is kept for
 * a time that nearly all gaps stay below.
 */
TEST(test_idle)
{
	struct mrrc_signature other = use(SITE, ADDR), signature;
	uint64_t most;

	gaps(&other, 1000 * MS, 1);
	gaps(&other, MS, MRRC_GAPS_PART - 2);
	signature = use(SITE + 8, ADDR);
	ck_assert_uint_gt(next(&signature).to, 1000 * MS);
	gaps(&other, MS, 1);
	most = mrrc_gaps_most(&predict.lengths);
	ck_assert_uint_le(most, MS + MS / 4);
	ck_assert_uint_eq(next(&signature).to, most + most / 128 * 128);
	gaps(&other, MS, 9 * MRRC_GAPS_PART);
	ck_assert_uint_eq(next(&signature).to, most + most / 1280 * 128);
}

/*
 * A buffer with two short gaps is kept as long as an unknown buffer, until the
 * buffer has had many gaps.
 */
TEST(test_few_gaps_wait)
{
	struct mrrc_signature other = use(SITE, ADDR), signature;
	const uint64_t idle = 100 * MS + 50 * MS + 2 * (100 * MS / 8);

	gaps(&other, 100 * MS, 6);
	signature = use(SITE + 8, ADDR);
	gaps(&signature, MS, 2);
	is(next(&signature), MS, 0, idle);
	gaps(&signature, MS, MRRC_GAPS_PART - 3);
	ck_assert_uint_ge(next(&signature).to, 100 * MS);
	gaps(&signature, MS, 1);
	ck_assert_uint_eq(next(&signature).to, MS + MS / 2 + 2 * (MS / 128));
}

/*
 * With _i set, half of the third gaps are shorter than the first two, so no
 * prediction is acted upon. If gaps do not vary, predictions are acted upon.
 */
LOOP_TEST(test_unsure, 0, 2)
{
	struct mrrc_signature signature = use(SITE + 8, ADDR);
	int i;

	gaps(&signature, 100 * MS, 20);
	for (i = 0; i < 100; i++) {
		signature = use(SITE, ADDR + 4096 * i);
		gaps(&signature, 10 * MS, 2);
		gaps(&signature, i % 2 && _i ? MS : 10 * MS, 1);
	}
	signature = use(SITE, ADDR + 4096 * i);
	gaps(&signature, 10 * MS, 2);
	ck_assert_uint_eq(next(&signature).period, 10 * MS);
	ck_assert_int_eq(next(&signature).from != 0, !_i);
	/* A signature with many equal gaps belongs to another class. */
	gaps(&signature, 10 * MS, 30);
	ck_assert_uint_ne(next(&signature).from, 0);
}

/* Counts of shorter gaps are halved at a maximum, so new gaps count more. */
TEST(test_sure_again)
{
	const struct mrrc_signature signature = use(SITE, ADDR);
	struct mrrc_predict_rate *rate = &predict.rate[1];
	struct mrrc_signature other;

	gaps(&signature, 10 * MS, 20);
	*rate = (struct mrrc_predict_rate){ 65536, 65536 };
	other = use(SITE, ADDR + 4096);
	gaps(&other, 10 * MS, 2);
	ck_assert_uint_eq(next(&other).from, 0);
	gaps(&other, 10 * MS, 1);
	ck_assert_uint_eq(rate->seen, 32769);
	ck_assert_uint_eq(rate->sooner, 32768);
}

TEST(test_extremes)
{
	const struct mrrc_signature signature = use(UINT64_MAX, 0);
	const uint64_t longest = UINT64_C(1) << 60;
	struct mrrc_prediction prediction;

	gaps(&signature, 0, 2);
	is(next(&signature), 0, 0, 0);
	gaps(&signature, UINT64_MAX, 1);
	prediction = next(&signature);
	ck_assert_uint_eq(prediction.from, 0);
	/* The gap counts as 2^60; a larger value would overflow the sum. */
	ck_assert_uint_eq(prediction.to,
			  longest + longest / 2 + 2 * (longest / 3));
}

/* Recently used signatures stay while new ones come; memory does not grow. */
TEST(test_room)
{
	const struct mrrc_signature kept = use(SITE, ADDR);
	const size_t sets = predict.sets;
	struct mrrc_signature signature;
	unsigned i;

	gaps(&kept, MS, 2);
	for (i = 1; i <= 100 * SIGNATURES; i++) {
		signature = use(SITE + 16 * i, ADDR + 4096 * i);
		gaps(&signature, MS, 1);
		if (i % 64 == 0)
			gaps(&kept, MS, 1);
	}
	ck_assert_uint_eq(predict.sets, sets);
	i = 2 + i / 64;
	is(next(&kept), MS, MS - MS / 32 - MS / (2 * i),
	   MS + MS / 2 + 2 * (MS / i));
	/* Signatures that were not used again are replaced. */
	thread = (struct mrrc_predict_context){ 0 };
	signature = use(SITE + 16, ADDR + 4096);
	ck_assert_uint_eq(next(&signature).period, 0);
}

/* ---- a model that keeps all ---------------------------------------------- */

#define SITES	2
#define BUFFERS 2
#define STEPS	3000

static struct step {
	unsigned site, buffer, before[MRRC_PREDICT_WINDOW];
	uint64_t gap;
	bool again;
} step[STEPS];

static struct {
	uint64_t sorted[STEPS]; /* sorted gaps, the longest first */
	unsigned count;
	unsigned seen[32], sooner[32];
} model;

/*
 * Returns the shortest gap, the longest gap and the number of gaps of steps
 * like step @i. @level 0: steps after the same points; 1: steps with the same
 * buffer and site; 2: steps with the same site.
 */
static unsigned model_gaps(unsigned n, unsigned i, int level, uint64_t *min,
			   uint64_t *max)
{
	unsigned count = 0, k;

	*min = UINT64_MAX;
	*max = 0;
	for (k = 0; k < n; k++) {
		if (!step[k].again || step[k].site != step[i].site ||
		    (level < 2 && step[k].buffer != step[i].buffer) ||
		    (level < 1 && memcmp(step[k].before, step[i].before,
					 sizeof(step[k].before))))
			continue;
		*min = step[k].gap < *min ? step[k].gap : *min;
		*max = step[k].gap > *max ? step[k].gap : *max;
		count++;
	}
	return count;
}

static uint64_t model_from(uint64_t min, unsigned count)
{
	return min - min / 32 - min / (2 * count);
}

static unsigned model_class(unsigned count)
{
	unsigned bin = 0;

	while (count >>= 1)
		bin++;
	return bin;
}

/* Returns the class's end of the first gap that is not among the longest. */
static uint64_t model_most(void)
{
	const uint64_t gap = model.sorted[model.count / 128];
	uint64_t width = 1;

	while (width * 8 <= gap)
		width *= 2;
	return (gap / width + 1) * width;
}

static uint64_t model_idle(void)
{
	const uint64_t longest = model.sorted[0];

	if (model.count < 128)
		return longest + longest / 2 + 2 * (longest / model.count);
	return model_most() + 128 * (model_most() / model.count);
}

/* Adds the gap after step @i, of @n steps so far. */
static void model_add(unsigned n, unsigned i, uint64_t gap)
{
	uint64_t min, max, from;
	unsigned count, k;

	count = model_gaps(n, i, 0, &min, &max);
	if (count < 2)
		count = model_gaps(n, i, 1, &min, &max);
	from = count >= 2 ? model_from(min, count) : 0;
	if (from) {
		model.seen[model_class(count)]++;
		model.sooner[model_class(count)] += gap < from;
	}
	for (k = model.count++; k && model.sorted[k - 1] < gap; k--)
		model.sorted[k] = model.sorted[k - 1];
	model.sorted[k] = gap;
	step[i].again = true;
	step[i].gap = gap;
}

static struct mrrc_prediction model_known(unsigned count, uint64_t min,
					  uint64_t max)
{
	struct mrrc_prediction p = { .from = model_from(min, count) };
	const unsigned bin = model_class(count);

	p.to = max + max / 2 + 2 * (max / count);
	if (model.count < 8)
		return p;
	if ((model.sooner[bin] + .5) * model_most() >
	    p.from * (model.seen[bin] + 2. * count))
		p.from = 0;
	if (count < 128 && p.to < model_idle())
		p.to = model_idle();
	return p;
}

static struct mrrc_prediction model_next(unsigned n, unsigned i)
{
	struct mrrc_prediction p = { .to = MRRC_PREDICT_NEVER };
	unsigned count, uses = 0, k;
	uint64_t min, max, period;
	bool once;

	count = model_gaps(n, i, 0, &min, &max);
	p.period = period = count ? min : 0;
	if (count < 2)
		count = model_gaps(n, i, 1, &min, &max);
	if (count >= 2) {
		p = model_known(count, min, max);
		p.period = period;
		return p;
	}
	for (k = 0; k < n; k++)
		uses += step[k].site == step[i].site;
	once = !model_gaps(n, i, 1, &min, &max) && uses >= 4;
	if (once && model_gaps(n, i, 2, &min, &max) * 32 < uses)
		p.to = 0;
	else if (model.count >= 8)
		p.to = model_idle();
	return p;
}

/* There are fewer signatures than places, so no signature may be forgotten. */
LOOP_TEST(test_model, 0, 4)
{
	static struct mrrc_signature signature[STEPS];
	unsigned last[BUFFERS], before[MRRC_PREDICT_WINDOW] = { 0 };
	struct mrrc_prediction want;
	struct seed seed = seed_init("predict", _i);
	unsigned i, k;
	uint64_t gap;

	mrrc_predict_fini(&predict);
	ck_assert_int_eq(mrrc_predict_init(&predict, SIZE_MAX), 0);
	memset(last, 0xff, sizeof(last));
	memset(step, 0, sizeof(step));
	memset(&model, 0, sizeof(model));
	for (i = 0; i < STEPS; i++) {
		step[i].site = seed_below(&seed, SITES);
		step[i].buffer = seed_below(&seed, BUFFERS);
		memcpy(step[i].before, before, sizeof(before));
		memmove(before + 1, before, sizeof(before) - sizeof(*before));
		before[0] = 1 + step[i].site * BUFFERS + step[i].buffer;
		signature[i] = use(SITE + step[i].site, ADDR + step[i].buffer);
		k = last[step[i].buffer];
		last[step[i].buffer] = i;
		gap = seed_below(&seed, MS) << (i % 3 * 4);
		if (k != UINT32_MAX && seed_below(&seed, 4)) {
			model_add(i + 1, k, gap);
			gaps(&signature[k], gap, 1);
		}
		k = seed_below(&seed, i + 1);
		want = model_next(i + 1, k);
		is(next(&signature[k]), want.period, want.from, want.to);
	}
}
