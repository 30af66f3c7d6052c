/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A domain is closed while its allocations stay (mrrc_heaps_abandon()): no
 * memory stays registered, the data stay, a free has no effect, and heaps
 * opened later do not get memory of the closed domain.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/heap/heap_fixture.h"
#include "sys/heap/heap_mag.h"

#define KEY 4096

TEST_CASE(heap_abandon, heap_setup, heap_teardown);

static const size_t lens[] = { 64, 5000, 100000, 5 * MIB };

static struct mrrc_heaps *others;
static struct mrrc_heap *other;

static void other_open(void)
{
	ck_assert_int_eq(
		mrrc_heaps_open(&fake_heap_ops, &heap_fake, 0, &others), 0);
	ck_assert_int_eq(mrrc_heap_open(others, &heap_plain, &other), 0);
}

static void *other_get(size_t len)
{
	void *addr, *cookie;

	ck_assert_int_eq(mrrc_heap_alloc(other, 1, len, 0, &addr, &cookie), 0);
	return addr;
}

TEST(abandoned_objects_stay)
{
	static char *each[4]; /* so that valgrind sees no leak */
	unsigned i, round;

	for (i = 0; i < 4; i++) {
		each[i] = heap_get(heap, 1, lens[i], 0);
		memset(each[i], 'a' + (int) i, lens[i]);
	}
	mrrc_heaps_abandon(heaps);
	ck_assert_uint_eq(heap_fake.live, 0);
	ck_assert_uint_eq(heap_fake.regs, heap_fake.deregs);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 4; i++) {
			ck_assert_ptr_eq(mrrc_heap_owner(each[i]), heaps);
			ck_assert_int_eq(mrrc_heap_free(heaps, each[i]), 0);
			ck_assert_int_eq(each[i][lens[i] - 1], 'a' + (int) i);
		}
	}
	ck_assert_uint_eq(heap_fake.regs, heap_fake.deregs);
	ck_assert_ptr_null(mrrc_heap_owner(&round));
}

/* The hot slot has an object of the abandoned domain. */
TEST(abandoned_hot_object)
{
	void *addr = heap_get(heap, 1, 64, 0);

	heap_put(addr);
	ck_assert_ptr_eq(heap_get(heap, 1, 64, 0), addr);
	mrrc_heaps_abandon(heaps);
	heap_put(addr);
	other_open();
	ck_assert_ptr_ne(other_get(64), addr);
	mrrc_heaps_close(others);
}

/* Another heap has the abandoned heap's place in the threads' tables. */
TEST(abandoned_slot)
{
	const unsigned slot = heap->slot;
	void *addr = heap_get(heap, 1, 64, 0), *got[200];
	unsigned i;

	mrrc_heaps_abandon(heaps);
	other_open();
	ck_assert_uint_eq(other->slot, slot);
	for (i = 0; i < 2; i++)
		got[i] = other_get(64);
	ck_assert_int_eq(mrrc_heap_free(others, got[0]), 0);
	ck_assert_int_eq(mrrc_heap_free(others, got[1]), 0);
	heap_put(addr);
	for (i = 0; i < 200; i++)
		ck_assert_ptr_ne(other_get(64), addr);
	mrrc_heaps_close(others);
}

/* A later domain may have the same address, and thus the same key. */
TEST(abandoned_key)
{
	struct mrrc_heap_got got;

	heap_put(heap_get(heap, 1, 64, 0));
	mrrc_heap_usual(heap, KEY);
	mrrc_heaps_abandon(heaps);
	ck_assert(!mrrc_heap_alloc_key(KEY, 64, &got));
}
