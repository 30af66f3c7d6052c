/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator waits for threads inside their biased locks, and for threads
 * that walk over a domain's heaps, before it takes objects away. A heap uses
 * kept objects before it grows.
 */
#include "config.h"
#include "test/case.h"

#include <sched.h>
#include <semaphore.h>

#include "test/fakes/fault.h"
#include "test/sys/heap/heap_fixture.h"
#include "sys/heap/heap_thread.h"

/* ---- threads inside their biased locks ----------------------------------- */

static size_t deregs; /* number of deregistrations before */
static bool waited;

/* A thread's store becomes visible at the barrier: the thread is inside. */
static void come_in(void)
{
	atomic_store(&mrrc_tcache_self->biased.inside, 1);
}

/* The thread is waited for, and the objects that it uses are still there. */
static void go_out(void)
{
	waited = heap_fake.deregs == deregs;
	mrrc_biased_leave(&mrrc_tcache_self->biased);
}

static void *alone;

static void end_block(void)
{
	heap_put(alone);
}

static void drain(void)
{
	mrrc_mags_drain(heap, false);
}

static void count(void)
{
	uint64_t allocs, frees;

	mrrc_mags_kept(heap, &allocs, &frees);
}

static void reclaim(void)
{
	mrrc_mags_reclaim(heap, 0);
}

static void detach(void)
{
	mrrc_mags_detach(heap);
}

TEST_CASE(heap_wait, heap_setup, heap_teardown);

/* The thread inside and the waiting one are one thread, step by step. */
LOOP_TEST(biased_locks_are_waited_for, 0, 5)
{
	static void (*const call[])(void) = { end_block, drain, count, reclaim,
					      detach };

	heap_put(heap_get(heap, 1, 64, 0));
	alone = heap_get(heap, 1, 64, MRRC_HEAP_ISOLATED);
#ifdef __SANITIZE_THREAD__
	skip("a biased lock is a lock there");
#endif
	if (!mrrc_tcache_self->biased.works)
		skip("no membarrier, or a tool watches");
	deregs = heap_fake.deregs;
	waited = false;
	fault_at(FAULT_BARRIER, come_in);
	fault_at(FAULT_YIELD, go_out);
	call[_i]();
	fault_at(FAULT_BARRIER, NULL);
	fault_at(FAULT_YIELD, NULL);
	mrrc_biased_leave(&mrrc_tcache_self->biased);
	ck_assert(waited);
}

/* ---- kept objects, used before a heap grows ------------------------------ */

#define KEPT_SIZE ((size_t) 64 << 10)
#define KEPT_LEN  (KEPT_SIZE - MRRC_HEAP_CANARY)
#define KEPT_CNT  (MIB / KEPT_SIZE) /* objects of a block */

static unsigned barriers;

static void count_barrier(void)
{
	barriers++;
}

/* Keeps all objects of a block in this thread's magazine, until told to end. */
static void *keep(void *arg)
{
	void *addr[KEPT_CNT];
	sem_t *sem = arg;
	unsigned i;

	for (i = 0; i < KEPT_CNT; i++)
		addr[i] = heap_get(heap, 1, KEPT_LEN, 0);
	for (i = 0; i < KEPT_CNT; i++)
		heap_put(addr[i]);
	if (sem) {
		sem_post(&sem[0]);
		sem_wait(&sem[1]);
	}
	return NULL;
}

/* Kept objects are this thread's, without a barrier, or another thread's. */
LOOP_TEST(what_is_kept_is_used_first, 0, 2)
{
	pthread_t thread;
	sem_t sem[2];

	if (mrrc_heap_watched)
		skip("a tool watches: nothing is kept");
	sem_init(&sem[0], 0, 0);
	sem_init(&sem[1], 0, 0);
	if (_i) {
		thread = thread_start(keep, sem);
		sem_wait(&sem[0]);
	} else {
		keep(NULL);
	}
	ck_assert_uint_eq(heap_fake.regs, 1);
	barriers = 0;
	fault_at(FAULT_BARRIER, count_barrier);
	heap_put(heap_get(heap, 1, MIB / 2, 0));
	fault_at(FAULT_BARRIER, NULL);
	ck_assert_uint_eq(heap_fake.regs, 1);
#ifndef __SANITIZE_THREAD__
	ck_assert_uint_eq(barriers, _i);
#endif
	if (_i) {
		sem_post(&sem[1]);
		pthread_join(thread, NULL);
	}
}

/* If all magazines are taken, objects of the depot are used first, too. */
TEST(what_the_depot_has_is_used_first)
{
	unsigned i;

	if (mrrc_heap_watched)
		skip("a tool watches: nothing is kept");
	for (i = 0; i < MRRC_SLOTS; i++)
		heap = heap_open(&heap_plain);
	ck_assert_uint_eq(heap->slot, 0);
	keep(NULL);
	ck_assert_uint_eq(heap_fake.regs, 1);
	heap_put(heap_get(heap, 1, MIB / 2, 0));
	ck_assert_uint_eq(heap_fake.regs, 1);
}

