/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocks of the allocator: limits, failures, the time at which blocks are given
 * back, and kinds of page.
 */
#include "config.h"
#include "test/case.h"

#include "test/fakes/fault.h"
#include "test/sys/heap/heap_fixture.h"

TEST_CASE(heap_block, heap_setup, heap_teardown);

/* ---- limits and failure -------------------------------------------------- */

TEST(heap_limit)
{
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap *small;
	void *addr[8], *cookie;
	unsigned n;

	attr.max_bytes = 2 * MIB;
	small = heap_open(&attr);
	for (n = 0; n < 8; n++) {
		if (mrrc_heap_alloc(small, 1, 700000, 0, &addr[n], &cookie))
			break;
	}
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_LIMIT_HEAP], 1);
	ck_assert_uint_eq(heap_fake.note[MRRC_HEAP_LIMIT_HEAP].limit, 2 * MIB);
	ck_assert(!heap_fake.note[MRRC_HEAP_LIMIT_HEAP].again);
	ck_assert_uint_le(heap_stats_of(small).bytes, 2 * MIB);
	ck_assert_uint_eq(heap_stats_of(small).limit, 2 * MIB);
	/* Idle blocks make room. */
	heap_put(addr[0]);
	heap_put(addr[1]);
	heap_put(heap_get(small, 1, 2 * MIB - 65536, 0));
	ck_assert_int_eq(mrrc_heap_alloc(small, 1, 3 * MIB, 0, &addr[0],
					 &cookie),
			 -ENOMEM);
	ck_assert(heap_fake.note[MRRC_HEAP_LIMIT_HEAP].again);
	/* Other heaps have limits of their own. */
	heap_put(heap_get(heap, 1, 3 * MIB, 0));
	ck_assert_int_eq(mrrc_heap_alloc(heap_open(&attr), 1, 3 * MIB, 0,
					 &addr[0], &cookie),
			 -ENOMEM);
	ck_assert(!heap_fake.note[MRRC_HEAP_LIMIT_HEAP].again);
}

TEST(domain_limit)
{
	void *addr, *cookie;

	mrrc_heaps_close(heaps);
	heap_domain(4 * MIB);
	addr = heap_get(heap, 1, 3 * MIB, 0);
	ck_assert_int_eq(mrrc_heap_alloc(heap_open(&heap_plain), 1, 2 * MIB, 0,
					 &cookie, &cookie),
			 -ENOMEM);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_LIMIT_DOMAIN], 1);
	heap_put(addr);
	/* The other heap's idle block is given back. */
	heap_put(heap_get(heap_open(&heap_plain), 1, 2 * MIB, 0));
	ck_assert_uint_le(heap_fake.live_bytes, 4 * MIB);
}

TEST(registration_fails)
{
	void *addr, *cookie;
	unsigned char there;

	/* The cache's regions make room. */
	heap_fake.fail_in = 1;
	heap_fake.fail_rc = -ENOMEM;
	heap_fake.reapable = 1;
	heap_put(heap_get(heap, 1, 100, 0));
	ck_assert_uint_eq(heap_fake.reaps, 1);
	ck_assert_uint_eq(heap_stats_of(heap).reg_fails, 1);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_NO_REG], 0);
	/* Idle blocks make room. */
	mrrc_heap_trim(heap);
	heap_put(heap_get(heap, 1, 5 * MIB, 0));
	heap_fake.max_live_bytes = 8 * MIB;
	heap_put(heap_get(heap, 1, 7 * MIB, 0));
	/* No region and no block can make room. */
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 9 * MIB, 0, &addr, &cookie),
			 -ENOMEM);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_NO_REG], 1);
	ck_assert_int_eq(heap_fake.note[MRRC_HEAP_NO_REG].err, -ENOMEM);
	/* No mapping of the failed block is left. */
	addr = (void *) heap_fake.note[MRRC_HEAP_NO_REG].addr;
	ck_assert_int_eq(mincore(addr, 4096, &there), -1);
	/* Every limit of the core provider is a lack of memory. */
	heap_fake.fail_rc = -EAGAIN;
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 9 * MIB, 0, &addr, &cookie),
			 -ENOMEM);
	ck_assert_int_eq(heap_fake.note[MRRC_HEAP_NO_REG].err, -EAGAIN);
	/* An error that is no limit is not tried again. */
	heap_fake.max_live_bytes = 0;
	heap_fake.reaps = 0;
	heap_fake.fail_in = 1;
	heap_fake.fail_rc = -EOPNOTSUPP;
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 9 * MIB, 0, &addr, &cookie),
			 -EOPNOTSUPP);
	ck_assert_uint_eq(heap_fake.reaps, 0);
	/* A registration is not tried again if the owner gave up. */
	heap_fake.fail_in = 1;
	heap_fake.fail_rc = -EDQUOT;
	heap_fake.reapable = 1;
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 9 * MIB, 0, &addr, &cookie),
			 -ENOMEM);
	ck_assert_uint_eq(heap_fake.reaps, 0);
	ck_assert_uint_eq(heap_fake.events[MRRC_HEAP_LIMIT_OWNER], 1);
	heap_put(heap_get(heap, 1, 9 * MIB, 0));
	ck_assert(mrrc_heap_valid(heap));
}

