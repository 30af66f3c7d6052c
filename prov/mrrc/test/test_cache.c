/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache: lookups by access, widening, budget, states, victims.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>

#include "core/cache.h"
#include "fault.h"

#define PAGE		4096u
#define MAX_BYTES	(64 * PAGE)
#define MAX_REGIONS	8

static struct mrrc_cache cache;
static struct mrrc_region region[32];
static struct mrrc_region_list victims;

static uint64_t stat(enum mrrc_stat id)
{
	return cache.stats.value[id];
}

static void setup(void)
{
	TAILQ_INIT(&victims);
	ck_assert_int_eq(mrrc_cache_init(&cache, MAX_BYTES, MAX_REGIONS, PAGE,
					 NULL), 0);
}

static void teardown(void)
{
	ck_assert(mrrc_cache_valid(&cache));
	mrrc_cache_invalidate(&cache, 0, SIZE_MAX, &victims);
	ck_assert(mrrc_cache_valid(&cache));
	mrrc_cache_fini(&cache);
}

/* A NEW region of whole pages. */
static struct mrrc_region *make(int i, unsigned page, unsigned pages,
				enum mrrc_access access)
{
	region[i] = (struct mrrc_region) {
		.start = page * PAGE,
		.len = pages * PAGE,
		.access = access,
	};
	return &region[i];
}

static int put(int i, unsigned page, unsigned pages, enum mrrc_access access)
{
	int rc = mrrc_cache_insert(&cache, make(i, page, pages, access),
				   &victims);

	ck_assert(mrrc_cache_valid(&cache));
	return rc;
}

static int count_victims(void)
{
	struct mrrc_region *victim;
	int count = 0;

	TAILQ_FOREACH(victim, &victims, link) {
		ck_assert_int_eq(victim->state, MRRC_REGION_DEAD);
		ck_assert_uint_eq(victim->held, 0);
		count++;
	}
	return count;
}

/* What peers may reach is for those who asked for that. */
START_TEST(test_remote)
{
	const unsigned all = MRRC_RW | MRRC_REMOTE_READ | MRRC_REMOTE_WRITE;
	unsigned i;

	ck_assert_int_eq(put(0, 10, 2, all), 0);
	ck_assert_int_eq(put(1, 10, 2, MRRC_REMOTE_READ), 0);
	for (i = 0; i < MRRC_ACCESS_CNT; i++) {
		ck_assert_ptr_eq(mrrc_cache_find(&cache, 10 * PAGE, 5, i),
				 i == all ? &region[0] :
				 i == MRRC_REMOTE_READ ? &region[1] : NULL);
		ck_assert_int_eq(mrrc_access_remote(i), i > MRRC_RW);
	}
	mrrc_cache_invalidate(&cache, 10 * PAGE, 1, &victims);
	ck_assert_ptr_null(mrrc_cache_find(&cache, 10 * PAGE, 5, all));
	ck_assert_uint_eq(cache.stats.value[MRRC_STAT_REGIONS], 0);
}
END_TEST

START_TEST(test_init)
{
	struct mrrc_cache other;
	int rc;

	ck_assert_int_eq(mrrc_cache_init(&other, 0, 1, PAGE, NULL), -EINVAL);
	ck_assert_int_eq(mrrc_cache_init(&other, 1, 0, PAGE, NULL), -EINVAL);
	ck_assert_int_eq(mrrc_cache_init(&other, 1, 1, 0, NULL), -EINVAL);
	ck_assert_int_eq(mrrc_cache_init(&other, 1, 1, 5000, NULL), -EINVAL);
	ck_assert_int_eq(mrrc_cache_init(&other, 1, 1, PAGE, "x"), -ENOENT);
	fault_arm(1);
	rc = mrrc_cache_init(&other, 1, 1, PAGE, NULL);
	ck_assert(fault_disarm());
	ck_assert_int_eq(rc, -ENOMEM);
	ck_assert_uint_eq(fault_leaks(), 0);
}
END_TEST

