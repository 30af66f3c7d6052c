/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/policy/shadow: the shadow cache that gdl is compared with, against a
 * model of LRU page by page, and case by case.
 */
#include "config.h"
#include "test/case.h"

#include <malloc.h>

#include "core/cache/cache.h"
#include "core/policy/shadow.h"
#include "test/fakes/fault.h"
#include "core/cache/plan.h"

#define PAGE   4096u
#define SPACE  64 /* pages of the model */
#define LIMIT  24 /* pages that fit in the cache */
#define RANGES 6  /* ranges that fit in the cache */
#define STEPS  20000

static const struct mrrc_cost cost = {
	.reg_page = 1,
	.reg = 9,
	.dereg_page = 2,
	.dereg = 5,
	.page = PAGE,
};

static struct mrrc_shadow shadow;
static uint32_t hint;

static void open_with(size_t pages, size_t ranges)
{
	hint = 0;
	ck_assert_int_eq(mrrc_shadow_init(&shadow, &cost, pages * PAGE, ranges),
			 0);
}

static void close_it(void)
{
	mrrc_shadow_fini(&shadow);
}

static void use(size_t first, size_t pages, bool fresh)
{
	mrrc_shadow_use(&shadow, first * PAGE, pages * PAGE, fresh, &hint);
	ck_assert(mrrc_shadow_valid(&shadow));
}

/* Uses a range; returns whether the shadow cache had it. */
static bool has(size_t first, size_t pages)
{
	const double before = shadow.over;

	use(first, pages, false);
	return shadow.over == before;
}

static double price(size_t pages)
{
	return 14 + 3.0 * pages;
}

/* ---- the model ---- */

struct model {
	unsigned owner[SPACE];		       /* a page's range; 0: none */
	unsigned long turn[SPACE * STEPS + 1]; /* a range's last use */
	/* a range was evicted by the policy */
	bool risk[SPACE * STEPS + 1];
	unsigned ranges;
	unsigned long now;
	double over, spent;
	unsigned returned, gone;
};

static struct model model;

static unsigned model_pages(unsigned range)
{
	unsigned count = 0, i;

	for (i = 0; i < SPACE; i++)
		count += range ? model.owner[i] == range : model.owner[i] != 0;
	return count;
}

static unsigned model_ranges(void)
{
	unsigned count = 0, i;

	/* Neighbours that are registered separately have different owners. */
	for (i = 0; i < SPACE; i++)
		count += model.owner[i] &&
			 (!i || model.owner[i] != model.owner[i - 1]);
	return count;
}

static void model_drop(unsigned range)
{
	unsigned i;

	for (i = 0; i < SPACE; i++) {
		if (model.owner[i] == range)
			model.owner[i] = 0;
	}
}

static void model_evict(void)
{
	unsigned oldest = 0, i;

	for (i = 0; i < SPACE; i++) {
		if (model.owner[i] && (!oldest || model.turn[model.owner[i]] <
							  model.turn[oldest]))
			oldest = model.owner[i];
	}
	model.gone += model.risk[oldest];
	model_drop(oldest);
}

static double model_fill(unsigned first, unsigned end)
{
	double spent = 0;
	unsigned to;

	for (; first < end; first++) {
		if (model.owner[first])
			continue;
		for (to = first; to < end && !model.owner[to]; to++)
			;
		while (model_pages(0) + to - first > LIMIT ||
		       model_ranges() >= RANGES)
			model_evict();
		model.turn[++model.ranges] = ++model.now;
		spent += price(to - first);
		for (; first < to; first++)
			model.owner[first] = model.ranges;
		first--;
	}
	return spent;
}

static void model_use(unsigned first, unsigned pages, bool fresh)
{
	double spent;
	unsigned i;

	for (i = first; i < first + pages; i++) {
		if (fresh && model.risk[model.owner[i]]) {
			model.risk[model.owner[i]] = false;
			model.returned++;
		}
		if (model.owner[i])
			model.turn[model.owner[i]] = ++model.now;
	}
	spent = model_fill(first, first + pages);
	model.over += (fresh ? price(pages) : 0) - spent;
	model.spent += spent;
	if (spent > 0) {
		model.over *= .999;
		model.spent *= .999;
	}
}

static void model_forget(unsigned first, unsigned pages)
{
	unsigned i;

	for (i = first; i < first + pages; i++) {
		if (model.owner[i])
			model_drop(model.owner[i]);
	}
}

