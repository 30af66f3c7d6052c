/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of the allocator with one thread (heap_fixture.h). */
#include "config.h"
#include "test/sys/heap/heap_fixture.h"
#include "test/suites.h"

#include "test/fakes/fault.h"

struct fake_heap heap_fake;
struct mrrc_heaps *heaps;
struct mrrc_heap *heap;
const struct mrrc_heap_attr heap_plain = { .node = -1, .idle_ms = 60000 };

struct mrrc_heap *heap_open(const struct mrrc_heap_attr *attr)
{
	struct mrrc_heap *other;

	ck_assert_int_eq(mrrc_heap_open(heaps, attr, &other), 0);
	return other;
}

void heap_domain(size_t max_bytes)
{
	heap_fake = FAKE_HEAP;
	fault_clock(HEAP_MS * 1000000);
	ck_assert_int_eq(mrrc_heaps_open(&fake_heap_ops, &heap_fake, max_bytes,
					 &heaps),
			 0);
	heap = heap_open(&heap_plain);
}

void heap_setup(void)
{
	heap_domain(0);
}

void heap_teardown(void)
{
	fault_clock(0);
	mrrc_heaps_close(heaps);
	ck_assert_uint_eq(heap_fake.live, 0);
	ck_assert_uint_eq(heap_fake.regs, heap_fake.deregs);
}

void *heap_get(struct mrrc_heap *from, size_t align, size_t len, unsigned flags)
{
	void *addr, *cookie;

	ck_assert_int_eq(
		mrrc_heap_alloc(from, align, len, flags, &addr, &cookie), 0);
	ck_assert_ptr_nonnull(cookie);
	ck_assert_ptr_eq(mrrc_heap_cookie(heaps, addr, len), cookie);
	return addr;
}

void heap_put(void *addr)
{
	ck_assert_int_eq(mrrc_heap_free(heaps, addr), 0);
}

struct mrrc_heap_stats heap_stats_of(struct mrrc_heap *of)
{
	struct mrrc_heap_stats stats;

	mrrc_heap_stats(of, &stats);
	return stats;
}
