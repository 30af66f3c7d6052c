/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/holds: holds that threads count by themselves. What is put elsewhere
 * than it was taken adds up, a region goes with the last of them and never
 * before, and all of it works without membarrier, too.
 */
#include "config.h"
#include "sys/cache_hit.h"	/* before a global named cache */

#include "mt_fixture.h"
#include "suites.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "fault.h"

static bool lanes(void)
{
	return cache->holds.size;
}

static void invalidate(unsigned first)
{
	mrrc_cache_mt_invalidate(cache, (void *)(base + first * page), 1);
}

static void in_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
	pthread_join(thread, NULL);
}

static void *put_it(void *arg)
{
	mrrc_cache_mt_put(cache, arg);
	return NULL;
}

static void *use_and_put_it(void *arg)
{
	struct mrrc_region *region;

	mrrc_cache_mt_get(cache, (void *)(base + 8 * page), 1, MRRC_RW,
			  &region);
	mrrc_cache_mt_put(cache, region);
	mrrc_cache_mt_put(cache, arg);
	return NULL;
}

static void *take_two(void *arg)
{
	struct mrrc_region **region = arg;
	int i;

	for (i = 0; i < 3; i++) {
		mrrc_cache_mt_get(cache, (void *)base, 1, MRRC_RW, region);
		if (!i)
			mrrc_cache_mt_put(cache, *region);
	}
	return NULL;
}

/* ---- sums ---- */

/* Taken here by this thread's own number, put by one with, or without any. */
START_TEST(test_put_elsewhere)
{
	void *(*const put_there)(void *) = _i ? use_and_put_it : put_it;
	struct mrrc_region *region = NULL;
	int i;

	touch(0, 1);
	for (i = 0; i < 3; i++)
		region = get(0, 1);
	ck_assert_uint_eq(mrrc_region_held(region), 3);
	in_thread(put_there, region);
	ck_assert_uint_eq(mrrc_region_held(region), 2);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	invalidate(0);
	ck_assert_uint_eq(fake.deregs, 0);
	in_thread(put_there, region);
	ck_assert_uint_eq(fake.deregs, 0);
	in_thread(put_there, region);
	ck_assert_uint_eq(fake.deregs, 1);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
}
END_TEST

/* What is left of a life in several places is nothing to the next one. */
START_TEST(test_next_life)
{
	struct mrrc_region *a, *b, *c;
	int i;

	for (i = 0; i < 3; i++) {
		touch(0, 1);
		a = get(0, 1);
		in_thread(_i ? use_and_put_it : put_it, a);
		ck_assert_uint_eq(mrrc_region_held(a), 0);
		mrrc_cache_mt_flush(cache);
		ck_assert_uint_eq(fake.live, 0);
		b = get(4, 1);
		c = get(6, 1);
		/* else this proves nothing */
		ck_assert(a == b || a == c);
		ck_assert_uint_eq(mrrc_region_held(b), 1);
		ck_assert_uint_eq(mrrc_region_held(c), 1);
		ck_assert_uint_eq(mrrc_cache_mt_flush(cache), 0);
		put(b);
		put(c);
		ck_assert_uint_eq(mrrc_cache_mt_flush(cache), 2);
	}
}
END_TEST

/* Put while the thread's table is another cache's. */
START_TEST(test_two_caches)
{
	struct mrrc_cache_mt *other;
	struct mrrc_region *a, *b;

	ck_assert_int_eq(open_cache(&other), 0);
	touch(0, 1);
	a = get(0, 1);
	ck_assert_int_eq(mrrc_cache_mt_get(other, (void *)base, 1, MRRC_RW,
					   &b), 0);
	put(a);
	ck_assert_uint_eq(mrrc_region_held(a), 0);
	ck_assert_uint_eq(mrrc_region_held(b), 1);
	a = get(0, 1);
	mrrc_cache_mt_put(other, b);
	ck_assert_uint_eq(mrrc_region_held(a), 1);
	mrrc_cache_mt_flush(cache);
	ck_assert_uint_eq(mrrc_cache_mt_flush(other), 1);
	ck_assert_uint_eq(fake.live, 1);
	put(a);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}
END_TEST

