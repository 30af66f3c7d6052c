/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mistakes of the application that the allocator reports. */
#include "config.h"
#include "test/case.h"

#include <time.h>

#include "test/sys/heap/heap_fixture.h"

TEST_CASE(heap_bug, heap_setup, heap_teardown);

TEST(double_free)
{
	static const size_t lens[] = { 1, 64, 5000, 100000, 3000000 };
	unsigned i;
	void *addr;

	for (i = 0; i < 5; i++) {
		addr = heap_get(heap, 1, lens[i], 0);
		heap_put(addr);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EALREADY);
		ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_DOUBLE_FREE],
				  i + 1);
		ck_assert_uint_eq(heap_fake.note[MRRC_HEAP_DOUBLE_FREE].addr,
				  (uintptr_t) addr);
		/* The object is not handed out twice. */
		ck_assert_ptr_ne(heap_get(heap, 1, lens[i], 0),
				 heap_get(heap, 1, lens[i], 0));
	}
	ck_assert_uint_eq(heap_stats_of(heap).mistakes, 5);
}

TEST(foreign_and_inside)
{
	static const size_t lens[] = { 64, 5000, 100000, 3000000 };
	int local;
	unsigned i;
	char *addr, *mapped;

	heap_put(NULL);
	ck_assert_int_eq(mrrc_heap_free(heaps, &local), -EINVAL);
	ck_assert_int_eq(mrrc_heap_free(heaps, (void *) 16), -EINVAL);
	ck_assert_int_eq(mrrc_heap_free(heaps, (void *) UINTPTR_MAX), -EINVAL);
	mapped =
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_int_eq(mrrc_heap_free(heaps, mapped), -EINVAL);
	munmap(mapped, 4096);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_FOREIGN], 4);
	for (i = 0; i < 4; i++) {
		addr = heap_get(heap, 1, lens[i], 0);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr + 1), -EINVAL);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr + 16), -EINVAL);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr + lens[i] - 16),
				 -EINVAL);
		ck_assert_uint_eq(heap_fake.note[MRRC_HEAP_INSIDE].base,
				  (uintptr_t) addr);
		ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_INSIDE],
				  3 * i + 3);
		heap_put(addr);
	}
}

/*
 * Adjacent objects begin anywhere in a page, and one object is freed. A free of
 * an address inside an object is refused.
 */
TEST(inside_of_every_class)
{
	char *addr[9];
	unsigned class, i;
	size_t at, size;

	for (class = 1; class < MRRC_CLASSES; class ++) {
		size = mrrc_class_size(class);
		for (i = 0; i < 9; i++)
			addr[i] = heap_get(heap, 1, size - MRRC_HEAP_CANARY, 0);
		heap_put(addr[4]);
		for (i = 0; i < 9; i++) {
			for (at = 8; at < size; at += at < 4096 ? 8 : 4088)
				ck_assert_int_eq(mrrc_heap_free(heaps,
								addr[i] + at),
						 -EINVAL);
		}
		ck_assert_int_eq(mrrc_heap_free(heaps, addr[4]), -EALREADY);
		for (i = 0; i < 9; i++) {
			if (i != 4)
				heap_put(addr[i]);
		}
	}
	ck_assert_uint_eq(heap_stats_of(heap).live, 0);
	ck_assert(mrrc_heap_valid(heap));
}

/*
 * A block has one object. A free of any other address of the block is refused,
 * before and after the object is freed.
 */
TEST(never_allocated)
{
	static const size_t lens[] = { 64, 1000, 5000, 300000, 3000000 };
	struct mrrc_heap_place place;
	uintptr_t at, end;
	unsigned i, k;
	void *addr;

	for (i = 0; i < 5; i++) {
		addr = heap_get(heap, 1, lens[i], 0);
		ck_assert_int_eq(
			mrrc_heap_query(heaps, (uintptr_t) addr, &place), 0);
		end = place.block + place.block_len;
		for (k = 0; k < 2; k++) {
			for (at = place.block; at < end; at += 512) {
				if (at != place.base &&
				    mrrc_heap_free(heaps, (void *) at) !=
					    -EINVAL)
					ck_abort_msg("%#zx of %zu bytes",
						     at - place.block, lens[i]);
			}
			if (!k)
				heap_put(addr);
		}
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EALREADY);
		mrrc_heap_trim(heap);
	}
	ck_assert_uint_eq(heap_stats_of(heap).live, 0);
}

