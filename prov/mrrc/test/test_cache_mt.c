/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache_mt with a fake monitor: every path, one thread at a time. What
 * needs the kernel is in test_cache_uffd.c, what needs threads in race_mon.c.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>

#include "fake_mon.h"
#include "fake_reg.h"
#include "fault.h"
#include "sys/vm.h"

#define MAX_PAGES	64
#define MAX_REGIONS	8

static size_t page;
static uintptr_t base;		/* no memory is touched: any address does */
static struct fake_reg fake;
static struct mrrc_mon *mon;
static struct mrrc_cache_mt *cache;

static int open_cache(struct mrrc_cache_mt **out)
{
	struct mrrc_cache_attr attr = {
		.max_bytes = MAX_PAGES * page,
		.max_regions = MAX_REGIONS,
		.ops = &fake_reg_ops,
		.arg = &fake,
		.mon = mon,
	};

	return mrrc_cache_mt_open(&attr, out);
}

static void setup(void)
{
	page = mrrc_vm_page();
	base = 1024 * page;
	fake = (struct fake_reg) { .fail_rc = -EINVAL };
	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &mon), 0);
	fake_mon_of(mon)->base = base;
	ck_assert_int_eq(open_cache(&cache), 0);
}

static void teardown(void)
{
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
	ck_assert(fake_mon_none(mon, 0, 64) || !mrrc_mon_works(mon));
	mrrc_mon_close(mon);
}

static uint64_t stat_of(enum mrrc_stat id)
{
	struct mrrc_stats stats;

	mrrc_cache_mt_stats(cache, &stats);
	return stats.value[id];
}

static int try_get(unsigned first, unsigned pages, enum mrrc_access access,
		   struct mrrc_region **region)
{
	int rc = mrrc_cache_mt_get(cache, (void *)(base + first * page),
				   pages * page, access, region);

	ck_assert(mrrc_cache_mt_valid(cache));
	return rc;
}

static struct mrrc_region *get_as(unsigned first, unsigned pages,
				  enum mrrc_access access)
{
	struct mrrc_region *region = NULL;

	ck_assert_int_eq(try_get(first, pages, access, &region), 0);
	ck_assert_ptr_nonnull(region);
	ck_assert_uint_gt(region->held, 0);
	ck_assert_uint_le(fake_reg_start(region), base + first * page);
	ck_assert_uint_ge(fake_reg_start(region) + fake_reg_len(region),
			  base + (first + pages) * page);
	ck_assert(fake_reg_access(region) >= access);
	return region;
}

static struct mrrc_region *get(unsigned first, unsigned pages)
{
	return get_as(first, pages, MRRC_RW);
}

static void put(struct mrrc_region *region)
{
	mrrc_cache_mt_put(cache, region);
	ck_assert(mrrc_cache_mt_valid(cache));
}

static void touch(unsigned first, unsigned pages)
{
	put(get(first, pages));
}

START_TEST(test_arguments)
{
	struct mrrc_region *region = NULL;
	char *ptr = (char *)base;

	ck_assert_int_eq(mrrc_cache_mt_get(cache, ptr, 0, MRRC_RO, &region),
			 -EINVAL);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, NULL, 0, MRRC_RO, &region),
			 -EINVAL);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, NULL, 1, MRRC_RO, &region),
			 -EFAULT);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, ptr, SIZE_MAX, MRRC_RO,
					   &region), -EFAULT);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, ptr, UINTPTR_MAX - base,
					   MRRC_RO, &region), -EFAULT);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *)UINTPTR_MAX, 1,
					   MRRC_RO, &region), -EFAULT);
	ck_assert_ptr_null(region);
	ck_assert_uint_eq(fake.regs, 0);
}
END_TEST

START_TEST(test_hit)
{
	struct mrrc_region *a, *b, *c;

	a = get(10, 2);
	b = get(11, 1);
	ck_assert_ptr_eq(a, b);
	/* Registered both ways, so reading hits as well. */
	c = get_as(10, 1, MRRC_RO);
	ck_assert_ptr_eq(a, c);
	ck_assert_uint_eq(a->held, 3);
	put(a);
	put(b);
	put(c);
	touch(10, 2);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 3);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MISSES), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGISTRATIONS), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HELD), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_PINNED), 2 * page);
	ck_assert(fake_mon_all(mon, 10, 12));
}
END_TEST

