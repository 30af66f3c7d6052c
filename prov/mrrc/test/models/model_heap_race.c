/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator under threads that interfere with each other: counts taken
 * while objects change, double frees, queries of objects that are being freed,
 * objects trimmed from the thread that owns them.
 */
#include "config.h"

#include <sched.h>

#include "test/models/model_heap.h"
#include "test/case.h"

static atomic_bool stop;

/* ---- counted ------------------------------------------------------------- */

/* One thread allocates, another frees, and both are counted. */
static void *_Atomic passed;

static void *producer(void *arg)
{
	void *addr, *cookie;

	while (!atomic_load(&stop)) {
		if (atomic_load(&passed))
			continue;
		if (mrrc_heap_alloc(heap[0], 1, 64, 0, &addr, &cookie))
			broken("no memory", NULL, 64);
		atomic_store(&passed, addr);
	}
	return NULL;
}

static void *consumer(void *arg)
{
	void *item;

	while (!atomic_load(&stop)) {
		item = atomic_load(&passed);
		if (!item)
			continue;
		if (mrrc_heap_free(heaps, item))
			broken("not freed", item, 64);
		atomic_store(&passed, NULL);
	}
	return NULL;
}

TEST_CASE(model_heap_race, NULL, NULL);

/*
 * A count may include a free without its allocation, but the reported number of
 * live objects is never below 0.
 */
TEST(counted_meanwhile)
{
	unsigned long i, reads = operations + 10000;
	struct mrrc_heap_stats stats;
	pthread_t thread[2];
	void *item;

	open_all(1000);
	atomic_store(&stop, false);
	thread[0] = thread_start(producer, NULL);
	thread[1] = thread_start(consumer, NULL);
	for (i = 0; i < reads; i++) {
		mrrc_heaps_stats(heaps, &stats);
		if (stats.live > stats.allocs)
			broken("live", NULL, stats.live);
	}
	atomic_store(&stop, true);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	item = atomic_exchange(&passed, NULL);
	if (item)
		ck_assert_int_eq(mrrc_heap_free(heaps, item), 0);
	close_all();
}

/* ---- reported counts ----------------------------------------------------- */

static atomic_size_t begun; /* number of allocations that are reported */

static void alloc_free(struct mrrc_heap *from, unsigned n)
{
	void *addr, *cookie;

	atomic_fetch_add(&begun, n);
	while (n--) {
		if (mrrc_heap_alloc(from, 1, 64, 0, &addr, &cookie) ||
		    mrrc_heap_free(heaps, addr))
			broken("no memory", NULL, n);
	}
}

static void *ender(void *arg)
{
	alloc_free(heap[0], 1000);
	return NULL;
}

static void *closer(void *arg)
{
	const struct mrrc_heap_attr attr = { .node = -1, .idle_ms = 1000 };
	struct mrrc_heap *own;

	while (!atomic_load(&stop)) {
		if (mrrc_heap_open(heaps, &attr, &own))
			broken("cannot open a heap", NULL, 0);
		alloc_free(own, 1000);
		mrrc_heap_close(own);
	}
	return NULL;
}

/* No more allocations are reported than made, also when threads end. */
static void *asker(void *arg)
{
	size_t told;

	while (!atomic_load(&stop)) {
		mrrc_heap_trim(heap[0]);
		told = atomic_load(&fake.allocs);
		if (told > atomic_load(&begun))
			broken("told too much", NULL, told);
	}
	return NULL;
}

