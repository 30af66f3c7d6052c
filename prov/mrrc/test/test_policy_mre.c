/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/policy/policy_mre: factors, sections and batches, by examples worked by hand.
 *
 * A factor is r + 1/pages, r that of the bottom when the cache is full; what
 * has the smallest goes first.
 */
#include "config.h"
#include "case.h"

#include "core/policy/policy.h"

#define PAGE 4096u
#define MANY 200

static const struct mrrc_cost cost = { .page = PAGE };
static const struct mrrc_policy_attr attr = {
	.cost = &cost,
	.max_bytes = 1000 * PAGE,
	.max_regions = MANY,
};

static struct mrrc_policy *policy;
static struct mrrc_region region[MANY];

static void open_mre(const char *spec)
{
	ck_assert_int_eq(mrrc_policy_open(spec, &attr, &policy), 0);
}

static void insert(int i, unsigned pages)
{
	region[i] = (struct mrrc_region){
		.start = (1 + 1000u * i) * PAGE,
		.len = pages * PAGE,
		.state = MRRC_REGION_INDEXED,
	};
	policy->ops->insert(policy, &region[i]);
}

static void insert_all(const unsigned *pages, int count)
{
	int i;

	for (i = 0; i < count; i++)
		insert(i, pages[i]);
}

static void touch(int i)
{
	policy->ops->touch(policy, &region[i]);
}

static void expect(int i)
{
	struct mrrc_region *victim = policy->ops->victim(policy);

	ck_assert_ptr_eq(victim, i < 0 ? NULL : &region[i]);
	if (victim)
		policy->ops->remove(policy, victim);
}

TEST_CASE(policy_mre, NULL, NULL);

/*
 * Half of four is resorted, a quarter goes. Full once: 0 has 1/4, 1 has 1/2,
 * 0 goes. Full again: r is 1/2; 2 gets 1/2 + 1/8. The text leaves 1 its 1/2,
 * so it goes; figure 4 makes it 1/2 + 1/2, so 2 goes. And again: in the text
 * r is 5/8, 2 keeps it and goes before 3 with 5/8 + 1; in figure 4 r is 1, 1
 * gets 3/2 and goes before 3 with 2.
 */
LOOP_TEST(test_readings, 0, 2)
{
	static const unsigned pages[] = { 4, 2, 8, 1 };
	static const int goes[2][3] = { { 0, 1, 2 }, { 0, 2, 1 } };
	int i;

	open_mre(_i ? "mre-fig4:resort=50:evict=25" :
		      "mre-text:resort=50:evict=25");
	insert_all(pages, 4);
	for (i = 0; i < 3; i++) {
		expect(goes[_i][i]);
		insert(4 + i, 4);
		ck_assert(policy->ops->valid(policy, 4));
	}
	mrrc_policy_close(policy);
}

/* The same text until the second time; but 1 has been used since. */
TEST(test_use_forgets)
{
	static const unsigned pages[] = { 4, 2, 8, 1 };

	open_mre("mre-text:resort=50:evict=25");
	insert_all(pages, 4);
	expect(0);
	insert(4, 4);
	touch(1);
	/* 2, 3, 4, 1: r is 0; 2 has 1/8, 3 has 1 */
	expect(2);
	insert(5, 16);
	/* 3, 4, 1, 5: r is 1; 3 keeps 1, 4 has 5/4 */
	expect(3);
	insert(6, 1);
	/* 4, 1, 5, 6: r is 5/4; 4 keeps it, 1 has 7/4 and lost its 1/2 */
	expect(4);
	mrrc_policy_close(policy);
}

/* What lies above the section is safe however large it is. */
LOOP_TEST(test_section, 0, 2)
{
	static const unsigned pages[] = { 1, 2, 100, 100 };

	open_mre(_i ? "mre-fig4:resort=50:evict=50" :
		      "mre-text:resort=50:evict=50");
	insert_all(pages, 4);
	expect(1);
	ck_assert(policy->ops->more(policy, 1));
	expect(0);
	ck_assert(!policy->ops->more(policy, 2));
	/* Two left: one is resorted, one goes. */
	expect(2);
	ck_assert(!policy->ops->more(policy, 1));
	expect(3);
	expect(-1);
	mrrc_policy_close(policy);
}

/* A section of everything is sorted by size, equals as they were. */
LOOP_TEST(test_sort, 1, MANY)
{
	struct mrrc_region *victim;
	struct mrrc_region *last = NULL;
	int i;

	open_mre("mre-text:resort=100:evict=100");
	for (i = 0; i < _i; i++)
		insert(i, 1 + (i * 37 + 11) % 23);
	for (i = 0; i < _i; i++) {
		victim = policy->ops->victim(policy);
		ck_assert_ptr_nonnull(victim);
		if (last)
			ck_assert(victim->len < last->len ||
				  (victim->len == last->len && victim > last));
		last = victim;
		policy->ops->remove(policy, victim);
		ck_assert_int_eq(policy->ops->more(policy, i + 1), i + 1 < _i);
		ck_assert(policy->ops->valid(policy, _i - i - 1));
	}
	expect(-1);
	mrrc_policy_close(policy);
}

/* In use at the bottom: used now, and another one is given up for it. */
TEST(test_held)
{
	static const unsigned pages[] = { 8, 4, 2, 1 };

	open_mre("mre-text:resort=100:evict=50");
	insert_all(pages, 4);
	region[0].held = region[2].held = 1;
	expect(1);
	ck_assert(policy->ops->more(policy, 1));
	expect(3);
	ck_assert(!policy->ops->more(policy, 2));
	region[0].held = region[2].held = 0;
	/* Both came to the top with no factor; full again: 1/8 and 1/2. */
	expect(0);
	expect(2);
	mrrc_policy_close(policy);
}

/* A part is one at least, and invalidation in a segment does no harm. */
TEST(test_small)
{
	open_mre("mre-fig4:resort=1:evict=1");
	insert(0, 1);
	insert(1, 50);
	expect(0);
	expect(1);
	expect(-1);
	mrrc_policy_close(policy);

	open_mre("mre-text:resort=100:evict=100");
	insert(0, 4);
	insert(1, 2);
	insert(2, 1);
	expect(0);
	policy->ops->remove(policy, &region[1]);
	policy->ops->remove(policy, &region[2]);
	expect(-1);
	ck_assert(policy->ops->valid(policy, 0));
	mrrc_policy_close(policy);
}
