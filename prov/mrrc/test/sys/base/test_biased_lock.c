/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/base/biased_lock: data that a biased lock guards do not change while the
 * lock is shut, and no owner is inside after a wait.
 *
 * Without a barrier an owner could look whether the biased lock is shut before
 * other threads see that the owner is inside. The test therefore delays the
 * owner's stores: the owner writes to cache lines that the other thread writes
 * to as well, on another processor.
 */
#include "config.h"
#include "test/case.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "test/fakes/fault.h"
#include "sys/base/biased_lock.h"

#define SKIPPED 77
#define ROUNDS	100000
#define LINES	16
#define PAUSES	30  /* length of the owner's stay inside */
#define LOOKS	200 /* looks of the other thread, for longer than PAUSES */

static struct {
	_Alignas(64) _Atomic uint64_t word;
} busy[LINES];

static struct mrrc_biased_lock biased;
static atomic_bool stop;
static _Atomic uint64_t entered; /* number of times that the owner entered */

/* Guarded by the biased lock; volatile, so that each access is made. */
static volatile uint64_t begun, ended;

static void keep_behind(void)
{
	int i;

	for (i = 0; i < LINES; i++)
		atomic_store_explicit(&busy[i].word, i, memory_order_relaxed);
}

static void pause_for(int n)
{
	/* clang leaves out a loop of fences */
	while (n--)
		__asm__ volatile("" ::: "memory");
}

/* Pins this thread to the nth of the processors that it may use. */
static bool pin(const cpu_set_t *may, int nth)
{
	cpu_set_t one;
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, may) || nth--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return !sched_setaffinity(0, sizeof(one), &one);
	}
	return false;
}

static cpu_set_t may;

/* Whether the owner can enter an opened lock; if busy, after a while. */
static bool enters(void)
{
	const uint64_t was = entered;

	return comes(entered != was);
}

/* Runs two threads on two processors, until @other finds an error. */
static void duel(void *(*owner)(void *), bool (*other)(void))
{
	pthread_t thread;
	bool fine = true, opens;
	int i;

	if (sched_getaffinity(0, sizeof(may), &may) || !pin(&may, 1) ||
	    !pin(&may, 0))
		skip("one processor");
	mrrc_biased_setup();
	mrrc_biased_init(&biased, true);
	atomic_store(&stop, false);
	entered = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, owner, NULL), 0);
	for (i = 0; i < ROUNDS && fine; i++)
		fine = other();
	opens = !fine || !biased.works || enters();
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(may), &may);
	ck_assert_msg(fine, "%lu entered: it was inside",
		      (unsigned long) entered);
	ck_assert_msg(opens, "the owner cannot enter");
}

static void *change(void *arg)
{
	pin(&may, 1);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		keep_behind();
		if (!mrrc_biased_enter(&biased))
			continue;
		begun = ++entered;
		pause_for(PAUSES);
		ended = entered;
		mrrc_biased_leave(&biased);
	}
	return NULL;
}

static bool look(void)
{
	uint64_t was;
	bool fine;
	int i;

	keep_behind();
	mrrc_biased_shut(&biased);
	was = begun;
	fine = ended == was;
	for (i = 0; i < LOOKS && fine; i++)
		fine = begun == was && ended == was;
	mrrc_biased_open(&biased);
	return fine;
}

TEST_CASE(biased_lock, NULL, NULL);

TEST(shut)
{
	duel(change, look);
}

/* Data that are taken away while threads that found them use them. */
static volatile int taken;
static volatile int *_Atomic offered = &taken;
static atomic_uint misused;

static void *use(void *arg)
{
	volatile int *found;

	pin(&may, 1);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		keep_behind();
		if (!mrrc_biased_enter(&biased))
			continue;
		entered++;
		found = atomic_load_explicit(&offered, memory_order_acquire);
		pause_for(PAUSES);
		if (found && *found)
			atomic_fetch_add(&misused, 1);
		mrrc_biased_leave(&biased);
		/*
		 * The owner stays outside for longer, so that the other thread
		 * sees the owner outside.
		 */
		pause_for(10 * PAUSES);
	}
	return NULL;
}

static bool take_away(void)
{
	keep_behind();
	atomic_store_explicit(&offered, NULL, memory_order_relaxed);
	mrrc_biased_barrier();
	mrrc_biased_wait(&biased);
	taken = 1;
	pause_for(LOOKS);
	taken = 0;
	atomic_store_explicit(&offered, &taken, memory_order_release);
	pause_for(LOOKS);
	return !atomic_load(&misused);
}

TEST(waited)
{
	atomic_store(&misused, 0);
	duel(use, take_away);
}