START_TEST(test_bytes_of_a_page)
{
	struct mrrc_region *region;
	unsigned i;

	/* Small neighbours share the registration of their page. */
	for (i = 0; i < page; i += 8) {
		ck_assert_int_eq(mrrc_cache_mt_get(cache,
						   (void *)(base + i), 8,
						   MRRC_RO, &region), 0);
		put(region);
	}
	ck_assert_uint_eq(fake.regs, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), page / 8 - 1);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *)(base + page - 1),
					   2, MRRC_RO, &region), 0);
	ck_assert_uint_eq(region->len, 2 * page);
	put(region);
}
END_TEST

START_TEST(test_widen)
{
	struct mrrc_region *held = get(0, 4);

	touch(2, 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_WIDENED), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_OVERLAPS), 1);
	ck_assert_int_eq(held->state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(fake.live, 2);
	touch(0, 6);
	ck_assert_uint_eq(fake.regs, 2);
	put(held);
	ck_assert_uint_eq(fake.live, 1);
	/* Its pages stay watched: the wider region covers them. */
	ck_assert(fake_mon_all(mon, 0, 6));
}
END_TEST

START_TEST(test_widen_fails)
{
	touch(0, 4);
	fake.bad_start = base;		/* can no longer be registered */
	fake.bad_end = base + 2 * page;
	touch(3, 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_WIDENED), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REG_FAILURES), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
	ck_assert(fake_mon_none(mon, 0, 3));
	ck_assert(fake_mon_all(mon, 3, 7));
}
END_TEST

START_TEST(test_read_only)
{
	struct mrrc_region *region = NULL;

	fake.ro_start = base + 10 * page;
	fake.ro_end = base + 20 * page;
	put(get_as(12, 1, MRRC_RO));
	ck_assert_uint_eq(stat_of(MRRC_STAT_RO_FALLBACKS), 1);
	put(get_as(12, 1, MRRC_RO));
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 1);
	ck_assert_int_eq(try_get(12, 1, MRRC_RW, &region), -EFAULT);
	ck_assert_ptr_null(region);
	ck_assert_uint_eq(fake.live, 1);
	/* Not memory at all. */
	fake.bad_start = base + 30 * page;
	fake.bad_end = base + 31 * page;
	ck_assert_int_eq(try_get(30, 1, MRRC_RO, &region), -EFAULT);
	ck_assert(fake_mon_none(mon, 30, 31));
	ck_assert_ptr_null(region);
}
END_TEST

START_TEST(test_limit)
{
	static const int limits[] = {
		ENOMEM, EAGAIN, EMFILE, ENFILE, ENOSPC, ENOBUFS, EBUSY,
	};
	struct mrrc_region *region = NULL;
	struct mrrc_region *held[2];
	unsigned i;

	/* The device takes two: make room by what is idle. */
	fake.max_live = 2;
	for (i = 0; i < 10; i++)
		touch(2 * i, 1);
	ck_assert_uint_le(fake.live, 2);
	mrrc_cache_mt_flush(cache);
	for (i = 0; i < 2; i++)
		held[i] = get(2 * i, 1);
	ck_assert_int_eq(try_get(20, 1, MRRC_RW, &region), -ENOMEM);
	ck_assert_ptr_null(region);
	for (i = 0; i < 2; i++)
		put(held[i]);
	touch(20, 1);
	fake.max_live = 0;
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		fake.fail_rc = -limits[i];
		atomic_store(&fake.fail_in, 1);
		touch(2 * i, 1);
	}
}
END_TEST

START_TEST(test_error)
{
	struct mrrc_region *region = NULL;

	touch(4, 1);
	atomic_store(&fake.fail_in, 1);
	ck_assert_int_eq(try_get(0, 1, MRRC_RW, &region), -EINVAL);
	ck_assert_ptr_null(region);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);	/* not evicted */
	touch(0, 1);
}
END_TEST

START_TEST(test_evict)
{
	unsigned i;

	for (i = 0; i < MAX_REGIONS + 4; i++)
		touch(2 * i, 1);
	ck_assert_uint_eq(fake.live, MAX_REGIONS);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 4);
	/* What left is not watched any more. */
	for (i = 0; i < MAX_REGIONS + 4; i++)
		ck_assert(i < 4 ? fake_mon_none(mon, 2 * i, 2 * i + 1) :
				  fake_mon_all(mon, 2 * i, 2 * i + 1));
	ck_assert_uint_eq(mrrc_cache_mt_flush(cache), MAX_REGIONS);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_lt(fake.batches, 6);
	ck_assert(fake_mon_none(mon, 0, 64));
}
END_TEST

