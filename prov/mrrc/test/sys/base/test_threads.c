/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/base/threads: the provider's threads. test_hit_threads.c tests whether
 * threads of the application are noticed.
 */
#include "config.h"
#include "test/case.h"

#include <sched.h>
#include <sys/stat.h>

#include "test/fakes/fault.h"
#include "sys/base/threads.h"

static void *read_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return arg;
}

TEST_CASE(threads, NULL, NULL);

/* The application's signal handlers run in its own threads. */
TEST(test_signals)
{
	sigset_t mask, mine;
	pthread_t thread;

	sigemptyset(&mask);
	ck_assert_int_eq(mrrc_thread_start(&thread, 0, read_mask, &mask), 0);
	mrrc_thread_join(thread);
	ck_assert_int_eq(sigismember(&mask, SIGUSR1), 1);
	ck_assert_int_eq(sigismember(&mask, SIGTERM), 1);
	/* Signals of the thread's own errors are not blocked. */
	ck_assert_int_eq(sigismember(&mask, SIGSEGV), 0);
	ck_assert_int_eq(sigismember(&mask, SIGBUS), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	ck_assert_int_eq(sigismember(&mine, SIGUSR1), 0);
}

static __thread volatile char local[256 << 10];

static void *write_local(void *arg)
{
	local[sizeof(local) - 1] = 1;
	return arg;
}

/* libc puts thread-local variables on the stack, and refuses small stacks. */
TEST(test_large_locals)
{
	pthread_t thread;

	ck_assert_int_eq(
		mrrc_thread_start(&thread, 64 << 10, write_local, NULL), 0);
	mrrc_thread_join(thread);
	ck_assert_int_eq(local[sizeof(local) - 1], 0);
}

/*
 * A thread that does not start does not count as the provider's: the next
 * thread may be the application's.
 */
TEST(test_start_fails)
{
	const unsigned ours = mrrc_threads.ours;
	pthread_t thread;
	sigset_t mask;
	int ret;

	mrrc_threads_init();
	fault_arm(1);
	ret = mrrc_thread_start(&thread, 0, read_mask, &mask);
	ck_assert(fault_disarm());
	ck_assert_int_lt(ret, 0);
	ck_assert_uint_eq(mrrc_threads.ours, ours);
}

static atomic_bool bare_ends;

static int bare_main(void *arg)
{
	while (!atomic_load(&bare_ends))
		;
	return 0;
}

/* The kernel counts a thread for a moment longer than pthread_join() waits. */
static bool joined(void)
{
	struct stat task;

	ck_assert_int_eq(stat("/proc/self/task", &task), 0);
	return task.st_nlink <= 3 + mrrc_threads.ours;
}

/* A thread that libc does not know counts for good. */
TEST(test_bare)
{
	static _Alignas(16) char stack[16384];
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM;

	mrrc_threads_init();
	if (under_valgrind() || !mrrc_threads_alone())
		skip("not known here");
	ck_assert(comes(joined()));
	mrrc_threads_look();
	ck_assert(mrrc_threads_alone());
	ck_assert_int_gt(clone(bare_main, stack + sizeof(stack), flags, NULL),
			 0);
	mrrc_threads_look();
	atomic_store(&bare_ends, true);
	ck_assert(!mrrc_threads_alone());
}
