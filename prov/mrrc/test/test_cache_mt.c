/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt: hits, misses, limits, failures. Requests in pieces:
 * test_cache_pieces.c; events: test_cache_event.c; the kernel's own:
 * test_cache_uffd.c; threads: race_mon.c.
 */
#include "config.h"
#include "case.h"

#include <errno.h>

#include "mt_fixture.h"
#include "fault.h"
#include "sys/base/vm.h"

TEST_CASE(cache_mt, mt_setup, mt_teardown);

TEST(test_arguments)
{
	const struct {
		uintptr_t start;
		size_t len;
		int ret;
	} bad[] = {
		{ base, 0, -EINVAL },
		{ 0, 0, -EINVAL },
		{ 0, 1, -EFAULT },
		{ base, SIZE_MAX, -EFAULT },
		{ base, UINTPTR_MAX - base, -EFAULT },
		{ UINTPTR_MAX, 1, -EFAULT },
	};
	struct mrrc_region *region = NULL;
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *) bad[i].start,
						   bad[i].len, MRRC_RO,
						   &region),
				 bad[i].ret);
	ck_assert_ptr_null(region);
	ck_assert_uint_eq(fake.regs, 0);
}

TEST(test_hit)
{
	struct mrrc_region *a, *b, *c;

	a = get(10, 2);
	b = get(11, 1);
	ck_assert_ptr_eq(a, b);
	/* Registered both ways, so reading hits as well. */
	c = get_as(10, 1, MRRC_RO);
	ck_assert_ptr_eq(a, c);
	ck_assert_uint_eq(mrrc_region_held(a), 3);
	put(a);
	put(b);
	put(c);
	touch(10, 2);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 3);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MISSES), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGISTRATIONS), 1);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_PINNED), 2 * page);
	ck_assert(fake_mon_all(mt_mon, 10, 12));
}

TEST(test_bytes_of_a_page)
{
	struct mrrc_region *region;
	unsigned i;

	/* Small neighbours share the registration of their page. */
	for (i = 0; i < page; i += 8)
		touch_at(cache, base + i, 8, MRRC_RO);
	ck_assert_uint_eq(fake.regs, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), page / 8 - 1);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *) (base + page - 1), 2,
					   MRRC_RO, &region),
			 0);
	ck_assert_uint_eq(region->len, 2 * page);
	put(region);
}

/* One region is asked for: overlaps are registered again, in one. */
TEST(test_merge)
{
	struct mrrc_region *held = get(0, 4);

	/* Of use a second time, so its other pages are kept as well. */
	touch(0, 1);
	touch(1, 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MERGES), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_OVERLAPS), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_SPLITS), 0);
	ck_assert_int_eq(held->state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(fake.live, 2);
	touch(0, 5);
	ck_assert_uint_eq(fake.regs, 2);
	put(held);
	ck_assert_uint_eq(fake.live, 1);
	/* Its pages stay watched: the wider region covers them. */
	ck_assert(fake_mon_all(mt_mon, 0, 5));
}

TEST(test_merge_once_used)
{
	touch(0, 4);
	touch(1, 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MERGES), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_BYTES), 4 * page);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert(fake_mon_none(mt_mon, 0, 1));
	ck_assert(fake_mon_all(mt_mon, 1, 5));
}

/* Neighbours that share a page both stay, and so does the watch of that page. */
TEST(test_neighbours)
{
	touch(0, 4);
	touch(3, 4);
	touch(0, 4);
	touch(3, 4);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 2);
	fake_mon_raise(mt_mon, base, base + page, MRRC_MON_REMOVE);
	mrrc_mon_drain(mt_mon);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
	ck_assert(fake_mon_none(mt_mon, 0, 3));
	ck_assert(fake_mon_all(mt_mon, 3, 7));
}

TEST(test_merge_fails)
{
	touch(0, 4);
	touch(0, 4);
	fake.bad_start = base; /* can no longer be registered */
	fake.bad_end = base + page;
	touch(1, 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_MERGES), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REG_FAILURES), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
	ck_assert(fake_mon_none(mt_mon, 0, 1));
	ck_assert(fake_mon_all(mt_mon, 1, 5));
}

TEST(test_read_only)
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
	ck_assert(fake_mon_none(mt_mon, 30, 31));
	ck_assert_ptr_null(region);
}

TEST(test_limit)
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

TEST(test_error)
{
	struct mrrc_region *region = NULL;

	touch(4, 1);
	atomic_store(&fake.fail_in, 1);
	ck_assert_int_eq(try_get(0, 1, MRRC_RW, &region), -EINVAL);
	ck_assert(!pending_left());
	ck_assert_ptr_null(region);
	/* Nothing was evicted for it. */
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
	touch(0, 1);
	/* Nor what cannot be kept. */
	fake_mon_of(mt_mon)->watch_rc = -EINVAL;
	atomic_store(&fake.fail_in, 1);
	ck_assert_int_eq(try_get(8, 1, MRRC_RW, &region), -EINVAL);
	ck_assert_uint_eq(regions_live(), 2);
}

