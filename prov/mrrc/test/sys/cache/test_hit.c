/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hits without a lock (sys/cache/region_hints.h, cache_get.c): a thread's hint
 * must be true when it is used, although other threads evict and unmap
 * meanwhile. test_hit_threads.c tests threads that close, end or fork.
 */
#include "config.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#include "test/fakes/fault.h"
#include "sys/cache/region_hints.h"

TEST_CASE(hit, mt_setup, mt_teardown);

/* ---- hints ---- */

TEST(test_access)
{
	struct mrrc_region *region;
	uint64_t before;

	/* A hint for a read-only region does not serve a writer. */
	fake.ro_start = base;
	fake.ro_end = base + page;
	put(get_as(0, 1, MRRC_RO));
	before = quick();
	put(get_as(0, 1, MRRC_RO));
	ck_assert_uint_eq(quick(), before + 1);
	ck_assert_int_eq(try_get(0, 1, MRRC_RW, &region), -EFAULT);
	ck_assert_uint_eq(quick(), before + 1);
	/* A hint for a local region does not serve peers. */
	put(get_as(4, 1, MRRC_RW));
	region = get_as(4, 1, MRRC_RW | MRRC_REMOTE_WRITE);
	ck_assert_int_eq(region->access, MRRC_RW | MRRC_REMOTE_WRITE);
	put(region);
}

/* The memory of an evicted region is reused for another region. */
TEST(test_reused_memory)
{
	struct mrrc_region *a, *b;
	uint64_t before;

	a = get(0, 1);
	put(a);
	mrrc_cache_mt_flush(cache);
	b = get(8, 1);
	ck_assert_ptr_eq(a, b); /* the test needs this reuse */
	before = quick();
	a = get(0, 1);
	ck_assert_uint_eq(quick(), before);
	ck_assert_ptr_ne(a, b);
	ck_assert_uint_eq(fake_reg_start(a), base);
	put(a);
	put(b);
}

TEST(test_invalidated)
{
	uint64_t before;

	touch(0, 4);
	touch(0, 4);
	before = quick();
	mrrc_cache_mt_invalidate(cache, (void *) (base + 2 * page), 1);
	touch(0, 4);
	ck_assert_uint_eq(quick(), before);
	ck_assert_uint_eq(fake.regs, 2);
	/* There is no hit while the monitor is busy, or after it failed. */
	touch(0, 4);
	before = quick();
	fake_mon_raise(mt_mon, base, base + page, MRRC_MON_UNMAP);
	touch(0, 4);
	ck_assert_uint_eq(quick(), before);
	ck_assert_uint_eq(fake.regs, 3);
	mrrc_mon_fail(mt_mon, "told to");
	touch(0, 4);
	ck_assert_uint_eq(quick(), before);
}

/*
 * A region that is held without the lock is neither evicted nor deregistered.
 */
TEST(test_held)
{
	struct mrrc_region *region;
	unsigned i;

	touch(0, 1);
	region = get(0, 1);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	for (i = 1; i < 20; i++)
		touch(2 * i, 1);
	mrrc_cache_mt_flush(cache);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_int_eq(region->state, MRRC_REGION_INDEXED);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), -EBUSY);
	/* The last put of an invalidated region deregisters it. */
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
	ck_assert_uint_eq(fake.live, 1);
	put(region);
	ck_assert_uint_eq(fake.live, 0);
}

/* There are more buffers than the first table has room for. */
TEST(test_growth)
{
	struct mrrc_region *region = get(0, 64);
	const char *far = (const char *) base;
	unsigned i, round;
	uint64_t before;

	put(region);
	reopen_as((struct mrrc_cache_attr){
		.max_bytes = (size_t) 1 << 40,
		.max_regions = 5000,
		.policy = "lru",
	});
	for (round = 0; round < 8; round++) {
		before = quick();
		/* The buffers are a power of two apart, as is usual. */
		for (i = 0; i < 4000; i++) {
			ck_assert_int_eq(mrrc_cache_mt_get(cache,
							   far + ((size_t) i
								  << 20),
							   1, MRRC_RW, &region),
					 0);
			ck_assert_uint_eq(region->start,
					  base + ((size_t) i << 20));
			mrrc_cache_mt_put(cache, region);
		}
	}
	ck_assert_uint_eq(quick() - before, 4000);
	ck_assert_uint_eq(fake.regs, 4001);
}

/* A large region has one hint for each 2 MiB. */
TEST(test_big)
{
	const size_t big = (size_t) 1 << MRRC_HINTS_BIG;
	uintptr_t start = 16 * big;
	struct mrrc_region *region;
	uint64_t before;

	reopen_as((struct mrrc_cache_attr){ .max_bytes = (size_t) 1 << 40 });
	touch_at(cache, start, 3 * big, MRRC_RW);
	before = quick();
	touch_at(cache, start + big - 1, 2, MRRC_RW);
	ck_assert_uint_eq(quick(), before + 1);
	/* A hint does not serve bytes beyond the region's end. */
	touch_at(cache, start + 3 * big - 1, 2, MRRC_RW);
	ck_assert_uint_eq(quick(), before + 1);
	/* A hint does not serve bytes before the region's start. */
	start += 16 * big;
	touch_at(cache, start + big / 2, 3 * big, MRRC_RW);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *) start, 1, MRRC_RW,
					   &region),
			 0);
	ck_assert_uint_eq(region->start, start);
	mrrc_cache_mt_put(cache, region);
	ck_assert_uint_eq(quick(), before + 1);
}

/* ---- caches ---- */

TEST(test_two_caches)
{
	struct mrrc_cache_mt *other;
	struct mrrc_region *a, *b;
	const char *ptr = (const char *) base;
	int i;

	ck_assert_int_eq(open_cache(&other), 0);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(mrrc_cache_mt_get(cache, ptr, 1, MRRC_RW, &a),
				 0);
		ck_assert_int_eq(mrrc_cache_mt_get(other, ptr, 1, MRRC_RW, &b),
				 0);
		ck_assert_ptr_ne(a, b);
		mrrc_cache_mt_put(other, b);
		mrrc_cache_mt_put(cache, a);
	}
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 3);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
	/* A new cache at the same address does not use the old hints. */
	ck_assert_int_eq(open_cache(&other), 0);
	touch_at(other, base, 1, MRRC_RW);
	ck_assert_uint_eq(fake.regs, 3);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}

/*
 * The nth allocation of a thread's first lookup fails, while the region is
 * registered.
 */
static void *get_without(void *arg)
{
	struct mrrc_region *region;
	bool fired;
	int ret;

	fault_arm((uintptr_t) arg);
	ret = mrrc_cache_mt_get(cache, (void *) base, 1, MRRC_RW, &region);
	fired = fault_disarm();
	ck_assert_int_eq(ret, 0);
	mrrc_cache_mt_put(cache, region);
	ck_assert(!fired || !quick());
	return fired ? arg : NULL;
}

/* Without memory for a table, all lookups take the lock. */
TEST(test_no_table)
{
	void *fired = cache;
	uintptr_t n;

	touch(0, 1);
	for (n = 1; fired; n++) {
		pthread_join(thread_start(get_without, (void *) n), &fired);
	}
	/* The steps are the table, its entries, and the counts of holds. */
	ck_assert_uint_eq(n, 5);
	ck_assert_uint_eq(fake.regs, 1);
}