TEST(told_what_was)
{
	unsigned rounds = operations / 100, k, i;
	pthread_t thread[3], brief[2];

	open_all(1000);
	atomic_store(&stop, false);
	atomic_store(&begun, 0);
	for (i = 0; i < 3; i++)
		thread[i] = thread_start(i ? closer : asker, NULL);
	for (k = 0; k < rounds; k++) {
		for (i = 0; i < 2; i++)
			brief[i] = thread_start(ender, NULL);
		for (i = 0; i < 2; i++)
			pthread_join(brief[i], NULL);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	close_all();
	ck_assert_uint_eq(fake.allocs, begun);
	ck_assert_uint_eq(fake.frees, begun);
}

/* ---- objects that are not allocated any more ----------------------------- */

static char *_Atomic gone;

/* Queries an address and frees inside it, whether allocated or not. */
static void *looker(void *arg)
{
	struct mrrc_heap_place place;
	struct mrrc_tcache *look;
	unsigned i;
	char *addr;
	int ret;

	/* One of the two threads has magazines. */
	if (arg && mrrc_heap_alloc(heap[1], 1, 64, 0, &arg, &(void *){ 0 }))
		broken("no memory", NULL, 64);
	while (!atomic_load(&stop)) {
		addr = atomic_load(&gone);
		if (!addr)
			continue;
		look = mrrc_heap_look();
		ret = mrrc_heap_query(heaps, (uintptr_t) addr, &place);
		/* The address may be inside a new object. */
		if (!ret && (place.base > (uintptr_t) addr ||
			     mrrc_heap_attr(place.heap)->node != -1))
			broken("another place", addr, place.base);
		mrrc_heap_looked(look);
		for (i = 0; i < 100; i++) {
			if (mrrc_heap_free_try(heaps, addr + 16))
				broken("freed inside", addr, i);
		}
		ret = mrrc_heap_free(heaps, addr + 16);
		if (ret != -EINVAL)
			broken("free inside", addr, -ret);
	}
	if (arg && mrrc_heap_free(heaps, arg))
		broken("not freed", arg, 64);
	return NULL;
}

/* While a block is unmapped, its description must not be read. */
TEST(looked_at_when_it_goes)
{
	static const size_t lens[] = { 8 << 20, 100, 100000 };
	unsigned i, rounds = operations / 20;
	pthread_t thread[2];
	void *addr, *cookie;

#ifdef __SANITIZE_THREAD__
	skip("what is not allocated is looked at while it changes");
#endif
	open_all(1000);
	atomic_store(&stop, false);
	for (i = 0; i < 2; i++)
		thread[i] = thread_start(looker, i ? &stop : NULL);
	for (i = 0; i < rounds; i++) {
		if (mrrc_heap_alloc(heap[0], 1, lens[i % 3], 0, &addr, &cookie))
			broken("no memory", NULL, lens[i % 3]);
		atomic_store(&gone, addr);
		if (mrrc_heap_free(heaps, addr))
			broken("not freed", addr, lens[i % 3]);
		mrrc_heap_trim(heap[0]);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&gone, NULL);
	mrrc_heaps_close(heaps);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LEAKS], 0);
}

/* ---- freed twice at once ------------------------------------------------- */

static atomic_uint turns;
static void *_Atomic victim;
static int other_ret;

/* Makes both threads go on at the same moment. */
static void meet(void)
{
	unsigned until = (atomic_fetch_add(&turns, 1) | 1) + 1;
	unsigned spins = 0;

	while ((int) (atomic_load(&turns) - until) < 0) {
		if (!(++spins % 1000))
			sched_yield();
	}
}

static void *double_freer(void *arg)
{
	for (;;) {
		meet();
		if (!atomic_load(&victim))
			return NULL;
		other_ret = mrrc_heap_free(heaps, atomic_load(&victim));
		meet();
	}
}

/* A block holds one object: one of two frees at once succeeds. */
LOOP_TEST(freed_twice_at_once, 0, 2)
{
	const unsigned flags = _i ? MRRC_HEAP_ISOLATED : 0;
	unsigned i, rounds = operations / (_i ? 10 : 5);
	void *addr, *cookie, *again;
	pthread_t thread;
	int ret;

	open_all(1000);
	atomic_store(&turns, 0);
	thread = thread_start(double_freer, NULL);
	for (i = 0; i < rounds; i++) {
		if (mrrc_heap_alloc(heap[0], 1, 3 << 20, flags, &addr, &cookie))
			broken("no memory", NULL, i);
		atomic_store(&victim, addr);
		meet();
		ret = mrrc_heap_free(heaps, addr);
		meet();
		if (!ret == !other_ret)
			broken("both or none", addr, i);
		if (!ret)
			ret = other_ret;
		/* An isolated object may be gone already. */
		if (ret != -EALREADY && (!_i || ret != -EINVAL))
			broken(strerror(-ret), addr, i);
	}
	atomic_store(&victim, NULL);
	meet();
	pthread_join(thread, NULL);
	ck_assert_int_eq(
		mrrc_heap_alloc(heap[0], 1, 3 << 20, flags, &addr, &cookie), 0);
	ck_assert_int_eq(mrrc_heap_alloc(heap[0], 1, 3 << 20, flags, &again,
					 &cookie),
			 0);
	ck_assert_ptr_ne(addr, again);
	mrrc_heaps_close(heaps);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.note[MRRC_HEAP_LEAKS].count, 2);
}

