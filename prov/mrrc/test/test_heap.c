/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator, one thread: what it gives, limits, mistakes, idle blocks,
 * page kinds, faults. test_heap_thread.c has the others.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/heap_class.h"
#include "fake_heap.h"
#include "fault.h"
#include "sys/heap_fast.h"

#define MIB	((size_t) 1 << 20)

static struct fake_heap fake;
static struct mrrc_heaps *heaps;
static struct mrrc_heap *heap;
static const struct mrrc_heap_attr plain = { .node = -1, .idle_ms = 60000 };

static struct mrrc_heap *open_heap(const struct mrrc_heap_attr *attr)
{
	struct mrrc_heap *other;

	ck_assert_int_eq(mrrc_heap_open(heaps, attr, &other), 0);
	return other;
}

static void open_domain(size_t max_bytes)
{
	fake = FAKE_HEAP;
	ck_assert_int_eq(mrrc_heaps_open(&fake_heap_ops, &fake, max_bytes,
					 &heaps), 0);
	heap = open_heap(&plain);
}

static void setup(void)
{
	open_domain(0);
}

static void teardown(void)
{
	mrrc_heaps_close(heaps);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
}

static void *get(struct mrrc_heap *from, size_t align, size_t len,
		 unsigned flags)
{
	void *addr, *cookie;

	ck_assert_int_eq(mrrc_heap_alloc(from, align, len, flags, &addr,
					 &cookie), 0);
	ck_assert_ptr_nonnull(cookie);
	ck_assert_ptr_eq(mrrc_heap_cookie(heaps, addr, len), cookie);
	return addr;
}

static void put(void *addr)
{
	ck_assert_int_eq(mrrc_heap_free(heaps, addr), 0);
}

static struct mrrc_heap_stats stats_of(struct mrrc_heap *of)
{
	struct mrrc_heap_stats stats;

	mrrc_heap_stats(of, &stats);
	return stats;
}

/* ---- what is given ------------------------------------------------------- */

START_TEST(every_length)
{
	struct mrrc_heap_place place;
	size_t len, n = 0;
	char *addr;

	for (len = 1; len < 6 * MIB; len += 1 + len / 5, n++) {
		addr = get(heap, 1, len, 0);
		ck_assert_uint_eq((uintptr_t) addr % 16, 0);
		memset(addr, 0xaa, len);
		ck_assert_int_eq(mrrc_heap_query(heaps, (uintptr_t) addr +
						 len - 1, &place), 0);
		ck_assert_uint_eq(place.base, (uintptr_t) addr);
		ck_assert_uint_ge(place.len, len);
		ck_assert_ptr_eq(place.heap, heap);
		ck_assert_uint_le(place.block, place.base);
		ck_assert_uint_ge(place.block_len, MIB);
		put(addr);
	}
	ck_assert(mrrc_heap_valid(heap));
	ck_assert_uint_eq(stats_of(heap).allocs, n);
	ck_assert_uint_eq(stats_of(heap).live, 0);
	ck_assert_uint_eq(stats_of(heap).live_bytes, 0);
}
END_TEST

START_TEST(every_alignment)
{
	static const size_t lens[] = { 1, 100, 5000, 70000, 3000000 };
	size_t align;
	unsigned i;
	char *addr;

	for (align = 1; align <= 16 * MIB; align *= 2) {
		for (i = 0; i < 5; i++) {
			addr = get(heap, align, lens[i], 0);
			ck_assert_uint_eq((uintptr_t) addr % align, 0);
			memset(addr, 0xbb, lens[i]);
			put(addr);
			put(get(heap, align, lens[i], MRRC_HEAP_ISOLATED));
		}
	}
	ck_assert(mrrc_heap_valid(heap));
}
END_TEST

START_TEST(refused_arguments)
{
	struct mrrc_heap_attr attr = plain;
	struct mrrc_heap *other;
	void *addr, *cookie;

	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 0, 0, &addr, &cookie),
			 -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, 0, 1, 0, &addr, &cookie),
			 -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, 3, 1, 0, &addr, &cookie),
			 -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, (size_t) 1 << 41, 1, 0, &addr,
					 &cookie), -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, SIZE_MAX, 0, &addr,
					 &cookie), -EINVAL);
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, SIZE_MAX / 2, 0, &addr,
					 &cookie), -EINVAL);
	attr.block_size = 4096;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), -EINVAL);
	attr.block_size = (size_t) 2 << 30;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), -EINVAL);
	attr = plain;
	attr.node = 1000;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), -EINVAL);
	attr.node = 0;
	ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &other), 0);
	put(get(other, 1, 100, 0));
	mrrc_heap_close(other);
}
END_TEST

