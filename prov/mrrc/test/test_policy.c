/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/policy: the registry, what every policy must do, and the order of LRU.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>
#include <string.h>

#include "core/policy.h"
#include "fault.h"

#define COUNT 5

static struct mrrc_policy *policy;
static struct mrrc_region region[COUNT];

static void setup(void)
{
	int i;

	ck_assert_int_eq(mrrc_policy_open("lru", &policy), 0);
	for (i = 0; i < COUNT; i++) {
		region[i] = (struct mrrc_region) {
			.state = MRRC_REGION_INDEXED,
		};
		policy->ops->insert(policy, &region[i]);
	}
}

static void teardown(void)
{
	mrrc_policy_close(policy);
}

START_TEST(test_registry)
{
	struct mrrc_policy *untouched = policy;
	struct mrrc_policy *other = untouched;
	const char *const *name;
	int count = 0;

	ck_assert_int_eq(mrrc_policy_open("no such", &other), -ENOENT);
	ck_assert_ptr_eq(other, untouched);
	ck_assert_int_eq(mrrc_policy_open("", &other), -ENOENT);
	ck_assert_int_eq(mrrc_policy_open(NULL, &other), 0);
	ck_assert_str_eq(other->ops->name, MRRC_POLICY_DEFAULT);
	mrrc_policy_close(other);
	for (name = mrrc_policy_names(); *name; name++, count++) {
		ck_assert_int_eq(mrrc_policy_open(*name, &other), 0);
		ck_assert_str_eq(other->ops->name, *name);
		ck_assert(other->ops->valid(other, 0));
		ck_assert_ptr_null(other->ops->victim(other));
		mrrc_policy_close(other);
	}
	ck_assert_int_ge(count, 1);
}
END_TEST

START_TEST(test_open_fails)
{
	struct mrrc_policy *other;
	int rc;

	fault_arm(1);
	rc = mrrc_policy_open(NULL, &other);
	ck_assert(fault_disarm());
	ck_assert_int_eq(rc, -ENOMEM);
	ck_assert_uint_eq(fault_leaks(), 0);
}
END_TEST

static void expect(int i)
{
	struct mrrc_region *victim = policy->ops->victim(policy);

	ck_assert_ptr_eq(victim, i < 0 ? NULL : &region[i]);
	if (victim)
		policy->ops->remove(policy, victim);
}

START_TEST(test_lru_order)
{
	ck_assert(policy->ops->valid(policy, COUNT));
	policy->ops->touch(policy, &region[0]);
	policy->ops->touch(policy, &region[4]);
	policy->ops->touch(policy, &region[4]);
	policy->ops->remove(policy, &region[2]);
	expect(1);
	expect(3);
	expect(0);
	expect(4);
	expect(-1);
	ck_assert(policy->ops->valid(policy, 0));
}
END_TEST

START_TEST(test_lru_held)
{
	int i;

	region[0].held = 1;
	region[1].held = 2;
	expect(2);
	/* Those two were in use when looked at: newer than the rest. */
	region[0].held = region[1].held = 0;
	expect(3);
	expect(4);
	expect(0);
	region[1].held = 1;
	for (i = 0; i < 3; i++)
		expect(-1);
	ck_assert(policy->ops->valid(policy, 1));
}
END_TEST

START_TEST(test_valid_notices)
{
	ck_assert(!policy->ops->valid(policy, COUNT - 1));
	region[3].state = MRRC_REGION_DEAD;
	ck_assert(!policy->ops->valid(policy, COUNT));
}
END_TEST

Suite *policy_suite(void)
{
	Suite *suite = suite_create("policy");
	TCase *tcase = tcase_create("policy");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_registry);
	tcase_add_test(tcase, test_open_fails);
	tcase_add_test(tcase, test_lru_order);
	tcase_add_test(tcase, test_lru_held);
	tcase_add_test(tcase, test_valid_notices);
	suite_add_tcase(suite, tcase);
	return suite;
}