static void model_policy_evicts(unsigned first, unsigned pages)
{
	unsigned i;

	for (i = first; i < first + pages; i++) {
		if (model.owner[i])
			model.risk[model.owner[i]] = true;
	}
}

static void model_compare(void)
{
	const struct mrrc_region *range;
	double risk = 0;
	unsigned i;

	ck_assert_uint_eq(shadow.index.bytes, model_pages(0) * PAGE);
	for (i = 0; i < SPACE; i++) {
		range = mrrc_index_find(&shadow.index, i * PAGE, PAGE);
		ck_assert(!range == !model.owner[i]);
		if (range)
			ck_assert_uint_eq(range->len / PAGE,
					  model_pages(model.owner[i]));
		/* A range counts once, at its first page. */
		if (model.risk[model.owner[i]] &&
		    (!i || model.owner[i] != model.owner[i - 1]))
			risk += price(model_pages(model.owner[i]));
	}
	ck_assert_double_eq_tol(shadow.risk, risk, 1e-6);
	ck_assert_double_eq(shadow.returned, model.returned);
	ck_assert_double_eq(shadow.gone, model.gone);
	ck_assert_double_eq_tol(shadow.spent, model.spent, 1e-6);
	ck_assert_double_eq_tol(shadow.over, model.over, 1e-6);
}

TEST_CASE(shadow, NULL, NULL);

/*
 * A policy keeps a hint for each region; in this test ranges share hints, so
 * that many hints are wrong.
 */
TEST(test_model)
{
	uint32_t hints[8] = { 0 };
	unsigned long seed = 1;
	const unsigned steps = rounds_of(STEPS);
	unsigned first, pages, i;

	memset(&model, 0, sizeof(model));
	open_with(LIMIT, RANGES);
	for (i = 0; i < steps; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		first = (seed >> 33) % SPACE;
		pages = 1 + (seed >> 40) % (seed >> 50 & 1 ? 4 : 12);
		if (pages > SPACE - first)
			pages = SPACE - first;
		if ((seed >> 55) % 16 == 1) {
			mrrc_shadow_evict(&shadow, first * PAGE, pages * PAGE);
			model_policy_evicts(first, pages);
		} else if ((seed >> 55) % 16) {
			mrrc_shadow_use(&shadow, first * PAGE, pages * PAGE,
					seed >> 60 & 1, &hints[first % 8]);
			model_use(first, pages, seed >> 60 & 1);
		} else {
			mrrc_shadow_forget(&shadow, first * PAGE, pages * PAGE);
			model_forget(first, pages);
		}
		ck_assert(mrrc_shadow_valid(&shadow));
		model_compare();
	}
	close_it();
}

/* ---- cases ---- */

TEST(test_few_regions)
{
	open_with(1000, 2);
	use(10, 1, true);
	use(20, 1, true);
	use(30, 1, true);
	ck_assert_uint_eq(shadow.index.count, 2);
	ck_assert(has(20, 1));
	ck_assert(!has(10, 1));
	close_it();
}

/*
 * A range that the policy evicted and LRU still has may return, with the
 * probability with which earlier ranges at risk returned.
 */
TEST(test_at_risk)
{
	open_with(16, SIZE_MAX);
	use(10, 2, true);
	use(20, 4, true);
	mrrc_shadow_evict(&shadow, 10 * PAGE, PAGE);
	mrrc_shadow_evict(&shadow, 10 * PAGE, 2 * PAGE);
	ck_assert(mrrc_shadow_valid(&shadow));
	/* A range counts once. */
	ck_assert_double_eq(shadow.risk, price(2));
	/* LRU does not have this range. */
	mrrc_shadow_evict(&shadow, 30 * PAGE, PAGE);
	ck_assert_double_eq(shadow.risk, price(2));
	/* The allowance pays for one and a half ranges. */
	shadow.over = 0;
	shadow.spent = (price(2) + price(1)) / .045 + .001;
	ck_assert(mrrc_shadow_affords(&shadow, PAGE));
	ck_assert(!mrrc_shadow_affords(&shadow, 2 * PAGE));
	/* Half of the ranges at risk returned. */
	shadow.gone = 70;
	shadow.spent = (price(2) / 2 + price(1)) / .045 + .001;
	ck_assert(mrrc_shadow_affords(&shadow, PAGE));
	ck_assert(!mrrc_shadow_affords(&shadow, 2 * PAGE));
	use(10, 1, true);
	ck_assert_double_eq(shadow.risk, 0);
	ck_assert_double_eq(shadow.returned, 1);
	/* LRU evicts the range, too. */
	mrrc_shadow_evict(&shadow, 20 * PAGE, PAGE);
	use(40, 14, true);
	ck_assert_double_eq(shadow.risk, 0);
	ck_assert_double_eq(shadow.gone, 71);
	/* A range that the program unmaps is no longer at risk. */
	mrrc_shadow_evict(&shadow, 40 * PAGE, PAGE);
	mrrc_shadow_forget(&shadow, 40 * PAGE, PAGE);
	ck_assert_double_eq(shadow.risk, 0);
	ck_assert_double_eq(shadow.returned, 1);
	ck_assert_double_eq(shadow.gone, 71);
	close_it();
}