START_TEST(zeroed)
{
	static const size_t lens[] = { 1, 1000, 50000, 3000000 };
	size_t k;
	unsigned i, round;
	char *addr;

	for (i = 0; i < 4; i++) {
		for (round = 0; round < 3; round++) {
			addr = get(heap, 1, lens[i], MRRC_HEAP_ZERO);
			for (k = 0; k < lens[i]; k++)
				if (addr[k])
					ck_abort_msg("byte %zu", k);
			memset(addr, 0xff, lens[i]);
			put(addr);
		}
	}
}
END_TEST

/* The same thread gets back what it freed last, and nothing is registered. */
START_TEST(reuse_registers_nothing)
{
	static const size_t lens[] = { 64, 4096, 65536, 1 << 20, 2000000,
				       5000000 };
	unsigned i, k;
	size_t regs;
	void *addr;

	for (i = 0; i < 6; i++) {
		addr = get(heap, 1, lens[i], 0);
		put(addr);
		regs = fake.regs;
		for (k = 0; k < 100; k++) {
			ck_assert_ptr_eq(get(heap, 1, lens[i], 0), addr);
			put(addr);
		}
		ck_assert_uint_eq(fake.regs, regs);
	}
}
END_TEST

START_TEST(small_ones_share_a_registration)
{
	void *addr[1000];
	unsigned i;

	for (i = 0; i < 1000; i++)
		addr[i] = get(heap, 1, 128, 0);
	ck_assert_uint_eq(fake.regs, 1);
	ck_assert_uint_eq(stats_of(heap).live, 1000);
	ck_assert_uint_ge(stats_of(heap).live_bytes, 128000);
	for (i = 0; i < 1000; i++)
		put(addr[i]);
}
END_TEST

/* ---- protection ---------------------------------------------------------- */

START_TEST(heaps_share_no_block)
{
	struct mrrc_heap *other = open_heap(&plain);
	struct mrrc_heap_place a, b;
	unsigned i;

	for (i = 0; i < 200; i++) {
		mrrc_heap_query(heaps, (uintptr_t) get(heap, 1, 5000, 0), &a);
		mrrc_heap_query(heaps, (uintptr_t) get(other, 1, 5000, 0), &b);
		ck_assert(a.heap == heap && b.heap == other);
		ck_assert_ptr_ne(a.cookie, b.cookie);
		ck_assert(a.block + a.block_len <= b.block ||
			  b.block + b.block_len <= a.block);
	}
	/* what is live in it goes with it, and is named */
	mrrc_heap_close(other);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LEAK], MRRC_HEAP_LEAKS_MAX);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LEAKS], 1);
	ck_assert_uint_eq(fake.note[MRRC_HEAP_LEAKS].count, 200);
	ck_assert_int_eq(mrrc_heap_query(heaps, b.base, &b), -ENOENT);
}
END_TEST

