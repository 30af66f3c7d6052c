/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holds in words that only their own thread writes (sys/cache/cache_hit.h):
 * holds put by other threads, holds put while the region leaves, and many holds
 * at once, which fake_reg_use() counts. holds.pml models the protocol.
 *
 * MRRC_HOLDS: holds of each thread in the last test (default 20000).
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_mt_priv.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#include <semaphore.h>

#include "test/fakes/fault.h"
#include "sys/base/biased_lock.h"

static struct mrrc_region *region;

static struct mrrc_region *get_one(uintptr_t addr)
{
	struct mrrc_region *got;

	ck_assert_int_eq(
		mrrc_cache_mt_get(cache, (void *) addr, 1, MRRC_RW, &got), 0);
	return got;
}

static void *get_here(void *arg)
{
	return get_one(base);
}

static void *put_here(void *arg)
{
	mrrc_cache_mt_put(cache, region);
	return NULL;
}

/* Puts the region in a thread that has a table. */
static void *use_and_put(void *arg)
{
	mrrc_cache_mt_put(cache, get_one(base));
	return put_here(NULL);
}

static void elsewhere(void *(*run)(void *) )
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, NULL), 0);
	pthread_join(thread, NULL);
}

static void *(*const putters[])(void *) = { put_here, use_and_put };

TEST_CASE(holds, mt_setup, mt_teardown);

/* A thread without a table puts the region, and one with a table. */
EACH_TEST(test_put_elsewhere, putters)
{
	touch(0, 1);
	region = get(0, 1);
	elsewhere(putters[_i]);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	ck_assert_uint_eq(mrrc_cache_mt_flush(cache), 1);
	ck_assert_uint_eq(fake.live, 0);
}

/* A region that left is deregistered at its last put, by any thread. */
TEST(test_last_elsewhere)
{
	touch(0, 1);
	region = get(0, 1);
	put(get(0, 1));
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
	ck_assert_uint_eq(fake.live, 1);
	elsewhere(put_here);
	ck_assert_uint_eq(fake.live, 0);
}

/* ---- puts while a region leaves ---- */

#ifndef __SANITIZE_THREAD__ /* stores need no barrier there */
static void appear(void)
{
	mrrc_hints_count_hold(mrrc_hints_lane(mrrc_hints_recent,
					      (char *) region - cache->regions),
			      1);
}

/* Another thread's hold becomes visible at the barrier, and not before. */
TEST(test_appears)
{
	touch(0, 1);
	region = get(0, 1);
	put(region);
	fault_at(FAULT_BARRIER, appear);
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
	fault_at(FAULT_BARRIER, NULL);
	ck_assert_uint_eq(fake.live, 1);
	put(region);
	ck_assert_uint_eq(fake.live, 0);
}

#endif

static pthread_barrier_t step;
static sem_t arrived;
static void *(*at_step)(void *);

static void arrive(void)
{
	sem_post(&arrived);
}

static void *wait_for_step(void *arg)
{
	struct mrrc_region *was = get_one(base);

	pthread_barrier_wait(&step);
	if (at_step == get_here)
		mrrc_cache_mt_put(cache, was);
	region = was;
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	fault_at(FAULT_LOCK, arrive);
	region = at_step(NULL);
	fault_at(FAULT_LOCK, NULL);
	arrive();
	return region;
}

/* Waits until the other thread waits for the lock, or is through. */
static void let_it(void)
{
	pthread_barrier_wait(&step);
	while (sem_wait(&arrived))
		;
}

static void leave_beside(void *(*what)(void *) )
{
	pthread_t thread;

	touch(0, 1);
	at_step = what;
	pthread_barrier_init(&step, NULL, 2);
	sem_init(&arrived, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_step, NULL), 0);
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	fault_at(FAULT_BARRIER, let_it);
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
	fault_at(FAULT_BARRIER, NULL);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&step);
}

/* The last put comes in between: one of both threads deregisters. */
TEST(test_put_between)
{
	leave_beside(put_here);
	ck_assert_uint_eq(fake.deregs, 1);
	ck_assert_uint_eq(fake.live, 0);
}