/* A thread that ended held two; the next one has its numbers. */
START_TEST(test_thread_ended)
{
	struct mrrc_region *region = NULL;

	in_thread(take_two, &region);
	ck_assert_uint_eq(mrrc_region_held(region), 2);
	in_thread(use_and_put_it, region);
	ck_assert_uint_eq(mrrc_region_held(region), 1);
	ck_assert_uint_eq(mrrc_cache_mt_flush(cache), 1);
	invalidate(0);
	ck_assert_uint_eq(fake.live, 1);
	put(region);
	ck_assert_uint_eq(fake.live, 0);
	/* as many as there were at once: this one, and one more */
	if (lanes())
		ck_assert_ptr_null(cache->holds.lanes->next ?
				   cache->holds.lanes->next->next : NULL);
}
END_TEST

static void *lane_of(void *arg)
{
	touch(0, 1);
	return mrrc_tlb_recent->lane;
}

/* Each thread has a lane of its own, for as long as it lives. */
START_TEST(test_lanes)
{
	void *first, *second;
	pthread_t thread;

	touch(0, 1);
	if (!lanes())
		return;
	pthread_create(&thread, NULL, lane_of, NULL);
	pthread_join(thread, &first);
	pthread_create(&thread, NULL, lane_of, NULL);
	pthread_join(thread, &second);
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_ne(first, mrrc_tlb_recent->lane);
	ck_assert_ptr_eq(first, second);
}
END_TEST

/* ---- at the same time ---- */

static struct mrrc_region *target;
static _Atomic uint32_t *number;

static void begin_hold(void)
{
	mrrc_lane_add(number, 1);
}

/*
 * A hold that is about to fail when a region is taken out of the index is
 * counted. Once it has taken itself back the region goes.
 */
START_TEST(test_hold_fails)
{
	if (!lanes())
		return;
	touch(0, 1);
	target = get(0, 1);
	number = mrrc_lane_number(mrrc_tlb_recent->lane,
				  (char *)target - cache->regions);
	put(target);
	fault_at(FAULT_BARRIER, begin_hold);
	invalidate(0);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	/* what mrrc_cache_hit_hold does then */
	put(target);
	ck_assert_uint_eq(fake.live, 0);
	/* and of what is nothing any more nothing comes */
	begin_hold();
	put(target);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
}
END_TEST

static bool put_late;

static void end_hold(void)
{
	mrrc_lane_add(number, -1);
	put_late = true;
}

