/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt in forked children: the parent's regions stay as they are,
 * and a child waits for no lock that a thread of the parent may hold.
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_mt_priv.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#include <semaphore.h>

#include "test/fakes/fault.h"

static int get_in_child(struct mrrc_region **region)
{
	return mrrc_cache_mt_get(cache, (void *) base, 1, MRRC_RW, region);
}

/* No region is deregistered, whether idle, held, or left by an event. */
static int leave_alone(struct mrrc_region *held)
{
	const size_t live = fake.live;
	struct mrrc_region *region;

	if (get_in_child(&region))
		return 4;
	mrrc_cache_mt_put(cache, region);
	mrrc_cache_mt_flush(cache);
	mrrc_cache_mt_invalidate(cache, (void *) base, 64 * page);
	mrrc_cache_mt_put(cache, held);
	if (fake.live != live)
		return 1;
	/* No region is deregistered for want of room, either. */
	fake.max_live = live;
	if (get_in_child(&region) != -ENOMEM || fake.live != live)
		return 2;
	return mrrc_cache_mt_close(cache) || fake.live != live ? 3 : 0;
}

TEST_CASE(cache_child, mt_setup, mt_teardown);

TEST(test_left_alone)
{
	struct mrrc_region *held = get(4, 1);
	pid_t pid;
	int ret;

	touch(8, 1);
	touch(12, 1);
	fake_mon_raise(mt_mon, base + 12 * page, base + 13 * page,
		       MRRC_MON_REMOVE);
	mrrc_mon_drain(mt_mon);
	pid = fork();
	if (!pid) {
		ret = leave_alone(held);
		if (ret)
			_exit(ret);
		raise(SIGKILL);
	}
	child_dies(pid);
	put(held);
}

/* ---- locks that are held ---- */

static pthread_barrier_t barrier;

static void *hold_main(void *arg)
{
	mrrc_lock_acquire(&cache->lock);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	mrrc_lock_release(&cache->lock);
	return arg;
}

static int use_all(struct mrrc_region *held)
{
	struct mrrc_admit admit;
	struct mrrc_region *region;
	struct mrrc_stats stats;
	bool copy;

	end_in(60);
	if (get_in_child(&region))
		return 1;
	mrrc_cache_mt_put(cache, region);
	mrrc_cache_mt_put(cache, held);
	mrrc_admit_init(&admit, &mrrc_cost_default, page, 1);
	if (mrrc_cache_mt_get_or_copy(cache, &admit, (void *) base, 1, MRRC_RW,
				      1, &plan, &copy))
		return 2;
	mrrc_cache_mt_bounced(cache, 1);
	mrrc_cache_mt_bounce_memory(cache, 1);
	mrrc_cache_mt_stat(cache, MRRC_STAT_BUSY, 1);
	mrrc_cache_mt_flush(cache);
	mrrc_cache_mt_invalidate(cache, (void *) base, 1);
	mrrc_cache_mt_stats(cache, &stats);
	return mrrc_cache_mt_held(cache) || mrrc_cache_mt_close(cache) ? 3 : 0;
}

TEST(test_locked)
{
	struct mrrc_region *held = get(4, 1);
	pthread_t thread;
	pid_t pid;
	int ret;

	pthread_barrier_init(&barrier, NULL, 2);
	thread = thread_start(hold_main, NULL);
	pthread_barrier_wait(&barrier);
	pid = fork();
	if (!pid) {
		ret = use_all(held);
		if (ret)
			_exit(ret);
		raise(SIGKILL);
	}
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	child_dies(pid);
	put(held);
}

/* ---- a thread that ends has the lock of all tables ---- */

static sem_t there, go_on;

static void pause_here(void)
{
	sem_post(&there);
	while (sem_wait(&go_on))
		;
}

static void at_second(void)
{
	fault_at(FAULT_LOCK, pause_here);
}

static void *use_and_end(void *arg)
{
	struct mrrc_region *region;

	if (!mrrc_cache_mt_get(cache, (void *) base, 1, MRRC_RW, &region))
		mrrc_cache_mt_put(cache, region);
	/* The thread takes the lock of all tables, then the cache's. */
	fault_at(FAULT_LOCK, at_second);
	return arg;
}

static int make_table(void)
{
	struct mrrc_hints_list list;
	struct mrrc_lock lock;

	end_in(60);
	mrrc_lock_init(&lock, MRRC_RANK_CACHE);
	mrrc_hints_list_init(&list, &lock, &cache->cache, cache->pool, NULL);
	return !mrrc_hints_get(&list);
}

TEST(test_tables_locked)
{
	pthread_t thread;
	pid_t pid;

	sem_init(&there, 0, 0);
	sem_init(&go_on, 0, 0);
	thread = thread_start(use_and_end, NULL);
	sem_wait(&there);
	pid = fork();
	if (!pid) {
		if (make_table())
			_exit(1);
		raise(SIGKILL);
	}
	sem_post(&go_on);
	pthread_join(thread, NULL);
	child_dies(pid);
}
