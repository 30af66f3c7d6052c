/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache/plan: which regions serve a request and what has to be registered.
 *
 * A plan is compared as a text: its pieces in pages, "first+pages", those
 * with a region followed by ":number"; "!" in front of one that registers
 * again what is registered.
 */
#include "config.h"
#include "case.h"

#include <stdio.h>
#include <string.h>

#include "core/cache/cache.h"

#define PAGE	  4096u
#define MAX_PAGES 128u
#define RO	  MRRC_RO
#define RW	  MRRC_RW

/* Up to four pages are registered again rather than called for once more. */
static const struct mrrc_cost cost = {
	.reg_page = 1,
	.reg = 4,
	.dereg_page = 1,
	.dereg = 1,
	.page = PAGE,
};

static struct mrrc_cache cache;
static struct mrrc_region region[128];
static struct mrrc_region_list victims;
static char text[2048];

static void open_cache(const char *policy)
{
	ck_assert_int_eq(mrrc_cache_init(&cache,
					 &(struct mrrc_cache_conf){
						 .max_bytes = MAX_PAGES * PAGE,
						 .max_regions = 128,
						 .page = PAGE,
						 .policy = policy,
						 .cost = &cost,
					 }),
			 0);
	TAILQ_INIT(&victims);
}

static void setup(void)
{
	open_cache("lru:pieces=32");
}

static void teardown(void)
{
	ck_assert(mrrc_cache_valid(&cache));
	mrrc_cache_invalidate(&cache, 0, SIZE_MAX, &victims);
	mrrc_cache_fini(&cache);
}

static void reopen(const char *policy)
{
	teardown();
	open_cache(policy);
}

static void put(int i, unsigned page, unsigned pages, enum mrrc_access access)
{
	/* A region of that number would be lost to the index. */
	ck_assert_int_ne(region[i].state, MRRC_REGION_INDEXED);
	region[i] = (struct mrrc_region){
		.start = page * PAGE,
		.len = pages * PAGE,
		.access = access,
	};
	ck_assert_int_eq(mrrc_cache_insert(&cache, &region[i], &victims), 0);
}

static uint64_t stat(enum mrrc_stat id)
{
	return cache.stats->value[id];
}

static const char *plan_text(const struct mrrc_plan *plan)
{
	const struct mrrc_piece *piece;
	unsigned missing = 0;
	size_t at = 0;
	unsigned i;

	ck_assert_uint_gt(plan->count, 0);
	for (i = 0; i < plan->count; i++) {
		piece = &plan->piece[i];
		ck_assert_uint_eq((piece->start | piece->len) % PAGE, 0);
		at += snprintf(text + at, sizeof(text) - at, "%s%zu+%zu",
			       i	    ? " " :
			       plan->merged ? "!" :
					      "",
			       piece->start / PAGE, piece->len / PAGE);
		missing += !piece->region;
		if (piece->region)
			at += snprintf(text + at, sizeof(text) - at, ":%zu",
				       (size_t) (piece->region - region));
	}
	ck_assert_uint_eq(plan->missing, missing);
	return text;
}

static void bytes(uintptr_t addr, size_t len, enum mrrc_access access,
		  unsigned pieces, const char *expected)
{
	struct mrrc_plan plan;

	memset(&plan, 0xa5, sizeof(plan));
	mrrc_cache_plan(&cache, addr, len, access, pieces, &plan);
	ck_assert_str_eq(plan_text(&plan), expected);
}

static void expect(unsigned first, unsigned pages, enum mrrc_access access,
		   const char *expected)
{
	bytes(first * PAGE, pages * PAGE, access, 0, expected);
}

/* Lookups mark what they find as reused. */
static void reuse(int i)
{
	struct mrrc_plan plan;

	mrrc_cache_lookup(&cache, region[i].start, region[i].len,
			  region[i].access, 1, &plan);
	ck_assert(region[i].reused);
}

TEST_CASE(plan, setup, teardown);

/* ---- ou2009, cases 1 to 4 ---- */