/* A heap whose blocks grow ever longer reaches its limit exactly. */
TEST(heap_limit_is_reached)
{
	struct mrrc_heap_attr attr = heap_plain;
	void *addr[40], *cookie;
	struct mrrc_heap *small;
	unsigned n;

	attr.max_bytes = 18 * MIB;
	small = heap_open(&attr);
	for (n = 0; n < 40; n++) {
		if (mrrc_heap_alloc(small, 1, MIB / 2 - 32, 0, &addr[n],
				    &cookie))
			break;
	}
	ck_assert_uint_eq(n, 36);
	ck_assert_uint_eq(heap_stats_of(small).bytes, 18 * MIB);
	mrrc_heap_close(small);
	/* A heap reaches the domain's limit exactly, too. */
	mrrc_heaps_close(heaps);
	heap_domain(18 * MIB);
	for (n = 0; n < 40; n++) {
		if (mrrc_heap_alloc(heap, 1, MIB / 2 - 32, 0, &addr[n],
				    &cookie))
			break;
	}
	ck_assert_uint_eq(n, 36);
}

/*
 * While blocks have room, the heap requests no further block; a request would
 * be refused.
 */
TEST(refused_once_at_limits)
{
	void *addr[MIB / 4096], *cookie;
	uint64_t fails;
	unsigned n = 0;

	if (mrrc_heap_watched)
		skip("a tool watches: nothing is kept");
	heap_fake.max_live_bytes = MIB;
	while (!mrrc_heap_alloc(heap, 1, 16000, 0, &addr[n], &cookie))
		n++;
	fails = heap_stats_of(heap).reg_fails;
	ck_assert_uint_ne(fails, 0);
	heap_put(addr[--n]);
	heap_put(addr[--n]);
	heap_put(heap_get(heap, 1, 8000, 0));
	ck_assert_uint_eq(heap_stats_of(heap).reg_fails, fails);
	while (n)
		heap_put(addr[--n]);
}

#define AT_ONCE 8

static pthread_barrier_t at_once;

static void *take_one(void *from)
{
	void *addr, *cookie;

	pthread_barrier_wait(&at_once);
	return mrrc_heap_alloc(from, 1, 64, 0, &addr, &cookie) ? from : NULL;
}

/* Threads share the only block that the limit allows, in any order. */
TEST(one_block_for_all)
{
	struct mrrc_heap_attr attr = heap_plain;
	pthread_t thread[AT_ONCE];
	unsigned i, round, failed = 0;
	struct mrrc_heap *small;
	void *ret;

	attr.max_bytes = MIB;
	attr.prefault = true;
	pthread_barrier_init(&at_once, NULL, AT_ONCE);
	for (round = 0; round < 30; round++) {
		small = heap_open(&attr);
		for (i = 0; i < AT_ONCE; i++)
			thread[i] = thread_start(take_one, small);
		for (i = 0; i < AT_ONCE; i++) {
			pthread_join(thread[i], &ret);
			failed += ret != NULL;
		}
		mrrc_heap_close(small);
	}
	pthread_barrier_destroy(&at_once);
	ck_assert_uint_eq(failed, 0);
}

/* Blocks that there was no room for do not count in peaks. */
TEST(peaks_are_of_what_was)
{
	struct mrrc_heap_stats stats;
	void *addr, *cookie;

	mrrc_heaps_close(heaps);
	heap_domain(64 * MIB);
	heap_put(heap_get(heap, 1, 4 * MIB, MRRC_HEAP_ISOLATED));
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 100 * MIB, 0, &addr, &cookie),
			 -ENOMEM);
	heap_fake.fail_in = 1;
	heap_fake.fail_rc = -EOPNOTSUPP;
	ck_assert_int_eq(mrrc_heap_alloc(heap, 1, 20 * MIB, 0, &addr, &cookie),
			 -EOPNOTSUPP);
	ck_assert_uint_eq(heap_stats_of(heap).bytes_peak, 4 * MIB);
	mrrc_heaps_stats(heaps, &stats);
	ck_assert_uint_eq(stats.bytes_peak, 4 * MIB);
	ck_assert_uint_eq(stats.bytes, 0);
}

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
		heap_fake = FAKE_HEAP;
		h = NULL;
		one = NULL;
		fault_arm(nth);
		ret = mrrc_heaps_open(&fake_heap_ops, &heap_fake, 0, &h);
		if (!ret)
			ret = mrrc_heap_open(h, &heap_plain, &one);
		if (!ret)
			ret = mrrc_heap_alloc(one, 1, len, flags, &addr,
					      &cookie);
		if (!ret)
			ret = mrrc_heap_free(h, addr);
		if (h)
			mrrc_heaps_close(h);
		fired = fault_disarm();
		ck_assert_uint_eq(fault_leaks(), 0);
		ck_assert_uint_eq(heap_fake.live, 0);
		if (!fired)
			break;
		/* A missing magazine or barrier is no failure. */
		ck_assert_msg(!ret || ret == -ENOMEM || ret == -EAGAIN,
			      "step %u: %d", nth, ret);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_gt(nth, 5);
}