/*
 * Frees an object of this thread again, while another thread, which has freed
 * the object, unmaps its block.
 */
static void *again_freer(void *arg)
{
	unsigned long n = 0;
	void *addr, *cookie;
	int ret;

	for (;;) {
		if (mrrc_heap_alloc(heap[0], 1, 64, 0, &addr, &cookie) ||
		    mrrc_heap_free(heaps, addr) ||
		    mrrc_heap_alloc(heap[0], 1, 64, 0, &addr, &cookie))
			broken("no memory", NULL, 64);
		atomic_store(&victim, addr);
		meet();
		meet();
		/* The object is freed, and its block is being trimmed. */
		do {
			ret = mrrc_heap_free(heaps, addr);
			if (ret != -EALREADY && ret != -EINVAL)
				broken("freed twice", addr, -ret);
			if (!(++n % 1000))
				sched_yield();
		} while (atomic_load(&victim));
		meet();
		if (atomic_load(&stop))
			return (void *) n;
	}
}

TEST(freed_again_when_it_goes)
{
	unsigned i, rounds = operations / 10;
	pthread_t thread;
	void *frees;

	open_all(1000);
	atomic_store(&turns, 0);
	atomic_store(&stop, false);
	thread = thread_start(again_freer, NULL);
	for (i = 0; i < rounds; i++) {
		meet();
		if (mrrc_heap_free(heaps, atomic_load(&victim)))
			broken("not freed", atomic_load(&victim), i);
		meet();
		mrrc_heap_trim(heap[0]);
		atomic_store(&stop, i == rounds - 1);
		atomic_store(&victim, NULL);
		meet();
	}
	pthread_join(thread, &frees);
	ck_assert_uint_ge((uintptr_t) frees, rounds);
	mrrc_heaps_close(heaps);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LEAKS], 0);
	ck_assert_uint_eq(fake.allocs, 2 * rounds);
	ck_assert_uint_eq(fake.frees, 2 * rounds);
}

/* ---- hot objects are taken ----------------------------------------------- */

/* Allocates and frees one object at a time, which is the hot one. */
static void *owner(void *arg)
{
	const uintptr_t me = (uintptr_t) &arg;
	_Atomic uintptr_t *mine;
	void *addr, *cookie;
	unsigned k;

	while (!atomic_load(&stop)) {
		if (mrrc_heap_alloc(heap[0], 1, 64, 0, &addr, &cookie))
			broken("no memory", NULL, 64);
		mine = addr;
		atomic_store_explicit(mine, me, memory_order_relaxed);
		for (k = 0; k < 4; k++) {
			if (atomic_load_explicit(mine, memory_order_relaxed) !=
			    me)
				broken("another thread's, too", addr, 64);
		}
		if (mrrc_heap_free(heaps, addr))
			broken("not freed", addr, 64);
	}
	return NULL;
}

/*
 * More threads than processors run, so that some threads sleep while they take
 * a hot object, and meanwhile other threads trim.
 */
TEST(taken_in_the_middle)
{
	unsigned i, rounds = operations / 5;
	pthread_t thread[6];

	open_all(1000);
	atomic_store(&stop, false);
	for (i = 0; i < 6; i++)
		thread[i] = thread_start(owner, NULL);
	for (i = 0; i < rounds; i++)
		mrrc_heap_trim(heap[0]);
	atomic_store(&stop, true);
	for (i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	close_all();
}