TEST(test_evict)
{
	unsigned i;

	reopen("lru");
	for (i = 0; i < MT_REGIONS + 4; i++)
		touch(2 * i, 1);
	ck_assert_uint_eq(fake.live, MT_REGIONS);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 4);
	/* What left is not watched any more. */
	for (i = 0; i < MT_REGIONS + 4; i++)
		ck_assert(i < 4 ? fake_mon_none(mt_mon, 2 * i, 2 * i + 1) :
				  fake_mon_all(mt_mon, 2 * i, 2 * i + 1));
	ck_assert_uint_eq(mrrc_cache_mt_flush(cache), MT_REGIONS);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_lt(fake.batches, 6);
	ck_assert(fake_mon_none(mt_mon, 0, 64));
}

/* By default in batches: 1/32 of 64 pages are two more than was needed. */
TEST(test_evict_batch)
{
	unsigned i;

	for (i = 0; i < MT_REGIONS; i++)
		touch(2 * i, 1);
	ck_assert_uint_eq(fake.batches, 0);
	touch(2 * MT_REGIONS, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 3);
	ck_assert_uint_eq(fake.deregs, 3);
	ck_assert_uint_eq(fake.batches, 1);
	ck_assert_uint_eq(fake.live, MT_REGIONS - 2);
}

TEST(test_full)
{
	struct mrrc_region *held[MT_REGIONS];
	struct mrrc_region *extra;
	int i;

	for (i = 0; i < MT_REGIONS; i++)
		held[i] = get(2 * i, 1);
	extra = get(40, 1);
	ck_assert_int_eq(extra->state, MRRC_REGION_NEW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_FULL), 1);
	ck_assert(fake_mon_none(mt_mon, 40, 41));
	put(extra);
	ck_assert_uint_eq(fake.live, MT_REGIONS);
	for (i = 0; i < MT_REGIONS; i++)
		put(held[i]);
	/* Larger than everything. */
	touch(0, MT_PAGES + 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_TOO_BIG), 1);
	ck_assert_uint_eq(fake.live, MT_REGIONS);
}

TEST(test_close_busy)
{
	struct mrrc_region *region = get(0, 1);

	ck_assert_int_eq(mrrc_cache_mt_close(cache), -EBUSY);
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), -EBUSY);
	put(region);
}

/* ---- failures ---- */

TEST(test_open_fails)
{
	struct mrrc_cache_mt *other = NULL;
	bool fired;
	int ret, n;

	for (n = 1;; n++) {
		fault_arm(n);
		ret = open_cache(&other);
		fired = fault_disarm();
		if (!fired)
			break;
		if (!ret) { /* a pool has fewer addresses at first */
			ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
			other = NULL;
			continue;
		}
		ck_assert_int_eq(ret, -ENOMEM);
		ck_assert_ptr_null(other);
		ck_assert_uint_eq(fault_leaks(), 0);
	}
	ck_assert_int_eq(ret, 0);
	/* The cache, its policy, what that learns by, the lock. */
	ck_assert_int_ge(n, 5);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}

LOOP_TEST(test_get_fails, 0, 2)
{
	static const char where[] = "page";
	struct mrrc_region *region;
	bool fired;
	int ret, n;

	/* _i: cacheable, or not. */
	fake_mon_of(mt_mon)->watch_rc = _i ? -EINVAL : 0;
	for (n = 1;; n++) {
		region = NULL;
		fault_arm(n);
		ret = mrrc_cache_mt_get(cache, where, 1, MRRC_RO, &region);
		fired = fault_disarm();
		if (!fired)
			break;
		/* The fake's own want of memory is tried again. */
		if (ret) {
			ck_assert_int_eq(ret, -ENOMEM);
			ck_assert_ptr_null(region);
			ck_assert_uint_eq(fault_leaks(), 0);
			ck_assert_uint_eq(fake.live, 0);
		} else {
			put(region);
			mrrc_cache_mt_flush(cache);
		}
	}
	ck_assert_int_eq(ret, 0);
	put(region);
	/* Memory for regions, then what the fake takes. */
	ck_assert_int_eq(n, 3);
}

TEST(test_attr)
{
	static const struct {
		const char *policy;
		int ret;
	} bad[] = {
		{ "no such", -ENOENT },
		{ "gdsf:no=1", -ESRCH },
		{ "gdsf:history", -EINVAL },
		{ "gdsf:history=2", -ERANGE },
	};
	struct mrrc_cache_attr attr = {
		.ops = &fake_reg_ops,
		.arg = &fake,
		.mon = mt_mon,
	};
	struct mrrc_vm_limits limits;
	struct mrrc_cache_mt *other = NULL;
	size_t bytes, regions;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		attr.policy = bad[i].policy;
		ck_assert_int_eq(mrrc_cache_mt_open(&attr, &other), bad[i].ret);
		ck_assert_ptr_null(other);
	}
	attr.policy = NULL;
	ck_assert_int_eq(mrrc_cache_mt_open(&attr, &other), 0);
	mrrc_cache_mt_limits(other, &bytes, &regions);
	mrrc_vm_default_limits(&limits);
	ck_assert_uint_eq(bytes, limits.max_bytes);
	ck_assert_uint_eq(regions, limits.max_regions);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}
