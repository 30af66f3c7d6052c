/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt: hits, misses, limits, failures. test_cache_pieces.c tests
 * requests in pieces, test_cache_event.c events, test_cache_uffd.c the kernel's
 * events, and race_mon.c threads.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/cache/mt_fixture.h"
#include "test/fakes/fault.h"
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

TEST(test_merge_fails)
{
	touch(0, 4);
	touch(0, 4);
	fake.bad_start = base; /* the page cannot be registered any more */
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
	/* No memory is in this range at all. */
	fake.bad_start = base + 30 * page;
	fake.bad_end = base + 31 * page;
	ck_assert_int_eq(try_get(30, 1, MRRC_RO, &region), -EFAULT);
	ck_assert(fake_mon_none(mt_mon, 30, 31));
	ck_assert_ptr_null(region);
}

TEST(test_error)
{
	struct mrrc_region *region = NULL;

	touch(4, 1);
	atomic_store(&fake.fail_in, 1);
	ck_assert_int_eq(try_get(0, 1, MRRC_RW, &region), -EINVAL);
	ck_assert(!pending_left());
	ck_assert_ptr_null(region);
	/* No region was evicted for a registration that failed. */
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 1);
	touch(0, 1);
	/* A range that cannot be kept evicts no region, either. */
	fake_mon_of(mt_mon)->watch_rc = -EINVAL;
	atomic_store(&fake.fail_in, 1);
	ck_assert_int_eq(try_get(8, 1, MRRC_RW, &region), -EINVAL);
	ck_assert_uint_eq(regions_live(), 2);
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
	/* The range is larger than the whole cache. */
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
		if (!ret) { /* the pool has fewer addresses at first */
			ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
			other = NULL;
			continue;
		}
		ck_assert_int_eq(ret, -ENOMEM);
		ck_assert_ptr_null(other);
		ck_assert_uint_eq(fault_leaks(), 0);
	}
	ck_assert_int_eq(ret, 0);
	/*
	 * The failing steps are those that open the cache, its policy, its
	 * history and its lock.
	 */
	ck_assert_int_ge(n, 5);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}

LOOP_TEST(test_get_fails, 0, 2)
{
	static const char where[] = "page";
	struct mrrc_region *region;
	bool fired;
	int ret, n;

	/* _i: the range can be kept, or cannot. */
	fake_mon_of(mt_mon)->watch_rc = _i ? -EINVAL : 0;
	for (n = 1;; n++) {
		region = NULL;
		fault_arm(n);
		ret = mrrc_cache_mt_get(cache, where, 1, MRRC_RO, &region);
		fired = fault_disarm();
		if (!fired)
			break;
		/* A registration that lacks memory is tried again. */
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
	/* The steps are memory for regions, and the fake's memory. */
	ck_assert_int_eq(n, 3);
}

TEST(test_attr)
{
	static const struct {
		const char *policy;
		int ret;
	} bad[] = {
		{ "no such", -ENOENT },
		{ "gdl:no=1", -ESRCH },
		{ "gdl:duel", -EINVAL },
		{ "gdl:duel=2", -ERANGE },
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
