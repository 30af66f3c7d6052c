/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hits without a lock (sys/tlb.h, cache_get.c): what a thread remembers must
 * be true, whoever evicted, unmapped, closed, ended or forked meanwhile.
 */
#include "config.h"
#include "mt_fixture.h"
#include "suites.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_pin.h"
#include "fault.h"
#include "sys/threads.h"
#include "sys/tlb.h"
#include "sys/vm.h"

/* Hits that this thread had without the lock. */
static uint64_t quick(void)
{
	struct mrrc_tlb *tlb = mrrc_tlb_recent;

	return tlb ? atomic_load(&tlb->hits) : 0;
}

/* ---- what is remembered ---- */

START_TEST(test_second_is_quick)
{
	struct mrrc_region *a = get(0, 2);
	struct mrrc_region *b;
	uint64_t before = quick();

	b = get(0, 1);
	ck_assert_ptr_eq(a, b);
	ck_assert_uint_eq(quick(), before + 1);
	/* another page of it, then that again */
	put(get(1, 1));
	ck_assert_uint_eq(quick(), before + 1);
	put(get(1, 1));
	ck_assert_uint_eq(quick(), before + 2);
	/* what it does not cover is no hit */
	put(get(0, 4));
	ck_assert_uint_eq(quick(), before + 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 5);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 3);
	put(a);
	put(b);
}
END_TEST

START_TEST(test_access)
{
	struct mrrc_region *region;
	uint64_t before;

	/* A read-only region, remembered as such, serves no writer. */
	fake.ro_start = base;
	fake.ro_end = base + page;
	put(get_as(0, 1, MRRC_RO));
	before = quick();
	put(get_as(0, 1, MRRC_RO));
	ck_assert_uint_eq(quick(), before + 1);
	ck_assert_int_eq(try_get(0, 1, MRRC_RW, &region), -EFAULT);
	ck_assert_uint_eq(quick(), before + 1);
	/* Nor peers. */
	put(get_as(4, 1, MRRC_RW));
	region = get_as(4, 1, MRRC_RW | MRRC_REMOTE_WRITE);
	ck_assert_int_eq(region->access, MRRC_RW | MRRC_REMOTE_WRITE);
	put(region);
}
END_TEST

START_TEST(test_empty)
{
	struct mrrc_region *region;

	touch(0, 1);
	touch(0, 1);
	ck_assert_int_eq(try_get(0, 0, MRRC_RW, &region), -EINVAL);
}
END_TEST

/* An evicted region's memory is another's by now. */
START_TEST(test_reused_memory)
{
	struct mrrc_region *a, *b;
	uint64_t before;

	a = get(0, 1);
	put(a);
	mrrc_cache_mt_flush(cache);
	b = get(8, 1);
	ck_assert_ptr_eq(a, b);		/* else this proves nothing */
	before = quick();
	a = get(0, 1);
	ck_assert_uint_eq(quick(), before);
	ck_assert_ptr_ne(a, b);
	ck_assert_uint_eq(fake_reg_start(a), base);
	put(a);
	put(b);
}
END_TEST

