/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt: events at every moment, and monitors that refuse or fail.
 */
#include "config.h"
#include "test/case.h"

#include "test/fakes/fault.h"
#include "test/sys/cache/mt_fixture.h"

TEST_CASE(cache_event, mt_setup, mt_teardown);

TEST(test_invalidate_held)
{
	struct mrrc_region *a = get(0, 4);
	struct mrrc_region *b;

	/* The middle is unmapped while two operations use the whole range. */
	ck_assert_ptr_eq(get(0, 4), a);
	fake_mon_raise(mt_mon, base + page, base + 2 * page, MRRC_MON_UNMAP);
	mrrc_mon_drain(mt_mon);
	ck_assert_int_eq(a->state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(fake.live, 1);
	b = get(0, 4);
	ck_assert_ptr_ne(a, b);
	put(a);
	ck_assert_uint_eq(fake.live, 2);
	put(a);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert(fake_mon_all(mt_mon, 0, 4));
	put(b);
	ck_assert_uint_eq(stat_of(MRRC_STAT_INVALIDATIONS), 1);
}

TEST(test_invalidate_idle)
{
	unsigned unwatches;

	touch(0, 4);
	touch(10, 4);
	fake_mon_raise(mt_mon, base + page, base + 2 * page, MRRC_MON_UNMAP);
	mrrc_mon_drain(mt_mon);
	/* A reader of events may not deregister; the next caller does. */
	ck_assert_uint_eq(fake.live, 2);
	ck_assert(fake_mon_none(mt_mon, 0, 1));
	ck_assert(fake_mon_none(mt_mon, 2, 4));
	touch(10, 1);
	ck_assert_uint_eq(fake.live, 1);
	fake_mon_raise(mt_mon, base, base + 20 * page, MRRC_MON_REMOVE);
	mrrc_mon_drain(mt_mon);
	/* The event ended the watch, and another watch may have begun. */
	unwatches = fake_mon_of(mt_mon)->unwatches;
	ck_assert_uint_eq(mrrc_cache_mt_flush(cache), 1);
	ck_assert_uint_eq(fake_mon_of(mt_mon)->unwatches, unwatches);
	ck_assert_uint_eq(fake.live, 0);
}

TEST(test_busy)
{
	touch(0, 1);
	fake_mon_of(mt_mon)->busy = 3;
	touch(0, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 1);
	/* While the monitor is busy, operations register for themselves. */
	fake_mon_of(mt_mon)->busy = 1000;
	touch(0, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 1);
	fake_mon_of(mt_mon)->busy = 0;
	touch(0, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 2);
}

/* ---- events between watching and inserting ---- */

static void hook_raise(void *arg, uintptr_t start, size_t len)
{
	fake_mon_raise(mt_mon, start, start + page, MRRC_MON_UNMAP);
	if (arg)
		mrrc_mon_drain(mt_mon);
	fake.hook = NULL;
}

LOOP_TEST(test_raced, 0, 2)
{
	struct mrrc_region *region;

	/* _i: the event is handled during registration, or by the probe. */
	fake.hook = hook_raise;
	fake.hook_arg = _i ? &fake : NULL;
	region = get(4, 2);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 0);
	ck_assert(fake_mon_none(mt_mon, 4, 6));
	put(region);
	ck_assert_uint_eq(fake.live, 0);
	touch(4, 2);
	ck_assert_uint_eq(fake.live, 1);
}

/* The event is read, but not handled yet, when this thread takes the lock. */
static void read_event(void)
{
	fake_mon_raise(mt_mon, base + 4 * page, base + 5 * page,
		       MRRC_MON_REMOVE);
	fake_mon_read(mt_mon);
}

static void read_before_insertion(struct mrrc_mon *mon)
{
	fault_at(FAULT_LOCK, read_event);
}

TEST(test_read_before_insertion)
{
	struct mrrc_region *region;

	fake_mon_of(mt_mon)->in_sees = read_before_insertion;
	region = get(4, 2);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	put(region);
}

static void stay_busy(struct mrrc_mon *mon)
{
	fake_mon_of(mon)->busy = 1000;
}

TEST(test_busy_insertion)
{
	struct mrrc_region *region;

	fake_mon_of(mt_mon)->in_sees = stay_busy;
	region = get(4, 2);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	put(region);
	fake_mon_of(mt_mon)->busy = 0;
}

static void hook_invalidate(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	mrrc_cache_mt_invalidate(cache, (void *) (start + page), page);
}

/* The application reports a change of a range that is being registered. */
TEST(test_invalidate_pending)
{
	struct mrrc_region *region;

	fake.hook = hook_invalidate;
	region = get(4, 2);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	put(region);
}

static void unmap_first(void)
{
	fake_mon_raise(mt_mon, base, base + page, MRRC_MON_UNMAP);
	mrrc_mon_drain(mt_mon);
}

static void invalidate_first(void)
{
	mrrc_cache_mt_invalidate(cache, (void *) base, page);
}

static void (*const firsts[])(void) = { unmap_first, invalidate_first };
static void (*first)(void) = unmap_first;

static void after_lookup(void)
{
	fault_at(FAULT_LOCK, first);
}

/* The first lock finds that a region is near; the second is the lookup's. */
static void before_lookup(void)
{
	fault_at(FAULT_LOCK, after_lookup);
}