TEST(test_cases)
{
	expect(10, 4, RW, "10+4");
	put(0, 10, 4, RW);
	expect(10, 4, RW, "10+4:0"); /* exact */
	expect(11, 2, RW, "11+2:0"); /* subset */
	expect(10, 1, RW, "10+1:0");
	expect(13, 1, RW, "13+1:0");
	expect(8, 4, RW, "8+2 10+2:0"); /* partial */
	expect(13, 4, RW, "13+1:0 14+3");
	expect(8, 8, RW, "8+2 10+4:0 14+2"); /* contains */
	expect(9, 5, RW, "9+1 10+4:0");
	expect(10, 5, RW, "10+4:0 14+1");
	expect(14, 3, RW, "14+3"); /* disjoint */
	expect(8, 2, RW, "8+2");
	expect(100, 1, RW, "100+1");
}

TEST(test_several)
{
	put(0, 10, 4, RW);
	put(1, 14, 2, RW);
	put(2, 20, 1, RW);
	expect(11, 4, RW, "11+3:0 14+1:1"); /* nothing is missing */
	expect(10, 6, RW, "10+4:0 14+2:1");
	expect(12, 10, RW, "12+2:0 14+2:1 16+4 20+1:2 21+1");
	expect(1, 30, RW, "1+9 10+4:0 14+2:1 16+4 20+1:2 21+10");
	/* What is missing and nothing else, so nothing is done twice. */
	expect(15, 5, RW, "15+1:1 16+4");
	expect(16, 5, RW, "16+4 20+1:2");
}

/* A byte of a page takes the page. */
TEST(test_rounding)
{
	bytes(10 * PAGE, 1, RW, 0, "10+1");
	bytes(11 * PAGE - 1, 1, RW, 0, "10+1");
	bytes(10 * PAGE + 5, PAGE - 5, RW, 0, "10+1");
	bytes(10 * PAGE + 5, PAGE - 4, RW, 0, "10+2");
	bytes(11 * PAGE - 1, 2, RW, 0, "10+2");
	bytes(11 * PAGE - 1, PAGE + 2, RW, 0, "10+3");
	put(0, 10, 4, RW);
	bytes(10 * PAGE - 1, 1, RW, 0, "9+1");
	bytes(10 * PAGE - 1, 2, RW, 0, "9+1 10+1:0");
	bytes(10 * PAGE, 4 * PAGE, RW, 0, "10+4:0");
	bytes(14 * PAGE - 1, 1, RW, 0, "13+1:0");
	bytes(14 * PAGE - 1, 2, RW, 0, "13+1:0 14+1");
	bytes(14 * PAGE, 1, RW, 0, "14+1");
	/* The page below the last, which is never registered (cache_get.c). */
	bytes(UINTPTR_MAX - 2 * PAGE + 1, PAGE, RW, 0, "4503599627370494+1");
}

/* ---- access ---- */

TEST(test_access)
{
	put(0, 10, 4, RO);
	put(1, 20, 4, RW);
	expect(8, 20, RO, "8+2 10+4:0 14+6 20+4:1 24+4");
	expect(8, 20, RW, "8+12 20+4:1 24+4");
	expect(10, 4, RW, "10+4");
	/* What may be written comes first, where both begin. */
	put(2, 10, 2, RW);
	expect(10, 4, RO, "10+4:0");
	expect(9, 4, RO, "9+1 10+2:2 12+1:0");
	expect(10, 5, RO, "10+2:2 12+2:0 14+1");
	/* Regions that serve go on serving. */
	put(3, 30, 6, RO);
	put(4, 32, 2, RW);
	expect(29, 6, RO, "29+1 30+5:3");
	put(5, 40, 6, RW);
	put(6, 42, 6, RO);
	expect(39, 10, RO, "39+1 40+6:5 46+2:6 48+1");
	expect(39, 10, RW, "39+1 40+6:5 46+3");
}

/* What peers reach is one piece of exactly what was asked for. */
LOOP_TEST(test_remote, 0, 2)
{
	const enum mrrc_access peers = RW | MRRC_REMOTE_READ;

	if (_i)
		reopen("gdsf:pieces=32");
	put(0, 10, 4, RW);
	expect(10, 4, peers, "10+4");
	put(1, 10, 4, peers);
	reuse(1);
	expect(10, 4, peers, "10+4:1");
	expect(11, 2, peers, "11+2:1");
	expect(8, 4, peers, "!8+4");
	expect(8, 8, peers, "!8+8");
	expect(13, 3, peers, "!13+3");
	expect(14, 2, peers, "14+2");
	/* Nor do they serve other requests. */
	expect(8, 4, RW, "8+2 10+2:0");
	expect(10, 4, RW | MRRC_REMOTE_WRITE, "10+4");
	expect(8, 4, MRRC_REMOTE_READ, "8+4");
	mrrc_cache_invalidate(&cache, 10 * PAGE, 1, &victims);
	put(1, 10, 4, peers);
	expect(10, 4, RW, "10+4");
	expect(10, 4, RO, "10+4");
}