START_TEST(test_invalidated)
{
	uint64_t before;

	touch(0, 4);
	touch(0, 4);
	before = quick();
	mrrc_cache_mt_invalidate(cache, (void *)(base + 2 * page), 1);
	touch(0, 4);
	ck_assert_uint_eq(quick(), before);
	ck_assert_uint_eq(fake.regs, 2);
	/* A monitor that is busy, or has failed, permits none. */
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
END_TEST

/* Held without the lock is held: neither evicted nor deregistered. */
START_TEST(test_held)
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
	/* The last put of what was invalidated deregisters it. */
	mrrc_cache_mt_invalidate(cache, (void *)base, 1);
	ck_assert_uint_eq(fake.live, 1);
	put(region);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

/* What threads did without the lock decides who leaves. */
START_TEST(test_policy_is_told)
{
	struct mrrc_region *region;
	unsigned i;

	reopen("lru");
	for (i = 0; i < MT_REGIONS; i++)
		touch(2 * i, 1);
	touch(0, 1);
	ck_assert_uint_gt(quick(), 0);
	touch(40, 1);
	/* The second, not the first, has left. */
	region = get(0, 1);
	ck_assert_uint_eq(fake.regs, MT_REGIONS + 1);
	put(region);
	put(get(2, 1));
	ck_assert_uint_eq(fake.regs, MT_REGIONS + 2);
}
END_TEST

/* More buffers than the table had room for. */
START_TEST(test_growth)
{
	struct mrrc_region *region = get(0, 64);
	const char *far = (const char *)base;
	unsigned i, round;
	uint64_t before;

	put(region);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_int_eq(mrrc_cache_mt_open(&(struct mrrc_cache_attr) {
		.max_bytes = (size_t)1 << 40,
		.max_regions = 5000,
		.policy = "lru",
		.ops = &fake_reg_ops,
		.arg = &fake,
		.mon = mt_mon,
	}, &cache), 0);
	for (round = 0; round < 8; round++) {
		before = quick();
		/* a power of two apart, as buffers often are */
		for (i = 0; i < 4000; i++) {
			ck_assert_int_eq(mrrc_cache_mt_get(
				cache, far + ((size_t)i << 20), 1, MRRC_RW,
				&region), 0);
			ck_assert_uint_eq(region->start,
					  base + ((size_t)i << 20));
			mrrc_cache_mt_put(cache, region);
		}
	}
	ck_assert_uint_eq(quick() - before, 4000);
	ck_assert_uint_eq(fake.regs, 4001);
}
END_TEST

/* One entry for 2 MiB of a large region. */
START_TEST(test_big)
{
	const size_t big = (size_t)1 << MRRC_TLB_BIG;
	const char *start = (const char *)(16 * big);
	struct mrrc_region *region;
	uint64_t before;

	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_int_eq(mrrc_cache_mt_open(&(struct mrrc_cache_attr) {
		.max_bytes = (size_t)1 << 40,
		.ops = &fake_reg_ops,
		.arg = &fake,
		.mon = mt_mon,
	}, &cache), 0);
	ck_assert_int_eq(mrrc_cache_mt_get(cache, start, 3 * big, MRRC_RW,
					   &region), 0);
	mrrc_cache_mt_put(cache, region);
	before = quick();
	ck_assert_int_eq(mrrc_cache_mt_get(cache, start + big - 1, 2, MRRC_RW,
					   &region), 0);
	mrrc_cache_mt_put(cache, region);
	ck_assert_uint_eq(quick(), before + 1);
	/* its end is not in it */
	ck_assert_int_eq(mrrc_cache_mt_get(cache, start + 3 * big - 1, 2,
					   MRRC_RW, &region), 0);
	mrrc_cache_mt_put(cache, region);
	ck_assert_uint_eq(quick(), before + 1);
}
END_TEST

/* ---- caches ---- */

START_TEST(test_two_caches)
{
	struct mrrc_cache_mt *other;
	struct mrrc_region *a, *b;
	const char *ptr = (const char *)base;
	int i;

	ck_assert_int_eq(open_cache(&other), 0);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(mrrc_cache_mt_get(cache, ptr, 1, MRRC_RW,
						   &a), 0);
		ck_assert_int_eq(mrrc_cache_mt_get(other, ptr, 1, MRRC_RW,
						   &b), 0);
		ck_assert_ptr_ne(a, b);
		mrrc_cache_mt_put(other, b);
		mrrc_cache_mt_put(cache, a);
	}
	ck_assert_uint_eq(fake.regs, 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 3);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
	/* What comes where it was knows nothing of it. */
	ck_assert_int_eq(open_cache(&other), 0);
	ck_assert_int_eq(mrrc_cache_mt_get(other, ptr, 1, MRRC_RW, &b), 0);
	ck_assert_uint_eq(fake.regs, 3);
	mrrc_cache_mt_put(other, b);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}
END_TEST

/* The nth allocation of a thread's first lookup fails, in a hit of another. */
static void *get_without(void *arg)
{
	struct mrrc_region *region;
	bool fired;
	int rc;

	fault_arm((uintptr_t)arg);
	rc = mrrc_cache_mt_get(cache, (void *)base, 1, MRRC_RW, &region);
	fired = fault_disarm();
	ck_assert_int_eq(rc, 0);
	mrrc_cache_mt_put(cache, region);
	ck_assert(!fired || !quick());
	return fired ? arg : NULL;
}

/* Without memory for a table all goes through the lock. */
START_TEST(test_no_table)
{
	pthread_t thread;
	void *fired = cache;
	uintptr_t n;

	touch(0, 1);
	for (n = 1; fired; n++) {
		ck_assert_int_eq(pthread_create(&thread, NULL, get_without,
						(void *)n), 0);
		pthread_join(thread, &fired);
	}
	/* the table, and its entries */
	ck_assert_uint_eq(n, 4);
	ck_assert_uint_eq(fake.regs, 1);
}
END_TEST

