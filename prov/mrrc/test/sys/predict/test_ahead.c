/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/predict/ahead: regions that a helper deregisters between uses, and
 * registers ahead of uses.
 */
#include "config.h"
#include "test/case.h"
#include "test/sys/predict/ahead_fixture.h"

#include "test/fakes/fault.h"

TEST_CASE(ahead, ahead_setup, ahead_teardown);

TEST(test_just_in_time)
{
	uint64_t misses;
	unsigned i;

	learn(0, PAGES);
	misses = stat_of(MRRC_STAT_MISSES);
	for (i = 0; i < 8; i++) {
		ck_assert(registered(0, PAGES));
		pass(PERIOD / 4);
		ck_assert(!registered(0, PAGES));
		ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), PAGES * page);
		pass(PERIOD - PERIOD / 4);
		ck_assert(registered(0, PAGES));
		ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
		use(0, PAGES);
	}
	ck_assert_uint_eq(stat_of(MRRC_STAT_MISSES), misses);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LATE), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 0);
	pass(1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), LEARN + 9);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD),
			  stat_of(MRRC_STAT_AHEAD_USED));
	ck_assert_uint_ge(stat_of(MRRC_STAT_AHEAD), 8);
	ck_assert_uint_ge(stat_of(MRRC_STAT_PREDICTED), LEARN - 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_PREDICTED),
			  stat_of(MRRC_STAT_PREDICTED_5));
}

/* Uses of wrong ranges are ignored; the data call refuses them. */
TEST(test_no_range)
{
	mrrc_cache_use(cache, (void *) base, SIZE_MAX, SITE);
	mrrc_cache_use(cache, (void *) (UINTPTR_MAX - 20000), 19999, SITE);
	mrrc_cache_use(cache, (void *) (UINTPTR_MAX - 20000), 20000, SITE);
	mrrc_cache_use(cache, (void *) (UINTPTR_MAX - 20000), 20001, SITE);
	pass(PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 4);
	ck_assert_uint_eq(cache->ahead->buffers.count, 0);
}

/* A region stays while an operation uses it, however long. */
TEST(test_in_use)
{
	struct mrrc_region *region;
	unsigned i;

	learn(0, PAGES);
	region = get(0, PAGES);
	fake_reg_use(region, 1);
	for (i = 0; i < 40; i++) {
		pass(PERIOD);
		ck_assert(registered(0, PAGES));
	}
	fake_reg_use(region, -1);
	put(region);
	pass(100 * PERIOD);
	ck_assert(!registered(0, PAGES));
}

/* A region that is held before it leaves; its last put deregisters it. */
static struct mrrc_region *caught;

/* Holds the region, as a hit does that looked at its word before the change. */
static void hold_it(void)
{
	mrrc_hints_count_hold(mrrc_hints_lane(mrrc_hints_recent,
					      (char *) caught - cache->regions),
			      1);
	fake_reg_use(caught, 1);
}

TEST(test_held_meanwhile)
{
	learn(0, PAGES);
	caught = get(0, PAGES);
	put(caught);
	fault_at(FAULT_BARRIER, hold_it);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(fake.live, 1);
	fake_reg_use(caught, -1);
	put(caught);
}

/* Two buffers share a region, which stays for the one that is used often. */
TEST(test_shared)
{
	unsigned i;

	touch(0, 3 * PAGES);
	for (i = 0; i < 10 * LEARN; i++) {
		if (i % 10 == 0)
			use(0, PAGES);
		use(2 * PAGES, PAGES);
		pass(MS / 4);
	}
	ck_assert(registered(0, 3 * PAGES));
	ck_assert_uint_eq(stat_of(MRRC_STAT_EARLY), 0);
	ck_assert_uint_eq(fake.regs, 1);
}

/* Periods hardly longer than a deregistration and registration are not used. */
TEST(test_not_worth)
{
	unsigned i;

	for (i = 0; i < 10 * LEARN; i++) {
		use(0, PAGES);
		pass(MS / 2);
	}
	ck_assert_uint_eq(stat_of(MRRC_STAT_EARLY), 0);
	/* At the end of its uses, the region is deregistered. */
	pass(100 * PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EARLY), 1);
}

/* No region is evicted for a prediction. */
TEST(test_no_room)
{
	size_t regs;
	unsigned i;

	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	for (i = 0; i < MT_REGIONS; i++)
		touch(10 + 2 * i, 1);
	regs = fake.regs;
	pass(PERIOD - PERIOD / 4);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
	/* The next use registers the range as usual. */
	use(0, PAGES);
	ck_assert(registered(0, PAGES));
}

static void fill_now(void *arg, uintptr_t start, size_t len)
{
	unsigned i;

	fake.hook = NULL;
	for (i = 0; i < MT_REGIONS; i++)
		touch(10 + 2 * i, 1);
}

