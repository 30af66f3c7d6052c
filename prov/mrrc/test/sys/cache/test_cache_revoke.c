/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/reaper: the helper ends the keys of closed registrations, also
 * beside threads that get these registrations again. Registrations are fake;
 * the fake checks that no region is deregistered in use or twice. test_revoke.c
 * tests when each key ends.
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_mt_priv.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#include <semaphore.h>

#define KEYS	(MRRC_RW | MRRC_REMOTE_READ | MRRC_REMOTE_WRITE)
#define MS	UINT64_C(1000000)
#define LONG	(3600 * 1000 * MS)
#define THREADS 3
#define ROUNDS	3000

static void open_for(uint64_t revoke, bool helper)
{
	reopen_as(
		(struct mrrc_cache_attr){ .helper = helper, .revoke = revoke });
}

static struct mrrc_region *reg(unsigned first)
{
	struct mrrc_region *region;

	ck_assert_int_eq(mrrc_cache_mt_get(cache,
					   (void *) (base + first * page), page,
					   KEYS, &region),
			 0);
	mrrc_cache_mt_key_given(cache, region);
	fake_reg_use(region, 1);
	return region;
}

static void closes(struct mrrc_region *region)
{
	fake_reg_use(region, -1);
	mrrc_cache_mt_put_key(cache, region);
}

/* Waits until no region is registered any more. */
static bool gone(void)
{
	unsigned i;

	for (i = 0; i < 60000 && regions_live(); i++)
		usleep(1000);
	return !regions_live();
}

TEST_CASE(cache_revoke, mt_setup, mt_teardown);

/* Keys end without any call; keys that are closed later end as well. */
TEST(test_ends)
{
	unsigned i;

	open_for(2 * MS, true);
	for (i = 1; i <= 3; i++) {
		closes(reg(2 * i));
		closes(reg(2 * i + 20));
		ck_assert(gone());
		ck_assert_uint_eq(stat_of(MRRC_STAT_REVOCATIONS), 2 * i);
	}
}

/* An open registration stays while other keys end, and is found again. */
TEST(test_open)
{
	struct mrrc_region *open;
	uint64_t first;
	unsigned i;

	open_for(MS, true);
	open = reg(2);
	first = open->closed;
	for (i = 1; i <= 5; i++) {
		closes(reg(20));
		while (stat_of(MRRC_STAT_REVOCATIONS) < i)
			usleep(1000);
	}
	ck_assert_ptr_eq(reg(2), open);
	closes(open);
	/* The time of the key begins now. */
	ck_assert_uint_gt(open->closed, first);
	closes(open);
	ck_assert(gone());
}

/* Without a helper no key would end, so none is scheduled to end. */
TEST(test_no_helper)
{
	open_for(MS, false);
	ck_assert_uint_eq(cache->revoke.half, 0);
	closes(reg(2));
	ck_assert_uint_eq(cache->revoke.due, MRRC_REVOKE_NEVER);
}

static void *get_and_close(void *arg)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		closes(reg(2 + i % 3));
		if (i % 16 == 0)
			usleep(i % 100);
	}
	return arg;
}

/* The time is the shortest, and threads get the same registrations again. */
TEST(test_race)
{

	open_for(1, true);
	threads_run(THREADS, get_and_close);
	ck_assert(gone());
	ck_assert_uint_gt(stat_of(MRRC_STAT_REVOCATIONS), 0);
}

static void *hold_lock(void *arg)
{
	sem_t *sem = arg;

	mrrc_lock_acquire(&cache->lock);
	sem_post(&sem[0]);
	sem_wait(&sem[1]);
	mrrc_lock_release(&cache->lock);
	return arg;
}

/* A child has registrations of its own, whichever thread held the lock. */
TEST(test_child)
{
	struct mrrc_region *region;
	pthread_t thread;
	sem_t sem[2];
	pid_t pid;

	open_for(LONG, true);
	region = reg(2);
	sem_init(&sem[0], 0, 0);
	sem_init(&sem[1], 0, 0);
	thread = thread_start(hold_lock, sem);
	sem_wait(&sem[0]);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		alarm(20);
		closes(region);
		closes(reg(6));
		_exit(0);
	}
	sem_post(&sem[1]);
	pthread_join(thread, NULL);
	child_exits(pid);
	ck_assert_uint_eq(regions_live(), 1);
	closes(region);
}
