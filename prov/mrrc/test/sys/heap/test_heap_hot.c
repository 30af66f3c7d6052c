/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fast allocations (sys/heap/heap_fast.h): a thread's hot slot, with the object
 * that the thread freed last and allocates first; and the heap that the thread
 * allocated from last.
 */
#include "config.h"
#include "test/case.h"

#include <time.h>

#include "test/sys/heap/heap_fixture.h"
#include "sys/heap/heap_mag.h"

TEST_CASE(heap_hot, heap_setup, heap_teardown);

TEST(freed_last_is_found_freed_twice)
{
	void *one = heap_get(heap, 1, 64, 0), *two = heap_get(heap, 1, 64, 0);

	heap_put(one);
	ck_assert_int_eq(mrrc_heap_free(heaps, one), -EALREADY);
	heap_put(two);
	ck_assert_int_eq(mrrc_heap_free(heaps, one), -EALREADY);
	ck_assert_int_eq(mrrc_heap_free(heaps, two), -EALREADY);
	ck_assert_ptr_ne(heap_get(heap, 1, 64, 0), heap_get(heap, 1, 64, 0));
	ck_assert_uint_eq(heap_stats_of(heap).live, 2);
	ck_assert_uint_eq(heap_stats_of(heap).mistakes, 3);
}

TEST(freed_last_stays_in_its_heap)
{
	struct mrrc_heap *other = heap_open(&heap_plain);
	struct mrrc_heap_place place;
	void *addr = heap_get(heap, 1, 64, 0);
	unsigned i;

	for (i = 0; i < 100; i++) {
		heap_put(addr);
		addr = heap_get(i % 2 ? heap : other, 1, 64, 0);
		ck_assert_int_eq(
			mrrc_heap_query(heaps, (uintptr_t) addr, &place), 0);
		ck_assert_ptr_eq(place.heap, i % 2 ? heap : other);
	}
	heap_put(addr);
	/* A heap in the closed heap's place gets none of its objects. */
	mrrc_heap_close(heap);
	heap = heap_open(&heap_plain);
	for (i = 0; i < 100; i++)
		heap_get(heap, 1, 64, 0);
	ck_assert_uint_eq(heap_stats_of(heap).live, 100);
	ck_assert_uint_eq(heap_stats_of(other).live, 0);
}

static void *only_free(void *addr)
{
	heap_put(addr);
	return NULL;
}

/* Frees of other sizes do not displace the object. */
TEST(freed_last_stays)
{
	void *addr = heap_get(heap, 1, 64, 0);

	heap_put(addr);
	heap_put(heap_get(heap, 1, 5000, 0));
	ck_assert_ptr_eq(heap_get(heap, 1, 64, 0), addr);
	ck_assert_uint_eq(heap_stats_of(heap).live, 1);
}

/* A thread ends that has freed one object of the heap, and no more. */
TEST(freed_last_by_a_thread_that_ends)
{
	unsigned i;
	void *addr;

	for (i = 0; i < 20; i++) {
		addr = heap_get(heap, 1, 100000, 0);
		pthread_join(thread_start(only_free, addr), NULL);
	}
	ck_assert_uint_eq(heap_stats_of(heap).frees, 20);
	ck_assert_uint_eq(heap_stats_of(heap).live, 0);
	mrrc_heap_trim(heap);
	ck_assert_uint_eq(heap_fake.live, 0);
}

/* Returns the first object behind kept ones, at the beginning of a page. */
static char *get_first(size_t len)
{
	char *each[64], *first;
	unsigned i;

	for (i = 0; i < 64; i++)
		each[i] = heap_get(heap, 1, len, 0);
	for (i = 0, first = each[0]; i < 64; i++) {
		if (each[i] < first)
			first = each[i];
	}
	for (i = 0; i < 64; i++) {
		if (each[i] != first)
			heap_put(each[i]);
	}
	/* The trim leaves no object at hand. */
	mrrc_heap_trim(heap);
	return first;
}

