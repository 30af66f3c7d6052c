/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deregistration by a thread of the cache's own (sys/cache/reaper.c).
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_mt_priv.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#include <semaphore.h>

#include "test/fakes/fault.h"
#include "sys/base/threads.h"

static struct mrrc_reg_ops ops;
static pthread_t mine;
static atomic_uint by_me; /* number of regions deregistered by this thread */
static atomic_uint by_other;
static atomic_bool gate; /* the helper waits for open_gate first */
static sem_t open_gate;
static sem_t at_gate;
static bool alone_there; /* result of mrrc_threads_alone() in the helper */
static unsigned outside_there;

static void dereg(void *arg, struct mrrc_region *const *regions, size_t count)
{
	if (pthread_equal(pthread_self(), mine)) {
		atomic_fetch_add(&by_me, count);
	} else {
		alone_there = mrrc_threads_alone();
		outside_there = atomic_load(&mrrc_threads.outside);
		sem_post(&at_gate);
		if (atomic_load(&gate))
			sem_wait(&open_gate);
		atomic_fetch_add(&by_other, count);
	}
	fake_reg_ops.dereg(arg, regions, count);
}

static int open_helped(struct mrrc_cache_mt **out)
{
	return open_as((struct mrrc_cache_attr){ .policy = "lru:batch=1",
						 .ops = &ops,
						 .helper = true },
		       out);
}

static void setup(void)
{
	mt_setup();
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ops = fake_reg_ops;
	ops.dereg = dereg;
	mine = pthread_self();
	by_me = by_other = 0;
	gate = false;
	sem_init(&open_gate, 0, 0);
	sem_init(&at_gate, 0, 0);
	ck_assert_int_eq(open_helped(&cache), 0);
}

static void fill(void)
{
	unsigned i;

	for (i = 0; i < MT_REGIONS; i++)
		touch(2 * i, 1);
}

static bool becomes(atomic_uint *what, unsigned value)
{
	unsigned i;

	for (i = 0; i < 60000 && atomic_load(what) != value; i++)
		usleep(1000);
	return atomic_load(what) == value;
}

TEST_CASE(reaper, setup, mt_teardown);

/* If the helper is slow, threads that miss go on, up to a limit of regions. */
TEST(test_slow)
{
	unsigned i;

	gate = true;
	fill();
	/* Eight pages are an eighth of the limit. */
	for (i = 0; i < 8; i++)
		touch(20 + 2 * i, 1);
	ck_assert_uint_eq(by_me, 0);
	for (i = 0; i < 30; i++)
		touch(20 + i % 20 * 2, 1);
	ck_assert_uint_gt(by_me, 0);
	ck_assert_uint_le(fake.live, MT_REGIONS + 8 + 8);
	gate = false;
	sem_post(&open_gate);
}

static atomic_bool flushed;

/* Waits until the flush waits for the helper, or is over. */
static void until_waited_for(void)
{
	while (!waiting() && !atomic_load(&flushed))
		usleep(1000);
}

static void *post_later(void *arg)
{
	until_waited_for();
	sem_post(&open_gate);
	return arg;
}

/* Flushes while the helper deregisters a region, and a thread runs @other. */
static pthread_t flush_while(void *(*other)(void *) )
{
	pthread_t thread;

	gate = true;
	atomic_store(&flushed, false);
	fill();
	touch(20, 1);
	sem_wait(&at_gate);
	thread = thread_start(other, NULL);
	mrrc_cache_mt_flush(cache);
	atomic_store(&flushed, true);
	return thread;
}

/* A flush waits for the helper: its caller may then close what regions need. */
TEST(test_flush_waits)
{
	pthread_t thread = flush_while(post_later);
	const size_t live = fake.live;

	gate = false;
	pthread_join(thread, NULL);
	ck_assert_uint_eq(live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
}

static void *evict_more(void *arg)
{
	until_waited_for();
	fill();
	touch(20, 1);
	sem_post(&open_gate);
	return arg;
}

/* A flush does not wait for regions that are evicted later. */
TEST(test_flush_ends)
{
	pthread_t thread = flush_while(evict_more);

	gate = false;
	sem_post(&open_gate);
	pthread_join(thread, NULL);
}

/* Deregistration may unmap memory, so no other thread counts as alone then. */
TEST(test_outside)
{
	fill();
	ck_assert_uint_eq(atomic_load(&mrrc_threads.outside), 0);
	touch(20, 1);
	sem_wait(&at_gate);
	ck_assert_uint_eq(outside_there, 1);
	ck_assert(!alone_there);
	ck_assert(becomes(&mrrc_threads.outside, 0));
}

TEST(test_open_fails)
{
	/* This count includes the fixture's helper. */
	const unsigned threads = fault_threads_left(FAULT_THREADS + 1);
	const unsigned ours = mrrc_threads.ours;
	struct mrrc_cache_mt *other;
	bool fired = true;
	int n, ret = 0;

	for (n = 1; fired; n++) {
		other = NULL;
		fault_arm(n);
		ret = open_helped(&other);
		fired = fault_disarm();
		if (fired && !ret) { /* the pool has fewer addresses at first */
			ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
			continue;
		}
		ck_assert(!fired == !ret);
		ck_assert(!fired || (!other && !fault_leaks()));
		ck_assert_uint_eq(mrrc_threads.ours, ours + !fired);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(fault_threads_left(threads + 1), threads + 1);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
	ck_assert_uint_eq(fault_threads_left(threads), threads);
}

/* A child has no helper, and can close the cache all the same. */
TEST(test_fork)
{
	pid_t pid;

	fill();
	pid = fork();
	if (!pid) {
		if (mrrc_cache_mt_close(cache))
			_exit(1);
		/* All is well; leak checkers would report the child. */
		raise(SIGKILL);
	}
	child_dies(pid);
	touch(20, 1);
	ck_assert(becomes(&by_other, 1));
}

/* Caches are opened and closed at every moment of a helper's life. */
TEST(test_open_close)
{
	struct mrrc_cache_mt *other;
	unsigned i, j;

	for (i = 0; i < 200; i++) {
		ck_assert_int_eq(open_helped(&other), 0);
		for (j = 0; j < i % 20; j++)
			touch_at(other, base + 2 * j * page, 1, MRRC_RW);
		if (i % 3 == 1)
			usleep(i * 5);
		ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
		ck_assert_uint_eq(fake.live, 0);
	}
}