/* ---- threads ---- */

static sem_t ready;
static sem_t go;

static void *use_and_end(void *arg)
{
	struct mrrc_region *region;
	int i;

	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *)base, 1,
						   MRRC_RW, &region), 0);
		if (i < 2 || !arg)
			mrrc_cache_mt_put(cache, region);
	}
	return region;
}

/* A thread that ends leaves its counts, and what it holds is another's. */
START_TEST(test_thread_ends)
{
	pthread_t thread;
	void *region;

	ck_assert_int_eq(pthread_create(&thread, NULL, use_and_end, &go),
			 0);
	pthread_join(thread, &region);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 3);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	put(region);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
}
END_TEST

static void *use_close_use(void *arg)
{
	use_and_end(NULL);
	sem_post(&ready);
	sem_wait(&go);
	use_and_end(NULL);
	return NULL;
}

/* Its cache closes under a thread, and another opens. */
START_TEST(test_cache_closes)
{
	pthread_t thread;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, use_close_use, NULL),
			 0);
	sem_wait(&ready);
	reopen("lru");
	sem_post(&go);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 3);
	ck_assert_uint_eq(fake.regs, 2);
}
END_TEST

#define CROWD	4

static void slow_reg(void *arg, uintptr_t start, size_t len)
{
	usleep(20000);
}

/* Those who miss the same range at once register it once. */
START_TEST(test_joined)
{
	pthread_t thread[CROWD];
	int i;

	fake.hook = slow_reg;
	for (i = 0; i < CROWD; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, use_and_end,
						NULL), 0);
	for (i = 0; i < CROWD; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(fake.regs, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_JOINED) +
			  stat_of(MRRC_STAT_HITS), 3 * CROWD - 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_DUPLICATES), 0);
	fake.hook = NULL;
}
END_TEST

static void *may_fail(void *arg)
{
	struct mrrc_region *region;
	int rc;

	rc = mrrc_cache_mt_get(cache, (void *)base, 1, MRRC_RW, &region);
	if (!rc)
		mrrc_cache_mt_put(cache, region);
	return rc ? arg : NULL;
}

/* The first one fails: the other tries itself, and does not wait on. */
START_TEST(test_joined_fails)
{
	pthread_t thread;
	void *failed[2];

	fake.hook = slow_reg;
	fake.fail_in = 1;
	fake.fail_rc = -EIO;
	ck_assert_int_eq(pthread_create(&thread, NULL, may_fail, &go), 0);
	failed[0] = may_fail(&go);
	pthread_join(thread, &failed[1]);
	ck_assert(!failed[0] != !failed[1]);
	ck_assert_uint_eq(fake.regs, 1);
	fake.hook = NULL;
}
END_TEST