/* An object that is live again stays known: frees by other threads count. */
static char *freed_by_another(size_t len)
{
	char *addr = get_first(len);
	unsigned i;

	/* The object becomes hot when a look finds that it is wanted. */
	for (i = 0; i <= 2 * MRRC_HOT_MISSES; i++) {
		heap_put(addr);
		ck_assert_ptr_eq(heap_get(heap, 1, len, 0), addr);
	}
	if (!mrrc_heap_watched)
		ck_assert_uint_eq(mrrc_tcache_self->hot.object,
				  (uintptr_t) addr);
	pthread_join(thread_start(only_free, addr), NULL);
	return addr;
}

TEST(freed_last_and_by_another_thread)
{
	static const size_t lens[] = { 64, 4096, 100000 };
	struct mrrc_heaps *others;
	uintptr_t wild[] = { 1, 16, 4096, UINTPTR_MAX, UINTPTR_MAX - 15 };
	unsigned i, k;
	void *addr;

	ck_assert_int_eq(
		mrrc_heaps_open(&fake_heap_ops, &heap_fake, 0, &others), 0);
	for (i = 0; i < 3; i++) {
		addr = freed_by_another(lens[i]);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EALREADY);
		addr = heap_get(heap, 1, lens[i], 0);
		heap_put(addr);
		ck_assert_ptr_eq(heap_get(heap, 1, lens[i], 0), addr);
		ck_assert_int_eq(mrrc_heap_free(others, addr), -EDOM);
		heap_put(addr);
		/* The object's block is unmapped, too. */
		addr = freed_by_another(lens[i]);
		mrrc_heap_trim(heap);
		ck_assert_uint_eq(heap_fake.live, 0);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EINVAL);
		for (k = 0; k < 5; k++)
			ck_assert_int_eq(mrrc_heap_free(heaps,
							(void *) wild[k]),
					 -EINVAL);
		heap_put(NULL);
	}
	mrrc_heaps_close(others);
}

/* The object's page becomes part of another object, at the same address. */
TEST(freed_last_and_cut_anew)
{
	static const size_t lens[] = { 64, 48, 4096, 40000, 12288, 1024 };
	char *kept = heap_get(heap, 1, 300000, 0), *addr, *again[512];
	const size_t bytes = heap_stats_of(heap).live_bytes;
	unsigned i, k, n, same = 0;

	for (i = 0; i < 36; i++) {
		addr = freed_by_another(lens[i / 6]);
		/* The objects return to the arena. */
		mrrc_heap_trim(heap);
		for (n = 0; n < 512; n++) {
			again[n] = heap_get(heap, 1, lens[i % 6], 0);
			if (again[n] == addr)
				break;
		}
		same += n < 512;
		n += n < 512;
		for (k = n; k--;)
			heap_put(again[k]);
		for (k = 0; k < n; k++)
			ck_assert_int_eq(mrrc_heap_free(heaps, again[k]),
					 -EALREADY);
		ck_assert(mrrc_heap_valid(heap));
		ck_assert_uint_eq(heap_stats_of(heap).live, 1);
		ck_assert_uint_eq(heap_stats_of(heap).live_bytes, bytes);
		mrrc_heap_trim(heap);
	}
	/* Otherwise no object was tested. */
	ck_assert_uint_ge(same, 20);
	heap_put(kept);
}

/*
 * An object that is not wanted any more leaves the hot slot at the second look
 * after its last use. An allocation looks at the hot slot after 512 other
 * allocations from the magazines, and then puts its own object in the slot.
 */