/* A put that saw the region indexed, while that leaves, is in the sum. */
START_TEST(test_put_meanwhile)
{
	struct mrrc_region *region;

	if (!lanes())
		return;
	touch(0, 1);
	region = get(0, 1);
	number = mrrc_lane_number(mrrc_tlb_recent->lane,
				  (char *)region - cache->regions);
	put_late = false;
	fault_at(FAULT_BARRIER, end_hold);
	invalidate(0);
	ck_assert(put_late);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

/* ---- threads that get in each other's way ---- */

#define SKIPPED	77
#define LINES	16
#define SECONDS	3
#define RACERS	2

static struct {
	_Alignas(64) _Atomic uint64_t word;
} busy[LINES];
static atomic_bool over;

/* What this thread stores next is not to be seen for a while. */
static void keep_behind(void)
{
	int i;

	for (i = 0; i < LINES; i++)
		atomic_store_explicit(&busy[i].word, i, memory_order_relaxed);
}

static void *hold_and_look(void *arg)
{
	struct mrrc_region *region;
	uint64_t *hits = arg;
	uint64_t before;

	while (!atomic_load(&over)) {
		keep_behind();
		before = quick();
		if (mrrc_cache_mt_get(cache, (void *)base, 1, MRRC_RW,
				      &region))
			return arg;
		/* deregistered, this is freed memory, or another's */
		if (fake_reg_start(region) != base)
			abort();
		keep_behind();
		mrrc_cache_mt_put(cache, region);
		*hits += quick() - before;
	}
	return NULL;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* One region, held again and again, invalidated again and again. */
START_TEST(test_race)
{
	const double end = seconds() + SECONDS;
	pthread_t thread[RACERS];
	uint64_t hits[RACERS] = { 0 };
	unsigned i, rounds = 0;

	mt_mon->ask = MRRC_ASK_NEVER;
	atomic_store(&over, false);
	for (i = 0; i < RACERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL,
						hold_and_look, &hits[i]), 0);
	while (seconds() < end) {
		keep_behind();
		invalidate(0);
		rounds++;
	}
	atomic_store(&over, true);
	for (i = 0; i < RACERS; i++)
		pthread_join(thread[i], NULL);
	mt_mon->ask = MRRC_ASK_ALWAYS;
	ck_assert_uint_gt(rounds, 100);
	ck_assert_uint_gt(hits[0] + hits[1], 100);
	/* a hold that was forgotten would keep its region */
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	mrrc_cache_mt_flush(cache);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

/* ---- without membarrier ---- */

static bool forbid_barriers(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* A hit, its hold in the word, which lasts. Returns 0, or which is not so. */
static int not_by_words(void)
{
	struct mrrc_region *region;
	uint64_t before;

	touch(0, 1);
	touch(0, 1);
	if (mrrc_tlb_recent->lane)
		return 11;
	before = quick();
	region = get(0, 1);
	if (quick() != before + 1 ||
	    mrrc_word_held(mrrc_region_word(region)) !=
	    mrrc_region_held(region))
		return 12;
	invalidate(0);
	if (fake.live != 1)
		return 13;
	put(region);
	return fake.live ? 14 : 0;
}

/* What a thread holds by its number when the call is forbidden. */
static int not_from_then_on(void)
{
	struct mrrc_region *a, *b;

	touch(0, 1);
	touch(8, 1);
	a = get(0, 1);
	b = get(8, 1);
	if (!mrrc_tlb_recent->lane || !forbid_barriers())
		return SKIPPED;
	invalidate(0);
	if (!cache->cache.shared || fake.live != 2)
		return 21;
	/* this one stays, and no thread holds it by a number any more */
	if (mrrc_region_is(b, mrrc_region_tag(b) & ~MRRC_REGION_SHARED_BIT))
		return 22;
	put(a);
	if (fake.live != 1)
		return 23;
	put(b);
	invalidate(8);
	if (fake.live)
		return 24;
	/* nor any that comes later */
	a = get(16, 1);
	if (!(mrrc_region_word(a) & MRRC_REGION_SHARED_BIT))
		return 25;
	put(a);
	invalidate(16);
	return 0;
}

/* Opened after the call is forbidden, or before; of a process of its own. */
static int forbidden_child(bool later)
{
	int rc;

	if (!later && !forbid_barriers())
		return SKIPPED;
	mt_setup();
	rc = later ? not_from_then_on() : 0;
	if (!rc)
		rc = not_by_words();
	if (!rc && mrrc_cache_mt_close(cache))
		rc = 31;
	return rc;
}

START_TEST(test_forbidden)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		status = forbidden_child(_i);
		if (status)
			_exit(status);
		/* all is well; a checker would miss what a child leaves */
		raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		fprintf(stderr, "skip test_forbidden: no membarrier or no "
			"seccomp here\n");
		return;
	}
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
END_TEST

/* A child that ends, or closes the cache, lets go of nothing of its parent's. */
START_TEST(test_fork)
{
	struct mrrc_region *region;
	int status;
	pid_t pid;

	touch(0, 1);
	region = get(0, 1);
	pid = fork();
	if (!pid) {
		mrrc_cache_mt_put(cache, region);
		if (fake.live != 1 || mrrc_cache_mt_close(cache))
			_exit(1);
		raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert_uint_eq(mrrc_region_held(region), 1);
	invalidate(0);
	ck_assert_uint_eq(fake.live, 1);
	put(region);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

Suite *holds_suite(void)
{
	Suite *suite = suite_create("holds");
	TCase *tcase = tcase_create("holds");

	tcase_add_checked_fixture(tcase, mt_setup, mt_teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, test_put_elsewhere, 0, 2);
	tcase_add_loop_test(tcase, test_next_life, 0, 2);
	tcase_add_test(tcase, test_two_caches);
	tcase_add_test(tcase, test_thread_ended);
	tcase_add_test(tcase, test_lanes);
	tcase_add_test(tcase, test_hold_fails);
	tcase_add_test(tcase, test_put_meanwhile);
	tcase_add_test(tcase, test_race);
	tcase_add_loop_test(tcase, test_forbidden, 0, 2);
	tcase_add_test(tcase, test_fork);
	suite_add_tcase(suite, tcase);
	return suite;
}
