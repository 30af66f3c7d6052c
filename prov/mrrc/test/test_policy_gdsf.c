/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/policy/policy_gdsf: cost, size, frequency, history and age, by examples
 * worked by hand.
 *
 * Here a page costs 100 + 1000/pages; by quarters of octaves one of 1 page is
 * worth 1024, of 2 pages 512, of 10 pages 192, of 100 pages 96.
 */
#include "config.h"
#include "case.h"

#include "core/policy/policy.h"

#define PAGE 4096u

static const struct mrrc_cost plain = {
	.reg_page = 70,
	.reg = 900,
	.dereg_page = 30,
	.dereg = 100,
	.page = PAGE,
};

static struct mrrc_cost cost;
static struct mrrc_policy *policy;
static struct mrrc_region region[32];
static unsigned count;

static void open_gdsf(const char *spec)
{
	const struct mrrc_policy_attr attr = {
		.cost = &cost,
		.max_bytes = 1000 * PAGE,
		.max_regions = 100,
	};

	ck_assert_int_eq(mrrc_policy_open(spec, &attr, &policy), 0);
	count = 0;
}

static void setup(void)
{
	cost = plain;
	open_gdsf("gdsf:history=0");
}

static void teardown(void)
{
	mrrc_policy_close(policy);
}

static void insert_at(int i, int place, unsigned pages)
{
	region[i] = (struct mrrc_region){
		.start = (1 + 1000u * place) * PAGE,
		.len = pages * PAGE,
		.state = MRRC_REGION_INDEXED,
	};
	policy->ops->insert(policy, &region[i]);
	ck_assert(policy->ops->valid(policy, ++count));
}

static void insert(int i, unsigned pages)
{
	insert_at(i, i, pages);
}

static void touch(int i, int times)
{
	while (times--)
		policy->ops->touch(policy, &region[i]);
	ck_assert(policy->ops->valid(policy, count));
}

static void expect(int i)
{
	struct mrrc_region *victim = policy->ops->victim(policy);

	ck_assert_ptr_eq(victim, i < 0 ? NULL : &region[i]);
	if (!victim)
		return;
	policy->ops->remove(policy, victim);
	ck_assert(policy->ops->valid(policy, --count));
}

TEST_CASE(policy_gdsf, setup, teardown);

/* What is cheap for its size goes first, the oldest of equals. */
TEST(test_size)
{
	insert(0, 1);
	insert(1, 100);
	insert(2, 10);
	insert(3, 100);
	insert(4, 1);
	expect(1);
	expect(3);
	expect(2);
	expect(0);
	expect(4);
	expect(-1);
}

/* Deregistration counts like registration. */
TEST(test_cost)
{
	cost = (struct mrrc_cost){
		.dereg_page = 100,
		.dereg = 1000,
		.page = PAGE,
	};
	insert(0, 1);
	insert(1, 10);
	expect(1);
	expect(0);
}

/* One class by time of use: 1100 and 1050 a page are the same. */
TEST(test_class)
{
	cost = (struct mrrc_cost){
		.reg_page = 1000,
		.reg = 100,
		.page = PAGE,
	};
	insert(0, 1);
	insert(1, 2);
	insert(2, 1);
	expect(0);
	expect(1);
	expect(2);
}

TEST(test_frequency)
{
	/* Four uses of ten pages are worth less than one of one page. */
	insert(0, 10);
	insert(1, 1);
	insert(2, 10);
	touch(0, 3);
	expect(2);
	expect(0);
	expect(1);
	/* Sixteen are worth more. */
	insert(3, 10);
	touch(3, 15);
	insert(4, 1);
	expect(4);
	expect(3);
}

/*
 * 0 has 4096 once it was used four times. Each page that goes raises L by its
 * 1024: the fourth has as much as 0 and the fifth more.
 */
TEST(test_age)
{
	int i;

	insert(0, 1);
	touch(0, 3);
	for (i = 1; i <= 4; i++) {
		insert(i, 1);
		expect(i);
	}
	insert(5, 1);
	expect(0);
	expect(5);
}

/* What was used before it went is remembered, or not. */
LOOP_TEST(test_history, 0, 2)
{
	teardown();
	open_gdsf(_i ? "gdsf" : "gdsf:history=0");
	insert(0, 1);
	touch(0, 3);
	expect(0);
	/* L is 4096; five uses or one */
	insert(0, 1);
	insert(1, 1);
	touch(1, 1);
	expect(_i ? 1 : 0);
	expect(_i ? 0 : 1);
}

/* The address counts, in whatever region it is registered. */
TEST(test_history_place)
{
	teardown();
	open_gdsf("gdsf:history=1");
	insert(0, 1);
	touch(0, 6);
	expect(0);
	insert(1, 2);
	touch(1, 1);
	/* As large, and new here, where there were seven. */
	insert_at(2, 0, 2);
	expect(1);
	expect(2);
}

/*
 * 0 is in use and gets 96 while 1 goes with 1024, L then. 0 goes with its 96
 * later, and L stays: 3 enters with 2048, not 1120, so 2 with 1024 + 512 goes
 * before it.
 */
TEST(test_floor)
{
	insert(0, 100);
	insert(1, 1);
	region[0].held = 1;
	expect(1);
	region[0].held = 0;
	insert(2, 2);
	expect(0);
	insert(3, 1);
	expect(2);
	expect(3);
}

/* Those in front that are in use come to the end as if used now. */
TEST(test_held)
{
	insert(0, 10);
	insert(1, 10);
	insert(2, 10);
	region[0].held = 1;
	expect(1);
	region[0].held = 0;
	/* L was 192 only after 0 came to the end: as old as 2, behind it. */
	expect(2);
	expect(0);
	/* A class in which all are in use is passed over. */
	insert(0, 10);
	insert(1, 10);
	insert(2, 1);
	region[0].held = region[1].held = 1;
	expect(2);
	expect(-1);
	region[1].held = 0;
	expect(1);
	region[0].held = 0;
	expect(0);
}

/* Nothing costs anything, or more than there are classes for. */
LOOP_TEST(test_extremes, 0, 3)
{
	static const double ns[] = { 0, 1e-9, 9e14 };
	int i;

	cost = (struct mrrc_cost){ .reg = ns[_i], .page = PAGE };
	for (i = 0; i < 8; i++)
		insert(i, 1);
	for (i = 0; i < 8; i++) {
		touch(i, _i == 2 ? 100 : 0);
		ck_assert(policy->ops->valid(policy, count));
	}
	for (i = 0; i < 8; i++)
		expect(i);
	expect(-1);
}

TEST(test_valid_notices)
{
	const double high = 4096;

	insert(0, 1);
	insert(1, 1);
	/* Of one class the first may not be worth more than the second. */
	memcpy(&region[0].policy[0], &high, sizeof(high));
	ck_assert(!policy->ops->valid(policy, 2));
}
