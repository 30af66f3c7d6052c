/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_budget: registered bytes of a cache come out of the node's
 * budget.
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_mt_priv.h"
#include "test/case.h"
#include "test/sys/node/budget_fixture.h"
#include "test/sys/cache/mt_fixture.h"

#include "sys/cache/miss.h"

#define BUDGET_PAGES 32

static int open_with(bool helper, struct mrrc_cache_mt **out)
{
	return open_as((struct mrrc_cache_attr){ .max_regions = 64,
						 .policy = "lru:batch=1",
						 .helper = helper,
						 .budget = a },
		       out);
}

static void setup(void)
{
	mt_setup();
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	budget_open_both(BUDGET_PAGES * page);
	ck_assert_int_eq(open_with(false, &cache), 0);
}

static void teardown(void)
{
	mt_teardown();
	ck_assert_uint_eq(atomic_load(&a->used), 0);
	ck_assert_uint_eq(atomic_load(&a->over), 0);
	ck_assert_uint_eq(atomic_load(&a->left), a->reserved);
	budget_teardown();
}

static size_t used(void)
{
	const size_t bytes = atomic_load(&a->used) * MRRC_NODE_UNIT;

	ck_assert_uint_eq(bytes, fake.live_bytes);
	return bytes;
}

TEST_CASE(cache_budget, setup, teardown);

TEST(test_used)
{
	struct mrrc_region *region = get(0, 4);

	ck_assert_uint_eq(used(), 4 * page);
	put(region);
	ck_assert_uint_eq(used(), 4 * page);
	fake_mon_raise(mt_mon, base, base + 4 * page, MRRC_MON_REMOVE);
	mrrc_mon_drain(mt_mon);
	touch(8, 1);
	ck_assert_uint_eq(used(), page);
	fake.fail_in = 1;
	ck_assert_int_eq(try_get(10, 1, MRRC_RW, &region), -EINVAL);
	ck_assert_uint_eq(used(), page);
}

/* Held regions beyond the budget are not kept. */
TEST(test_held)
{
	struct mrrc_region *all = get(0, BUDGET_PAGES), *more = get(40, 8);

	ck_assert_uint_eq(used(), (BUDGET_PAGES + 8) * page);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_FULL), 1);
	put(more);
	ck_assert_uint_eq(used(), BUDGET_PAGES * page);
	put(all);
	touch(40, 8);
	ck_assert_uint_eq(used(), 8 * page);
}

/* Another cache of the process has the bytes, and gives them. */
TEST(test_second)
{
	struct mrrc_cache_mt *other;
	unsigned i;

	ck_assert_int_eq(open_with(true, &other), 0);
	for (i = 0; i < BUDGET_PAGES; i++)
		touch_at(other, base + i * page, 1, MRRC_RW);
	/* The other cache's helper deregisters, or this loop has no end. */
	while (!stat_of(MRRC_STAT_INSERTIONS)) {
		touch(40, 4);
		usleep(1000);
	}
	ck_assert_uint_eq(stat_of(MRRC_STAT_INSERTIONS), 1);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
	ck_assert_uint_eq(used(), 4 * page);
}

static int register_ahead(uint64_t token)
{
	return mrrc_cache_mt_ahead(cache, base, 4 * page, MRRC_RW, token,
				   cache->flushes);
}

/* A registration ahead of use evicts no region, here or in other processes. */
TEST(test_gentle)
{
	static struct mrrc_mon_ops ops;
	uint64_t token, evictions;

	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	mrrc_mon_close(mt_mon);
	ops = fake_mon_ops;
	ops.lazy = true;
	ck_assert_int_eq(mrrc_mon_open_ops(&ops, NULL, &mt_mon), 0);
	fake_mon_of(mt_mon)->base = base;
	ck_assert_int_eq(open_with(false, &cache), 0);

	touch(0, 4);
	token = mrrc_mon_unchanged(mt_mon, base, 4 * page);
	mrrc_cache_mt_flush(cache);
	touch(8, 16);
	evictions = stat_of(MRRC_STAT_EVICTIONS);
	ck_assert(mrrc_budget_take(b, 16 * page));
	ck_assert_int_eq(register_ahead(token), -ENOSPC);
	ck_assert_uint_eq(used(), 16 * page);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), evictions);
	ck_assert_uint_eq(a->want, 0);
	mrrc_cache_mt_flush(cache);
	ck_assert_int_eq(register_ahead(token), 0);
	ck_assert_uint_eq(used(), 4 * page);

	mrrc_budget_put(b, 16 * page);
	mrrc_cache_mt_flush(cache);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	mrrc_mon_close(mt_mon);
	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &mt_mon), 0);
	ck_assert_int_eq(open_with(false, &cache), 0);
}