/* ---- merging ---- */

/* Between two gaps, where that is cheaper than one call more. */
TEST(test_bridges)
{
	reopen("lru:pieces=32:merge=1");
	put(0, 10, 4, RW);
	put(1, 20, 5, RW);
	expect(8, 8, RW, "!8+8");
	expect(18, 8, RW, "18+2 20+5:1 25+1");
	expect(10, 6, RW, "10+4:0 14+2"); /* not between */
	expect(8, 6, RW, "8+2 10+4:0");
	put(2, 26, 1, RW);
	put(3, 28, 4, RW);
	expect(8, 30, RW, "!8+12 20+5:1 25+13");
	/* Neighbours are not between gaps: neither goes. */
	put(4, 40, 1, RW);
	put(5, 41, 1, RW);
	expect(39, 4, RW, "39+1 40+1:4 41+1:5 42+1");
	/* Free calls are not saved. */
	cache.cost.reg = 0;
	expect(8, 8, RW, "8+2 10+4:0 14+2");
}

/* At most so many pieces: the policy's, or fewer; the cheapest go. */
TEST(test_pieces)
{
	put(0, 10, 4, RW);
	put(1, 20, 2, RW);
	put(2, 30, 1, RW);
	bytes(8 * PAGE, 30 * PAGE, RW, 32,
	      "8+2 10+4:0 14+6 20+2:1 22+8 30+1:2 31+7");
	bytes(8 * PAGE, 30 * PAGE, RW, 7,
	      "8+2 10+4:0 14+6 20+2:1 22+8 30+1:2 31+7");
	bytes(8 * PAGE, 30 * PAGE, RW, 6, "!8+2 10+4:0 14+6 20+2:1 22+16");
	bytes(8 * PAGE, 30 * PAGE, RW, 5, "!8+2 10+4:0 14+6 20+2:1 22+16");
	bytes(8 * PAGE, 30 * PAGE, RW, 4, "!8+2 10+4:0 14+24");
	bytes(8 * PAGE, 30 * PAGE, RW, 3, "!8+2 10+4:0 14+24");
	bytes(8 * PAGE, 30 * PAGE, RW, 2, "!8+30");
	bytes(8 * PAGE, 30 * PAGE, RW, 1, "!8+30");
	/* No more than the policy is set to. */
	reopen("lru:pieces=3");
	put(0, 10, 4, RW);
	put(1, 20, 2, RW);
	bytes(8 * PAGE, 16 * PAGE, RW, 0, "!8+2 10+4:0 14+10");
	bytes(8 * PAGE, 16 * PAGE, RW, 9, "!8+2 10+4:0 14+10");
	bytes(8 * PAGE, 16 * PAGE, RW, 2, "!8+16");
	/* One region is one piece, however few are allowed. */
	bytes(11 * PAGE, 2 * PAGE, RW, 1, "11+2:0");
}

/* Regions side by side are merged by what they are, not by what is asked. */
TEST(test_pieces_whole)
{
	put(0, 10, 20, RW);
	put(1, 30, 4, RW);
	put(2, 34, 5, RW);
	bytes(29 * PAGE, 8 * PAGE, RW, 3, "29+1:0 30+4:1 34+3:2");
	bytes(29 * PAGE, 8 * PAGE, RW, 2, "!29+1:0 30+7");
	bytes(29 * PAGE, 8 * PAGE, RW, 1, "!29+8");
}

/* ---- beyond the request ---- */

/* A region that was of use is kept, up to 32 pages: a quarter. */
TEST(test_reused)
{
	reopen("lru:pieces=1:merge=1");
	put(0, 10, 4, RW);
	expect(11, 4, RW, "!11+4");
	expect(9, 4, RW, "!9+4");
	expect(8, 10, RW, "!8+10");
	reuse(0);
	expect(11, 4, RW, "!10+5");
	expect(9, 4, RW, "!9+5");
	expect(8, 10, RW, "!8+10");
	/* Both stay if they share at most half of the larger one. */
	expect(12, 4, RW, "!12+4");
	expect(11, 6, RW, "!11+6");
	put(1, 40, 22, RW);
	reuse(1);
	/* 40 to 72 are a quarter; one page more is not. */
	expect(42, 30, RW, "!40+32");
	expect(42, 31, RW, "!42+31");
}