START_TEST(isolated_ones_are_alone)
{
	struct mrrc_heap_attr attr = plain;
	struct mrrc_heap_place a, b;
	struct mrrc_heap *lone;
	char *one, *two;

	one = get(heap, 1, 100, MRRC_HEAP_ISOLATED);
	two = get(heap, 1, 100, MRRC_HEAP_ISOLATED);
	ck_assert_int_eq(mrrc_heap_query(heaps, (uintptr_t) one, &a), 0);
	ck_assert_int_eq(mrrc_heap_query(heaps, (uintptr_t) two, &b), 0);
	ck_assert_ptr_ne(a.cookie, b.cookie);
	ck_assert_uint_eq(a.block, (uintptr_t) one);
	ck_assert_uint_eq(a.block_len, 4096);
	ck_assert_uint_eq(a.len, 100);
	ck_assert_uint_eq(fake.live, 2);
	/* its key is dead when free returns */
	put(one);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_ptr_null(mrrc_heap_cookie(heaps, one, 1));
	ck_assert_int_eq(mrrc_heap_free(heaps, one), -EINVAL);
	put(two);

	attr.isolated = true;
	lone = open_heap(&attr);
	one = get(lone, 1, 64, 0);
	two = get(lone, 1, 64, 0);
	ck_assert_uint_eq(fake.live, 2);
	put(one);
	put(two);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

/* ---- mistakes ------------------------------------------------------------ */

START_TEST(double_free)
{
	static const size_t lens[] = { 1, 64, 5000, 100000, 3000000 };
	unsigned i;
	void *addr;

	for (i = 0; i < 5; i++) {
		addr = get(heap, 1, lens[i], 0);
		put(addr);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EALREADY);
		ck_assert_uint_eq(fake.events[MRRC_HEAP_DOUBLE_FREE], i + 1);
		ck_assert_uint_eq(fake.note[MRRC_HEAP_DOUBLE_FREE].addr,
				  (uintptr_t) addr);
		/* it is not handed out twice */
		ck_assert_ptr_ne(get(heap, 1, lens[i], 0),
				 get(heap, 1, lens[i], 0));
	}
	ck_assert_uint_eq(stats_of(heap).mistakes, 5);
}
END_TEST

START_TEST(foreign_and_inside)
{
	static const size_t lens[] = { 64, 5000, 100000, 3000000 };
	int local;
	unsigned i;
	char *addr, *mapped;

	put(NULL);
	ck_assert_int_eq(mrrc_heap_free(heaps, &local), -EINVAL);
	ck_assert_int_eq(mrrc_heap_free(heaps, (void *) 16), -EINVAL);
	ck_assert_int_eq(mrrc_heap_free(heaps, (void *) UINTPTR_MAX),
			 -EINVAL);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	ck_assert_int_eq(mrrc_heap_free(heaps, mapped), -EINVAL);
	munmap(mapped, 4096);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_FOREIGN], 4);
	for (i = 0; i < 4; i++) {
		addr = get(heap, 1, lens[i], 0);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr + 1), -EINVAL);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr + 16), -EINVAL);
		ck_assert_int_eq(mrrc_heap_free(heaps, addr + lens[i] - 16),
				 -EINVAL);
		ck_assert_uint_eq(fake.note[MRRC_HEAP_INSIDE].base,
				  (uintptr_t) addr);
		ck_assert_uint_eq(fake.events[MRRC_HEAP_INSIDE], 3 * i + 3);
		put(addr);
	}
}
END_TEST

START_TEST(other_domain)
{
	struct mrrc_heaps *others;
	struct mrrc_heap_place place;
	void *addr = get(heap, 1, 100, 0);

	ck_assert_int_eq(mrrc_heaps_open(&fake_heap_ops, &fake, 0, &others),
			 0);
	ck_assert_int_eq(mrrc_heap_free(others, addr), -EDOM);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_OTHER_DOMAIN], 1);
	ck_assert_int_eq(mrrc_heap_query(others, (uintptr_t) addr, &place),
			 -ENOENT);
	ck_assert_ptr_null(mrrc_heap_cookie(others, addr, 100));
	mrrc_heaps_close(others);
	put(addr);
}
END_TEST

START_TEST(overflow_and_use_after_free)
{
	static const size_t lens[] = { 1, 100, 5000, 100000, 3000000 };
	unsigned i;
	char *addr;

	if (!MRRC_HEAP_CANARY || mrrc_heap_watched)
		skip("not a debug build, or a tool watches\n");
	for (i = 0; i < 5; i++) {
		addr = get(heap, 1, lens[i], 0);
		addr[lens[i] + 3] ^= 1;
		ck_assert_int_eq(mrrc_heap_free(heaps, addr), -EOVERFLOW);
		ck_assert_uint_eq(fake.events[MRRC_HEAP_OVERFLOW], i + 1);
		ck_assert_uint_eq(fake.note[MRRC_HEAP_OVERFLOW].offset,
				  lens[i] + 3);
	}
	addr = get(heap, 1, 1000, 0);
	put(addr);
	addr[17] = 0;
	ck_assert_ptr_eq(get(heap, 1, 1000, 0), addr);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_USED_FREED], 1);
	ck_assert_uint_eq(fake.note[MRRC_HEAP_USED_FREED].offset, 17);
	put(addr);
}
END_TEST

