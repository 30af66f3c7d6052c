/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that waits for another lets it run: a thread of real-time priority
 * waits, on the same processor, for one without, in each place where sys waits
 * without being woken. Linux ends such a spin after a second, by which time it
 * has cost nearly a second of processor time (sched(7)); so the processor time
 * is checked. Skipped, with a message, where real-time priority is not
 * available.
 */
#include "config.h"
#include "suites.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "heap_fixture.h"
#include "mt_fixture.h"
#include "sys/cache_mt.h"
#include "sys/biased_lock.h"
#include "sys/libc_hooks.h"
#include "sys/notifier.h"
#include "sys/vm.h"

#define SPUN_NS 500000000 /* more than any wait that lets others run */
#define ROUNDS	50	  /* of waits that do not wait for ever */

static atomic_bool held, let_go, came_back;

static void moment(void)
{
	const struct timespec ts = { .tv_nsec = 200000 };

	nanosleep(&ts, NULL);
}

/* What the other thread does between taking something and giving it back. */
static void hold(void)
{
	atomic_store(&held, true);
	while (!atomic_load(&let_go))
		sched_yield();
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static bool real_time(bool on)
{
	const struct sched_param param = { .sched_priority = on };

	return !sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* The first of the processors that this thread may use. */
static void pin(void)
{
	cpu_set_t set, one;
	int cpu;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &set); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

struct waiter {
	void (*wait)(void);
	int64_t cost; /* of the processor's time */
};

static void *wait_main(void *arg)
{
	struct waiter *waiter = arg;
	int64_t start;

	pin();
	real_time(true);
	start = cpu_ns();
	atomic_store(&let_go, true);
	waiter->wait();
	atomic_store(&came_back, true);
	waiter->cost = cpu_ns() - start;
	return NULL;
}

static void *hold_main(void *arg)
{
	void (*const *taken)(void) = arg;

	pin();
	(*taken)();
	return NULL;
}

/* Not where a tool's own locks spin. */
static bool possible(void)
{
#ifdef __SANITIZE_THREAD__
	const bool can = false;
#else
	const bool can = !under_valgrind() && real_time(true);
#endif

	if (can)
		real_time(false);
	return can;
}

/* One calls taken(), which calls hold(); another calls wait(). */
static void wait_for(void (*taken)(void), void (*wait)(void))
{
	struct waiter waiter = { .wait = wait };
	pthread_t holder, thread;

	atomic_store(&held, false);
	atomic_store(&let_go, false);
	ck_assert(!pthread_create(&holder, NULL, hold_main, &taken));
	while (!atomic_load(&held))
		moment();
	ck_assert(!pthread_create(&thread, NULL, wait_main, &waiter));
	pthread_join(thread, NULL);
	pthread_join(holder, NULL);
	ck_assert_msg(waiter.cost < SPUN_NS, "it spun for %ld ms",
		      (long) (waiter.cost / 1000000));
}

#define need_real_time()                                    \
	do {                                                \
		if (!possible())                            \
			skip("no real-time priority here"); \
	} while (0)

/* ---- biased locks ---- */

static struct mrrc_biased_lock biased;

static void biased_taken(void)
{
	ck_assert(mrrc_biased_enter(&biased));
	hold();
	mrrc_biased_leave(&biased);
}

static void biased_wait(void)
{
	mrrc_biased_wait(&biased);
}

static void biased_shut(void)
{
	mrrc_biased_shut(&biased);
	mrrc_biased_open(&biased);
}

static bool biased_setup(void)
{
	mrrc_biased_setup();
	mrrc_biased_init(&biased, true);
	return biased.works;
}

START_TEST(waits_for_biased_lock)
{
	need_real_time();
	if (!biased_setup())
		skip("no membarrier here");
	wait_for(biased_taken, biased_wait);
}
END_TEST

START_TEST(shuts_biased_lock)
{
	need_real_time();
	if (!biased_setup())
		skip("no membarrier here");
	wait_for(biased_taken, biased_shut);
}
END_TEST

static void *cancelled_main(void *arg)
{
	biased_wait();
	atomic_store(&came_back, true);
	return NULL;
}

/* The waiting thread may hold locks: it is not cancelled there. */
START_TEST(not_cancelled)
{
	void (*taken)(void) = biased_taken;
	pthread_t holder, thread;
	int i;

	if (!biased_setup())
		skip("no membarrier here");
	atomic_store(&held, false);
	atomic_store(&let_go, false);
	atomic_store(&came_back, false);
	ck_assert(!pthread_create(&holder, NULL, hold_main, &taken));
	while (!atomic_load(&held))
		moment();
	ck_assert(!pthread_create(&thread, NULL, cancelled_main, NULL));
	for (i = 0; i < 50; i++)
		moment();
	ck_assert_int_eq(pthread_cancel(thread), 0);
	for (i = 0; i < 10; i++)
		moment();
	atomic_store(&let_go, true);
	pthread_join(thread, NULL);
	pthread_join(holder, NULL);
	ck_assert(atomic_load(&came_back));
}
END_TEST

/* ---- hooks ---- */

static char *hooked;
static char tag;

static bool told(void *arg, uintptr_t start, uintptr_t end,
		 enum mrrc_libc_hooks_how how)
{
	if (start == (uintptr_t) hooked)
		hold();
	return true;
}

static void hook_taken(void)
{
	munmap(hooked, mrrc_vm_page());
}

static void hook_removed(void)
{
	mrrc_libc_hooks_remove(&tag);
}

START_TEST(removes_hooks)
{
	char why[MRRC_LIBC_HOOKS_WHY];

	need_real_time();
	if (mrrc_libc_hooks_add(told, &tag, why))
		skip("no hooks here: %s", why);
	hooked = mmap(NULL, mrrc_vm_page(), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(hooked, MAP_FAILED);
	mrrc_libc_hooks_mark((uintptr_t) hooked, mrrc_vm_page());
	wait_for(hook_taken, hook_removed);
}
END_TEST

/* ---- heaps ---- */

static void heap_walked(struct mrrc_heap *of, void *arg)
{
	hold();
}

static void heap_taken(void)
{
	mrrc_heaps_each(heaps, heap_walked, NULL);
}

static void heap_closed(void)
{
	mrrc_heap_close(heap);
}

START_TEST(closes_heap)
{
	need_real_time();
	heap_setup();
	wait_for(heap_taken, heap_closed);
	heap_teardown();
}
END_TEST

/* ---- memory that changes: it is not waited for as long as it takes ---- */

static void mon_taken(void)
{
	fake_mon_of(mt_mon)->busy = 1u << 30;
	hold();
	/* under it events are handled */
	mrrc_lock_acquire(&mt_mon->lock);
	fake_mon_of(mt_mon)->busy = 0;
	mrrc_lock_release(&mt_mon->lock);
}

static void cache_asked(void)
{
	touch(0, 4);
}

/* The other one may be late now and then; without it, it always is. */
START_TEST(looks_up)
{
	unsigned raced = 0;

	need_real_time();
	mt_setup();
	do {
		wait_for(mon_taken, cache_asked);
	} while (stat_of(MRRC_STAT_UNCACHED_RACED) > raced && ++raced < ROUNDS);
	ck_assert_uint_lt(raced, ROUNDS);
	mt_teardown();
}
END_TEST

static struct mrrc_notifier *notifier;
static bool notifier_known;

static void notifier_tell(void *arg, uintptr_t start, size_t len)
{
}

static void notifier_asked(void)
{
	notifier_known = mrrc_notifier_valid(notifier, base, page);
}

START_TEST(notifiers)
{
	unsigned i;

	need_real_time();
	mt_setup();
	ck_assert_int_eq(
		mrrc_notifier_open(mt_mon, notifier_tell, NULL, &notifier), 0);
	ck_assert_int_eq(mrrc_notifier_watch(notifier, base, page), 0);
	for (i = 0; i < ROUNDS && !notifier_known; i++)
		wait_for(mon_taken, notifier_asked);
	ck_assert(notifier_known);
	mrrc_notifier_close(notifier);
	mt_teardown();
}
END_TEST

Suite *pause_suite(void)
{
	Suite *suite = suite_create("pause");
	TCase *tcase = tcase_create("pause");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, waits_for_biased_lock);
	tcase_add_test(tcase, shuts_biased_lock);
	tcase_add_test(tcase, not_cancelled);
	tcase_add_test(tcase, removes_hooks);
	tcase_add_test(tcase, closes_heap);
	tcase_add_test(tcase, looks_up);
	tcase_add_test(tcase, notifiers);
	suite_add_tcase(suite, tcase);
	return suite;
}