/* Not where costs are not asked for. */
TEST(test_reused_no_merge)
{
	reopen("lru");
	put(0, 10, 4, RW);
	reuse(0);
	expect(11, 4, RW, "!11+4");
	expect(9, 4, RW, "!9+4");
}

/* A region that both ends lie in covers all: nothing is merged. */
TEST(test_reused_some)
{
	reopen("lru:pieces=2:merge=1");
	put(0, 10, 4, RW);
	put(1, 16, 5, RW);
	reuse(0);
	reuse(1);
	/* The cheaper end is merged and kept whole, the other one serves. */
	expect(11, 7, RW, "!10+6 16+2:1");
	/* Neither is alone in between. */
	put(2, 30, 1, RW);
	reuse(2);
	expect(14, 18, RW, "!14+18");
}

/*
 * The quarter is that of the whole merge, whichever neighbours were merged
 * first: a request that fits the cache may not be made one that does not.
 */
TEST(test_reused_chain)
{
	reopen("lru:pieces=1:merge=1");
	put(0, 5, 20, RW);
	reuse(0);
	put(1, 26, 14, RW);
	/* 5 and 26 are merged first, and would be 5 to 40 in the end. */
	expect(8, 32, RW, "!8+32");
	put(2, 26, 8, RW);
	expect(8, 26, RW, "!5+29");
	mrrc_cache_invalidate(&cache, 0, SIZE_MAX, &victims);
	put(0, 0, 80, RW);
	reuse(0);
	put(1, 81, 20, RW);
	expect(11, 128, RW, "!11+128");
}

/* As at the beginning, so at the end. */
TEST(test_reused_chain_end)
{
	reopen("lru:pieces=1:merge=1");
	put(0, 10, 8, RW);
	put(1, 20, 20, RW);
	reuse(1);
	expect(10, 28, RW, "!10+30");
	/* 8 to 40 are the quarter. */
	expect(8, 30, RW, "!8+32");
	expect(7, 31, RW, "!7+31");
}

/* ---- too many ---- */

/* Neighbours that share most pages, in turn: together from the second time on. */
TEST(test_again)
{
	struct mrrc_plan plan;

	reopen("gdsf:pieces=1");
	put(0, 10, 4, RW);
	mrrc_cache_lookup(&cache, 11 * PAGE, 4 * PAGE, RW, 0, &plan);
	ck_assert_str_eq(plan_text(&plan), "!11+4");
	put(1, 11, 4, RW);
	mrrc_cache_lookup(&cache, 10 * PAGE, 4 * PAGE, RW, 0, &plan);
	ck_assert_str_eq(plan_text(&plan), "!10+4");
	put(2, 10, 4, RW);
	expect(11, 4, RW, "!10+5");
}

/* Looks up a row of buffers of 4 pages; returns how many pages it registers. */
static unsigned row_pass(unsigned step, enum mrrc_access access)
{
	struct mrrc_plan plan;
	unsigned pages = 0, i, n;

	for (i = 0; i < 20; i++) {
		mrrc_cache_lookup(&cache, (10 + i * step) * PAGE, 4 * PAGE,
				  access, 1, &plan);
		if (!plan.missing)
			continue;
		for (n = 0; region[n].state == MRRC_REGION_INDEXED; n++)
			;
		put(n, plan.piece[0].start / PAGE, plan.piece[0].len / PAGE,
		    access);
		pages += plan.piece[0].len / PAGE;
	}
	return pages;
}

static const struct {
	const char *policy;
	unsigned step;
	enum mrrc_access access;
} rows[] = {
	{ "gdl:pieces=1", 3, RW },  { "gdl:pieces=1", 2, RW },
	{ "gdsf:pieces=1", 3, RO }, { "gdl", 3, RW | MRRC_REMOTE_READ },
	{ "gdl:pieces=1", 1, RW },  { "gdsf:pieces=1", 1, RO },
};

/*
 * Buffers in a row that share pages are registered once. Those that share more
 * than half of their pages are merged in the second pass, and a merge has less
 * than twice their pages.
 */