START_TEST(test_access)
{
	ck_assert_int_eq(put(0, 10, 2, MRRC_RO), 0);
	ck_assert_int_eq(put(1, 20, 2, MRRC_RW), 0);
	ck_assert_ptr_eq(mrrc_cache_lookup(&cache, 10 * PAGE, 5, MRRC_RO),
			 &region[0]);
	ck_assert_ptr_null(mrrc_cache_lookup(&cache, 10 * PAGE, 5, MRRC_RW));
	ck_assert_ptr_eq(mrrc_cache_lookup(&cache, 20 * PAGE, 5, MRRC_RO),
			 &region[1]);
	ck_assert_ptr_eq(mrrc_cache_lookup(&cache, 20 * PAGE, 5, MRRC_RW),
			 &region[1]);
	ck_assert_uint_eq(stat(MRRC_STAT_LOOKUPS), 4);
	ck_assert_uint_eq(stat(MRRC_STAT_HITS), 3);
	ck_assert_uint_eq(stat(MRRC_STAT_MISSES), 1);
	/* The two accesses do not displace each other. */
	ck_assert_int_eq(put(2, 10, 2, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), 0);
	ck_assert_uint_eq(stat(MRRC_STAT_REGIONS), 3);
}
END_TEST

static void widened(uintptr_t addr, size_t len, bool wide, unsigned page,
		    unsigned pages)
{
	uintptr_t start;
	size_t range;

	ck_assert_int_eq(mrrc_cache_widen(&cache, addr, len, MRRC_RW, &start,
					  &range), wide);
	ck_assert_uint_eq(start, page * PAGE);
	ck_assert_uint_eq(range, pages * PAGE);
}

START_TEST(test_widen)
{
	widened(10 * PAGE + 5, 1, false, 10, 1);
	widened(10 * PAGE + 4095, 2, false, 10, 2);
	widened(10 * PAGE, PAGE, false, 10, 1);
	put(0, 10, 4, MRRC_RW);
	put(1, 16, 4, MRRC_RW);
	widened(13 * PAGE, 2 * PAGE, true, 10, 5);	/* over one end */
	widened(9 * PAGE, 2 * PAGE, true, 9, 5);	/* over one start */
	widened(13 * PAGE, 4 * PAGE, true, 10, 10);	/* joins two */
	widened(14 * PAGE, 2 * PAGE, false, 14, 2);	/* only touches */
	widened(9 * PAGE, 12 * PAGE, false, 9, 12);	/* contains both */
	/* 16 pages are the quarter: the union may be that, not more */
	widened(4 * PAGE, 7 * PAGE, true, 4, 10);
	put(2, 2, 2, MRRC_RW);
	widened(3 * PAGE, 15 * PAGE, false, 3, 15);	/* 2..20 is 18 */
	widened(3 * PAGE, 14 * PAGE - 1, false, 3, 14);
	mrrc_cache_invalidate(&cache, 2 * PAGE, PAGE, &victims);
	put(3, 4, 2, MRRC_RW);
	widened(5 * PAGE, 12 * PAGE, true, 4, 16);	/* 4..20 is 16 */
	/* The other access counts for nothing. */
	mrrc_cache_invalidate(&cache, 0, SIZE_MAX, &victims);
	put(4, 10, 4, MRRC_RO);
	widened(13 * PAGE, 2 * PAGE, false, 13, 2);
}
END_TEST

