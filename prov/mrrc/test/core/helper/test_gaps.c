/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/helper/gaps: compared with all gaps in order; outliers, new gaps,
 * extreme values.
 */
#include "config.h"
#include "test/case.h"

#include "core/helper/gaps.h"
#include "test/seed.h"

#define PART MRRC_GAPS_PART
#define MS   1000000u
#define MANY 4000

static struct mrrc_gaps gaps;

static void setup(void)
{
	memset(&gaps, 0, sizeof(gaps));
}

static void add(uint64_t gap, unsigned count)
{
	while (count--) {
		mrrc_gaps_add(&gaps, gap);
		ck_assert(mrrc_gaps_valid(&gaps));
	}
}

/* The estimate is above @gap, by a quarter of @gap at most. */
static void most_is(uint64_t gap)
{
	ck_assert_uint_gt(mrrc_gaps_most(&gaps), gap);
	ck_assert_uint_le(mrrc_gaps_most(&gaps) - gap, gap / 4 + 1);
}

TEST_CASE(gaps, setup, NULL);

/* One gap in PART may be longer than the estimate, and no more. */
TEST(test_outliers)
{
	ck_assert_uint_eq(mrrc_gaps_most(&gaps), 0);
	add(MS, PART - 2);
	most_is(MS);
	add(1000 * MS, 1);
	most_is(1000 * MS);
	add(MS, 1);
	most_is(MS);
	add(1000 * MS, 1);
	most_is(1000 * MS);
	add(MS, PART);
	most_is(MS);
}

/* Old gaps count less and less. */
TEST(test_new_times)
{
	add(1000 * MS, 60000);
	add(MS, 60000);
	most_is(1000 * MS);
	add(MS, 400000);
	most_is(MS);
	ck_assert_uint_le(gaps.all, 65536);
}

static int longer_first(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

	return (x < y) - (x > y);
}

LOOP_TEST(test_model, 0, 4)
{
	static uint64_t sorted[MANY];
	struct seed seed = seed_init("gaps", _i);
	unsigned i, most;

	for (i = 0; i < MANY; i++) {
		sorted[i] = seed_below(&seed, UINT64_MAX) >>
			    seed_below(&seed, 64);
		add(sorted[i], 1);
		if (i % 16)
			continue;
		qsort(sorted, i + 1, sizeof(*sorted), longer_first);
		most = (i + 1) / PART;
		if (sorted[most] < UINT64_MAX / 2)
			most_is(sorted[most]);
	}
}
