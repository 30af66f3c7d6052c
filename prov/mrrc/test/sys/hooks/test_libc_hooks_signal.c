/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Signal handlers that unmap watched memory while their thread holds a lock of
 * the provider, runs a hook, or does anything else. Nothing hangs, and no
 * change is lost.
 */
#include "config.h"
#include "test/case.h"

#include <setjmp.h>

#include "test/sys/hooks/libc_hooks_fixture.h"

static char *target;
static sigjmp_buf away;

static void on_munmap(int sig)
{
	munmap(target, 4 * mon_page);
}

static void on_raw(int sig)
{
	duel_raw(SYS_munmap, (long) target, 4 * mon_page, 0, 0, 0, 0);
}

static void on_jump(int sig)
{
	munmap(target, 4 * mon_page);
	siglongjmp(away, 1);
}

static void on(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

static void *unmap_other(void *arg)
{
	duel_raw(SYS_munmap, (long) arg, mon_page, 0, 0, 0, 0);
	return NULL;
}

/* Whether the thread that handles events holds the lock. */
static bool is_held(void)
{
	if (pthread_mutex_trylock(&mon->lock.mutex))
		return true;
	pthread_mutex_unlock(&mon->lock.mutex);
	return false;
}

TEST_CASE(hooks_signal, hooks_setup, hooks_teardown);

/*
 * A signal handler unmaps, by libc or by a raw system call, while its thread
 * holds a lock. An event of another thread is already being handled, and waits
 * for that lock.
 */
LOOP_TEST(test_signal_inside, 0, 4)
{
	struct mrrc_lock *lock;
	pthread_t thread;
	char *other;

	need_uffd();
	lock = _i & 1 ? &watcher.lock : &mon->lock;
	on(_i & 2 ? on_raw : on_munmap);
	other = mon_map(1);
	ck_assert_int_eq(mon_watch(other, 1), 0);
	target = hooks_map();
	mrrc_lock_acquire(lock);
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap_other, other), 0);
	pthread_join(thread, NULL);
	if (_i & 1)
		ck_assert(comes(is_held()));
	raise(SIGUSR1);
	mrrc_lock_release(lock);
	expect_kernel();
}

/*
 * No hook tells subscribers of a change while its thread holds a lock of the
 * provider, even a lock that may be taken twice.
 */
TEST(test_inside)
{
	pthread_mutex_t *mutex = &watcher.lock.mutex;
	pthread_mutexattr_t attr;
	unsigned told;

	need_hooks();
	pthread_mutex_destroy(mutex);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(mutex, &attr);
	target = hooks_map();
	mrrc_lock_acquire(&watcher.lock);
	munmap(target, 4 * mon_page);
	told = atomic_load(&watcher.told);
	mrrc_lock_release(&watcher.lock);
	ck_assert_uint_eq(told, 0);
	expect_event();
}

LOOP_TEST(test_signal_outside, 0, 2)
{
	need_hooks();
	on(_i ? on_jump : on_munmap);
	target = hooks_map();
	if (!sigsetjmp(away, 1))
		raise(SIGUSR1);
	expect_hook();
}

struct pinger {
	pthread_t to;
	atomic_bool stop;
};

static void *ping(void *arg)
{
	struct pinger *self = arg;

	while (!atomic_load(&self->stop)) {
		pthread_kill(self->to, SIGUSR1);
		usleep(50);
	}
	return NULL;
}

static atomic_uint pings;

static void on_churn(int sig)
{
	const int error = errno;
	char *ptr;

	ptr = mmap(NULL, mon_page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ptr == MAP_FAILED || munmap(ptr, mon_page))
		abort();
	/* The interrupted thread has watched this range, too. */
	if (target)
		madvise(target, mon_page, MADV_DONTNEED);
	atomic_fetch_add(&pings, 1);
	errno = error;
}

/* Handlers unmap at any moment of watching and unmapping. */
TEST(test_signal_storm)
{
	struct pinger pinger = { .to = pthread_self() };
	pthread_t thread;
	char *ptr;

	need_hooks();
	on(on_churn);
	atomic_store(&pings, 0);
	target = NULL;
	ck_assert_int_eq(pthread_create(&thread, NULL, ping, &pinger), 0);
	while (atomic_load(&pings) < 2000) {
		ptr = mon_map(2);
		target = ptr;
		hooks_watch(ptr, 2);
		munmap(ptr + mon_page, mon_page);
		target = NULL;
		munmap(ptr, mon_page);
		mrrc_mon_drain(mon);
		ck_assert_uint_ge(atomic_load(&watcher.told), 1);
	}
	atomic_store(&pinger.stop, true);
	pthread_join(thread, NULL);
	ck_assert(mrrc_mon_works(mon));
}
