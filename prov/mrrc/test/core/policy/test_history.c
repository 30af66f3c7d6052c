/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/policy/history: counts are never too low, seldom too high, and halved
 * from time to time.
 */
#include "config.h"
#include "test/case.h"

#include <malloc.h>

#include "core/policy/history.h"
#include "test/fakes/fault.h"

#define RANGES 500u
#define ADDS   10000u /* additions to the smallest sketch before it halves */
#define PERIOD 10240u

static struct mrrc_history history;

/* The sketch is in memory that malloc gave out before, with other content. */
static void setup(void)
{
	memset(&history, 0xff, sizeof(history));
	mallopt(M_PERTURB, 0x5a);
	ck_assert_int_eq(mrrc_history_init(&history, RANGES), 0);
	mallopt(M_PERTURB, 0);
}

static void teardown(void)
{
	mrrc_history_fini(&history);
}

static unsigned pick(unsigned n)
{
	static uint64_t state = 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

TEST_CASE(history, setup, teardown);

TEST(test_counts)
{
	unsigned i;

	ck_assert_uint_eq(mrrc_history_get(&history, 7), 0);
	for (i = 1; i <= 20; i++) {
		ck_assert_uint_eq(mrrc_history_add(&history, 7), i);
		ck_assert_uint_eq(mrrc_history_get(&history, 7), i);
	}
	ck_assert_uint_eq(mrrc_history_add(&history, 0), 1);
	ck_assert_uint_eq(mrrc_history_add(&history, UINT64_MAX), 1);
	ck_assert_uint_eq(mrrc_history_get(&history, 8), 0);
}

/* _i: adjacent pages, pages 2 MiB apart, and too many pages for the sketch. */
LOOP_TEST(test_never_less, 0, 3)
{
	static const struct {
		unsigned keys;
		unsigned step;
		unsigned wrong; /* percent of counts that may be too high */
	} kind[] = {
		{ RANGES, 1, 5 },
		{ RANGES, 512, 5 },
		{ 4 * RANGES, 1, 29 },
	};
	static unsigned truth[4 * RANGES];
	const uint64_t base = 0x7f1234567;
	unsigned key, i, said;
	unsigned wrong = 0;

	memset(truth, 0, sizeof(truth));
	for (i = 0; i < ADDS; i++) {
		/* Few keys are used often. */
		key = pick(1 + pick(kind[_i].keys));
		said = mrrc_history_add(&history, base + key * kind[_i].step);
		truth[key] += truth[key] < MRRC_HISTORY_MAX;
		ck_assert_uint_ge(said, truth[key]);
	}
	for (key = 0; key < kind[_i].keys; key++) {
		said = mrrc_history_get(&history, base + key * kind[_i].step);
		ck_assert_uint_ge(said, truth[key]);
		wrong += said > truth[key];
	}
	ck_assert_uint_le(wrong, kind[_i].keys * kind[_i].wrong / 100);
}

/* Clearing a key that was never used changes nothing. */
TEST(test_clear_new)
{
	mrrc_history_clear(&history, 7);
	ck_assert_uint_eq(mrrc_history_get(&history, 7), 0);
	ck_assert_uint_eq(mrrc_history_add(&history, 7), 1);
}

TEST(test_decays)
{
	unsigned i;

	for (i = 0; i < 101; i++)
		mrrc_history_add(&history, 7);
	for (; i < PERIOD - 1; i++)
		mrrc_history_add(&history, 1000 + i % 1000);
	ck_assert_uint_eq(mrrc_history_get(&history, 7), 101);
	/* The addition that ends a period counts in the next period. */
	ck_assert_uint_eq(mrrc_history_add(&history, 7), 51);
	ck_assert_uint_eq(mrrc_history_get(&history, 7), 51);
	for (i = 0; i < 10 * PERIOD; i++)
		mrrc_history_add(&history, 1000 + i % 1000);
	/* The other keys are too few to hide key 7. */
	ck_assert_uint_le(mrrc_history_get(&history, 7), 25);
}

TEST(test_saturates)
{
	unsigned i;

	for (i = 1; i <= 3 * MRRC_HISTORY_MAX; i++)
		ck_assert_uint_eq(mrrc_history_add(&history, 7),
				  i < MRRC_HISTORY_MAX ? i : MRRC_HISTORY_MAX);
	ck_assert_uint_eq(mrrc_history_get(&history, 7), MRRC_HISTORY_MAX);
	/* A counter at its maximum is halved, too. */
	for (; i < PERIOD; i++)
		mrrc_history_add(&history, 7);
	ck_assert_uint_eq(mrrc_history_add(&history, 7),
			  MRRC_HISTORY_MAX / 2 + 1);
}