/* ---- limits and failure -------------------------------------------------- */

START_TEST(heap_limit)
{
	struct mrrc_heap_attr attr = plain;
	struct mrrc_heap *small;
	void *addr[8], *cookie;
	unsigned n;

	attr.max_bytes = 2 * MIB;
	small = open_heap(&attr);
	for (n = 0; n < 8; n++) {
		if (mrrc_heap_alloc(small, 1, 700000, 0, &addr[n], &cookie))
			break;
	}
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LIMIT_HEAP], 1);
	ck_assert_uint_eq(fake.note[MRRC_HEAP_LIMIT_HEAP].limit, 2 * MIB);
	ck_assert_uint_le(stats_of(small).bytes, 2 * MIB);
	ck_assert_uint_eq(stats_of(small).limit, 2 * MIB);
	/* what is idle makes room */
	put(addr[0]);
	put(addr[1]);
	put(get(small, 1, 2 * MIB - 65536, 0));
	ck_assert_int_eq(mrrc_heap_alloc(small, 1, 3 * MIB, 0, &addr[0],
					 &cookie), -ENOMEM);
	/* other heaps have their own */
	put(get(heap, 1, 3 * MIB, 0));
}
END_TEST

START_TEST(domain_limit)
{
	void *addr, *cookie;

	mrrc_heaps_close(heaps);
	open_domain(4 * MIB);
	addr = get(heap, 1, 3 * MIB, 0);
	ck_assert_int_eq(mrrc_heap_alloc(open_heap(&plain), 1, 2 * MIB, 0,
					 &cookie, &cookie), -ENOMEM);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LIMIT_DOMAIN], 1);
	put(addr);
	/* the other heap's idle block goes */
	put(get(open_heap(&plain), 1, 2 * MIB, 0));
	ck_assert_uint_le(fake.live_bytes, 4 * MIB);
}
END_TEST

START_TEST(registration_fails)
{
	void *addr, *cookie;

	/* the cache gives way */
	fake.fail_in = 1;
	fake.fail_rc = -ENOMEM;
	fake.reapable = 1;
	put(get(heap, 1, 100, 0));
	ck_assert_uint_eq(fake.reaps, 1);
	ck_assert_uint_eq(stats_of(heap).reg_fails, 1);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_NO_REG], 0);
	/* idle blocks give way */
	mrrc_heap_trim(heap);
	put(get(heap, 1, 5 * MIB, 0));
	fake.max_live_bytes = 8 * MIB;
	put(get(heap, 1, 7 * MIB, 0));
	/* nothing gives way */
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 9 * MIB, 0, &addr, &cookie),
			 -ENOMEM);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_NO_REG], 1);
	ck_assert_int_eq(fake.note[MRRC_HEAP_NO_REG].err, -ENOMEM);
	/* what is no limit is not tried again */
	fake.max_live_bytes = 0;
	fake.reaps = 0;
	fake.fail_in = 1;
	fake.fail_rc = -EOPNOTSUPP;
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 9 * MIB, 0, &addr, &cookie),
			 -EOPNOTSUPP);
	ck_assert_uint_eq(fake.reaps, 0);
	put(get(heap, 1, 9 * MIB, 0));
	ck_assert(mrrc_heap_valid(heap));
}
END_TEST

