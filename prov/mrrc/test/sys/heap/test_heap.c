/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator with one thread: allocations, and their blocks. model_heap.c
 * tests threads.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/heap/heap_fixture.h"

TEST_CASE(heap, heap_setup, heap_teardown);

/* ---- allocations --------------------------------------------------------- */

TEST(every_alignment)
{
	static const size_t lens[] = { 1, 100, 5000, 70000, 3000000 };
	size_t align;
	unsigned i;
	char *addr;

	for (align = 1; align <= 16 * MIB; align *= 2) {
		for (i = 0; i < 5; i++) {
			addr = heap_get(heap, align, lens[i], 0);
			ck_assert_uint_eq((uintptr_t) addr % align, 0);
			memset(addr, 0xbb, lens[i]);
			heap_put(addr);
			heap_put(heap_get(heap, align, lens[i],
					  MRRC_HEAP_ISOLATED));
		}
	}
	ck_assert(mrrc_heap_valid(heap));
}

TEST(refused_arguments)
{
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap *other;
	void *addr, *cookie;
	unsigned i;

	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 0, 0, &addr, &cookie),
			 -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, 0, 1, 0, &addr, &cookie),
			 -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, 3, 1, 0, &addr, &cookie),
			 -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, (size_t) 1 << 41, 1, 0, &addr,
					 &cookie),
			 -EINVAL);
	/* Lengths are refused also if there are magazines. */
	heap_put(heap_get(heap, 1, 1, 0));
	heap_put(heap_get(heap, 64, 1, 0));
	for (i = 0; i < 64; i++) {
		ck_assert_int_eq(mrrc_heap_alloc(heap, 1, SIZE_MAX - i, 0,
						 &addr, &cookie),
				 -EINVAL);
		ck_assert_int_eq(mrrc_heap_alloc(heap, 64, SIZE_MAX - i, 0,
						 &addr, &cookie),
				 -EINVAL);
	}
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, SIZE_MAX / 2, 0, &addr,
					 &cookie),
			 -EINVAL);
	attr.block_size = 4096;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), -EINVAL);
	attr.block_size = (size_t) 2 << 30;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), -EINVAL);
	attr = heap_plain;
	attr.node = 1000;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), -EINVAL);
	attr.node = 0;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), 0);
	heap_put(heap_get(other, 1, 100, 0));
	mrrc_heap_close(other);
}

TEST(zeroed)
{
	static const size_t lens[] = { 1, 1000, 50000, 3000000 };
	size_t k;
	unsigned i, round;
	char *addr;

	for (i = 0; i < 4; i++) {
		for (round = 0; round < 3; round++) {
			addr = heap_get(heap, 1, lens[i], MRRC_HEAP_ZERO);
			for (k = 0; k < lens[i]; k++)
				if (addr[k])
					ck_abort_msg("byte %zu", k);
			memset(addr, 0xff, lens[i]);
			heap_put(addr);
		}
	}
}

TEST(small_ones_share_a_registration)
{
	void *addr[1000];
	unsigned i;

	for (i = 0; i < 1000; i++)
		addr[i] = heap_get(heap, 1, 128, 0);
	ck_assert_uint_eq(heap_fake.regs, 1);
	ck_assert_uint_eq(heap_stats_of(heap).live, 1000);
	ck_assert_uint_ge(heap_stats_of(heap).live_bytes, 128000);
	for (i = 0; i < 1000; i++)
		heap_put(addr[i]);
	ck_assert_uint_eq(heap_stats_of(heap).live, 0);
}

/* ---- protection ---------------------------------------------------------- */

TEST(heaps_share_no_block)
{
	struct mrrc_heap *other = heap_open(&heap_plain);
	struct mrrc_heap_place a, b;
	void *one, *two;
	unsigned i;

	for (i = 0; i < 200; i++) {
		one = heap_get(heap, 1, 5000, 0);
		two = heap_get(other, 1, 5000, 0);
		mrrc_heap_query(heaps, (uintptr_t) one, &a);
		mrrc_heap_query(heaps, (uintptr_t) two, &b);
		ck_assert(a.heap == heap && b.heap == other);
		ck_assert_ptr_ne(a.cookie, b.cookie);
		ck_assert(a.block + a.block_len <= b.block ||
			  b.block + b.block_len <= a.block);
	}
	/* Live objects end with their heap, and are reported. */
	mrrc_heap_close(other);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_LEAK],
			  MRRC_HEAP_LEAKS_MAX);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_LEAKS], 1);
	ck_assert_uint_eq(heap_fake.note[MRRC_HEAP_LEAKS].count, 200);
	ck_assert_int_eq(mrrc_heap_query(heaps, b.base, &b), -ENOENT);
}

/* Returns whether the kernel can read the address. */
static bool readable(const char *addr)
{
	int fd[2], ret;

	ck_assert_int_eq(pipe(fd), 0);
	ret = write(fd[1], addr, 1);
	close(fd[0]);
	close(fd[1]);
	return ret == 1;
}

TEST(isolated_ones_are_alone)
{
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap_place a, b;
	struct mrrc_heap *lone;
	char *one, *two;

	one = heap_get(heap, 1, 100, MRRC_HEAP_ISOLATED);
	two = heap_get(heap, 1, 100, MRRC_HEAP_ISOLATED);
	ck_assert_int_eq(mrrc_heap_query(heaps, (uintptr_t) one, &a), 0);
	ck_assert_int_eq(mrrc_heap_query(heaps, (uintptr_t) two, &b), 0);
	ck_assert_ptr_ne(a.cookie, b.cookie);
	ck_assert_uint_eq(a.block, (uintptr_t) one);
	ck_assert_uint_eq(a.block_len, 4096);
	ck_assert_uint_eq(a.len, 100);
	ck_assert_uint_eq(heap_fake.live, 2);
	/* The address behind the object is in no block. */
	ck_assert_ptr_null(mrrc_heap_cookie(heaps, one, a.block_len + 1));
	ck_assert_ptr_null(mrrc_heap_cookie(heaps, one + a.block_len + 1, 1));
	ck_assert(under_valgrind() || !readable(one + a.block_len));
	/* The object's key is invalid when free returns. */
	heap_put(one);
	ck_assert_uint_eq(heap_fake.live, 1);
	ck_assert_ptr_null(mrrc_heap_cookie(heaps, one, 1));
	ck_assert_int_eq(mrrc_heap_free(heaps, one), -EINVAL);
	heap_put(two);

	attr.isolated = true;
	lone = heap_open(&attr);
	one = heap_get(lone, 1, 64, 0);
	two = heap_get(lone, 1, 64, 0);
	ck_assert_uint_eq(heap_fake.live, 2);
	heap_put(one);
	heap_put(two);
	ck_assert_uint_eq(heap_fake.live, 0);
}