/* A thread's hint is no longer true: the range is registered anew. */
TEST(test_get_between)
{
	leave_beside(get_here);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 1);
	put(region);
}

static void leave(struct mrrc_mon *mon)
{
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
}

/* A region leaves after the look at its hint, and before the hold. */
TEST(test_leaves_before_hold)
{
	touch(0, 1);
	put(get(0, 1));
	fake_mon_of(mt_mon)->in_check = leave;
	region = get_one(base);
	ck_assert_ptr_null(fake_mon_of(mt_mon)->in_check);
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(fake.live, 1);
	put(region);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
}

/* Without membarrier(2), all calls take the lock. */

TEST(test_no_barrier)
{
	struct mrrc_region *got;

	fault_no_barrier(true);
	mrrc_biased_renew();
	ck_assert(!mrrc_biased_possible());
	touch(0, 1);
	got = get(0, 1);
	ck_assert_uint_eq(fake.regs, 1);
	ck_assert_ptr_null(mrrc_hints_of(&cache->hints_list));
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
	ck_assert_uint_eq(fake.live, 1);
	put(got);
	ck_assert_uint_eq(fake.live, 0);
	fault_no_barrier(false);
	mrrc_biased_renew();
}

static int hold_in_child(void)
{
	struct mrrc_region *got;

	end_in(60);
	mt_setup();
	put(get(0, 1));
	got = get_one(base);
	if (mrrc_cache_mt_held(cache) != 1)
		return 2;
	mrrc_cache_mt_put(cache, got);
	return mrrc_cache_mt_held(cache) ? 3 : 0;
}

/* A child's cache counts no holds of its parent. */
TEST(test_fork)
{
	struct mrrc_region *got, *again;

	/* The first hold is counted under the lock, its put by this thread. */
	touch(0, 1);
	got = get(0, 1);
	again = get(0, 1);
	expect_child(hold_in_child());
	put(got);
	put(again);
}

/* ---- many threads ---- */

#define CROWD  3
#define SLOTS  4  /* regions that any thread may put */
#define PLACES 16 /* ranges of a page, twice what the cache keeps */

static _Atomic(struct mrrc_region *) slot[SLOTS];
static atomic_bool over;
static unsigned long count;

static void end_one(struct mrrc_region *got)
{
	if (!got)
		return;
	fake_reg_use(got, -1);
	mrrc_cache_mt_put(cache, got);
}

static void *hold_many(void *arg)
{
	unsigned seed = (uintptr_t) arg;
	struct mrrc_region *got;
	unsigned long i;

	for (i = 0; i < count; i++) {
		seed = seed * 1103515245 + 12345;
		/* Half of the requests are for few ranges, so that they hit. */
		got = get_one(base +
			      (seed >> 16 & 1 ? seed >> 20 & 3 : seed >> 20) %
				      PLACES * 2 * page);
		fake_reg_use(got, 1);
		if (seed >> 18 & 1)
			got = atomic_exchange(&slot[seed >> 24 & (SLOTS - 1)],
					      got);
		end_one(got);
	}
	return NULL;
}

static void *drop_many(void *arg)
{
	unsigned i;

	for (i = 0; !atomic_load(&over); i++) {
		mrrc_cache_mt_invalidate(cache,
					 (void *) (base + i % 4 * 2 * page), 1);
		if (i % 8 == 0)
			mrrc_cache_mt_flush(cache);
		usleep(20);
	}
	return NULL;
}

TEST(test_many)
{
	const char *holds = getenv("MRRC_HOLDS");
	pthread_t dropping;
	unsigned i;

	count = holds ? strtoul(holds, NULL, 10) : 20000;
	atomic_store(&over, false);
	ck_assert_int_eq(pthread_create(&dropping, NULL, drop_many, NULL), 0);
	threads_run(CROWD, hold_many);
	atomic_store(&over, true);
	pthread_join(dropping, NULL);
	for (i = 0; i < SLOTS; i++)
		end_one(atomic_exchange(&slot[i], NULL));
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	printf("%lu lookups, %lu hits, %zu registrations\n",
	       stat_of(MRRC_STAT_LOOKUPS), stat_of(MRRC_STAT_HITS),
	       atomic_load(&fake.regs));
}
