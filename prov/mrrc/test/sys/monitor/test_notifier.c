/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/notifier with the kernel's events: a listener that blocks, holds
 * a lock under which it unmaps, or comes late. The tests are skipped, with a
 * message, where userfaultfd is not available.
 */
#include "config.h"
#include "test/case.h"

#include <sched.h>

#include "test/fakes/fault.h"
#include "test/sys/monitor/mon_fixture.h"
#include "sys/monitor/notifier.h"

#define RW     (PROT_READ | PROT_WRITE)
#define ANON   (MAP_PRIVATE | MAP_ANONYMOUS)
#define ROUNDS 3000
#define MANY   200

static struct mrrc_notifier *notifier;

/* Ranges that were told; each call takes the lock, as libfabric's caches do. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mrrc_range told[2 * MANY];
static atomic_uint told_cnt;

static void tell(void *arg, uintptr_t start, size_t len)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = atomic_load(&told_cnt);
	told[n % (2 * MANY)] = (struct mrrc_range){ start, start + len };
	atomic_store(&told_cnt, n + 1);
	pthread_mutex_unlock(&lock);
}

static void setup(void)
{
	mon_setup();
	atomic_store(&told_cnt, 0);
	if (mon)
		ck_assert_int_eq(mrrc_notifier_open(mon, tell, NULL, &notifier),
				 0);
}

static void teardown(void)
{
	if (mon)
		mrrc_notifier_close(notifier);
	mon_teardown();
}

/* Maps other pages in place of the present ones. */
static void map_at(char *ptr, size_t pages)
{
	ck_assert_ptr_eq(
		mmap(ptr, pages * mon_page, RW, ANON | MAP_FIXED, -1, 0), ptr);
	memset(ptr, 1, pages * mon_page);
}

static int watch(const char *ptr, size_t pages)
{
	return mrrc_notifier_watch(notifier, (uintptr_t) ptr, pages * mon_page);
}

static bool valid(const char *ptr, size_t pages)
{
	return mrrc_notifier_valid(notifier, (uintptr_t) ptr, pages * mon_page);
}

static void wait_told(unsigned count)
{
	ck_assert(comes(atomic_load(&told_cnt) >= count));
	ck_assert_uint_eq(atomic_load(&told_cnt), count);
}

/* Whether all of a range was told in one piece. */
static bool was_told(const char *ptr, size_t pages)
{
	const uintptr_t start = (uintptr_t) ptr;
	unsigned i;

	for (i = 0; i < atomic_load(&told_cnt); i++) {
		if (told[i].start <= start &&
		    told[i].end >= start + pages * mon_page)
			return true;
	}
	return false;
}

TEST_CASE(notifier, setup, teardown);

TEST(test_changes)
{
	char *ptr;

	need_uffd();
	ptr = mon_map(8);
	ck_assert(!valid(ptr, 8));
	ck_assert_int_eq(watch(ptr, 8), 0);
	ck_assert(valid(ptr, 8));
	ck_assert(valid(ptr + mon_page, 3));
	ck_assert(!valid(ptr + mon_page, 8));
	ck_assert_int_eq(munmap(ptr + 2 * mon_page, mon_page), 0);
	ck_assert(!valid(ptr, 1));
	wait_told(1);
	ck_assert(was_told(ptr, 8));

	/*
	 * The range is watched again with the hole filled, then pages are
	 * dropped.
	 */
	map_at(ptr + 2 * mon_page, 1);
	ck_assert(!valid(ptr, 8));
	ck_assert_int_eq(watch(ptr, 8), 0);
	ck_assert(valid(ptr, 8));
	ck_assert_int_eq(madvise(ptr, mon_page, MADV_DONTNEED), 0);
	ck_assert(!valid(ptr + 4 * mon_page, 1));
	wait_told(2);
	munmap(ptr, 8 * mon_page);
}

/* A watcher of overlapping parts is told of all of them. */
TEST(test_overlap)
{
	char *ptr;

	need_uffd();
	ptr = mon_map(16);
	ck_assert_int_eq(watch(ptr, 8), 0);
	ck_assert_int_eq(watch(ptr + 4 * mon_page, 8), 0);
	ck_assert_int_eq(watch(ptr + 5 * mon_page, 2), 0);
	ck_assert_int_eq(watch(ptr + 14 * mon_page, 2), 0);
	ck_assert(valid(ptr, 12));
	munmap(ptr, mon_page);
	ck_assert(!valid(ptr + 8 * mon_page, 4));
	ck_assert(valid(ptr + 14 * mon_page, 2));
	wait_told(1);
	ck_assert(was_told(ptr, 12));
	munmap(ptr + mon_page, 15 * mon_page);
	wait_told(2);
}

