/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that waits for another thread lets the other thread run. Yielding
 * the processor lets no thread of lower real-time priority run there, so each
 * wait in sys that no wake-up ends sleeps after some yields (sys/base/pause.h).
 * The tests end each wait from inside its first sleep.
 */
#include "config.h"
#include "test/case.h"

#include <semaphore.h>

#include "test/fakes/fault.h"
#include "test/sys/heap/heap_fixture.h"
#include "test/sys/cache/mt_fixture.h"
#include "sys/base/biased_lock.h"
#include "sys/cache/cache_mt.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/monitor/notifier.h"
#include "sys/base/vm.h"
#include "sys/heap/heap_open.h"

#define YIELDS 10000 /* more yields than a wait makes before it sleeps */

static void (*end_wait)(void);
static unsigned yields;
static bool slept;

static void on_sleep(void)
{
	slept = true;
	end_wait();
}

static void on_yield(void)
{
	if (++yields < YIELDS)
		fault_at(FAULT_YIELD, on_yield);
	else
		end_wait();
}

/* Checks that @wait sleeps; @end then ends the wait. */
static void wait_for(void (*wait)(void), void (*end)(void))
{
	end_wait = end;
	yields = 0;
	slept = false;
	fault_at(FAULT_YIELD, on_yield);
	fault_at(FAULT_SLEEP, on_sleep);
	wait();
	fault_at(FAULT_YIELD, NULL);
	fault_at(FAULT_SLEEP, NULL);
	ck_assert_msg(slept, "%u yields and no sleep", yields);
}

/* ---- biased locks ---- */

static struct mrrc_biased_lock biased;

static void biased_leave(void)
{
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

/* Returns false if there are no biased locks here. */
static bool biased_enter(void)
{
	mrrc_biased_setup();
	mrrc_biased_init(&biased, true);
	return mrrc_biased_enter(&biased);
}

TEST_CASE(pause, NULL, NULL);

LOOP_TEST(biased_lock, 0, 2)
{
	if (!biased_enter())
		skip("no membarrier here");
	wait_for(_i ? biased_shut : biased_wait, biased_leave);
}

static void leave_cancelled(void)
{
	pthread_cancel(pthread_self());
	biased_leave();
}

static void *cancelled_main(void *arg)
{
	fault_at(FAULT_SLEEP, leave_cancelled);
	biased_wait();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* The waiting thread is not cancelled, as it may hold locks. */
TEST(not_cancelled)
{
	pthread_t thread;
	void *ended;

	if (!biased_enter())
		skip("no membarrier here");
	ck_assert(!pthread_create(&thread, NULL, cancelled_main, &biased));
	pthread_join(thread, &ended);
	ck_assert_ptr_eq(ended, &biased);
}

/* ---- another thread that stays until it is let go ---- */

static sem_t staying, go;
static pthread_t other;

static void stay(void)
{
	sem_post(&staying);
	while (sem_wait(&go))
		;
}

static void let_go(void)
{
	sem_post(&go);
}

static void wait_for_thread(void *(*run)(void *), void (*wait)(void))
{
	sem_init(&staying, 0, 0);
	sem_init(&go, 0, 0);
	ck_assert(!pthread_create(&other, NULL, run, NULL));
	while (sem_wait(&staying))
		;
	wait_for(wait, let_go);
	pthread_join(other, NULL);
}

static char *hooked;

static void told(void *arg, uintptr_t start, uintptr_t end,
		 enum mrrc_libc_hooks_how how)
{
	if (start == (uintptr_t) hooked)
		stay();
}

static void *unmap(void *arg)
{
	munmap(hooked, mrrc_vm_page());
	return arg;
}

static void remove_hooks(void)
{
	mrrc_libc_hooks_remove(&hooked);
}

TEST(removes_hooks)
{
	char why[MRRC_LIBC_HOOKS_WHY];

	if (under_valgrind())
		skip("valgrind runs code as it was");
	hooked = mmap(NULL, mrrc_vm_page(), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(hooked, MAP_FAILED);
	if (mrrc_libc_hooks_add(told, &hooked, why))
		skip("no hooks here: %s", why);
	mrrc_libc_hooks_mark((uintptr_t) hooked, mrrc_vm_page());
	wait_for_thread(unmap, remove_hooks);
}

static void walked(struct mrrc_heap *of, void *arg)
{
	stay();
}

static void *walk(void *arg)
{
	mrrc_heaps_each(heaps, walked, NULL);
	return arg;
}

static void close_heap(void)
{
	mrrc_heap_close(heap);
}

TEST(closes_heap)
{
	heap_setup();
	wait_for_thread(walk, close_heap);
	heap_teardown();
}

/* ---- memory that changes: a wait does not yield all the time ---- */

static void changes(void)
{
	fake_mon_of(mt_mon)->busy = 1u << 30;
}

static void changes_end(void)
{
	fake_mon_of(mt_mon)->busy = 0;
}

static void cache_asked(void)
{
	touch(0, 4);
}

TEST(looks_up)
{
	mt_setup();
	changes();
	wait_for(cache_asked, changes_end);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_RACED), 0);
	mt_teardown();
}

static struct mrrc_notifier *notifier;
static bool notifier_known;

static void notifier_tell(void *arg, uintptr_t start, size_t len)
{
}

static void notifier_asked(void)
{
	notifier_known = mrrc_notifier_valid(notifier, base, page);
}

TEST(notifiers)
{
	mt_setup();
	ck_assert_int_eq(
		mrrc_notifier_open(mt_mon, notifier_tell, NULL, &notifier), 0);
	ck_assert_int_eq(mrrc_notifier_watch(notifier, base, page), 0);
	changes();
	wait_for(notifier_asked, changes_end);
	ck_assert(notifier_known);
	mrrc_notifier_close(notifier);
	mt_teardown();
}