TEST(freed_last_gives_way)
{
	const unsigned most = 2 * MRRC_HOT_MISSES;
	const struct mrrc_hot *hot;
	unsigned i;
	void *addr;

	heap_put(heap_get(heap, 1, 64, 0));
	hot = &mrrc_tcache_self->hot;
	if (mrrc_heap_watched)
		skip("a tool watches\n");
	heap_put(heap_get(heap, 1, 64, 0));
	for (i = 0; i < most; i++)
		heap_put(heap_get(heap, 1, 5000, 0));
	addr = heap_get(heap, 1, 5000, 0);
	heap_put(addr);
	ck_assert_uint_eq(hot->object, (uintptr_t) addr);
	ck_assert_ptr_nonnull(hot->mag);
	/* The object is found where it went. */
	heap_get(heap, 1, 64, 0);
	ck_assert_uint_eq(heap_stats_of(heap).live, 1);
	ck_assert_uint_eq(heap_stats_of(heap).allocs, most + 4);
}

/* ---- the heap that a thread allocated from last -------------------------- */

/* Returns an object, or 0 if the fast path has none. */
static uintptr_t by_key(uintptr_t key, size_t len)
{
	struct mrrc_heap_got got;

	return mrrc_heap_alloc_key(key, len, &got) ? got.object : 0;
}

static struct mrrc_heap *heap_of(uintptr_t object)
{
	struct mrrc_heap_place place;

	ck_assert_int_eq(mrrc_heap_query(heaps, object, &place), 0);
	return place.heap;
}

TEST(usual_has_the_key)
{
	static const size_t lens[] = { 64,    128,   1024,	1025,
				       32768, 32769, 1UL << 20, 2UL << 20 };
	struct mrrc_heap *other = heap_open(&heap_plain), *of;
	uintptr_t object;
	unsigned i, k;

	if (mrrc_heap_watched)
		skip("a tool watches\n");
	for (i = 0; i < 16; i++) {
		of = i % 2 ? heap : other;
		k = i / 2;
		/* The heap has magazines then, with one object each. */
		heap_put(heap_get(of, 1, lens[k] - MRRC_HEAP_CANARY, 0));
		mrrc_heap_usual(of, 32 + i);
		ck_assert_uint_eq(by_key(31 + i, lens[k]), 0);
		ck_assert_uint_eq(by_key(33 + i, lens[k]), 0);
		object = by_key(32 + i, lens[k] - MRRC_HEAP_CANARY);
		ck_assert_uint_ne(object, 0);
		ck_assert_ptr_eq(heap_of(object), of);
		heap_put((void *) object);
		ck_assert_uint_eq(by_key(32 + i, 0), 0);
		ck_assert_uint_eq(by_key(32 + i, (2UL << 20) + 1), 0);
		ck_assert_uint_eq(by_key(32 + i, SIZE_MAX), 0);
	}
	mrrc_heap_close(other);
}

/* A closed heap is not usual any more, even if another one has its place. */
TEST(usual_ends_with_the_heap)
{
	struct mrrc_heap *other = heap_open(&heap_plain);
	const size_t lens[] = { 64, 100000 };
	unsigned i;

	for (i = 0; i < 2; i++) {
		heap_put(heap_get(other, 1, lens[i], 0));
		mrrc_heap_usual(other, 32);
		mrrc_heap_close(other);
		ck_assert_uint_eq(by_key(32, lens[i]), 0);
		other = heap_open(&heap_plain);
		heap_put(heap_get(other, 1, lens[i], 0));
		ck_assert_uint_eq(by_key(32, lens[i]), 0);
	}
	mrrc_heap_close(other);
}

struct idler {
	struct mrrc_heap *heap;
	pthread_barrier_t turn;
	uintptr_t got[2];
};

static void *idle_while_closed(void *arg)
{
	struct idler *self = arg;

	heap_put(heap_get(self->heap, 1, 64, 0));
	heap_put(heap_get(self->heap, 1, 100000, 0));
	mrrc_heap_usual(self->heap, 32);
	pthread_barrier_wait(&self->turn);
	/* The heap is closed here. */
	pthread_barrier_wait(&self->turn);
	self->got[0] = by_key(32, 64);
	self->got[1] = by_key(32, 100000);
	return NULL;
}