/* A merged plan has pages that were unmapped before they are pending. */
TEST(test_raced_merge)
{
	struct mrrc_region *region;

	touch(0, 4);
	touch(0, 1);
	fault_at(FAULT_LOCK, before_lookup);
	region = get(1, 4);
	ck_assert_uint_eq(region->start, base);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	put(region);
}

/* A merged plan has several pieces, which become pending one by one. */
EACH_TEST(test_raced_merge_pieces, firsts)
{
	first = firsts[_i];
	touch(0, 1);
	touch(3, 1);
	touch(10, 1);
	fault_at(FAULT_LOCK, before_lookup);
	get_pieces(0, 12, MRRC_RW, 3);
	ck_assert(plan.merged);
	ck_assert_uint_gt(plan.count, 1);
	ck_assert_uint_ge(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	put_pieces();
	touch(0, 1);
	first = unmap_first;
}

static void hook_elsewhere(void *arg, uintptr_t start, size_t len)
{
	fake_mon_raise(mt_mon, start + len, start + len + page, MRRC_MON_UNMAP);
	fake.hook = NULL;
}

TEST(test_raced_elsewhere)
{
	/* An unmap of other memory costs a drain, not the registration. */
	fake.hook = hook_elsewhere;
	touch(4, 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
}

static void hook_get(void *arg, uintptr_t start, size_t len)
{
	struct mrrc_region **other = arg;

	fake.hook = NULL;
	*other = get(4, 2);
}

TEST(test_duplicate)
{
	struct mrrc_region *other = NULL;
	struct mrrc_region *region;

	fake.hook = hook_get;
	fake.hook_arg = &other;
	region = get(4, 2);
	ck_assert_ptr_eq(region, other);
	ck_assert_uint_eq(stat_of(MRRC_STAT_DUPLICATES), 1);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert(fake_mon_all(mt_mon, 4, 6));
	put(region);
	put(other);
}

static void hook_flush(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	mrrc_cache_mt_flush(cache);
}

TEST(test_pending_stays_watched)
{
	struct mrrc_region *later = get(20, 1);

	touch(2, 4);
	touch(2, 4);
	/* The overlapped region leaves while its union is being registered. */
	fake.hook = hook_flush;
	touch(3, 4);
	ck_assert(fake_mon_all(mt_mon, 2, 7));
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 2);
	ck_assert_uint_eq(fake.live, 2);
	put(later);
}

/* ---- the range is not watched ---- */

static const struct {
	int watch_rc;
	bool blind;
	enum mrrc_stat cause;
} refusals[] = {
	{ -EINVAL, false, MRRC_STAT_UNCACHED_UNWATCHABLE },
	{ -EBUSY, false, MRRC_STAT_UNCACHED_UNWATCHABLE },
	{ -EPERM, false, MRRC_STAT_UNCACHED_UNWATCHABLE },
	{ -ENOMEM, false, MRRC_STAT_UNCACHED_WATCH_LIMIT },
	{ -ENOSPC, false, MRRC_STAT_UNCACHED_WATCH_LIMIT },
	{ -ENODEV, false, MRRC_STAT_UNCACHED_NO_MONITOR },
	{ 0, true, MRRC_STAT_UNCACHED_NOT_PRIVATE },
};

LOOP_TEST(test_refused, 0, sizeof(refusals) / sizeof(refusals[0]))
{
	struct fake_mon *state = fake_mon_of(mt_mon);
	struct mrrc_region *region;
	unsigned unwatches;
	/* An idle region makes room if the limit of ranges is reached. */
	const bool room = refusals[_i].cause == MRRC_STAT_UNCACHED_WATCH_LIMIT;

	touch(0, 2);
	state->watch_rc = refusals[_i].watch_rc;
	state->blind = refusals[_i].blind;
	unwatches = state->unwatches;
	region = get_as(4, 2, MRRC_RO);
	/* The access is as requested, unless the refusal comes late. */
	if (!refusals[_i].blind)
		ck_assert_int_eq(region->access, MRRC_RO);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(refusals[_i].cause), 1);
	put(region);
	ck_assert_uint_eq(fake.live, !room);
	/* Another userfaultfd may own a range that was refused. */
	if (refusals[_i].cause == MRRC_STAT_UNCACHED_UNWATCHABLE)
		ck_assert_uint_eq(state->unwatches, unwatches);
	state->watch_rc = 0;
	state->blind = false;
	ck_assert(fake_mon_none(mt_mon, 4, 6));
	ck_assert(room || fake_mon_all(mt_mon, 0, 2));
}

LOOP_TEST(test_monitor_fails, 0, 2)
{
	struct mrrc_region *held = get(0, 2);

	touch(4, 2);
	/* _i: the monitor fails in the probe, or while events are read. */
	if (_i) {
		fake_mon_of(mt_mon)->check_rc = -EPERM;
	} else {
		fake_mon_of(mt_mon)->drain_rc = -EIO;
		fake_mon_raise(mt_mon, base, base + page, MRRC_MON_UNMAP);
	}
	touch(0, 2);
	ck_assert(!mrrc_mon_works(mt_mon));
	ck_assert_int_eq(held->state, MRRC_REGION_DEAD);
	touch(4, 2);
	touch(4, 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_NO_MONITOR), 3);
	ck_assert_uint_eq(fake.live, 1);
	put(held);
	ck_assert_uint_eq(fake.live, 0);
}
