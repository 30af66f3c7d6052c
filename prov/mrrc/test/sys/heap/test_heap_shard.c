/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/heap/heap_shard: threads get small objects from different shards of a
 * heap, and an object that another thread frees goes back to its own shard.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/heap/heap_fixture.h"
#include "sys/heap/heap_thread.h"

#define OBJECTS 500
#define SIZE	512 /* size of the objects' class */
#define LEN	(SIZE - MRRC_HEAP_CANARY)
#define HEAPS	200 /* heaps with shards: more than slots */

static const struct mrrc_heap_attr halves = { .node = -1,
					      .idle_ms = MRRC_HEAP_IDLE_KEEP,
					      .shards = 2 };

static struct mrrc_heap *sharded;
static unsigned first_shard; /* shard of this thread */
static void *object[OBJECTS];

static void setup(void)
{
	heap_setup();
	if (!heap->slot || !mrrc_tcache_get() ||
	    !mrrc_tcache_self->biased.works)
		return;
	sharded = heap_open(&halves);
	first_shard = mrrc_tcache_self->shard % 2;
}

#define NEED_SHARDS()                              \
	do {                                       \
		if (!sharded)                      \
			skip("no magazines here"); \
	} while (0)

/* Runs @call if the other shard serves this thread. */
static void *if_other(void *call)
{
	mrrc_tcache_get();
	if (mrrc_tcache_self->shard % 2 == first_shard)
		return NULL;
	((void (*)(void)) call)();
	return call;
}

static void by_other(void (*call)(void))
{
	void *done = NULL;

	while (!done) {
		pthread_join(thread_start(if_other, (void *) call), &done);
	}
}

static uintptr_t block_of(void *addr)
{
	struct mrrc_heap_place place;

	ck_assert_int_eq(mrrc_heap_query(heaps, (uintptr_t) addr, &place), 0);
	ck_assert_ptr_eq(place.heap, sharded);
	return place.block;
}

static void get_all(void)
{
	unsigned i;

	for (i = 0; i < OBJECTS; i++)
		object[i] = heap_get(sharded, 1, LEN, 0);
}

static void put_all(void)
{
	unsigned i;

	for (i = 0; i < OBJECTS; i++)
		heap_put(object[i]);
}

TEST_CASE(heap_shard, setup, heap_teardown);

static void count_block(void)
{
	unsigned i, kept = 0;

	for (i = 0; i < OBJECTS; i++)
		object[i] = heap_get(sharded, 1, LEN, 0);
	for (i = 1; i < OBJECTS; i++)
		kept += block_of(object[i]) == block_of(object[0]);
	ck_assert_uint_eq(kept, OBJECTS - 1);
}

/*
 * An object of the other shard that this thread frees is never this thread's
 * next allocation, and all such objects but one magazine of them are soon
 * available to the other shard.
 */
TEST(freed_elsewhere_goes_back)
{
	const struct mrrc_hot *hot;
	uintptr_t mine, theirs;
	unsigned i;
	void *got;

	NEED_SHARDS();
	hot = &mrrc_tcache_self->hot;
	got = heap_get(sharded, 1, LEN, 0);
	mine = block_of(got);
	heap_put(got);
	by_other(get_all);
	theirs = block_of(object[0]);
	for (i = 0; i < OBJECTS; i++) {
		got = heap_get(sharded, 1, LEN, 0);
		ck_assert_uint_eq(block_of(got), mine);
		heap_put(object[i]);
		/*
		 * An empty slot may have the address of an earlier heap's
		 * object.
		 */
		ck_assert(!hot->mag || hot->object != (uintptr_t) object[i]);
		heap_put(got);
	}
	ck_assert_uint_ne(mine, theirs);
	/*
	 * The other shard keeps a magazine and a depot, this thread's shard
	 * keeps half a magazine.
	 */
	ck_assert_uint_le(heap_stats_of(sharded).kept_bytes,
			  (16 + MRRC_DEPOT / 2 + MRRC_MAG / 2 + 1) * SIZE);
	ck_assert_uint_eq(heap_stats_of(sharded).live, 0);
	by_other(count_block);
	ck_assert_uint_eq(block_of(object[0]), theirs);
	ck_assert_uint_eq(heap_stats_of(sharded).blocks, 2);
	put_all();
}

static void get_one_put_all(void)
{
	void *one = heap_get(sharded, 1, LEN, 0);

	ck_assert_uint_eq(block_of(one), block_of(object[0]));
	put_all();
	get_all();
	put_all();
	heap_put(one);
}

/*
 * A thread whose shard cannot be made, or is being made, allocates from the
 * heap itself. If the thread frees more objects than its magazine there has room
 * for, the magazine does not overflow, and no object is allocated twice.
 */
TEST(heap_serves_without_a_shard)
{
	NEED_SHARDS();
	if (first_shard)
		skip("this thread has the shard that is not the heap");
	atomic_store(&sharded->making, true);
	get_all();
	by_other(get_one_put_all);
	atomic_store(&sharded->making, false);
	ck_assert_uint_eq(heap_stats_of(sharded).live, 0);
	ck_assert_uint_eq(heap_stats_of(sharded).live_bytes, 0);
	ck_assert(mrrc_heap_valid(sharded));
	mrrc_heap_trim(sharded);
	ck_assert_uint_eq(heap_stats_of(sharded).blocks, 0);
}

