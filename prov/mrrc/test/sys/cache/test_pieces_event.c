/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt: events, other requests and other threads while the gaps
 * of a request are registered.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/cache/mt_fixture.h"

#define THREADS 4
#define STEPS	4000

static unsigned event_page;
static int event_drain;
static unsigned event_skip;

static void hook_event(void *arg, uintptr_t start, size_t len)
{
	const uintptr_t at = base + event_page * page;

	if (event_skip && event_skip--)
		return;
	fake_mon_raise(mt_mon, at, at + page, MRRC_MON_UNMAP);
	if (event_drain)
		mrrc_mon_drain(mt_mon);
	fake.hook = NULL;
}

TEST_CASE(pieces_event, mt_setup_pieces, mt_teardown);

/* _i: the event is handled during registration, or the probe finds it. */
LOOP_TEST(test_unmap_held, 0, 2)
{
	struct mrrc_region *middle = get(10, 4);

	put(middle);
	event_page = 12;
	event_drain = _i;
	event_skip = 0;
	fake.hook = hook_event;
	get_pieces(8, 8, MRRC_RW, 4);
	/* The operation keeps its region, and no other operation gets it. */
	ck_assert_uint_eq(plan.count, 3);
	piece_is(1, 10, 4, middle);
	ck_assert_int_eq(middle->state, MRRC_REGION_DEAD);
	ck_assert_int_eq(plan.piece[0].region->state, MRRC_REGION_INDEXED);
	ck_assert_int_eq(plan.piece[2].region->state, MRRC_REGION_INDEXED);
	ck_assert_uint_eq(fake.live, 3);
	/* The kernel itself has unwatched page 12. */
	ck_assert(fake_mon_none(mt_mon, 10, 12));
	ck_assert(fake_mon_none(mt_mon, 13, 14));
	put_pieces();
	ck_assert_uint_eq(fake.live, 2);
	get_pieces(8, 8, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 3);
	ck_assert_uint_eq(fake.regs, 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 0);
	put_pieces();
}

/* A region of the plan is unmapped, and then a gap fails. */
static void hook_unmap_fail(void *arg, uintptr_t start, size_t len)
{
	hook_event(arg, start, len);
	atomic_store(&fake.fail_in, 1);
}

TEST(test_unmap_and_fail)
{
	touch(10, 4);
	event_page = 12;
	event_drain = 1;
	event_skip = 0;
	fake.hook = hook_unmap_fail;
	get_pieces(8, 8, MRRC_RW, 4);
	ck_assert_uint_eq(plan.count, 1);
	ck_assert_int_eq(plan.piece[0].region->state, MRRC_REGION_INDEXED);
	ck_assert_uint_eq(fake.live, 1);
	put_pieces();
}

/* ---- threads ---- */

static atomic_uint wrong;

static unsigned pick(uint64_t *state, unsigned n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 20) % n;
}

static void *walk(void *arg)
{
	uint64_t state = 2 * (uintptr_t) arg + 1;
	struct mrrc_plan mine[2] = { { 0 }, { 0 } };
	struct mrrc_plan *got;
	unsigned first, pages, i, step;
	enum mrrc_access access;

	for (step = 0; step < STEPS; step++) {
		/* The plan before is in use while the next one is requested. */
		got = &mine[step % 2];
		for (i = 0; i < got->count; i++)
			mrrc_cache_mt_put(cache, got->piece[i].region);
		got->count = 0;
		access = pick(&state, 2);
		first = pick(&state, 56);
		pages = 1 + pick(&state, 8);
		/* The last pages can only be read. */
		if (first + pages > 48)
			access = MRRC_RO;
		if (mrrc_cache_mt_get_pieces(cache,
					     (void *) (base + first * page),
					     pages * page, access,
					     1 + pick(&state, 6), got) ||
		    !covered(got, first, pages, access)) {
			atomic_fetch_add(&wrong, 1);
			got->count = 0;
		}
		if (!pick(&state, 50))
			mrrc_cache_mt_flush(cache);
		if (!pick(&state, 10))
			mrrc_cache_mt_invalidate(cache,
						 (void *) (base + first * page),
						 page);
	}
	for (step = 0; step < 2; step++) {
		for (i = 0; i < mine[step].count; i++)
			mrrc_cache_mt_put(cache, mine[step].piece[i].region);
	}
	return NULL;
}

LOOP_TEST(test_threads, 0, 3)
{
	static const char *const kinds[] = {
		"lru:pieces=32",
		"gdl",
		"mre-fig4:merge=1",
	};

	reopen(kinds[_i]);
	fake.ro_start = base + 48 * page;
	fake.ro_end = base + 64 * page;
	atomic_store(&wrong, 0);
	threads_run(THREADS, walk);
	ck_assert_uint_eq(wrong, 0);
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), THREADS * STEPS);
	ck_assert_uint_gt(stat_of(MRRC_STAT_SPLITS), 0);
	mrrc_cache_mt_flush(cache);
	ck_assert_uint_eq(fake.live, 0);
}