/* A thread that unmaps holds the listener's lock. */
TEST(test_locked)
{
	char *ptr;
	int i;

	need_uffd();
	ptr = mon_map(2 * MANY);
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(watch(ptr + 2 * i * mon_page, 1), 0);
	pthread_mutex_lock(&lock);
	for (i = 0; i < MANY; i++) {
		/* Events exceed the queue, and none of them is told yet. */
		ck_assert(valid(ptr + 2 * i * mon_page, 1));
		munmap(ptr + 2 * i * mon_page, mon_page);
		ck_assert(!valid(ptr + 2 * i * mon_page, 1));
		map_at(ptr + 2 * i * mon_page, 1);
		ck_assert_int_eq(watch(ptr + 2 * i * mon_page, 1), 0);
		/* Another thread may still know the old pages. */
		ck_assert(!valid(ptr + 2 * i * mon_page, 1));
	}
	ck_assert_uint_eq(atomic_load(&told_cnt), 0);
	pthread_mutex_unlock(&lock);
	ck_assert(comes(valid(ptr, 1)));
	for (i = 0; i < MANY; i++)
		ck_assert(comes(was_told(ptr + 2 * i * mon_page, 1)));
	munmap(ptr, 2 * MANY * mon_page);
}

TEST(test_refused)
{
	char *ptr;

	need_uffd();
	ck_assert_int_eq(watch(NULL, 1), -EINVAL);
	ck_assert_int_eq(mrrc_notifier_watch(notifier, mon_page, 0), -EINVAL);
	ck_assert_int_eq(mrrc_notifier_watch(notifier, mon_page, SIZE_MAX),
			 -EINVAL);
	/* Changes of shared memory are not seen. */
	ptr = mmap(NULL, mon_page, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(ptr, MAP_FAILED);
	*ptr = 1;
	ck_assert_int_ne(watch(ptr, 1), 0);
	ck_assert(!valid(ptr, 1));
	munmap(ptr, mon_page);
	/* A failed monitor confirms no range. */
	ptr = mon_map(1);
	ck_assert_int_eq(watch(ptr, 1), 0);
	mrrc_mon_fail(mon, "for a test");
	ck_assert(!valid(ptr, 1));
	wait_told(1);
	ck_assert_int_eq(watch(ptr, 1), -ENODEV);
	munmap(ptr, mon_page);
}

TEST(test_open_faults)
{
	unsigned leaks, nth = 0;
	bool injected;
	int ret;

	need_uffd();
	mrrc_notifier_close(notifier);
	do {
		fault_arm(++nth);
		ret = mrrc_notifier_open(mon, tell, NULL, &notifier);
		injected = fault_disarm();
		leaks = fault_leaks();
		ck_assert_int_eq(ret < 0, injected);
		ck_assert(!injected || !leaks);
	} while (injected);
	ck_assert_uint_gt(nth, 3);
}

/* ---- valid() against remapping ---- */

/* Even: mapped and watched; odd: mapped anew, and not watched yet. */
static atomic_uint state;
static atomic_uint stale, hits;
static atomic_bool stop;
static char *_Atomic racing;

static void *race_main(void *arg)
{
	unsigned before, after;
	bool ok;

	while (!atomic_load(&stop)) {
		before = atomic_load(&state);
		ok = valid(atomic_load(&racing), 4);
		after = atomic_load(&state);
		if (before != after)
			continue;
		atomic_fetch_add(&stale, ok && (before & 1));
		atomic_fetch_add(&hits, ok);
	}
	return NULL;
}

TEST(test_race)
{
	pthread_t thread;
	char *ptr;
	int i;

	need_uffd();
	ptr = mon_map(4);
	ck_assert_int_eq(watch(ptr, 4), 0);
	atomic_store(&racing, ptr);
	atomic_store(&state, 0);
	atomic_store(&stop, false);
	atomic_store(&stale, 0);
	atomic_store(&hits, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, race_main, NULL), 0);
	/* On a busy machine the other thread may sleep during all rounds. */
	for (i = 0; i < ROUNDS || !atomic_load(&hits); i++) {
		map_at(ptr, 4);
		atomic_fetch_add(&state, 1);
		if (i % 2)
			sched_yield();
		atomic_fetch_add(&state, 1);
		/* -EAGAIN: the event of the old mapping may come late. */
		while (watch(ptr, 4) == -EAGAIN)
			;
		while (!valid(ptr, 4))
			sched_yield();
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(atomic_load(&stale), 0);
	munmap(ptr, 4 * mon_page);
}

static void *watch_cancelled(void *arg)
{
	be_cancelled();
	mrrc_notifier_watch(notifier, (uintptr_t) arg, mon_page);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* A cancelled thread does not leave others waiting. */
TEST(test_cancelled)
{
	pthread_t thread;
	void *ret;
	char *ptr;

	need_uffd();
	ptr = mon_map(1);
	ck_assert_int_eq(pthread_create(&thread, NULL, watch_cancelled, ptr),
			 0);
	pthread_join(thread, &ret);
	ck_assert_ptr_eq(ret, ptr);
	ck_assert(valid(ptr, 1));
	munmap(ptr, mon_page);
	wait_told(1);
}