TEST(each_step_fails)
{
	nth_fails(100, 0);
	nth_fails(100, MRRC_HEAP_ISOLATED);
	nth_fails(100000, 0);
	nth_fails(5 * MIB, 0);
}

/* ---- idle blocks --------------------------------------------------------- */

/* Sets the clock to @ms after the domain was opened. */
static void after(uint64_t ms)
{
	fault_clock((HEAP_MS + ms) * 1000000);
}

/*
 * Idle blocks are given to other processes; blocks in use, or free only for a
 * moment, are not given.
 */
TEST(idle_blocks_are_given)
{
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap *some, *keeping;
	void *used;
	unsigned i;

	attr.idle_ms = 1000000;
	some = heap_open(&attr);
	attr.idle_ms = MRRC_HEAP_IDLE_KEEP;
	keeping = heap_open(&attr);
	used = heap_get(some, 1, 5 * MIB, 0);
	heap_put(heap_get(some, 1, 6 * MIB, 0));
	heap_put(heap_get(some, 1, 100, 0));
	heap_put(heap_get(keeping, 1, 5 * MIB, 0));
	after(199);
	mrrc_heaps_trim_idle(heaps, 200);
	ck_assert_uint_eq(heap_stats_of(some).blocks, 3);
	/* Blocks with objects in magazines are idle from now on. */
	for (i = 2; i <= 3; i++) {
		after(i * 200);
		mrrc_heaps_trim_idle(heaps, 200);
	}
	ck_assert_uint_eq(heap_stats_of(some).blocks, 1);
	ck_assert_uint_eq(heap_stats_of(keeping).blocks, 1);
	heap_put(used);
}

/* Idle blocks of a heap without calls end in calls for another heap. */
TEST(idle_blocks_of_other_heaps)
{
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap *some, *keeping;
	unsigned i;

	attr.idle_ms = 200;
	some = heap_open(&attr);
	attr.idle_ms = MRRC_HEAP_IDLE_KEEP;
	keeping = heap_open(&attr);
	heap_put(heap_get(some, 1, 5 * MIB, 0));
	heap_put(heap_get(some, 1, 100, 0));
	heap_put(heap_get(keeping, 1, 5 * MIB, 0));
	after(199);
	heap_put(heap_get(heap, 1, 5 * MIB, 0));
	ck_assert_uint_eq(heap_stats_of(some).blocks, 2);
	for (i = 2; i <= 4; i++) {
		after(i * 200);
		heap_put(heap_get(heap, 1, 5 * MIB, 0));
	}
	ck_assert_uint_eq(heap_stats_of(some).blocks, 0);
	ck_assert_uint_eq(heap_stats_of(keeping).blocks, 1);
	ck_assert_uint_eq(heap_stats_of(heap).blocks, 1);
}

TEST(blocks_grow_with_the_heap)
{
	void **addr = malloc(2000 * sizeof(*addr));
	unsigned i;

	for (i = 0; i < 2000; i++)
		addr[i] = heap_get(heap, 1, 100000, 0);
	/* 200 MB need far fewer registrations than MiB, and little spare. */
	ck_assert_uint_lt(heap_fake.regs, 100);
	ck_assert_uint_lt(heap_fake.live_bytes, 2000 * 100000UL / 4 * 5);
	for (i = 0; i < 2000; i++)
		heap_put(addr[i]);
	free(addr);
}

/* ---- what threads keep --------------------------------------------------- */

/* An object of a seldom used size costs little more than itself. */
TEST(little_is_fetched_at_once)
{
	static const size_t sizes[] = { 5000, 10000, 30000, 200000 };
	size_t kept = 0, now;
	unsigned i;

	for (i = 0; i < 4; i++) {
		heap_get(heap, 1, sizes[i], 0);
		now = heap_stats_of(heap).kept_bytes;
		ck_assert_uint_le(now - kept, 32 << 10);
		kept = now;
	}
}