/* Allocates and frees objects, which the magazines then keep. */
static void keep_some(size_t len, unsigned count)
{
	void *addr[KEPT_CNT];
	unsigned i;

	for (i = 0; i < count; i++)
		addr[i] = heap_get(heap, 1, len - MRRC_HEAP_CANARY, 0);
	for (i = 0; i < count; i++)
		heap_put(addr[i]);
}

/* Opens a heap of at most @max_bytes, with one shard. */
static void limited_heap(size_t max_bytes)
{
	struct mrrc_heap_attr attr = heap_plain;

	attr.max_bytes = max_bytes;
	heap = heap_open(&attr);
	ck_assert_uint_eq(heap->shards, 1);
}

static void *keep_one(void *arg)
{
	sem_t *sem = arg;

	keep_some(KEPT_SIZE, 1);
	sem_post(&sem[0]);
	sem_wait(&sem[1]);
	return NULL;
}

/* After a refusal, small kept objects are used, too, before a new request. */
TEST(all_are_used_at_the_limit)
{
	void *live, *addr, *cookie;
	pthread_t thread;
	uint64_t fails;
	sem_t sem[2];

	if (mrrc_heap_watched)
		skip("a tool watches: nothing is kept");
	limited_heap(2 * MIB);
	heap_fake.max_live_bytes = MIB;
	live = heap_get(heap, 1, 64, 0);
	ck_assert_int_ne(mrrc_heap_alloc(heap, 1, MIB - 64, 0, &addr, &cookie),
			 0);
	fails = heap_stats_of(heap).reg_fails;
	sem_init(&sem[0], 0, 0);
	sem_init(&sem[1], 0, 0);
	thread = thread_start(keep_one, sem);
	sem_wait(&sem[0]);
	keep_some(MRRC_CLASS_SMALL_MAX, 8);
	keep_some(KEPT_SIZE, 1);
	heap_put(heap_get(heap, 1, MIB / 4 * 3, 0));
	ck_assert_uint_eq(heap_stats_of(heap).reg_fails, fails);
	heap_put(live);
	sem_post(&sem[1]);
	pthread_join(thread, NULL);
}

/* ---- threads that walk over heaps ---------------------------------------- */

static pthread_t closer;
static atomic_bool waits, closed;
static bool walks;

static void say_waits(void)
{
	atomic_store(&waits, true);
}

static void *close_heap(void *arg)
{
	fault_at(FAULT_YIELD, say_waits);
	mrrc_heap_close(heap);
	atomic_store(&closed, true);
	return NULL;
}

/* Closes the heap in the middle of a walk. */
static void close_meanwhile(void *arg, uint64_t allocs, uint64_t frees)
{
	if (!walks)
		return;
	walks = false;
	closer = thread_start(close_heap, NULL);
	while (!atomic_load(&waits) && !atomic_load(&closed))
		sched_yield();
	ck_assert(!atomic_load(&closed));
}

TEST(walks_are_waited_for)
{
	struct mrrc_heap_ops ops = fake_heap_ops;

	mrrc_heaps_close(heaps);
	ops.count = close_meanwhile;
	ck_assert_int_eq(mrrc_heaps_open(&ops, &heap_fake, 0, &heaps), 0);
	heap = heap_open(&heap_plain);
	atomic_store(&waits, false);
	atomic_store(&closed, false);
	heap_put(heap_get(heap, 1, 64, 0));
	walks = true;
	mrrc_heaps_trim(heaps);
	ck_assert(!walks);
	pthread_join(closer, NULL);
}

/* ---- threads that are cancelled ---- */

static void *alloc_cancelled(void *arg)
{
	void *addr, *cookie, *kept = heap_get(heap, 1, 64, MRRC_HEAP_ISOLATED);

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	heap_fake.on_note = heap_fake.on_dereg = pthread_testcancel;
	heap_fake.fail_in = 1;
	heap_fake.fail_rc = -EFAULT;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	if (arg)
		mrrc_heap_free(heaps, kept);
	else
		mrrc_heap_alloc(heap, 1, 64, 0, &addr, &cookie);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	heap_fake.on_note = heap_fake.on_dereg = NULL;
	heap_fake.fail_in = 0;
	if (!arg)
		heap_put(kept);
	return heap;
}

/*
 * A thread is not cancelled while it logs, or in the core, as other threads
 * wait for it.
 */
LOOP_TEST(cancelled_threads_go_on, 0, 2)
{
	void *ended;

	pthread_join(thread_start(alloc_cancelled, _i ? heap : NULL), &ended);
	ck_assert_ptr_eq(ended, heap);
	ck_assert_uint_eq(heap->growing, 0);
	ck_assert_uint_eq(heap_stats_of(heap).bytes, 0);
}
