/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/index/spans: overlapping ranges, at their edges and against a list of
 * all ranges.
 */
#include "config.h"
#include "test/case.h"

#include "core/index/spans.h"
#include "test/seed.h"

#define MANY   64
#define ROUNDS 20000

static struct mrrc_spans spans;
static struct mrrc_span span[MANY];

static void add(unsigned i, uintptr_t start, size_t len)
{
	span[i].start = start;
	span[i].len = len;
	mrrc_spans_add(&spans, &span[i]);
}

static void setup(void)
{
	mrrc_spans_init(&spans);
}

TEST_CASE(spans, setup, NULL);

/* A range begins far below, and shorter ranges after it end earlier. */
TEST(test_long_below)
{
	add(0, 10, 1000);
	add(1, 20, 5);
	add(2, 500, 5);
	ck_assert_ptr_eq(mrrc_spans_first(&spans, 600, 1), &span[0]);
	ck_assert_ptr_null(mrrc_spans_next(&span[0], 600, 1));
	ck_assert_ptr_eq(mrrc_spans_first(&spans, 500, 1), &span[0]);
	ck_assert_ptr_eq(mrrc_spans_next(&span[0], 500, 1), &span[2]);
}

TEST(test_resize)
{
	add(0, 10, 5);
	add(1, 12, 1);
	mrrc_spans_resize(&spans, &span[0], 500);
	ck_assert_ptr_eq(mrrc_spans_first(&spans, 509, 1), &span[0]);
	mrrc_spans_resize(&spans, &span[0], 5);
	ck_assert_ptr_null(mrrc_spans_first(&spans, 15, 1));
}

/* Two spans with the same range are two spans. */
TEST(test_equal)
{
	struct mrrc_span *first, *second;

	add(0, 10, 5);
	add(1, 10, 5);
	first = mrrc_spans_first(&spans, 10, 1);
	ck_assert_ptr_nonnull(first);
	second = mrrc_spans_next(first, 10, 1);
	ck_assert_ptr_nonnull(second);
	ck_assert_ptr_ne(first, second);
	ck_assert_ptr_null(mrrc_spans_next(second, 10, 1));
	mrrc_spans_remove(&spans, first);
	ck_assert_ptr_eq(mrrc_spans_at(&spans, 10), second);
	mrrc_spans_remove(&spans, second);
	ck_assert_ptr_null(mrrc_spans_at(&spans, 10));
	ck_assert_uint_eq(spans.count, 0);
}

static bool overlaps(unsigned i, uintptr_t start, size_t len)
{
	return span[i].start < start + len &&
	       start < span[i].start + span[i].len;
}

TEST(test_random)
{
	bool in[MANY] = { false };
	struct mrrc_span *at;
	unsigned found, want, i, j;
	uintptr_t start, last;
	struct seed seed = seed_init(__func__, 0);
	size_t len;

	for (i = 0; i < ROUNDS; i++) {
		j = seed_below(&seed, MANY);
		if (in[j])
			mrrc_spans_remove(&spans, &span[j]);
		else
			add(j, seed_below(&seed, 1000),
			    1 + seed_below(&seed, j % 4 ? 20 : 300));
		in[j] = !in[j];
		start = seed_below(&seed, 1000);
		len = 1 + seed_below(&seed, 100);
		last = 0;
		found = want = 0;
		for (at = mrrc_spans_first(&spans, start, len); at;
		     at = mrrc_spans_next(at, start, len), found++) {
			ck_assert(in[at - span]);
			ck_assert(overlaps(at - span, start, len));
			ck_assert_uint_ge(at->start, last);
			last = at->start;
		}
		for (j = 0; j < MANY; j++)
			want += in[j] && overlaps(j, start, len);
		ck_assert_uint_eq(found, want);
	}
}