/*
 * The shadow cache keeps no range that is larger than the limit: the cache
 * itself has no room for such a range, either.
 */
TEST(test_too_large)
{
	open_with(4, SIZE_MAX);
	use(10, 4, true);
	use(20, 5, true);
	ck_assert_uint_eq(shadow.index.bytes, 4 * PAGE);
	ck_assert(has(10, 4));
	close_it();
}

/* There are more ranges than memory for them, far from each other and near. */
LOOP_TEST(test_thin, 0, 3)
{
	static const size_t strides[] = { 1, 3, 16 };
	const size_t stride = strides[_i];
	const size_t limit = 20000;
	double over, spent;
	size_t i, had;

	open_with(limit, SIZE_MAX);
	for (i = 0; i < 4096; i++)
		mrrc_shadow_use(&shadow, i * stride * PAGE, PAGE, true, &hint);
	ck_assert_uint_eq(shadow.sample, 0);
	shadow.over = 1000;
	over = shadow.over;
	spent = shadow.spent;
	use(4096 * stride, 1, true);
	ck_assert_uint_eq(shadow.sample, 1);
	ck_assert_uint_eq(shadow.max_bytes, limit * PAGE / 2);
	/* The last range counts, or it does not. */
	ck_assert_double_eq_tol(shadow.over, over / 2, 2);
	ck_assert_double_eq_tol(shadow.spent, spent / 2, 20);
	had = shadow.index.count;
	ck_assert_uint_gt(had, 4096 / 3);
	ck_assert_uint_lt(had, 4096 * 2 / 3);
	/* Half of the addresses no longer count, for gdl and for LRU. */
	over = shadow.over;
	for (i = 0; i < 100; i++)
		use(i * stride, 1, true);
	ck_assert_double_ge(shadow.over, over + 15 * price(1));
	ck_assert_double_le(shadow.over, over + 85 * price(1));
	ck_assert_uint_eq(shadow.index.count, had);
	for (i = 0; i < 40000; i++)
		mrrc_shadow_use(&shadow, i * stride * PAGE, PAGE, true, &hint);
	ck_assert(mrrc_shadow_valid(&shadow));
	close_it();
}

/* All ranges are in one block, whose addresses all count or do not. */
LOOP_TEST(test_thin_block, 0, 8)
{
	const uintptr_t block = _i * 64ul * 1024;
	struct mrrc_cost fine = cost;
	size_t i;

	fine.page = 8;
	ck_assert_int_eq(mrrc_shadow_init(&shadow, &fine, 1 << 20, SIZE_MAX),
			 0);
	for (i = 0; i < 8000; i++)
		mrrc_shadow_use(&shadow, block + i * 8, 8, true, &hint);
	ck_assert(mrrc_shadow_valid(&shadow));
	close_it();
}

/*
 * Memory that malloc gave out before makes an unused entry look like a range
 * from 1 << 60 on; a wrong hint must not lead to such an entry.
 */
TEST(test_garbage)
{
	const uintptr_t start = UINT64_C(2) << 60;
	uint32_t other = 7;

	mallopt(M_PERTURB, 0x10 ^ 0xff);
	open_with(LIMIT, RANGES);
	mallopt(M_PERTURB, 0);
	mrrc_shadow_use(&shadow, start, PAGE, true, &hint);
	ck_assert_uint_eq(shadow.index.count, 1);
	mrrc_shadow_use(&shadow, start + 2 * PAGE, PAGE, true, &other);
	ck_assert_uint_eq(shadow.index.count, 2);
	ck_assert(mrrc_shadow_valid(&shadow));
	close_it();
}

