/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt, sys/cache/reaper: copies in place of registrations, and
 * room that is made when a limit of the system is reached.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/cache/mt_fixture.h"

/* Registering a page costs 10000; copying a page costs 1000. */
static const struct mrrc_cost cost = {
	.reg_page = 1000,
	.reg = 8000,
	.dereg_page = 0,
	.dereg = 1000,
	.copy_page = 1000,
	.page = 4096,
};
#define COPIES 9

static struct mrrc_admit admit;

static void setup(void)
{
	mt_setup();
	mrrc_cache_mt_set_cost(cache, &cost);
	ck_assert_int_eq(
		mrrc_admit_init(&admit, &cost, MT_PAGES * page, MT_REGIONS), 0);
}

static void teardown(void)
{
	mrrc_admit_fini(&admit);
	mt_teardown();
}

/*
 * Returns whether a range is to be copied; otherwise registers and puts the
 * range.
 */
static bool copies(unsigned first, size_t len)
{
	bool copy;
	unsigned i;

	ck_assert_int_eq(mrrc_cache_mt_get_or_copy(
				 cache, &admit, (void *) (base + first * page),
				 len, MRRC_RW, 4, &plan, &copy),
			 0);
	ck_assert(mrrc_cache_mt_valid(cache));
	for (i = 0; !copy && i < plan.count; i++)
		put(plan.piece[i].region);
	return copy;
}

TEST_CASE(cache_cost, setup, teardown);

TEST(test_hot)
{
	int i;

	for (i = 0; i < COPIES; i++)
		ck_assert(copies(3, 100));
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MISSES), COPIES);
	ck_assert(!copies(3, 100));
	ck_assert(!copies(3, 100));
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), COPIES + 2);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	/* The region is lost, so the count of copies begins anew. */
	mrrc_cache_mt_flush(cache);
	ck_assert(copies(3, 100));
}

TEST(test_partly)
{
	bool copy;

	touch(10, 10);
	/* One page of eleven is missing: cheaper than eleven copies. */
	ck_assert(!copies(10, 11 * page));
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	/* No page is missing, and the region is held. */
	ck_assert_int_eq(mrrc_cache_mt_get_or_copy(cache, &admit,
						   (void *) (base + 15 * page),
						   1, MRRC_RW, 4, &plan, &copy),
			 0);
	ck_assert(!copy);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	put_pieces();
}

/* Regions would not be kept, so each registration would serve one request. */
TEST(test_no_monitor)
{
	int i;

	mrrc_mon_fail(mt_mon, "test");
	for (i = 0; i < 3 * COPIES; i++)
		ck_assert(copies(3, 100));
	ck_assert_uint_eq(fake.regs, 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 3 * COPIES);
	/* A registration cheaper than a copy is made. */
	mrrc_admit_fini(&admit);
	ck_assert_int_eq(mrrc_admit_init(&admit,
					 &(struct mrrc_cost){
						 .reg = 10,
						 .copy_page = 1000,
						 .page = 4096,
					 },
					 MT_PAGES * page, MT_REGIONS),
			 0);
	ck_assert(!copies(3, 100));
	ck_assert_uint_eq(fake.live, 0);
}

TEST(test_arguments)
{
	bool copy = true;

	ck_assert_int_eq(mrrc_cache_mt_get_or_copy(cache, &admit, NULL, 1,
						   MRRC_RW, 1, &plan, &copy),
			 -EFAULT);
	ck_assert(!copy);
	ck_assert_int_eq(mrrc_cache_mt_get_or_copy(cache, &admit, (void *) base,
						   0, MRRC_RW, 1, &plan, &copy),
			 -EINVAL);
	ck_assert_int_eq(mrrc_cache_mt_get_or_copy(cache, &admit, (void *) -2,
						   9, MRRC_RW, 1, &plan, &copy),
			 -EFAULT);
}

/* ---- limits ---- */

/* Few regions leave at first, and that is enough. */
TEST(test_room_some)
{
	unsigned i;

	for (i = 0; i < MT_REGIONS; i++)
		touch(2 * i, 1);
	ck_assert_uint_eq(fake.live, MT_REGIONS);
	fake.fail_rc = -ENOMEM;
	atomic_store(&fake.fail_in, 1);
	touch(20, 1);
	ck_assert_uint_ge(stat_of(MRRC_STAT_REGIONS), MT_REGIONS / 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REG_FAILURES), 1);
}

/* Held regions stay; all others leave before a request fails. */
TEST(test_room_all)
{
	struct mrrc_region *held = get(0, 1), *region = NULL;
	unsigned i;

	for (i = 1; i < MT_REGIONS; i++)
		touch(2 * i, 1);
	fake.max_live = 1;
	ck_assert_int_eq(try_get(40, 1, MRRC_RW, &region), -ENOMEM);
	ck_assert_uint_eq(fake.live, 1);
	put(held);
	touch(40, 1);
}

static void hook_leave(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	fake_mon_raise(mt_mon, base, base + page, MRRC_MON_REMOVE);
	mrrc_mon_drain(mt_mon);
}

/* A region that an event removed makes room if no region is idle. */
TEST(test_room_left)
{
	touch(0, 1);
	fake.max_live = 1;
	fake.hook = hook_leave;
	touch(40, 1);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 0);
}

static unsigned refused;

/* Another thread takes the room at once, each time that room is made. */
static void hook_refill(void *arg, uintptr_t start, size_t len)
{
	if (start != base || ++refused == 100)
		return;
	touch(2 * (1 + refused % 20), 1);
	atomic_store(&fake.fail_in, 1);
}

TEST(test_room_taken)
{
	struct mrrc_region *region = NULL;

	refused = 0;
	fake.fail_rc = -ENOMEM;
	fake.hook = hook_refill;
	ck_assert_int_eq(try_get(0, 1, MRRC_RW, &region), -ENOMEM);
	ck_assert_uint_lt(refused, 20);
	fake.hook = NULL;
}

/*
 * Every nth registration fails, for each n: no region stays, or is counted
 * twice.
 */
LOOP_TEST(test_nth, 1, 12)
{
	struct mrrc_region *region;
	unsigned done = 0, i;

	fake.fail_rc = -ENOMEM;
	for (i = 0; i < 500; i++) {
		if (i % (unsigned) _i == 0)
			atomic_store(&fake.fail_in, 1 + i % 3);
		if (!try_get(i * 7 % 31 * 2, 1 + i % 2, MRRC_RW, &region)) {
			put(region);
			done++;
		}
	}
	atomic_store(&fake.fail_in, 0);
	/* Except at first, there is always a region to make room with. */
	ck_assert_uint_ge(done, 498);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	mrrc_cache_mt_flush(cache);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
}