TEST(usual_ends_in_all_threads)
{
	struct idler idler = { .heap = heap_open(&heap_plain) };
	pthread_t thread;

	pthread_barrier_init(&idler.turn, NULL, 2);
	thread = thread_start(idle_while_closed, &idler);
	pthread_barrier_wait(&idler.turn);
	mrrc_heap_close(idler.heap);
	pthread_barrier_wait(&idler.turn);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(idler.got[0], 0);
	ck_assert_uint_eq(idler.got[1], 0);
	pthread_barrier_destroy(&idler.turn);
}

/* ---- races --------------------------------------------------------------- */

static atomic_bool trimming;

static void *trim_on(void *arg)
{
	while (atomic_load(&trimming))
		mrrc_heap_trim(heap);
	return NULL;
}

/*
 * A trim takes the hot object away: either the trim or the thread gets the
 * object, never both. The test has a time limit, as the scheduler decides how
 * long a loop takes.
 */
TEST(freed_last_is_taken_away)
{
	const time_t end = time(NULL) + 5;
	pthread_t thread;
	unsigned i;
	char *addr;

	atomic_store(&trimming, true);
	thread = thread_start(trim_on, NULL);
	for (i = 0; i < 200000 && time(NULL) < end; i++) {
		addr = heap_get(heap, 1, i % 64 ? 64 : 5000, 0);
		*addr = 1;
		heap_put(addr);
	}
	atomic_store(&trimming, false);
	pthread_join(thread, NULL);
	ck_assert(mrrc_heap_valid(heap));
	ck_assert_uint_eq(heap_stats_of(heap).allocs, i);
	ck_assert_uint_eq(heap_stats_of(heap).frees, i);
	mrrc_heap_trim(heap);
	ck_assert_uint_eq(heap_fake.live, 0);
	ck_assert_uint_eq(heap_fake.allocs, i);
	ck_assert_uint_eq(heap_fake.frees, i);
}

/* ---- children of children ------------------------------------------------ */

#define GENERATIONS 10
#define HEAPS	    40 /* heaps of each process: more in all than slots */

/*
 * A child opens a domain and heaps with magazines, whatever its parents have,
 * and gets no object of its parents. Returns 0, or the number of an error.
 */
static int descend(unsigned generation)
{
	struct mrrc_heaps *theirs = heaps;
	struct mrrc_heap *their_heap = heap;
	void *object, *got, *cookie, *their_object = heap_get(heap, 1, 64, 0);
	int status, i;
	pid_t pid;

	pid = fork();
	if (pid)
		return pid < 0 || waitpid(pid, &status, 0) != pid ? 1 :
		       WIFSIGNALED(status)			  ? 2 :
					     WEXITSTATUS(status);
	end_in(60);
	heap_domain(0);
	for (i = 1; i < HEAPS && heap->slot; i++)
		heap = heap_open(&heap_plain);
	if (!heap->slot)
		_exit(3);
	object = heap_get(heap, 1, 64, 0);
	heap_put(object);
	/* The hot object and its magazine are of this heap. */
	if (mrrc_heap_alloc(their_heap, 1, 64, 0, &got, &cookie) !=
		    -EOPNOTSUPP ||
	    mrrc_heap_free(theirs, their_object))
		_exit(4);
	if (heap_get(heap, 1, 64, 0) != object ||
	    heap_get(heap, 1, 64, 0) == their_object)
		_exit(5);
	heap_put(object);
	_exit(generation ? descend(generation - 1) : 0);
}

TEST(each_generation_has_magazines)
{
	/* A child that ends in _exit() leaves its objects allocated. */
	if (under_valgrind())
		skip("it takes a child's end for a leak");
	ck_assert_int_eq(descend(GENERATIONS), 0);
}