START_TEST(test_full)
{
	struct mrrc_region *held[MAX_REGIONS];
	struct mrrc_region *extra;
	int i;

	for (i = 0; i < MAX_REGIONS; i++)
		held[i] = get(2 * i, 1);
	extra = get(40, 1);
	ck_assert_int_eq(extra->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_FULL), 1);
	ck_assert(fake_mon_none(mon, 40, 41));
	put(extra);
	ck_assert_uint_eq(fake.live, MAX_REGIONS);
	for (i = 0; i < MAX_REGIONS; i++)
		put(held[i]);
	/* Larger than everything. */
	touch(0, MAX_PAGES + 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_TOO_BIG), 1);
	ck_assert_uint_eq(fake.live, MAX_REGIONS);
}
END_TEST

START_TEST(test_close_busy)
{
	struct mrrc_region *region = get(0, 1);

	ck_assert_int_eq(mrrc_cache_mt_close(cache), -EBUSY);
	mrrc_cache_mt_invalidate(cache, (void *)base, 1);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), -EBUSY);
	put(region);
}
END_TEST

START_TEST(test_invalidate_held)
{
	struct mrrc_region *a = get(0, 4);
	struct mrrc_region *b;

	/* The middle goes while an operation uses all of it. */
	fake_mon_raise(mon, base + page, base + 2 * page, MRRC_MON_UNMAP);
	mrrc_mon_drain(mon);
	ck_assert_int_eq(a->state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(fake.live, 1);
	b = get(0, 4);
	ck_assert_ptr_ne(a, b);
	ck_assert_uint_eq(fake.live, 2);
	put(a);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert(fake_mon_all(mon, 0, 4));
	put(b);
	ck_assert_uint_eq(stat_of(MRRC_STAT_INVALIDATIONS), 1);
}
END_TEST

START_TEST(test_invalidate_idle)
{
	touch(0, 4);
	touch(10, 4);
	fake_mon_raise(mon, base + page, base + 2 * page, MRRC_MON_UNMAP);
	mrrc_mon_drain(mon);
	/* Whoever reads events may not call out; the next caller does. */
	ck_assert_uint_eq(fake.live, 2);
	ck_assert(fake_mon_none(mon, 0, 1));
	ck_assert(fake_mon_none(mon, 2, 4));
	touch(10, 1);
	ck_assert_uint_eq(fake.live, 1);
	fake_mon_raise(mon, base, base + 20 * page, MRRC_MON_REMOVE);
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(mrrc_cache_mt_flush(cache), 1);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

START_TEST(test_pending_event)
{
	/* Nobody has read it yet: the lookup does. */
	touch(0, 1);
	fake_mon_raise(mon, base, base + page, MRRC_MON_UNMAP);
	touch(0, 1);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_BUSY), 1);
}
END_TEST

START_TEST(test_busy)
{
	touch(0, 1);
	fake_mon_of(mon)->busy = 3;
	touch(0, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 1);
	/* For ever: the operation gets a registration of its own. */
	fake_mon_of(mon)->busy = 1000;
	touch(0, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 1);
	fake_mon_of(mon)->busy = 0;
	touch(0, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 2);
}
END_TEST

/* ---- events between watching and inserting ---- */

static void hook_raise(void *arg, uintptr_t start, size_t len)
{
	fake_mon_raise(mon, start, start + page, MRRC_MON_UNMAP);
	if (arg)
		mrrc_mon_drain(mon);
	fake.hook = NULL;
}

START_TEST(test_raced)
{
	struct mrrc_region *region;

	/* _i: handled before registration ends, or found by the probe. */
	fake.hook = hook_raise;
	fake.hook_arg = _i ? &fake : NULL;
	region = get(4, 2);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 0);
	ck_assert(fake_mon_none(mon, 4, 6));
	put(region);
	ck_assert_uint_eq(fake.live, 0);
	touch(4, 2);
	ck_assert_uint_eq(fake.live, 1);
}
END_TEST

static void hook_elsewhere(void *arg, uintptr_t start, size_t len)
{
	fake_mon_raise(mon, start + len, start + len + page, MRRC_MON_UNMAP);
	fake.hook = NULL;
}

