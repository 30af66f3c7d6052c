/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/base/lock: one thread at a time has a lock; debug builds end a process
 * that takes two locks in the wrong order.
 */
#include "config.h"
#include "test/case.h"

#include <sys/resource.h>

#include "test/fakes/fault.h"
#include "sys/base/lock.h"

#define ROUNDS 20000

static struct mrrc_lock low, high;
static struct mrrc_mutex outer = MRRC_MUTEX_INIT(MRRC_RANK_CW_GROUP);
static struct mrrc_mutex inner = MRRC_MUTEX_INIT(MRRC_RANK_CQS);
static long counter;

static void setup(void)
{
	ck_assert_int_eq(mrrc_lock_init(&low, MRRC_RANK_MONITOR), 0);
	ck_assert_int_eq(mrrc_lock_init(&high, MRRC_RANK_CACHE), 0);
	counter = 0;
}

static void teardown(void)
{
	mrrc_lock_fini(&high);
	mrrc_lock_fini(&low);
}

static void *add(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		mrrc_lock_acquire(&low);
		mrrc_lock_acquire(&high);
		mrrc_lock_assert_held(&low);
		mrrc_lock_assert_held(&high);
		counter++;
		mrrc_lock_release(&high);
		mrrc_lock_release(&low);
		mrrc_lock_assert_none();
	}
	return NULL;
}

TEST_CASE(lock, setup, teardown);

TEST(test_excludes)
{

	threads_run(2, add);
	ck_assert_int_eq(counter, 2 * ROUNDS);
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t waker;
static int cancel_state;

static void *wake(void *arg)
{
	mrrc_lock_acquire(&low);
	pthread_cond_broadcast(&cond);
	mrrc_lock_release(&low);
	return arg;
}

static void before_wait(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_setcancelstate(cancel_state, NULL);
	pthread_create(&waker, NULL, wake, NULL);
}

/* A thread that was cancelled in the wait would leave with the lock held. */
TEST(test_wait)
{
	fault_at(FAULT_WAIT, before_wait);
	mrrc_lock_acquire(&low);
	mrrc_lock_wait(&low, &cond);
	mrrc_lock_release(&low);
	pthread_join(waker, NULL);
	ck_assert_int_eq(cancel_state, PTHREAD_CANCEL_DISABLE);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
	ck_assert_int_eq(cancel_state, PTHREAD_CANCEL_ENABLE);
}

/* A mutex of the layer above may be held while a core is called. */
TEST(test_mutex)
{
	mrrc_mutex_lock(&outer);
	ck_assert(!mrrc_lock_inside());
	mrrc_lock_assert_none();
	mrrc_mutex_lock(&inner);
	mrrc_lock_acquire(&low);
	ck_assert(mrrc_lock_inside());
	mrrc_lock_release(&low);
	mrrc_mutex_unlock(&inner);
	ck_assert(!mrrc_mutex_try(&outer));
	mrrc_mutex_unlock(&outer);
	/* A try does not wait, so any order is allowed. */
	mrrc_mutex_lock(&inner);
	ck_assert(mrrc_mutex_try(&outer));
	mrrc_mutex_unlock(&outer);
	mrrc_mutex_unlock(&inner);
}

#ifdef MRRC_DEBUG
static void wrong_mutexes(void)
{
	mrrc_mutex_lock(&inner);
	mrrc_mutex_lock(&outer);
}

static void mutex_inside(void)
{
	mrrc_lock_acquire(&low);
	mrrc_mutex_lock(&inner);
}

static void mutex_not_held(void)
{
	mrrc_mutex_unlock(&inner);
}

static void wrong_order(void)
{
	mrrc_lock_acquire(&high);
	mrrc_lock_acquire(&low);
}

static void twice(void)
{
	mrrc_lock_acquire(&low);
	mrrc_lock_acquire(&low);
}

static void not_held(void)
{
	mrrc_lock_assert_held(&low);
}

static void release_not_held(void)
{
	mrrc_lock_release(&low);
}

static void still_held(void)
{
	mrrc_lock_acquire(&low);
	mrrc_lock_assert_none();
}

static void (*const faults[])(void) = {
	wrong_order, twice,	    not_held,	  release_not_held,
	still_held,  wrong_mutexes, mutex_inside, mutex_not_held,
};

EACH_TEST(test_asserts, faults)
{
	struct rlimit none = { 0, 0 };
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		faults[_i]();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
#endif