/* Thread and heap together keep no more than some tens of large objects. */
TEST(few_are_kept)
{
	static void *addr[300];
	unsigned i;

	for (i = 0; i < 300; i++)
		addr[i] = heap_get(heap, 1, 16384, 0);
	for (i = 0; i < 300; i++)
		heap_put(addr[i]);
	ck_assert_uint_le(heap_stats_of(heap).kept_bytes, 44 * 16384);
	/* 16 objects at a time go past the magazine. */
	ck_assert_uint_ge(heap_stats_of(heap).kept_bytes, 16 * 16384);
}

/*
 * A block of one object is reused for a request if the block is long enough,
 * and not longer by more than a quarter.
 */
TEST(the_last_freed_that_fits_is_reused)
{
	char *small = heap_get(heap, 1, 5 * MIB, 0);
	char *good = heap_get(heap, 1, 6 * MIB, 0);
	char *large = heap_get(heap, 1, 8 * MIB, 0);

	heap_put(good);
	heap_put(large);
	heap_put(small);
	ck_assert_ptr_eq(heap_get(heap, 1, 5 * MIB + 100000, 0), good);
	ck_assert_ptr_eq(heap_get(heap, 1, 7 * MIB, 0), large);
	ck_assert_ptr_eq(heap_get(heap, 1, 4 * MIB, 0), small);
	ck_assert_uint_eq(heap_fake.regs, 3);
}

/* ---- pages --------------------------------------------------------------- */

/* By default, only fully populated blocks use transparent huge pages. */
TEST(huge_pages_only_where_all_is_populated)
{
	static const struct {
		bool prefault, populated;
	} cases[] = { { false, false }, { true, false }, { false, true } };
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap *from;
	unsigned i;

	attr.pages = MRRC_PAGES_AUTO;
	for (i = 0; i < 3; i++) {
		attr.prefault = cases[i].prefault;
		attr.populated = cases[i].populated;
		from = heap_open(&attr);
		/*
		 * The length includes the bytes that debug builds put behind an
		 * object.
		 */
		heap_put(heap_get(from, 1, 5 * MIB - MRRC_HEAP_CANARY, 0));
		ck_assert_uint_eq(heap_stats_of(from).thp_bytes,
				  i ? 6 * MIB : 0);
		ck_assert_uint_eq(heap_stats_of(from).bytes,
				  i ? 6 * MIB : 5 * MIB);
		mrrc_heap_close(from);
	}
}

TEST(page_kinds)
{
	static const enum mrrc_pages kinds[] = {
		MRRC_PAGES_4K,
		MRRC_PAGES_THP,
		MRRC_PAGES_2M,
		MRRC_PAGES_1G,
	};
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap_place place;
	struct mrrc_heap *paged;
	unsigned i, round;
	char *addr;

	for (i = 0; i < 4; i++) {
		attr.pages = kinds[i];
		attr.prefault = i < 2;
		paged = heap_open(&attr);
		for (round = 0; round < 2; round++) {
			addr = heap_get(paged, 1, 100000, 0);
			memset(addr, i, 100000);
			ck_assert_int_eq(mrrc_heap_query(heaps,
							 (uintptr_t) addr,
							 &place),
					 0);
			/*
			 * The block has pages of the requested kind, or of an
			 * available kind in place of it.
			 */
			ck_assert_int_le(place.pages, kinds[i]);
			ck_assert_int_ne(place.pages, MRRC_PAGES_AUTO);
			ck_assert_uint_eq(place.block_len %
						  mrrc_pages_size(place.pages),
					  0);
			ck_assert_uint_eq(
				place.block % mrrc_pages_size(place.pages), 0);
			ck_assert_uint_eq(heap_stats_of(paged).bytes,
					  place.block_len);
			ck_assert_uint_eq(heap_fake.live_bytes,
					  place.block_len);
			heap_put(addr);
			mrrc_heap_trim(paged);
		}
		if (kinds[i] >= MRRC_PAGES_2M && place.pages != kinds[i])
			ck_assert_uint_eq(
				heap_fake.note[MRRC_HEAP_FALLBACK].size,
				mrrc_pages_size(kinds[i]));
		mrrc_heap_close(paged);
	}
	/* A fallback is reported once for each kind. */
	ck_assert_uint_le(heap_fake.events[MRRC_HEAP_FALLBACK], 2);
}

TEST(prefaulted)
{
	struct mrrc_heap_attr attr = heap_plain;
	struct mrrc_heap_place place;
	unsigned char there[256];
	struct mrrc_heap *paged;
	unsigned i;

	attr.prefault = true;
	attr.pages = MRRC_PAGES_4K;
	paged = heap_open(&attr);
	mrrc_heap_query(heaps, (uintptr_t) heap_get(paged, 1, 100, 0), &place);
	ck_assert_int_eq(mincore((void *) place.block, MIB, there), 0);
	for (i = 0; i < 256; i++)
		ck_assert_uint_eq(there[i] & 1, 1);
	mrrc_heap_close(paged);
}
