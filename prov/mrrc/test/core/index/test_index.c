/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/index/index: containment, overlap, edges, order.
 */
#include "config.h"
#include "test/case.h"

#include "core/index/index.h"

static struct mrrc_index index_;
static struct mrrc_region region[8];

static struct mrrc_region *put(unsigned i, uintptr_t start, size_t len)
{
	region[i] = (struct mrrc_region){ .start = start, .len = len };
	mrrc_index_insert(&index_, &region[i]);
	return &region[i];
}

/* The index has [100,200), [200,300) and [400,500). */
static void setup(void)
{
	mrrc_index_init(&index_);
	put(1, 200, 100);
	put(2, 400, 100);
	put(0, 100, 100);
}

TEST_CASE(index, setup, NULL);

static const struct {
	uintptr_t addr;
	size_t len;
	int found; /* region that contains the range, or -1 */
	int first; /* first region that overlaps the range, or -1 */
	int count;
} cases[] = {
	{ 100, 100, 0, 0, 1 }, /* exactly a region */
	{ 120, 10, 0, 0, 1 },  /* part of a region */
	{ 199, 1, 0, 0, 1 },
	{ 200, 1, 1, 1, 1 },
	{ 150, 100, -1, 0, 2 }, /* the range spans two neighbours */
	{ 100, 200, -1, 0, 2 },
	{ 50, 50, -1, -1, 0 }, /* the range ends where a region begins */
	{ 50, 51, -1, 0, 1 },
	{ 300, 100, -1, -1, 0 }, /* exactly the gap between regions */
	{ 299, 102, -1, 1, 2 },
	{ 450, 100, -1, 2, 1 }, /* beyond the end of the last region */
	{ 500, 1, -1, -1, 0 },
	{ 0, SIZE_MAX, -1, 0, 3 },
	{ 10, SIZE_MAX - 10, -1, 0, 3 },
	{ 450, SIZE_MAX, -1, 2, 1 }, /* a length that would wrap around */
};

EACH_TEST(test_cases, cases)
{
	struct mrrc_region *found;
	int count = 0;

	found = mrrc_index_find(&index_, cases[_i].addr, cases[_i].len);
	ck_assert_ptr_eq(found,
			 cases[_i].found < 0 ? NULL : &region[cases[_i].found]);
	ck_assert_ptr_eq(mrrc_index_covers(mrrc_index_from(&index_,
							   cases[_i].addr),
					   cases[_i].addr, cases[_i].len),
			 found);
	found = mrrc_index_first_overlap(&index_, cases[_i].addr,
					 cases[_i].len);
	ck_assert_ptr_eq(found,
			 cases[_i].first < 0 ? NULL : &region[cases[_i].first]);
	for (; found; found = mrrc_index_next_overlap(found, cases[_i].addr,
						      cases[_i].len))
		count++;
	ck_assert_int_eq(count, cases[_i].count);
}

/* Regions overlap, and each is the only one that contains some range. */
TEST(test_staircase)
{
	unsigned i;

	mrrc_index_init(&index_);
	for (i = 0; i < 7; i++)
		put(i, 100 + 40 * ((i * 3) % 7),
		    100); /* The regions are [100,200), [140,240) and so on. */
	ck_assert(mrrc_index_valid(&index_));
	for (i = 0; i < 7; i++) {
		ck_assert_ptr_eq(mrrc_index_find(&index_, region[i].start, 100),
				 &region[i]);
		ck_assert_ptr_null(
			mrrc_index_find(&index_, region[i].start, 101));
		/*
		 * A region that ends at this region's start does not overlap
		 * this region.
		 */
		ck_assert_uint_eq(
			mrrc_index_first_overlap(&index_, region[i].start, 1)
				->start,
			region[i].start <= 180 ? 100 : region[i].start - 80);
	}
	region[0].len = 140; /* region 0 ends where the next region ends */
	ck_assert(!mrrc_index_valid(&index_));
	region[0].len = 141;
	ck_assert(!mrrc_index_valid(&index_));
}

TEST(test_valid_notices)
{
	region[1].len = 301; /* violates I1: contains the next region */
	ck_assert(!mrrc_index_valid(&index_));
	region[1].len = 99; /* violates I2: the sum of lengths is wrong */
	ck_assert(!mrrc_index_valid(&index_));
	region[1].len = 0;
	ck_assert(!mrrc_index_valid(&index_));
	region[1].len = 100;
	index_.count++;
	ck_assert(!mrrc_index_valid(&index_));
	index_.count--;
	ck_assert(mrrc_index_valid(&index_));
}
