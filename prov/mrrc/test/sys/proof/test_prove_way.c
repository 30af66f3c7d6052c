/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/prove and the cache: hits do not ask the kernel before the process
 * has a way past all hooks, and ask afterwards, with and without other threads
 * of libc; no hit is stale. Each test runs in a process of its own.
 */
#include "config.h"
#include "test/case.h"
#include "test/sys/proof/prove_fixture.h"

#include "test/race/duel_way.h"
#include "test/fakes/fake_pin.h"

#define RW     (PROT_READ | PROT_WRITE)
#define ROUNDS 200u

static struct fake_pin fake;
static struct mrrc_cache_mt *cache;
static uint64_t word; /* each value is written only once */
static unsigned rounds, stale;
static char *own;

static void get(char *ptr, unsigned pages, struct mrrc_plan *plan)
{
	ck_assert_int_eq(mrrc_cache_mt_get_pieces(cache, ptr, pages * page,
						  MRRC_RW, 1, plan),
			 0);
	ck_assert_uint_eq(plan->count, 1);
}

static bool asks(void)
{
	struct mrrc_stats before, after;
	struct mrrc_plan plan;
	int i;

	for (i = 0; i < 3; i++) {
		mrrc_cache_mt_stats(cache, &before);
		get(own, 1, &plan);
		mrrc_cache_mt_put(cache, plan.piece[0].region);
		mrrc_cache_mt_stats(cache, &after);
	}
	ck_assert_uint_gt(after.value[MRRC_STAT_HITS],
			  before.value[MRRC_STAT_HITS]);
	return after.value[MRRC_STAT_PROBES] != before.value[MRRC_STAT_PROBES];
}

static void use(void *arg, char *ptr, unsigned pages, bool fresh)
{
	const uint64_t first = word + 1;
	struct mrrc_plan plan;
	unsigned i;

	for (i = 0; i < pages; i++)
		*(volatile uint64_t *) (ptr + i * page) = ++word;
	get(ptr, pages, &plan);
	stale += !fake_pin_sees(&plan, (uintptr_t) ptr, pages, first);
	mrrc_cache_mt_put(cache, plan.piece[0].region);
}

static bool over(void *arg)
{
	return ++rounds >= ROUNDS;
}

static void way_test(const struct duel_way *way)
{
	struct mrrc_cache_attr attr = {
		.ops = &fake_pin_ops,
		.arg = &fake,
		.mon = mon,
	};

	ck_assert_int_eq(mrrc_cache_mt_open(&attr, &cache), 0);
	own = map(RW);
	*(volatile char *) own = 1;
	ck_assert_msg(trusted(true), "%s", why);
	ck_assert(!asks());
	if (!way->come())
		return;
	ck_assert(asks());
	duel_fight(&way->move, way->thread, use, over, NULL);
	ck_assert_uint_eq(stale, 0);
	ck_assert(asks());
	if (way->go) {
		way->go();
		ck_assert_msg(trusted(true), "%s", why);
		ck_assert(!asks());
	}
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
}

TEST_CASE(way, NULL, NULL);

LOOP_TEST(test_threads, 0, duel_way_count)
{
	setup();
	way_test(&duel_ways[_i]);
}

/* libc knows no thread but this one. */
LOOP_TEST(test_alone, 0, duel_way_count)
{
	setup_alone();
	way_test(&duel_ways[_i]);
}