/* Each step of opening and of the first allocations fails once. */
static void nth_fails(size_t len, unsigned flags)
{
	void *addr = NULL, *cookie;
	struct mrrc_heaps *h;
	struct mrrc_heap *one;
	unsigned nth;
	bool fired;
	int ret;

	for (nth = 1;; nth++) {
		fake = FAKE_HEAP;
		h = NULL;
		one = NULL;
		fault_arm(nth);
		ret = mrrc_heaps_open(&fake_heap_ops, &fake, 0, &h);
		if (!ret)
			ret = mrrc_heap_open(h, &plain, &one);
		if (!ret)
			ret = mrrc_heap_alloc(one, 1, len, flags, &addr,
					      &cookie);
		if (!ret)
			ret = mrrc_heap_free(h, addr);
		if (h)
			mrrc_heaps_close(h);
		fired = fault_disarm();
		ck_assert_uint_eq(fault_leaks(), 0);
		ck_assert_uint_eq(fake.live, 0);
		if (!fired)
			break;
		/* a missing magazine or barrier is no failure */
		ck_assert_msg(!ret || ret == -ENOMEM || ret == -EAGAIN,
			      "step %u: %d", nth, ret);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_gt(nth, 5);
}

START_TEST(each_step_fails)
{
	nth_fails(100, 0);
	nth_fails(100, MRRC_HEAP_ISOLATED);
	nth_fails(100000, 0);
	nth_fails(5 * MIB, 0);
}
END_TEST

/* ---- idle blocks --------------------------------------------------------- */

START_TEST(trim_gives_all_back)
{
	void *addr[3000];
	unsigned i;

	for (i = 0; i < 3000; i++)
		addr[i] = get(heap, 1, 1 + i * 37 % 60000, 0);
	ck_assert_uint_gt(stats_of(heap).blocks, 10);
	for (i = 0; i < 3000; i++)
		put(addr[i]);
	mrrc_heap_trim(heap);
	ck_assert_uint_eq(stats_of(heap).blocks, 0);
	ck_assert_uint_eq(stats_of(heap).bytes, 0);
	ck_assert_uint_eq(stats_of(heap).kept_bytes, 0);
	ck_assert_uint_eq(fake.live, 0);
	/* and what is in use stays */
	addr[0] = get(heap, 1, 100, 0);
	mrrc_heaps_trim(heaps);
	ck_assert_uint_eq(fake.live, 1);
	memset(addr[0], 1, 100);
	put(addr[0]);
}
END_TEST

START_TEST(idle_blocks_go_by_themselves)
{
	struct mrrc_heap_attr attr = plain;
	struct mrrc_heap *brief;
	void *addr[40];
	unsigned i;

	attr.idle_ms = 40;
	brief = open_heap(&attr);
	for (i = 0; i < 40; i++)
		addr[i] = get(brief, 1, 300000, 0);
	put(get(brief, 1, 5 * MIB, 0));
	for (i = 0; i < 40; i++)
		put(addr[i]);
	ck_assert_uint_gt(stats_of(brief).blocks, 5);
	/* calls that only use the magazines do not look: these do */
	for (i = 0; i < 40 && stats_of(brief).blocks > 1; i++) {
		usleep(10000);
		put(get(brief, 1, 100, MRRC_HEAP_ISOLATED));
	}
	ck_assert_uint_le(stats_of(brief).blocks, 1);
	ck_assert_uint_le(i, 39);

	attr.idle_ms = MRRC_HEAP_IDLE_KEEP;
	brief = open_heap(&attr);
	put(get(brief, 1, 5 * MIB, 0));
	usleep(50000);
	put(get(brief, 1, 100, MRRC_HEAP_ISOLATED));
	ck_assert_uint_eq(stats_of(brief).blocks, 1);
}
END_TEST

START_TEST(blocks_grow_with_the_heap)
{
	void **addr = malloc(2000 * sizeof(*addr));
	unsigned i;

	for (i = 0; i < 2000; i++)
		addr[i] = get(heap, 1, 100000, 0);
	/* 200 MB: far fewer registrations than MiB, and little to spare */
	ck_assert_uint_lt(fake.regs, 100);
	ck_assert_uint_lt(fake.live_bytes, 2000 * 100000UL / 4 * 5);
	for (i = 0; i < 2000; i++)
		put(addr[i]);
	free(addr);
}
END_TEST

/* ---- pages --------------------------------------------------------------- */

START_TEST(page_kinds)
{
	static const enum mrrc_pages kinds[] = {
		MRRC_PAGES_4K, MRRC_PAGES_THP, MRRC_PAGES_2M, MRRC_PAGES_1G,
	};
	struct mrrc_heap_attr attr = plain;
	struct mrrc_heap_place place;
	struct mrrc_heap *paged;
	unsigned i, round;
	char *addr;

	for (i = 0; i < 4; i++) {
		attr.pages = kinds[i];
		attr.prefault = i < 2;
		paged = open_heap(&attr);
		for (round = 0; round < 2; round++) {
			addr = get(paged, 1, 100000, 0);
			memset(addr, i, 100000);
			ck_assert_int_eq(mrrc_heap_query(heaps,
					(uintptr_t) addr, &place), 0);
			/* or what there is in its place */
			ck_assert_int_le(place.pages, kinds[i]);
			ck_assert_int_ne(place.pages, MRRC_PAGES_AUTO);
			ck_assert_uint_eq(place.block_len %
					  mrrc_pages_size(place.pages), 0);
			ck_assert_uint_eq(place.block %
					  mrrc_pages_size(place.pages), 0);
			ck_assert_uint_eq(stats_of(paged).bytes,
					  place.block_len);
			ck_assert_uint_eq(fake.live_bytes, place.block_len);
			put(addr);
			mrrc_heap_trim(paged);
		}
		if (kinds[i] >= MRRC_PAGES_2M && place.pages != kinds[i])
			ck_assert_uint_eq(
				fake.note[MRRC_HEAP_FALLBACK].size,
				mrrc_pages_size(kinds[i]));
		mrrc_heap_close(paged);
	}
	/* said once for each kind */
	ck_assert_uint_le(fake.events[MRRC_HEAP_FALLBACK], 2);
}
END_TEST

START_TEST(prefaulted)
{
	struct mrrc_heap_attr attr = plain;
	struct mrrc_heap_place place;
	unsigned char there[256];
	struct mrrc_heap *paged;
	unsigned i;

	attr.prefault = true;
	attr.pages = MRRC_PAGES_4K;
	paged = open_heap(&attr);
	mrrc_heap_query(heaps, (uintptr_t) get(paged, 1, 100, 0), &place);
	ck_assert_int_eq(mincore((void *) place.block, MIB, there), 0);
	for (i = 0; i < 256; i++)
		ck_assert_uint_eq(there[i] & 1, 1);
	mrrc_heap_close(paged);
}
END_TEST

/* ---- many ---------------------------------------------------------------- */

/* More heaps than have magazines. */
START_TEST(many_heaps)
{
	struct mrrc_heap *many[300];
	void *addr[300];
	unsigned i;

	for (i = 0; i < 300; i++) {
		many[i] = open_heap(&plain);
		addr[i] = get(many[i], 1, 1000 + i, 0);
		memset(addr[i], i, 1000 + i);
	}
	for (i = 0; i < 300; i++)
		ck_assert_uint_eq(*(unsigned char *) addr[i], i & 255);
	for (i = 0; i < 300; i += 2)
		put(addr[i]);
	for (i = 0; i < 300; i++) {
		put(get(many[i], 1, 10, 0));
		mrrc_heap_close(many[i]);
	}
	ck_assert_uint_eq(fake.note[MRRC_HEAP_LEAKS].count, 1);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LEAKS], 150);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

