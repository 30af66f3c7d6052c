/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache/plan: which regions serve a request and what has to be registered.
 *
 * A plan is compared as a text: each piece is "first+pages", in pages, and
 * ":number" follows if a region serves it. A "!" precedes a plan that registers
 * registered pages again.
 */
#include "config.h"
#include "test/case.h"

#include "core/cache/cache.h"
#include "core/cache/plan.h"

#define PAGE	  4096u
#define MAX_PAGES 128u
#define RO	  MRRC_RO
#define RW	  MRRC_RW

/* A plan registers up to four pages again to save a registration call. */
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
	/* Overwriting an indexed region would break the index. */
	ck_assert_int_ne(region[i].state, MRRC_REGION_INDEXED);
	region[i] = (struct mrrc_region){
		.start = page * PAGE,
		.len = pages * PAGE,
		.access = access,
	};
	ck_assert_int_eq(mrrc_cache_insert(&cache, &region[i], &victims), 0);
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

/* A lookup marks the regions that it finds as reused. */
static void reuse(int i)
{
	struct mrrc_plan plan;

	mrrc_cache_lookup(&cache, region[i].start, region[i].len,
			  region[i].access, 1, &plan);
	ck_assert(region[i].reused);
}

TEST_CASE(plan, setup, teardown);

/* ---- ou2009, cases 1 to 4 ---- */

/* A request for one byte of a page is a request for the page. */
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
	/*
	 * The last page of the address space is never registered; the page
	 * before the last page can be registered.
	 */
	bytes(UINTPTR_MAX - 2 * PAGE + 1, PAGE, RW, 0, "4503599627370494+1");
}

/* ---- access ---- */

/* A request for remote access gets one piece, which has exactly its pages. */
LOOP_TEST(test_remote, 0, 2)
{
	const enum mrrc_access peers = RW | MRRC_REMOTE_READ;

	if (_i)
		reopen("gdl:pieces=32");
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
	/* Regions with remote access serve no local requests. */
	expect(8, 4, RW, "8+2 10+2:0");
	expect(10, 4, RW | MRRC_REMOTE_WRITE, "10+4");
	expect(8, 4, MRRC_REMOTE_READ, "8+4");
	mrrc_cache_invalidate(&cache, 10 * PAGE, 1, &victims);
	put(1, 10, 4, peers);
	expect(10, 4, RW, "10+4");
	expect(10, 4, RO, "10+4");
}

/* ---- beyond the request ---- */

/*
 * A plan keeps a reused region whole if the result has at most 32 pages, a
 * quarter of the limit.
 */
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
	/* Two regions both stay if they share at most half of the larger. */
	expect(12, 4, RW, "!12+4");
	expect(11, 6, RW, "!11+6");
	put(1, 40, 22, RW);
	reuse(1);
	/* The 32 pages from 40 on are a quarter of the limit; 33 are more. */
	expect(42, 30, RW, "!40+32");
	expect(42, 31, RW, "!42+31");
}

/* A reused region at the end of a request is kept like one at its beginning. */
TEST(test_reused_chain_end)
{
	reopen("lru:pieces=1:merge=1");
	put(0, 10, 8, RW);
	put(1, 20, 20, RW);
	reuse(1);
	expect(10, 28, RW, "!10+30");
	/* The 32 pages from 8 on are a quarter of the limit. */
	expect(8, 30, RW, "!8+32");
	expect(7, 31, RW, "!7+31");
}

/* ---- too many ---- */

/*
 * Two neighbours that share most pages take turns: the second turn registers
 * both together.
 */
TEST(test_again)
{
	struct mrrc_plan plan;

	reopen("gdl:pieces=1");
	put(0, 10, 4, RW);
	mrrc_cache_lookup(&cache, 11 * PAGE, 4 * PAGE, RW, 0, &plan);
	ck_assert_str_eq(plan_text(&plan), "!11+4");
	put(1, 11, 4, RW);
	mrrc_cache_lookup(&cache, 10 * PAGE, 4 * PAGE, RW, 0, &plan);
	ck_assert_str_eq(plan_text(&plan), "!10+4");
	put(2, 10, 4, RW);
	expect(11, 4, RW, "!10+5");
}

/* Of overlapping regions, the one that reaches furthest serves the request. */
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
	/* The 40 regions adjoin each other. */
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
	/* Instead of too many pieces, a plan has one piece with all pages. */
	expect(10, 65, RW, "!10+65");
	expect(10, 65, RO, "!10+65");
	expect(11, 64, RW, "!11+64");
	expect(9, 64, RW, "!9+64");
}