/* ---- gdl, which is compared with the shadow cache ---- */

#define BUFFERS 600

static struct mrrc_cache cache;
static struct mrrc_region region[BUFFERS];

static void open_cache(size_t pages, size_t regions, const char *policy)
{
	memset(region, 0, sizeof(region));
	ck_assert_int_eq(mrrc_cache_init(&cache,
					 &(struct mrrc_cache_conf){
						 .max_bytes = pages * PAGE,
						 .max_regions = regions,
						 .page = PAGE,
						 .policy = policy,
						 .cost = &cost,
					 }),
			 0);
}

static void close_cache(void)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);

	mrrc_cache_evict_all(&cache, &gone);
	mrrc_cache_fini(&cache);
}

/* Requests a buffer, far from the others; returns the cost of the miss. */
static double ask(unsigned buffer, unsigned pages)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	const uintptr_t start = (buffer + 1) * 1000ul * PAGE;
	struct mrrc_plan plan;

	mrrc_cache_lookup(&cache, start, pages * PAGE, MRRC_RW, 0, &plan);
	if (!plan.missing)
		return 0;
	region[buffer] = (struct mrrc_region){
		.start = start,
		.len = pages * PAGE,
		.access = MRRC_RW,
	};
	ck_assert_int_eq(mrrc_cache_insert(&cache, &region[buffer], &gone), 0);
	return price(pages);
}

/* A few buffers, small and large, fit; sometimes others replace them. */
static double few_buffers(const char *policy)
{
	static const unsigned sizes[] = {
		1, 4, 64, 256, 512, 2, 128, 16, 400, 300, 8, 32,
	};
	unsigned long seed = 1;
	unsigned buffer, i;
	double sum = 0;

	open_cache(2000, 1000, policy);
	for (i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		/* Low numbers are used more often. */
		buffer =
			__builtin_ctzl(seed >> 33 | 1 << 11) + (seed >> 30) % 4;
		buffer = buffer % 12 + i / 2000 * 12;
		sum += ask(buffer, sizes[buffer % 12]);
	}
	close_cache();
	return sum;
}

TEST(test_few_buffers)
{
	const double lru = few_buffers("lru:batch=16");

	ck_assert_double_le(few_buffers("gdl"), 1.05 * lru);
	/* Without the comparison, gdl is worse than LRU. */
	ck_assert_double_ge(few_buffers("gdl:duel=0"), 1.2 * lru);
}

/*
 * Small buffers are used many times, then large buffers in turn. When large
 * buffers have filled the cache, no evicted buffer has returned yet.
 */
static double burst(const char *policy)
{
	unsigned i, k;
	double sum = 0;

	open_cache(2000, 1000, policy);
	for (k = 0; k < 5; k++) {
		for (i = 0; i < 300; i++)
			sum += ask(i, 4);
	}
	for (k = 0; k < 5; k++) {
		for (i = 300; i < 340; i++)
			sum += ask(i, 40);
	}
	close_cache();
	return sum;
}

TEST(test_burst)
{
	const double lru = burst("lru:batch=16");

	ck_assert_double_le(burst("gdl"), 1.05 * lru);
	ck_assert_double_ge(burst("gdl:duel=0"), 1.2 * lru);
}

/* LRU would miss unmapped ranges, too, so they are no fault of the policy. */
TEST(test_invalidated)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	unsigned hits = 0, i;

	open_cache(1 << 20, 100, "gdl");
	for (i = 0; i < 20000; i++) {
		hits += ask(i % 110, 4) == 0;
		ask(500, 4);
		mrrc_cache_invalidate(&cache, 501 * 1000ul * PAGE, PAGE, &gone);
	}
	/* Buffers are used in a cycle, of which LRU has no hit. */
	ck_assert_uint_ge(hits, 20000 / 3);
	close_cache();
}

TEST(test_no_memory)
{
	int ret;

	fault_arm(1);
	ret = mrrc_shadow_init(&shadow, &cost, 4 * PAGE, 9);
	ck_assert(fault_disarm());
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert_uint_eq(fault_leaks(), 0);
}
