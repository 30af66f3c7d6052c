/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the allocator waits for before it takes something away: threads inside
 * their biased locks, and those that walk over a domain's heaps.
 */
#include "config.h"
#include "suites.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "fault.h"
#include "heap_fixture.h"

/* ---- threads inside their biased locks ------------------------------------------ */

static size_t deregs; /* before */
static bool waited;

/* What a thread stored becomes visible with the barrier: it is inside. */
static void come_in(void)
{
	atomic_store(&mrrc_tcache_self->biased.inside, 1);
}

/* It is waited for, and what it looks at is still there. */
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

static void detach(void)
{
	mrrc_mags_detach(heap);
}

/* The thread inside and the waiting one, in one thread, step by step. */
START_TEST(biased_locks_are_waited_for)
{
	static void (*const call[])(void) = { end_block, drain, count, detach };

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
END_TEST

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

/* In the middle of a walk. */
static void close_meanwhile(void *arg, uint64_t allocs, uint64_t frees)
{
	if (!walks)
		return;
	walks = false;
	ck_assert_int_eq(pthread_create(&closer, NULL, close_heap, NULL), 0);
	while (!atomic_load(&waits) && !atomic_load(&closed))
		sched_yield();
	ck_assert(!atomic_load(&closed));
}

START_TEST(walks_are_waited_for)
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
END_TEST

Suite *heap_wait_suite(void)
{
	Suite *suite = suite_create("heap_wait");
	TCase *tcase = tcase_create("heap_wait");

	tcase_add_checked_fixture(tcase, heap_setup, heap_teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, biased_locks_are_waited_for, 0, 4);
	tcase_add_test(tcase, walks_are_waited_for);
	suite_add_tcase(suite, tcase);
	return suite;
}