START_TEST(test_raced_elsewhere)
{
	/* Somebody else's unmap costs a drain, not the registration. */
	fake.hook = hook_elsewhere;
	touch(4, 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
}
END_TEST

static void hook_get(void *arg, uintptr_t start, size_t len)
{
	struct mrrc_region **other = arg;

	fake.hook = NULL;
	*other = get(4, 2);
}

START_TEST(test_duplicate)
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
	ck_assert(fake_mon_all(mon, 4, 6));
	put(region);
	put(other);
}
END_TEST

static void hook_flush(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	mrrc_cache_mt_flush(cache);
}

START_TEST(test_pending_stays_watched)
{
	touch(2, 4);
	/* The overlapped region goes while its union is being registered. */
	fake.hook = hook_flush;
	touch(4, 4);
	ck_assert(fake_mon_all(mon, 2, 8));
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
	ck_assert_uint_eq(fake.live, 1);
}
END_TEST

START_TEST(test_two_caches)
{
	struct mrrc_cache_mt *first = cache;
	struct mrrc_cache_mt *second;

	ck_assert_int_eq(open_cache(&second), 0);
	touch(0, 4);
	cache = second;
	touch(2, 4);
	ck_assert_uint_eq(fake.live, 2);
	/* What one forgets the other still watches. */
	mrrc_cache_mt_flush(first);
	ck_assert(fake_mon_none(mon, 0, 2));
	ck_assert(fake_mon_all(mon, 2, 6));
	/* An event reaches both, and leaves nothing watched. */
	cache = first;
	touch(0, 4);
	fake_mon_raise(mon, base + 3 * page, base + 4 * page, MRRC_MON_REMOVE);
	mrrc_mon_drain(mon);
	ck_assert(fake_mon_none(mon, 0, 6));
	ck_assert_int_eq(mrrc_cache_mt_close(second), 0);
	ck_assert_uint_eq(fake.live, 1);
}
END_TEST

/* ---- nothing watches ---- */

START_TEST(test_no_monitor)
{
	struct mrrc_cache_mt *outer = cache;
	struct mrrc_mon *saved = mon;

	ck_assert_int_eq(mrrc_mon_open("none", NULL, &mon), 0);
	ck_assert_int_eq(open_cache(&cache), 0);
	touch(0, 1);
	touch(0, 1);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_NO_MONITOR), 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MISSES), 2);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	mrrc_mon_close(mon);
	mon = saved;
	cache = outer;
}
END_TEST

static const struct {
	int watch_rc;
	bool blind;
	enum mrrc_stat cause;
} refusals[] = {
	{ -EINVAL, false, MRRC_STAT_UNCACHED_UNWATCHABLE },
	{ -EBUSY, false, MRRC_STAT_UNCACHED_UNWATCHABLE },
	{ -ENOMEM, false, MRRC_STAT_UNCACHED_WATCH_LIMIT },
	{ -ENODEV, false, MRRC_STAT_UNCACHED_NO_MONITOR },
	{ 0, true, MRRC_STAT_UNCACHED_NOT_PRIVATE },
};

START_TEST(test_refused)
{
	struct fake_mon *state = fake_mon_of(mon);
	struct mrrc_region *region;
	unsigned unwatches;

	touch(0, 2);
	state->watch_rc = refusals[_i].watch_rc;
	state->blind = refusals[_i].blind;
	unwatches = state->unwatches;
	region = get_as(4, 2, MRRC_RO);
	/* As asked for, no more: this memory is what it is. */
	ck_assert_int_eq(region->access, MRRC_RO);
	ck_assert_int_eq(region->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(refusals[_i].cause), 1);
	put(region);
	ck_assert_uint_eq(fake.live, 1);
	/* Another's userfaultfd may own a range that was refused. */
	if (refusals[_i].watch_rc == -EINVAL ||
	    refusals[_i].watch_rc == -EBUSY)
		ck_assert_uint_eq(state->unwatches, unwatches);
	state->watch_rc = 0;
	state->blind = false;
	ck_assert(fake_mon_none(mon, 4, 6));
	ck_assert(fake_mon_all(mon, 0, 2));
}
END_TEST