/* The owner's store becomes visible at the barrier: the owner is inside. */
__attribute__((unused)) static void appear(void)
{
	atomic_store(&biased.inside, 1);
}

static bool left;

static void leave(void)
{
	left = true;
	mrrc_biased_leave(&biased);
}

static void shut_it(void)
{
	mrrc_biased_shut(&biased);
	mrrc_biased_open(&biased);
}

static void wait_at_it(void)
{
	mrrc_biased_barrier();
	mrrc_biased_wait(&biased);
}

/* Returns whether @call waits until the owner has left. */
static bool waits(void (*call)(void))
{
	left = false;
	fault_at(FAULT_YIELD, leave);
	call();
	fault_at(FAULT_YIELD, NULL);
	return left;
}

/* The owner and the waiting side are one thread, step by step. */
LOOP_TEST(steps, 0, 2)
{
	void (*const call)(void) = _i ? wait_at_it : shut_it;

	mrrc_biased_setup();
	mrrc_biased_init(&biased, true);
	ck_assert(!waits(call));
	if (!mrrc_biased_enter(&biased))
		skip("no membarrier");
	ck_assert(waits(call));
#ifndef __SANITIZE_THREAD__ /* a biased lock is a plain lock there */
	fault_at(FAULT_BARRIER, appear);
	ck_assert(waits(call));
#endif
	mrrc_biased_shut(&biased);
	ck_assert(!mrrc_biased_enter(&biased));
	mrrc_biased_open(&biased);
	ck_assert(mrrc_biased_enter(&biased));
	mrrc_biased_leave(&biased);
}

TEST(no_barrier)
{
	mrrc_biased_init(&biased, false);
	ck_assert(!mrrc_biased_enter(&biased));
	mrrc_biased_shut(&biased);
	mrrc_biased_open(&biased);
	ck_assert(!mrrc_biased_enter(&biased));
}

/* membarrier(2) fails from now on, as in a sandbox. */
static bool forbid_barriers(void)
{
	return kernel_answers(SYS_membarrier, EPERM);
}

static bool opens(struct mrrc_biased_lock *one)
{
	mrrc_biased_shut(one);
	mrrc_biased_open(one);
	if (!mrrc_biased_enter(one))
		return false;
	mrrc_biased_leave(one);
	return true;
}

static void ignore(int number)
{
}

/* Whether the wait in place of a barrier is long enough despite signals. */
static bool waits_long(void)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } };
	struct timespec from, to;

	signal(SIGALRM, ignore);
	setitimer(ITIMER_REAL, &often, NULL);
	clock_gettime(CLOCK_MONOTONIC, &from);
	mrrc_biased_barrier();
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec -
		       from.tv_nsec >=
	       10000000;
}

static int forbidden_child(void)
{
	struct mrrc_biased_lock one, other;

	mrrc_biased_setup();
	mrrc_biased_init(&one, true);
	mrrc_biased_init(&other, true);
	if (!opens(&one) || !opens(&other) || !forbid_barriers())
		return SKIPPED;
	return opens(&one) || opens(&other);
}

/* The next user of biased locks checks again whether there is a barrier. */
static int forbidden_setup_child(void)
{
	struct mrrc_biased_lock one;

	mrrc_biased_setup();
	mrrc_biased_init(&one, true);
	if (!opens(&one) || !forbid_barriers())
		return SKIPPED;
	mrrc_biased_setup();
	if (!mrrc_biased_enter(&one))
		return 1;
	mrrc_biased_leave(&one);
	return !waits_long();
}

static void *cancelled_barrier(void *arg)
{
	be_cancelled();
	mrrc_biased_barrier();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* A thread is not cancelled in the wait, as it may hold locks. */
static int forbidden_cancel_child(void)
{
	pthread_t thread;
	void *came_back;

	mrrc_biased_setup();
	if (!mrrc_biased_possible() || !forbid_barriers() ||
	    pthread_create(&thread, NULL, cancelled_barrier, &biased))
		return SKIPPED;
	pthread_join(thread, &came_back);
	return came_back != &biased;
}

static int (*const forbidden_children[])(void) = {
	forbidden_child,
	forbidden_setup_child,
	forbidden_cancel_child,
};

/* A biased lock without a barrier does not open again. */
LOOP_TEST(forbidden, 0, 3)
{
	int status;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	skip("a biased lock is a lock here");
#endif
	pid = fork();
	if (!pid)
		_exit(forbidden_children[_i]());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		skip("no membarrier or no seccomp here");
	ck_assert_int_eq(status, 0);
}