LOOP_TEST(test_row, 0, sizeof(rows) / sizeof(rows[0]))
{
	unsigned pages;

	reopen(rows[_i].policy);
	ck_assert_uint_eq(row_pass(rows[_i].step, rows[_i].access), 20 * 4);
	pages = row_pass(rows[_i].step, rows[_i].access);
	if (rows[_i].step > 1)
		ck_assert_uint_eq(pages, 0);
	ck_assert_uint_lt(pages, 2 * 20 * 4);
	ck_assert_uint_eq(row_pass(rows[_i].step, rows[_i].access), 0);
}

/* Of overlapping regions the one that reaches furthest serves. */
TEST(test_furthest)
{
	reopen("gdl");
	put(0, 10, 10, RW);
	put(1, 15, 10, RW);
	put(2, 24, 10, RW);
	expect(12, 26, RW, "12+8:0 20+5:1 25+9:2 34+4");
	expect(16, 10, RW, "16+9:1 25+1:2");
	expect(16, 9, RW, "16+9:1");
	expect(5, 12, RW, "5+5 10+7:0");
}

LOOP_TEST(test_too_many, 0, 2)
{
	int i;

	if (_i)
		reopen("lru:pieces=32:merge=1");
	/* Beside each other, 40 of them. */
	for (i = 0; i < 40; i++)
		put(i, 10 + 2 * i, 2, RW);
	for (i = 0; i < 40; i++)
		reuse(i);
	expect(10, 64, RW,
	       "10+2:0 12+2:1 14+2:2 16+2:3 18+2:4 20+2:5 22+2:6 "
	       "24+2:7 26+2:8 28+2:9 30+2:10 32+2:11 34+2:12 36+2:13 38+2:14 "
	       "40+2:15 42+2:16 44+2:17 46+2:18 48+2:19 50+2:20 52+2:21 "
	       "54+2:22 56+2:23 58+2:24 60+2:25 62+2:26 64+2:27 66+2:28 "
	       "68+2:29 70+2:30 72+2:31");
	/* One more than there is room for: all of it, and no more. */
	expect(10, 65, RW, "!10+65");
	expect(10, 65, RO, "!10+65");
	expect(11, 64, RW, "!11+64");
	expect(9, 64, RW, "!9+64");
}

/* ---- lookups ---- */

/* A plan changes nothing; a lookup counts it and is a use of its regions. */
TEST(test_lookup)
{
	struct mrrc_plan plan;

	put(0, 10, 4, RW);
	put(1, 14, 2, RW);
	put(2, 20, 2, RW);
	expect(8, 20, RW, "8+2 10+4:0 14+2:1 16+4 20+2:2 22+6");
	ck_assert_uint_eq(stat(MRRC_STAT_LOOKUPS), 0);
	ck_assert(!region[0].reused && !region[2].reused);
	ck_assert_ptr_eq(cache.policy->ops->victim(cache.policy), &region[0]);

	mrrc_cache_lookup(&cache, 11 * PAGE, 4 * PAGE, RW, 0, &plan);
	ck_assert_str_eq(plan_text(&plan), "11+3:0 14+1:1");
	ck_assert(region[0].reused && region[1].reused && !region[2].reused);
	ck_assert_uint_eq(mrrc_region_held(&region[0]), 0);
	ck_assert_ptr_eq(cache.policy->ops->victim(cache.policy), &region[2]);
	ck_assert_uint_eq(stat(MRRC_STAT_HITS), 1);
	ck_assert_uint_eq(stat(MRRC_STAT_SPLITS), 1);

	mrrc_cache_lookup(&cache, 8 * PAGE, 4 * PAGE, RW, 0, &plan);
	ck_assert_str_eq(plan_text(&plan), "8+2 10+2:0");
	ck_assert_uint_eq(stat(MRRC_STAT_MISSES), 1);
	ck_assert_uint_eq(stat(MRRC_STAT_SPLITS), 2);
	ck_assert_uint_eq(stat(MRRC_STAT_MERGES), 0);

	/* What is registered again is not a use of what was. */
	mrrc_cache_lookup(&cache, 19 * PAGE, 2 * PAGE, RW, 1, &plan);
	ck_assert_str_eq(plan_text(&plan), "!19+2");
	ck_assert(!region[2].reused);
	ck_assert_uint_eq(stat(MRRC_STAT_MISSES), 2);
	ck_assert_uint_eq(stat(MRRC_STAT_SPLITS), 2);
	ck_assert_uint_eq(stat(MRRC_STAT_MERGES), 1);
	ck_assert_uint_eq(stat(MRRC_STAT_LOOKUPS), 3);
}