START_TEST(test_monitor_fails)
{
	struct mrrc_region *held = get(0, 2);

	touch(4, 2);
	/* _i: by the probe, or while reading events. */
	if (_i) {
		fake_mon_of(mon)->check_rc = -EPERM;
	} else {
		fake_mon_of(mon)->drain_rc = -EIO;
		fake_mon_raise(mon, base, base + page, MRRC_MON_UNMAP);
	}
	touch(0, 2);
	ck_assert(!mrrc_mon_works(mon));
	ck_assert_int_eq(held->state, MRRC_REGION_DEAD);
	touch(4, 2);
	touch(4, 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_NO_MONITOR), 3);
	ck_assert_uint_eq(fake.live, 1);
	put(held);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

/* ---- failures ---- */

START_TEST(test_open_fails)
{
	struct mrrc_cache_mt *other = NULL;
	bool fired;
	int rc, n;

	for (n = 1;; n++) {
		fault_arm(n);
		rc = open_cache(&other);
		fired = fault_disarm();
		if (!fired)
			break;
		ck_assert_int_eq(rc, -ENOMEM);
		ck_assert_ptr_null(other);
		ck_assert_uint_eq(fault_leaks(), 0);
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(n, 4);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}
END_TEST

START_TEST(test_get_fails)
{
	static const char where[] = "page";
	struct mrrc_region *region;
	bool fired;
	int rc, n;

	/* _i: cacheable, or not. */
	fake_mon_of(mon)->watch_rc = _i ? -EINVAL : 0;
	for (n = 1;; n++) {
		region = NULL;
		fault_arm(n);
		rc = mrrc_cache_mt_get(cache, where, 1, MRRC_RO, &region);
		fired = fault_disarm();
		if (!fired)
			break;
		/* The fake's own want of memory is tried again. */
		if (rc) {
			ck_assert_int_eq(rc, -ENOMEM);
			ck_assert_ptr_null(region);
			ck_assert_uint_eq(fault_leaks(), 0);
			ck_assert_uint_eq(fake.live, 0);
		} else {
			put(region);
			mrrc_cache_mt_flush(cache);
		}
	}
	ck_assert_int_eq(rc, 0);
	put(region);
	ck_assert_int_eq(n, 3 + _i);
}
END_TEST

START_TEST(test_attr)
{
	struct mrrc_cache_attr attr = {
		.ops = &fake_reg_ops,
		.arg = &fake,
		.mon = mon,
	};
	struct mrrc_vm_limits limits;
	struct mrrc_cache_mt *other = NULL;
	size_t bytes, regions;

	attr.policy = "no such";
	ck_assert_int_eq(mrrc_cache_mt_open(&attr, &other), -ENOENT);
	ck_assert_ptr_null(other);
	attr.policy = NULL;
	ck_assert_int_eq(mrrc_cache_mt_open(&attr, &other), 0);
	mrrc_cache_mt_limits(other, &bytes, &regions);
	mrrc_vm_default_limits(&limits);
	ck_assert_uint_eq(bytes, limits.max_bytes);
	ck_assert_uint_eq(regions, limits.max_regions);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}
END_TEST

Suite *cache_mt_suite(void)
{
	Suite *suite = suite_create("cache_mt");
	TCase *tcase = tcase_create("cache_mt");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_arguments);
	tcase_add_test(tcase, test_hit);
	tcase_add_test(tcase, test_bytes_of_a_page);
	tcase_add_test(tcase, test_widen);
	tcase_add_test(tcase, test_widen_fails);
	tcase_add_test(tcase, test_read_only);
	tcase_add_test(tcase, test_limit);
	tcase_add_test(tcase, test_error);
	tcase_add_test(tcase, test_evict);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_close_busy);
	tcase_add_test(tcase, test_invalidate_held);
	tcase_add_test(tcase, test_invalidate_idle);
	tcase_add_test(tcase, test_pending_event);
	tcase_add_test(tcase, test_busy);
	tcase_add_loop_test(tcase, test_raced, 0, 2);
	tcase_add_test(tcase, test_raced_elsewhere);
	tcase_add_test(tcase, test_duplicate);
	tcase_add_test(tcase, test_pending_stays_watched);
	tcase_add_test(tcase, test_two_caches);
	tcase_add_test(tcase, test_no_monitor);
	tcase_add_loop_test(tcase, test_refused, 0,
			    sizeof(refusals) / sizeof(refusals[0]));
	tcase_add_loop_test(tcase, test_monitor_fails, 0, 2);
	tcase_add_test(tcase, test_open_fails);
	tcase_add_loop_test(tcase, test_get_fails, 0, 2);
	tcase_add_test(tcase, test_attr);
	suite_add_tcase(suite, tcase);
	return suite;
}
