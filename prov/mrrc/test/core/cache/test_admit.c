/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core/cache/admit: decisions to register or to copy, case by case. */
#include "config.h"
#include "test/case.h"

#include "core/cache/admit.h"
#include "test/fakes/fault.h"

#define PAGE 4096u

/* One page costs 900 + 100 to register, and 200 to copy. */
static const struct mrrc_cost cost = {
	.reg_page = 100,
	.reg = 900,
	.dereg_page = 0,
	.dereg = 0,
	.copy_page = 200,
	.page = PAGE,
};
static struct mrrc_admit admit;
static struct mrrc_cache cache;

static void setup(void)
{
	const struct mrrc_cache_conf conf = {
		.max_bytes = 64 * PAGE,
		.max_regions = 100,
		.page = PAGE,
		.policy = "lru",
	};

	ck_assert_int_eq(mrrc_cache_init(&cache, &conf), 0);
	ck_assert_int_eq(mrrc_admit_init(&admit, &cost, 64 * PAGE, 100), 0);
}

static void teardown(void)
{
	mrrc_admit_fini(&admit);
	mrrc_cache_fini(&cache);
}

TEST_CASE(admit, setup, teardown);

TEST(test_rent_then_buy)
{
	int i;

	/* Registering one page costs as much as five copies. */
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(mrrc_admit(&admit, &cache, PAGE, 10, PAGE),
				 MRRC_ADMIT_BOUNCE);
	ck_assert_int_eq(mrrc_admit(&admit, &cache, PAGE, 10, PAGE),
			 MRRC_ADMIT_KEEP);
	/* Another range has an account of its own. */
	ck_assert_int_eq(mrrc_admit(&admit, &cache, 9 * PAGE, 10, PAGE),
			 MRRC_ADMIT_BOUNCE);
}

/* Counts registrations, hits and losses: 1000 a registration, 200 a copy. */
static void became(uint64_t made, uint64_t hits, uint64_t lost)
{
	cache.stats->value[MRRC_STAT_REGISTRATIONS] += made;
	cache.stats->value[MRRC_STAT_HITS] += hits;
	cache.stats->value[MRRC_STAT_EVICTIONS] += lost / 2;
	cache.stats->value[MRRC_STAT_INVALIDATIONS] += lost - lost / 2;
}

static enum mrrc_admission new_range(void)
{
	static uintptr_t range;

	return mrrc_admit(&admit, &cache, (range += 3 * PAGE), 10, PAGE);
}

TEST(test_pays)
{
	became(7, 1000, 0);
	ck_assert_int_eq(new_range(), MRRC_ADMIT_BOUNCE);
	became(93, 0, 0);
	ck_assert_int_eq(new_range(), MRRC_ADMIT_KEEP);
	/* Ten copies cost twice as much as a registration. */
	became(1, 9, 0);
	ck_assert_int_eq(new_range(), MRRC_ADMIT_BOUNCE);
	became(0, 1, 0);
	ck_assert_int_eq(new_range(), MRRC_ADMIT_KEEP);
}

/* A registration lost by eviction or by an unmap counts as not paid back. */
TEST(test_pays_lost)
{
	became(96, 10000, 5);
	ck_assert_int_eq(new_range(), MRRC_ADMIT_KEEP);
	became(0, 0, 1);
	ck_assert_int_eq(new_range(), MRRC_ADMIT_BOUNCE);
}

/* If another registration must be evicted, that loss counts at once. */
TEST(test_pays_full)
{
	became(100, 10000, 0);
	cache.max_bytes = PAGE - 1;
	ck_assert_int_eq(new_range(), MRRC_ADMIT_BOUNCE);
	cache.max_bytes = PAGE;
	ck_assert_int_eq(new_range(), MRRC_ADMIT_KEEP);
}

/* Losses and hits count less, the longer ago they were. */
TEST(test_pays_fades)
{
	unsigned rounds = 0;

	became(256, 4000, 0);
	while (new_range() == MRRC_ADMIT_KEEP) {
		became(256, 0, 0);
		ck_assert_uint_lt(++rounds, 4);
	}
	ck_assert_uint_gt(rounds, 0);
	became(256, 2560, 0);
	became(256, 2560, 0);
	while (new_range() != MRRC_ADMIT_KEEP) {
		became(256, 2560, 0);
		ck_assert_uint_lt(++rounds, 20);
	}
}

TEST(test_copy_once)
{
	ck_assert(mrrc_admit_copy_once(&admit, PAGE));
	ck_assert(mrrc_admit_copy_once(&admit, 8 * PAGE));
	ck_assert(!mrrc_admit_copy_once(&admit, 9 * PAGE));
}

TEST(test_once)
{
	/* A new range of more than a quarter of the cache is not kept. */
	ck_assert_int_eq(mrrc_admit(&admit, &cache, PAGE, 17 * PAGE, 17 * PAGE),
			 MRRC_ADMIT_ONCE);
	ck_assert_int_eq(mrrc_admit(&admit, &cache, PAGE, 17 * PAGE, 17 * PAGE),
			 MRRC_ADMIT_KEEP);
	ck_assert_int_eq(mrrc_admit(&admit, &cache, 99 * PAGE, 16 * PAGE,
				    16 * PAGE),
			 MRRC_ADMIT_KEEP);
}