/* Another thread registers a part of the range, and pages beside it. */
static void overlap_now(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	touch(PAGES - 1, 2);
}

/* A registration is refused if the room is taken after it began. */
LOOP_TEST(test_no_room_meanwhile, 0, 2)
{
	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	fake.hook = _i ? overlap_now : fill_now;
	pass(PERIOD - PERIOD / 4);
	ck_assert_ptr_null(fake.hook);
	ck_assert(!registered(0, PAGES));
	ck_assert(_i ? registered(PAGES - 1, 2) : registered(10, 1));
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_OVERLAPS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
}

/* At a limit of the system, one try is made, and no region makes room. */
TEST(test_limit)
{
	size_t fails;

	learn(0, PAGES);
	touch(20, 1);
	pass(PERIOD / 4);
	fake.max_live = fake.live;
	fails = fake.fails;
	pass(PERIOD - PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	ck_assert(registered(20, 1));
	ck_assert_uint_eq(fake.fails, fails + 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	fake.max_live = 0;
	use(0, PAGES);
	ck_assert(registered(0, PAGES));
}

/* Regions with remote access are not deregistered, as peers have the key. */
TEST(test_remote)
{
	const enum mrrc_access access = MRRC_RW | MRRC_REMOTE_WRITE;
	unsigned i;

	for (i = 0; i < LEARN; i++) {
		note(0, PAGES);
		put(get_as(0, PAGES, access));
		pass(PERIOD);
	}
	ck_assert_uint_eq(fake.deregs, 0);
}

/* ---- memory that changes between two uses ---- */

static void change(enum mrrc_mon_event event)
{
	fake_mon_raise(mt_mon, base + page, base + 2 * page, event);
}

/*
 * Memory that was unmapped or dropped is not registered ahead again, whatever
 * is mapped there now.
 */
LOOP_TEST(test_changed, 0, 3)
{
	size_t regs;

	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	regs = fake.regs;
	change(_i ? MRRC_MON_REMOVE : MRRC_MON_UNMAP);
	if (_i > 1)
		mrrc_mon_drain(mt_mon);
	pass(PERIOD);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert_uint_eq(fake.fails, 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
}

/* Another cache registered the new memory: the old plan does not apply. */
TEST(test_other_memory)
{
	struct mrrc_cache_mt *other;
	struct mrrc_region *region;
	size_t regs;

	ck_assert_int_eq(open_cache(&other), 0);
	learn(0, PAGES);
	pass(PERIOD / 4);
	change(MRRC_MON_UNMAP);
	mrrc_mon_drain(mt_mon);
	ck_assert_int_eq(mrrc_cache_mt_get(other, (void *) base, PAGES * page,
					   MRRC_RW, &region),
			 0);
	mrrc_cache_mt_put(other, region);
	regs = fake.regs;
	pass(PERIOD - PERIOD / 4);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}

static void change_now(void *arg, uintptr_t start, size_t len)
{
	change(MRRC_MON_UNMAP);
	fake_mon_read(mt_mon);
}

/* A region that changes while it is being registered is not kept. */
TEST(test_changes_meanwhile)
{
	learn(0, PAGES);
	pass(PERIOD / 4);
	fake.hook = change_now;
	pass(PERIOD - PERIOD / 4);
	fake.hook = NULL;
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
}

static void change_it(void)
{
	mrrc_mon_invalidate(mt_mon, base + page, page);
}

/*
 * Memory that can no longer be watched is not registered, and no other range is
 * deregistered to make room.
 */
LOOP_TEST(test_unwatchable, 0, 12)
{
	struct fake_mon *mon = fake_mon_of(mt_mon);
	struct mrrc_deadline *due;
	unsigned watches;
	size_t regs;

	touch(20, 1);
	learn(0, PAGES);
	pass(PERIOD / 4);
	due = mrrc_deadlines_first(&cache->ahead->schedule.planned);
	ck_assert_ptr_nonnull(due);
	clock_set(due->due);
	regs = fake.regs;
	watches = mon->watches;
	mon->watch_rc = -ENOMEM;
	fake.max_live = fake.live;
	act_after(_i, change_it);
	turns();
	fault_at(FAULT_LOCK, NULL);
	fake.max_live = 0;
	mon->watch_rc = 0;
	/* The watch is tried once more without idle ranges. */
	ck_assert_uint_le(mon->watches - watches, 2);
	ck_assert(mon->watches == watches || !fake.fails);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert(registered(20, 1));
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
}

/* Unmapped memory does not count as saved for long. */
TEST(test_swept)
{
	learn(0, PAGES);
	/* Further uses are expected for some time, then no longer. */
	pass(20 * PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), PAGES * page);
	change(MRRC_MON_UNMAP);
	mrrc_mon_drain(mt_mon);
	use(20, PAGES);
	pass(2000 * MS);
	use(20, PAGES);
	pass(1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
}