/* At a limit, objects of other shards are used. */
TEST(no_memory_while_a_shard_has_some)
{
	const size_t all = 2 * MIB / SIZE;
	void *addr, *cookie;
	size_t count = 0;

	NEED_SHARDS();
	heap_teardown();
	heap_domain(2 * MIB);
	sharded = heap_open(&halves);
	by_other(get_all);
	while (!mrrc_heap_alloc(sharded, 1, LEN, 0, &addr, &cookie))
		count++;
	ck_assert_uint_ge(count + OBJECTS, all - all / 16);
	/* The limit is reported once, at the end, not for each object. */
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_LIMIT_DOMAIN], 1);
	ck_assert_uint_eq(heap_stats_of(sharded).blocks, 2);
}

static void get_none(void)
{
	void *addr, *cookie;

	ck_assert_int_eq(mrrc_heap_alloc(sharded, 1, MRRC_CLASS_SMALL_MAX / 2,
					 0, &addr, &cookie),
			 -ENOMEM);
}

/* All shards of a heap together have the heap's limit. */
TEST(shards_share_the_limit)
{
	struct mrrc_heap_attr limited = halves;
	void *addr, *cookie;
	size_t count = 0;

	NEED_SHARDS();
	limited.max_bytes = 2 * MIB;
	sharded = heap_open(&limited);
	by_other(get_all);
	while (count < 4 * MIB / SIZE &&
	       !mrrc_heap_alloc(sharded, 1, LEN, 0, &addr, &cookie))
		count++;
	ck_assert_uint_ge(count + OBJECTS, 2 * MIB / SIZE * 15 / 16);
	ck_assert_uint_eq(heap_stats_of(sharded).bytes, 2 * MIB);
	/* For the other shard the limit is the same, and was logged. */
	ck_assert(!heap_fake.note[MRRC_HEAP_LIMIT_HEAP].again);
	by_other(get_none);
	ck_assert(heap_fake.note[MRRC_HEAP_LIMIT_HEAP].again);
	ck_assert_uint_eq(heap_stats_of(sharded).bytes_peak, 2 * MIB);
	ck_assert_uint_eq(heap_stats_of(sharded).limit, 2 * MIB);
}

#define AT_ONCE 8

static pthread_barrier_t at_once;

static void *take_one(void *from)
{
	void *addr, *cookie;

	pthread_barrier_wait(&at_once);
	return mrrc_heap_alloc(from, 1, LEN, 0, &addr, &cookie) ? from : NULL;
}

/* Threads of all shards share the only block that the limit allows. */
TEST(one_block_for_all_shards)
{
	struct mrrc_heap_attr limited = halves;
	pthread_t thread[AT_ONCE];
	unsigned i, round, failed = 0;
	void *ret;

	NEED_SHARDS();
	limited.max_bytes = MIB;
	pthread_barrier_init(&at_once, NULL, AT_ONCE);
	for (round = 0; round < 100; round++) {
		sharded = heap_open(&limited);
		for (i = 0; i < AT_ONCE; i++)
			thread[i] = thread_start(take_one, sharded);
		for (i = 0; i < AT_ONCE; i++) {
			pthread_join(thread[i], &ret);
			failed += ret != NULL;
		}
		mrrc_heap_close(sharded);
	}
	pthread_barrier_destroy(&at_once);
	ck_assert_uint_eq(failed, 0);
}

/* By default, a heap leaves most of a small limit to one shard. */
TEST(small_limits_are_not_shared)
{
	const struct mrrc_heap_attr chosen = { .node = -1 };

	NEED_SHARDS();
	heap_teardown();
	heap_domain(2 * MIB);
	ck_assert_uint_eq(heap_open(&chosen)->shards, 1);
}

static void get_large(void)
{
	object[1] = heap_get(sharded, 1, 2 * MRRC_CLASS_SMALL_MAX, 0);
}

TEST(large_objects_share_blocks)
{
	NEED_SHARDS();
	object[0] = heap_get(sharded, 1, 2 * MRRC_CLASS_SMALL_MAX, 0);
	by_other(get_large);
	ck_assert_uint_eq(block_of(object[0]), block_of(object[1]));
}

static void *allocate(void *arg)
{
	heap_put(heap_get(arg, 1, LEN, 0));
	return NULL;
}

/* Blocks are for threads that run at once, not for all that ever ran. */
TEST(threads_follow_each_other)
{
	const struct mrrc_heap_attr attr = { .node = -1,
					     .idle_ms = MRRC_HEAP_IDLE_KEEP,
					     .shards = MRRC_SHARDS_MAX };
	struct mrrc_heap *shared;
	unsigned i;

	NEED_SHARDS();
	shared = heap_open(&attr);
	allocate(shared);
	for (i = 0; i < 2 * MRRC_SHARDS_MAX; i++) {
		pthread_join(thread_start(allocate, shared), NULL);
	}
	ck_assert_uint_eq(heap_stats_of(shared).blocks, 2);
}

static struct mrrc_heap *many[HEAPS];

static void use_many(void)
{
	unsigned i;
	void *got;

	for (i = 0; i < HEAPS && many[i]; i++) {
		got = heap_get(many[i], 1, LEN, 0);
		ck_assert_uint_ne(mrrc_heap_map_mib((uintptr_t) got)->slot, 0);
		heap_put(got);
	}
}

/* Shards leave slots to heaps: no heap is without a slot. */
TEST(shards_leave_slots)
{
	unsigned i;

	NEED_SHARDS();
	for (i = 0; i < HEAPS / 2; i++)
		many[i] = heap_open(&halves);
	by_other(use_many);
	use_many();
	for (; i < HEAPS; i++)
		many[i] = heap_open(&halves);
	by_other(use_many);
	use_many();
	for (i = 0; i < HEAPS; i++) {
		ck_assert_uint_ne(many[i]->slot, 0);
		ck_assert_uint_eq(heap_stats_of(many[i]).frees,
				  i < HEAPS / 2 ? 4 : 2);
	}
}