Suite *heap_suite(void)
{
	Suite *suite = suite_create("heap");
	TCase *tcase = tcase_create("heap");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, every_length);
	tcase_add_test(tcase, every_alignment);
	tcase_add_test(tcase, refused_arguments);
	tcase_add_test(tcase, zeroed);
	tcase_add_test(tcase, reuse_registers_nothing);
	tcase_add_test(tcase, small_ones_share_a_registration);
	tcase_add_test(tcase, heaps_share_no_block);
	tcase_add_test(tcase, isolated_ones_are_alone);
	tcase_add_test(tcase, double_free);
	tcase_add_test(tcase, foreign_and_inside);
	tcase_add_test(tcase, other_domain);
	tcase_add_test(tcase, overflow_and_use_after_free);
	tcase_add_test(tcase, heap_limit);
	tcase_add_test(tcase, domain_limit);
	tcase_add_test(tcase, registration_fails);
	tcase_add_test(tcase, each_step_fails);
	tcase_add_test(tcase, trim_gives_all_back);
	tcase_add_test(tcase, idle_blocks_go_by_themselves);
	tcase_add_test(tcase, blocks_grow_with_the_heap);
	tcase_add_test(tcase, page_kinds);
	tcase_add_test(tcase, prefaulted);
	tcase_add_test(tcase, many_heaps);
	suite_add_tcase(suite, tcase);
	return suite;
}
