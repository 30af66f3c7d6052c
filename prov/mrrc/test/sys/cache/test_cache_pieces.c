/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt: requests in pieces, and registrations that fail.
 * test_plan.c tests which pieces are chosen, test_pieces_event.c events in
 * between.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/cache/mt_fixture.h"
#include "test/fakes/fault.h"

TEST_CASE(cache_pieces, mt_setup_pieces, mt_teardown);

TEST(test_split)
{
	struct mrrc_region *middle = get(10, 4);

	put(middle);
	get_pieces(8, 8, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 3);
	piece_is(0, 8, 2, NULL);
	piece_is(1, 10, 4, middle);
	piece_is(2, 14, 2, NULL);
	/* The registered region is used; the missing pages are registered. */
	ck_assert_uint_eq(fake.regs, 3);
	ck_assert_uint_eq(fake.live_bytes, 8 * page);
	ck_assert_uint_eq(mrrc_region_held(middle), 1);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 3);
	ck_assert_uint_eq(stat_of(MRRC_STAT_SPLITS), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_OVERLAPS), 0);
	ck_assert(fake_mon_all(mt_mon, 8, 16));
	put_pieces();
	/* All three pieces are hits now. */
	get_pieces(9, 6, MRRC_RO, 4);
	ck_assert_uint_eq(plan.count, 3);
	piece_is(0, 9, 1, NULL);
	ck_assert_uint_eq(fake.regs, 3);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_SPLITS), 2);
	put_pieces();
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MERGES), 0);
}

/* A gap larger than the cache is not kept; a registered region is used. */
TEST(test_too_big)
{
	touch(10, 4);
	get_pieces(10, MT_PAGES + 5, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_TOO_BIG), 1);
	put_pieces();
	ck_assert_uint_eq(fake.live, 1);
	/* Both gaps together exceed the cache: the last one has no room. */
	get_pieces(0, MT_PAGES + 5, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 3);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_FULL), 1);
	put_pieces();
	ck_assert_uint_eq(fake.live, 2);
}

/* ---- failures ---- */

/* The first or second gap fails: all is put, and registered as one range. */
LOOP_TEST(test_gap_fails, 0, 2)
{
	touch(10, 4);
	atomic_store(&fake.fail_in, 1 + _i);
	get_pieces(8, 8, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 1);
	piece_is(0, 8, 8, NULL);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REG_FAILURES), 1);
	/* The new region takes the place of the regions that it covers. */
	ck_assert_uint_eq(stat_of(MRRC_STAT_OVERLAPS), 1 + _i);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(fake.live_bytes, 8 * page);
	put_pieces();
	touch(8, 8);
	ck_assert_uint_eq(fake.live, 1);
}

/* The held region behind the gap, or before the gap, is put as well. */
LOOP_TEST(test_only_gap_fails, 0, 2)
{
	touch(10, 4);
	atomic_store(&fake.fail_in, 1);
	get_pieces(_i ? 8 : 12, 4, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 1);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	ck_assert_uint_eq(fake.live, 1);
	put_pieces();
}

LOOP_TEST(test_all_fails, 0, 2)
{
	touch(10, 4);
	/* _i: the range behind the region fails, or the one before it. */
	fake.bad_start = base + (_i ? 8 : 15) * page;
	fake.bad_end = fake.bad_start + page;
	ck_assert_int_eq(try_pieces(8, 8, MRRC_RW, 4), -EFAULT);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REG_FAILURES), 2);
	/* The old region stays, and so does the gap that was registered. */
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), _i ? 1 : 2);
	ck_assert_uint_eq(fake.live, _i ? 1 : 2);
	ck_assert(fake_mon_all(mt_mon, _i ? 10 : 8, 14));
	ck_assert(fake_mon_none(mt_mon, 14, 16));
	touch(10, 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 1);
}

/* The device is full: idle regions leave, regions of the plan stay. */
TEST(test_device_full)
{
	struct mrrc_region *middle = get(10, 4);

	put(middle);
	touch(30, 1);
	touch(40, 1);
	fake.max_live = 3;
	get_pieces(8, 8, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 3);
	piece_is(1, 10, 4, middle);
	ck_assert_uint_eq(fake.live, 3);
	put_pieces();
	/* Two registrations are too few for three pieces, but not for one. */
	mrrc_cache_mt_flush(cache);
	touch(10, 4);
	fake.max_live = 2;
	get_pieces(8, 8, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 1);
	put_pieces();
}