START_TEST(test_fork)
{
	struct mrrc_region *region;
	uint64_t before;
	int status;
	pid_t pid;

	touch(0, 1);
	touch(0, 1);
	before = quick();
	pid = fork();
	if (!pid) {
		/* Of its own, and never remembered. */
		if (mrrc_cache_mt_get(cache, (void *)base, 1, MRRC_RW,
				      &region) ||
		    region->state != MRRC_REGION_NEW || quick() != before)
			_exit(1);
		mrrc_cache_mt_put(cache, region);
		if (fake.live != 1 || mrrc_cache_mt_close(cache))
			_exit(2);
		/* all is well; a checker would miss what a child leaves */
		raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	touch(0, 1);
	ck_assert_uint_eq(quick(), before + 1);
}
END_TEST

/* ---- alone: one thread, no probe, the kernel's events ---- */

#define ALONE_PAGES	8u
#define ALONE_STEPS	3000
/* ThreadSanitizer has a thread that may map where there is a hole. */
#ifdef __SANITIZE_THREAD__
#define CHANGES		4
#else
#define CHANGES		6
#endif

static struct fake_pin pin;

/* Written now, and seen as such from outside. */
static bool true_now(char *ptr, unsigned pages)
{
	static uint64_t word;
	struct mrrc_plan got;
	bool seen;
	unsigned i;

	word += pages;
	for (i = 0; i < pages; i++)
		*(volatile uint64_t *)(ptr + i * page) = word + i;
	ck_assert_int_eq(mrrc_cache_mt_get_pieces(cache, ptr, pages * page,
						  MRRC_RW, 4, &got), 0);
	seen = fake_pin_sees(&got, (uintptr_t)ptr, pages, word);
	while (got.count)
		mrrc_cache_mt_put(cache, got.piece[--got.count].region);
	return seen;
}

static void map_again(char *ptr, size_t len, bool raw)
{
	const int prot = PROT_READ | PROT_WRITE;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	if (raw)
		syscall(SYS_mmap, ptr, len, prot, flags, -1, 0);
	else
		ck_assert_ptr_eq(mmap(ptr, len, prot, flags, -1, 0), ptr);
}

/* One way to have other pages at @ptr. */
static void change(char *ptr, size_t len, int how)
{
	char *other;

	switch (how) {
	case 0:
		map_again(ptr, len, false);
		break;
	case 1:
		map_again(ptr, len, true);
		break;
	case 2:
		madvise(ptr, len, MADV_DONTNEED);
		break;
	case 3:
		other = mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*other = 1;
		mremap(other, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, ptr);
		break;
	case 4:
		munmap(ptr, len);
		map_again(ptr, len, false);
		break;
	default:
		/* refused where parts of it are watched, and others not */
		mremap(ptr, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
		       ptr + 64 * page);
		map_again(ptr, len, false);
	}
}

START_TEST(test_alone)
{
	struct mrrc_mon *mon;
	unsigned i, at, pages;
	char *ptr;

	if (mrrc_mon_open("uffd", NULL, &mon))
		return;
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_int_eq(mrrc_cache_mt_open(&(struct mrrc_cache_attr) {
		.max_bytes = 64 * page,
		.max_regions = 16,
		.ops = &fake_pin_ops,
		.arg = &pin,
		.mon = mon,
	}, &cache), 0);
	if (!mrrc_threads_alone())
		fprintf(stderr, "test_hit: not alone, so every hit probes\n");
	ptr = mmap(NULL, 128 * page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	srand(1);
	for (i = 0; i < ALONE_STEPS; i++) {
		at = rand() % ALONE_PAGES;
		pages = 1 + rand() % (ALONE_PAGES - at);
		ck_assert(true_now(ptr + at * page, pages));
		ck_assert(true_now(ptr + at * page, pages));
		at = rand() % ALONE_PAGES;
		pages = 1 + rand() % (ALONE_PAGES - at);
		change(ptr + at * page, pages * page, rand() % CHANGES);
		ck_assert(true_now(ptr, ALONE_PAGES));
	}
	ck_assert_uint_gt(quick(), ALONE_STEPS / 4);
	munmap(ptr, 128 * page);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(pin.live, 0);
	mrrc_mon_close(mon);
	ck_assert_int_eq(open_cache(&cache), 0);
}
END_TEST

/* A second thread is noticed, and not forgotten when it ends. */
START_TEST(test_alone_no_more)
{
	pthread_t thread;
	bool alone;

	mrrc_threads_init();
	alone = mrrc_threads_alone();
	ck_assert_int_eq(mrrc_thread_start(&thread, 0, use_and_end, NULL), 0);
	ck_assert_int_eq(mrrc_threads_alone(), alone);
	mrrc_thread_join(thread);
	ck_assert_int_eq(mrrc_threads_alone(), alone);
	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, use_close_use, NULL),
			 0);
	ck_assert(!mrrc_threads_alone());
	sem_wait(&ready);
	sem_post(&go);
	pthread_join(thread, NULL);
	ck_assert(!mrrc_threads_alone());
}
END_TEST

Suite *hit_suite(void)
{
	Suite *suite = suite_create("hit");
	TCase *tcase = tcase_create("hit");

	tcase_add_checked_fixture(tcase, mt_setup, mt_teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_second_is_quick);
	tcase_add_test(tcase, test_access);
	tcase_add_test(tcase, test_empty);
	tcase_add_test(tcase, test_reused_memory);
	tcase_add_test(tcase, test_invalidated);
	tcase_add_test(tcase, test_held);
	tcase_add_test(tcase, test_policy_is_told);
	tcase_add_test(tcase, test_growth);
	tcase_add_test(tcase, test_big);
	tcase_add_test(tcase, test_two_caches);
	tcase_add_test(tcase, test_no_table);
	tcase_add_test(tcase, test_thread_ends);
	tcase_add_test(tcase, test_cache_closes);
	tcase_add_test(tcase, test_joined);
	tcase_add_test(tcase, test_joined_fails);
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_alone);
	tcase_add_test(tcase, test_alone_no_more);
	suite_add_tcase(suite, tcase);
	return suite;
}