START_TEST(test_overlap_leaves)
{
	put(0, 10, 4, MRRC_RW);
	put(1, 20, 4, MRRC_RW);
	mrrc_cache_hold(&cache, &region[1]);
	ck_assert_int_eq(put(2, 12, 10, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), 1);
	ck_assert_ptr_eq(TAILQ_FIRST(&victims), &region[0]);
	ck_assert_int_eq(region[1].state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(stat(MRRC_STAT_OVERLAPS), 2);
	ck_assert_ptr_null(mrrc_cache_lookup(&cache, 23 * PAGE, 1, MRRC_RW));
	ck_assert(mrrc_cache_put(&cache, &region[1]));
	ck_assert_int_eq(count_victims(), 1);
}
END_TEST

START_TEST(test_budget_regions)
{
	int i;

	for (i = 0; i < MAX_REGIONS + 3; i++)
		ck_assert_int_eq(put(i, 2 * i, 1, MRRC_RW), 0);
	ck_assert_uint_eq(stat(MRRC_STAT_REGIONS), MAX_REGIONS);
	ck_assert_uint_eq(stat(MRRC_STAT_EVICTIONS), 3);
	ck_assert_int_eq(count_victims(), 3);
	ck_assert_ptr_eq(TAILQ_FIRST(&victims), &region[0]);
	ck_assert_uint_eq(stat(MRRC_STAT_REGIONS_PEAK), MAX_REGIONS);
}
END_TEST

START_TEST(test_budget_bytes)
{
	ck_assert_int_eq(put(0, 0, 65, MRRC_RW), -E2BIG);
	ck_assert_int_eq(region[0].state, MRRC_REGION_NEW);
	ck_assert_int_eq(put(1, 0, 64, MRRC_RW), 0);
	ck_assert_int_eq(put(2, 100, 1, MRRC_RO), 0);
	ck_assert_int_eq(count_victims(), 1);
	ck_assert_uint_eq(stat(MRRC_STAT_BYTES), PAGE);
	ck_assert_uint_eq(stat(MRRC_STAT_BYTES_PEAK), MAX_BYTES);
	/* Touched regions stay longer. */
	put(3, 200, 30, MRRC_RW);
	put(4, 300, 30, MRRC_RW);
	mrrc_cache_lookup(&cache, 200 * PAGE, 1, MRRC_RW);
	put(5, 400, 30, MRRC_RW);
	ck_assert_int_eq(region[3].state, MRRC_REGION_INDEXED);
	ck_assert_int_eq(region[4].state, MRRC_REGION_DEAD);
}
END_TEST

START_TEST(test_held_stay)
{
	int i;

	for (i = 0; i < MAX_REGIONS; i++) {
		put(i, 2 * i, 1, MRRC_RW);
		mrrc_cache_hold(&cache, &region[i]);
	}
	ck_assert_int_eq(put(10, 100, 1, MRRC_RW), -ENOSPC);
	ck_assert_int_eq(region[10].state, MRRC_REGION_NEW);
	ck_assert_int_eq(count_victims(), 0);
	/* What it replaces makes room, held or not. */
	ck_assert_int_eq(put(11, 4, 2, MRRC_RW), 0);
	ck_assert_int_eq(region[2].state, MRRC_REGION_DEAD);
	ck_assert_int_eq(count_victims(), 0);
	ck_assert_uint_eq(mrrc_cache_evict_all(&cache, &victims), 1);
	ck_assert_int_eq(region[11].state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(stat(MRRC_STAT_HELD), MAX_REGIONS);
	for (i = 0; i < MAX_REGIONS; i++)
		ck_assert_int_eq(mrrc_cache_put(&cache, &region[i]), i == 2);
	ck_assert_uint_eq(stat(MRRC_STAT_HELD), 0);
	/* Bytes of held regions limit as well. */
	mrrc_cache_evict_all(&cache, &victims);
	put(12, 0, 60, MRRC_RW);
	mrrc_cache_hold(&cache, &region[12]);
	ck_assert_int_eq(put(13, 100, 5, MRRC_RW), -ENOSPC);
	ck_assert_int_eq(put(14, 100, 4, MRRC_RW), 0);
	mrrc_cache_put(&cache, &region[12]);
}
END_TEST

START_TEST(test_hold_new)
{
	/* A region held before it is indexed counts as held in the index. */
	make(0, 0, 64, MRRC_RW);
	mrrc_cache_hold(&cache, &region[0]);
	ck_assert_int_eq(mrrc_cache_insert(&cache, &region[0], &victims), 0);
	ck_assert(mrrc_cache_valid(&cache));
	ck_assert_int_eq(put(1, 100, 1, MRRC_RW), -ENOSPC);
	ck_assert(!mrrc_cache_put(&cache, &region[0]));
	ck_assert_int_eq(put(2, 100, 1, MRRC_RW), 0);
	/* One that never was is deregistered by its last put. */
	make(3, 200, 1, MRRC_RW);
	mrrc_cache_hold(&cache, &region[3]);
	mrrc_cache_hold(&cache, &region[3]);
	ck_assert(!mrrc_cache_put(&cache, &region[3]));
	ck_assert(mrrc_cache_put(&cache, &region[3]));
}
END_TEST

START_TEST(test_invalidate)
{
	put(0, 10, 2, MRRC_RW);
	put(1, 12, 2, MRRC_RO);
	put(2, 20, 1, MRRC_RW);
	mrrc_cache_hold(&cache, &region[1]);
	ck_assert_uint_eq(mrrc_cache_invalidate(&cache, 9 * PAGE, PAGE,
						&victims), 0);
	ck_assert_uint_eq(mrrc_cache_invalidate(&cache, 11 * PAGE + 4095, 2,
						&victims), 2);
	ck_assert_int_eq(count_victims(), 1);
	ck_assert_int_eq(region[1].state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(stat(MRRC_STAT_INVALIDATIONS), 2);
	ck_assert_ptr_null(mrrc_cache_find(&cache, 10 * PAGE, 1, MRRC_RO));
	ck_assert_ptr_nonnull(mrrc_cache_find(&cache, 20 * PAGE, 1, MRRC_RO));
	ck_assert(mrrc_cache_put(&cache, &region[1]));
	ck_assert_uint_eq(mrrc_cache_invalidate(&cache, 0, SIZE_MAX,
						&victims), 1);
}
END_TEST

START_TEST(test_registered)
{
	mrrc_cache_registered(&cache, 100);
	mrrc_cache_registered(&cache, 50);
	mrrc_cache_deregistered(&cache, 100);
	ck_assert_uint_eq(stat(MRRC_STAT_PINNED), 50);
	ck_assert_uint_eq(stat(MRRC_STAT_PINNED_PEAK), 150);
	ck_assert_uint_eq(stat(MRRC_STAT_REGISTRATIONS), 2);
	ck_assert_uint_eq(stat(MRRC_STAT_DEREGISTRATIONS), 1);
}
END_TEST

START_TEST(test_valid_notices)
{
	put(0, 10, 2, MRRC_RW);
	region[0].state = MRRC_REGION_DEAD;	/* C1 */
	ck_assert(!mrrc_cache_valid(&cache));
	region[0].state = MRRC_REGION_INDEXED;
	region[0].access = MRRC_RO;
	ck_assert(!mrrc_cache_valid(&cache));
	region[0].access = MRRC_RW;
	region[0].held = 1;			/* C2 */
	ck_assert(!mrrc_cache_valid(&cache));
	region[0].held = 0;
	cache.max_bytes = PAGE;			/* C3 */
	ck_assert(!mrrc_cache_valid(&cache));
	cache.max_bytes = MAX_BYTES;
	ck_assert(mrrc_cache_valid(&cache));
}
END_TEST

START_TEST(test_stat_names)
{
	int i, j;

	for (i = 0; i < MRRC_STAT_CNT; i++) {
		ck_assert_str_ne(mrrc_stat_name(i), "");
		ck_assert_str_ne(mrrc_stat_help(i), "");
		for (j = 0; j < i; j++)
			ck_assert_str_ne(mrrc_stat_name(i),
					 mrrc_stat_name(j));
	}
}
END_TEST

Suite *cache_suite(void)
{
	Suite *suite = suite_create("cache");
	TCase *tcase = tcase_create("cache");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_init);
	tcase_add_test(tcase, test_access);
	tcase_add_test(tcase, test_widen);
	tcase_add_test(tcase, test_overlap_leaves);
	tcase_add_test(tcase, test_budget_regions);
	tcase_add_test(tcase, test_budget_bytes);
	tcase_add_test(tcase, test_held_stay);
	tcase_add_test(tcase, test_hold_new);
	tcase_add_test(tcase, test_invalidate);
	tcase_add_test(tcase, test_registered);
	tcase_add_test(tcase, test_valid_notices);
	tcase_add_test(tcase, test_remote);
	tcase_add_test(tcase, test_stat_names);
	suite_add_tcase(suite, tcase);
	return suite;
}