TEST(other_domain)
{
	struct mrrc_heaps *others;
	struct mrrc_heap_place place;
	void *addr = heap_get(heap, 1, 100, 0);

	ck_assert_int_eq(
		mrrc_heaps_open(&fake_heap_ops, &heap_fake, 0, &others), 0);
	ck_assert_int_eq(mrrc_heap_free(others, addr), -EDOM);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_OTHER_DOMAIN], 1);
	ck_assert_int_eq(mrrc_heap_query(others, (uintptr_t) addr, &place),
			 -ENOENT);
	ck_assert_ptr_null(mrrc_heap_cookie(others, addr, 100));
	mrrc_heaps_close(others);
	heap_put(addr);
}

TEST(overflow_and_use_after_free)
{
	static const size_t lens[] = { 1, 100, 5000, 100000, 3000000 };
	unsigned i;
	char *addr;

	if (!MRRC_HEAP_CANARY || mrrc_heap_watched)
		skip("not a debug build, or a tool watches\n");
	for (i = 0; i < 5; i++) {
		addr = heap_get(heap, 1, lens[i], 0);
		addr[lens[i] + 3] ^= 1;
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EOVERFLOW);
		ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_OVERFLOW], i + 1);
		ck_assert_uint_eq(heap_fake.note[MRRC_HEAP_OVERFLOW].offset,
				  lens[i] + 3);
	}
	addr = heap_get(heap, 1, 1000, 0);
	heap_put(addr);
	addr[17] = 0;
	ck_assert_ptr_eq(heap_get(heap, 1, 1000, 0), addr);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_USED_FREED], 1);
	ck_assert_uint_eq(heap_fake.note[MRRC_HEAP_USED_FREED].offset, 17);
	heap_put(addr);
}

static pthread_t trimmer;
static bool trimmed;

static void *trim_other(void *arg)
{
	mrrc_heap_trim(heap);
	return NULL;
}

/* Logging may take long: other threads can trim meanwhile. */
static void trim_meanwhile(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	trimmer = thread_start(trim_other, NULL);
	trimmed = !pthread_timedjoin_np(trimmer, NULL, &until);
}

TEST(said_outside_locks)
{
	static const size_t lens[] = { 100, 100000 };
	unsigned i;
	char *addr;

	if (!MRRC_HEAP_CANARY || mrrc_heap_watched)
		skip("not a debug build, or a tool watches\n");
	for (i = 0; i < 2; i++) {
		heap_put(heap_get(heap, 1, lens[i], 0));
		heap_fake.on_note = trim_meanwhile;
		addr = heap_get(heap, 1, lens[i], 0);
		addr[lens[i]] ^= 1;
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EOVERFLOW);
		ck_assert_msg(trimmed, "overflow, said inside a biased lock");
		addr[0] ^= 1;
		trimmed = false;
		heap_put(heap_get(heap, 1, lens[i], 0));
		ck_assert_msg(trimmed,
			      "use after free, said inside a biased lock");
		heap_fake.on_note = NULL;
	}
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_OVERFLOW], 2);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_USED_FREED], 2);
}

/* Lengths exceed 31 bits, in new blocks and in reused ones. */
TEST(gigabytes)
{
	static const size_t lens[] = { (size_t) 2 << 30, (size_t) 3 << 30 };
	struct mrrc_heap_place place;
	unsigned i, round;
	char *addr;

	if (mrrc_heap_watched)
		skip("a tool would mark each byte\n");
	for (i = 0; i < 2; i++) {
		for (round = 0; round < 2; round++) {
			addr = heap_get(heap, 1, lens[i], 0);
			ck_assert_int_eq(mrrc_heap_query(heaps,
							 (uintptr_t) addr + 1,
							 &place),
					 0);
			ck_assert_uint_eq(place.len, lens[i]);
			heap_put(addr);
		}
		ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_USED_FREED], 0);
		if (!MRRC_HEAP_CANARY)
			continue;
		addr = heap_get(heap, 1, lens[i], 0);
		addr[lens[i] + 3] ^= 1;
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EOVERFLOW);
		ck_assert_uint_eq(heap_fake.note[MRRC_HEAP_OVERFLOW].offset,
				  lens[i] + 3);
	}
}
