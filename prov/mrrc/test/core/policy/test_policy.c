/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/policy/policy: the registry, parameters, and what every policy must do.
 * Which region each policy chooses is compared with model_policy.c.
 */
#include "config.h"
#include "test/case.h"

#include "sim/policies.h"
#include "test/fakes/fault.h"

#define PAGE  4096u
#define COUNT 5
#define MANY  40

static const struct mrrc_cost cost = {
	.reg_page = 770,
	.reg = 7420,
	.dereg_page = 220,
	.dereg = 1100,
	.page = PAGE,
	.batch = true,
};
static const struct mrrc_policy_attr attr = {
	.cost = &cost,
	.max_bytes = 1000 * PAGE,
	.max_regions = 100,
};

static struct mrrc_policy *policy;
static struct mrrc_region region[MANY];

static void insert(int i, unsigned pages)
{
	region[i] = (struct mrrc_region){
		.start = (1 + 1000u * i) * PAGE,
		.len = pages * PAGE,
		.state = MRRC_REGION_INDEXED,
	};
	policy->ops->insert(policy, &region[i]);
}

static void setup(void)
{
	int i;

	ck_assert_int_eq(mrrc_policy_open(sim_policies, "lru", &attr, &policy),
			 0);
	for (i = 0; i < COUNT; i++)
		insert(i, 1);
}

static void teardown(void)
{
	mrrc_policy_close(policy);
}

TEST_CASE(policy, setup, teardown);

/* ---- registry ---- */

TEST(test_registry)
{
	const struct mrrc_policy_ops *const *ops;
	struct mrrc_policy *untouched = policy;
	struct mrrc_policy *other = untouched;
	int count = 0;

	ck_assert_int_eq(mrrc_policy_open(sim_policies, NULL, &attr, &other),
			 0);
	ck_assert_str_eq(other->ops->name, MRRC_POLICY_DEFAULT);
	mrrc_policy_close(other);
	ck_assert_int_eq(mrrc_policy_check(sim_policies, NULL), 0);
	for (ops = sim_policies; *ops; ops++, count++) {
		ck_assert_str_ne((*ops)->help, "");
		ck_assert_uint_ge((*ops)->pieces, 1);
		ck_assert_uint_le((*ops)->pieces, MRRC_PIECES_MAX);
		ck_assert_uint_ge((*ops)->batch, 1);
		ck_assert_int_eq(mrrc_policy_check(sim_policies, (*ops)->name),
				 0);
		ck_assert_int_eq(mrrc_policy_open(sim_policies, (*ops)->name,
						  &attr, &other),
				 0);
		ck_assert_ptr_eq(other->ops, *ops);
		ck_assert_uint_eq(other->pieces, (*ops)->pieces);
		ck_assert_uint_eq(other->batch, (*ops)->batch);
		ck_assert_uint_eq(other->merge, (*ops)->merge);
		ck_assert(other->ops->valid(other, 0));
		ck_assert(!other->ops->valid(other, 1));
		ck_assert_ptr_null(other->ops->victim(other));
		mrrc_policy_close(other);
	}
	ck_assert_int_eq(count, 6);
}

/* Without a list, the provider's policies are known; with a list, no others. */
TEST(test_lists)
{
	const struct mrrc_policy_ops *const own[] = {
		&mrrc_policy_mre_text_ops,
		NULL,
	};
	const struct mrrc_policy_ops *const *ops;
	struct mrrc_policy *other;
	int count = 0;

	for (ops = mrrc_policies; *ops; ops++, count++)
		ck_assert_int_eq(mrrc_policy_check(NULL, (*ops)->name), 0);
	ck_assert_int_eq(count, 4);
	ck_assert_int_eq(mrrc_policy_check(NULL, "gdsf"), -ENOENT);
	ck_assert_int_eq(mrrc_policy_check(NULL, "fmrd"), -ENOENT);
	ck_assert_int_eq(
		mrrc_policy_open(own, "mre-text:evict=9", &attr, &other), 0);
	ck_assert_uint_eq(other->param[1], 9);
	mrrc_policy_close(other);
	ck_assert_int_eq(mrrc_policy_open(own, "lru", &attr, &other), -ENOENT);
}

/* Each allocation fails once: the policy's state, and its history. */
LOOP_TEST(test_open_fails, 0, 6)
{
	static const struct {
		const char *spec;
		int steps;
	} kind[] = {
		{ "lru", 1 },  { "mre-fig4", 1 },
		{ "gdsf", 2 }, { "gdsf:history=0", 1 },
		{ "gdl", 3 },  { "gdl:duel=0", 2 },
	};
	struct mrrc_policy *other = NULL;
	bool fired;
	int ret, n;

	for (n = 1;; n++) {
		fault_arm(n);
		ret = mrrc_policy_open(sim_policies, kind[_i].spec, &attr,
				       &other);
		fired = fault_disarm();
		if (!fired)
			break;
		ck_assert_int_eq(ret, -ENOMEM);
		ck_assert_ptr_null(other);
		ck_assert_uint_eq(fault_leaks(), 0);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_int_eq(n, kind[_i].steps + 1);
	mrrc_policy_close(other);
}

/* ---- parameters ---- */

static const struct {
	const char *spec;
	int ret;
} specs[] = {
	{ "no such", -ENOENT },
	{ "", -ENOENT },
	{ ":pieces=1", -ENOENT },
	{ "lru2", -ENOENT },
	{ "lr", -ENOENT },
	{ "LRU", -ENOENT },
	{ " lru", -ENOENT },
	{ "gdsf-history=0", -ENOENT },
	{ "lru:no=1", -ESRCH },
	{ "lru:history=1", -ESRCH },
	{ "lru:piece=1", -ESRCH },
	{ "lru:piecess=1", -ESRCH },
	{ "lru:=1", -ESRCH },
	{ "gdsf:resort=1", -ESRCH },
	{ "lru:pieces=1:no=1", -ESRCH },
	{ "mre-text:history=1", -ESRCH },
	{ "lru:", -EINVAL },
	{ "lru::", -EINVAL },
	{ "lru:pieces", -EINVAL },
	{ "lru:pieces=", -EINVAL },
	{ "lru:pieces=x", -EINVAL },
	{ "lru:pieces=-1", -EINVAL },
	{ "lru:pieces=+1", -EINVAL },
	{ "lru:pieces=1 ", -EINVAL },
	{ "lru:pieces= 1", -EINVAL },
	{ "lru:pieces=1x", -EINVAL },
	{ "lru:pieces==1", -EINVAL },
	{ "lru:pieces=1:", -EINVAL },
	{ "lru:pieces=1::batch=1", -EINVAL },
	{ "lru:pieces=1,batch=1", -EINVAL },
	{ "lru:pieces=1111111111111111111111111x", -EINVAL },
	{ "lru:pieces=0", -ERANGE },
	{ "lru:pieces=33", -ERANGE },
	{ "lru:batch=0", -ERANGE },
	{ "lru:batch=65537", -ERANGE },
	{ "lru:merge=2", -ERANGE },
	{ "gdsf:history=2", -ERANGE },
	{ "gdl:duel=2", -ERANGE },
	{ "gdl:history=1", -ESRCH },
	{ "mre-text:resort=0", -ERANGE },
	{ "mre-text:resort=101", -ERANGE },
	{ "mre-fig4:evict=0", -ERANGE },
	{ "mre-fig4:evict=101", -ERANGE },
	{ "lru:pieces=18446744073709551615", -ERANGE },
	{ "lru:pieces=18446744073709551616", -ERANGE },
	{ "lru:pieces=10000000000000000000000000000000", -ERANGE },
	{ "lru", 0 },
	{ "lru:pieces=1", 0 },
	{ "lru:pieces=32", 0 },
	{ "lru:batch=1", 0 },
	{ "lru:batch=65536", 0 },
	{ "lru:merge=0", 0 },
	{ "lru:merge=1", 0 },
	{ "lru:pieces=007", 0 },
	{ "lru:merge=1:batch=2:pieces=3", 0 },
	{ "gdsf:history=0", 0 },
	{ "mre-text:resort=1:evict=100", 0 },
	{ "mre-fig4:evict=1:resort=100:pieces=4", 0 },
};

EACH_TEST(test_specs, specs)
{
	struct mrrc_policy *other = NULL;

	ck_assert_int_eq(mrrc_policy_check(sim_policies, specs[_i].spec),
			 specs[_i].ret);
	ck_assert_int_eq(mrrc_policy_open(sim_policies, specs[_i].spec, &attr,
					  &other),
			 specs[_i].ret);
	if (specs[_i].ret)
		ck_assert_ptr_null(other);
	else
		mrrc_policy_close(other);
}

TEST(test_values)
{
	struct mrrc_policy *other;

	ck_assert_int_eq(mrrc_policy_open(sim_policies,
					  "mre-text:pieces=3:evict=7:batch=11:"
					  "merge=1:resort=13",
					  &attr, &other),
			 0);
	ck_assert_uint_eq(other->pieces, 3);
	ck_assert_uint_eq(other->batch, 11);
	ck_assert_uint_eq(other->merge, 1);
	ck_assert_uint_eq(other->param[0], 13);
	ck_assert_uint_eq(other->param[1], 7);
	mrrc_policy_close(other);
	/* Parameters not given have defaults; the last of two values counts. */
	ck_assert_int_eq(mrrc_policy_open(sim_policies, "gdsf:batch=2:batch=5",
					  &attr, &other),
			 0);
	ck_assert_uint_eq(other->batch, 5);
	ck_assert_uint_eq(other->pieces, mrrc_policy_gdsf_ops.pieces);
	ck_assert_uint_eq(other->param[0], 1);
	mrrc_policy_close(other);
}

/* ---- requirements for all policies ---- */

static unsigned pick(unsigned n)
{
	static uint64_t state = 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

static const char *const kinds[] = {
	"lru",	"fmrd",		  "mre-text", "mre-fig4:resort=100:evict=40",
	"gdsf", "gdsf:history=0", "gdl",      "gdl:duel=0",
};

/*
 * Regions are inserted, used and removed at random; no victim is held or
 * unknown.
 */
EACH_TEST(test_any, kinds)
{
	struct mrrc_policy *outer = policy;
	struct mrrc_region *victim;
	size_t known = 0, idle = 0;
	bool held;
	int i, step;

	ck_assert_int_eq(
		mrrc_policy_open(sim_policies, kinds[_i], &attr, &policy), 0);
	memset(region, 0, sizeof(region));
	for (step = 0; step < 20000; step++) {
		i = pick(MANY);
		if (!region[i].len) {
			held = pick(2);
			insert(i, 1 + pick(64));
			region[i].held = held;
			known++;
			idle += !held;
		} else if (pick(4)) {
			policy->ops->touch(policy, &region[i]);
			idle += region[i].held;
			region[i].held = 0;
		} else if (pick(3)) {
			victim = policy->ops->victim(policy);
			ck_assert_int_eq(victim != NULL, idle != 0);
			if (!victim)
				continue;
			ck_assert_uint_eq(mrrc_region_held(victim), 0);
			ck_assert_uint_ne(victim->len, 0);
			policy->ops->remove(policy, victim);
			victim->len = 0;
			known--;
			idle--;
		} else {
			policy->ops->remove(policy, &region[i]);
			idle -= !region[i].held;
			region[i].len = 0;
			known--;
		}
		ck_assert(policy->ops->valid(policy, known));
	}
	mrrc_policy_close(policy);
	policy = outer;
}

/* Registrations cost nothing, or more than gdsf has classes for. */
LOOP_TEST(test_extremes, 0, 3)
{
	static const double ns[] = { 0, 1e-9, 9e14 };
	const struct mrrc_cost extreme = { .reg = ns[_i], .page = PAGE };
	struct mrrc_policy_attr with = attr;
	struct mrrc_policy *outer = policy;
	struct mrrc_region *victim;
	int i;

	with.cost = &extreme;
	ck_assert_int_eq(mrrc_policy_open(sim_policies, "gdsf:history=0", &with,
					  &policy),
			 0);
	for (i = 0; i < 8; i++)
		insert(i, 1);
	for (i = 0; i < 8; i++) {
		policy->ops->touch(policy, &region[i]);
		ck_assert(policy->ops->valid(policy, 8));
	}
	for (i = 0; i < 8; i++) {
		victim = policy->ops->victim(policy);
		ck_assert_ptr_eq(victim, &region[i]);
		policy->ops->remove(policy, victim);
	}
	mrrc_policy_close(policy);
	policy = outer;
}

/* Of many held regions, every one that is put becomes a victim again. */
EACH_TEST(test_put_again, kinds)
{
	struct mrrc_policy *outer = policy;
	struct mrrc_region *victim;
	unsigned free, i;

	ck_assert_int_eq(
		mrrc_policy_open(sim_policies, kinds[_i], &attr, &policy), 0);
	memset(region, 0, sizeof(region));
	for (i = 0; i < MANY; i++) {
		insert(i, 1 + i % 7);
		region[i].held = i != MANY - 1;
	}
	ck_assert_ptr_eq(policy->ops->victim(policy), &region[MANY - 1]);
	for (i = 0; i < MANY; i += 2)
		region[i].held = 0;
	/* One region that was passed over is used, another is removed. */
	policy->ops->touch(policy, &region[1]);
	policy->ops->remove(policy, &region[3]);
	ck_assert(policy->ops->valid(policy, MANY - 1));
	for (free = 0; (victim = policy->ops->victim(policy)); free++) {
		ck_assert_uint_eq(mrrc_region_held(victim), 0);
		policy->ops->remove(policy, victim);
	}
	ck_assert_uint_eq(free, MANY / 2 + 1);
	ck_assert(policy->ops->valid(policy, MANY - 2 - MANY / 2));
	mrrc_policy_close(policy);
	policy = outer;
}

/* gdl judges a region for its uses when it would be the next to go. */
TEST(test_gdl_used)
{
	struct mrrc_policy *outer = policy;
	struct mrrc_region *victim;
	int i;

	ck_assert_int_eq(mrrc_policy_open(sim_policies, "gdl:duel=0", &attr,
					  &policy),
			 0);
	for (i = 0; i < 3; i++)
		insert(i, 4);
	for (i = 0; i < 2; i++) {
		victim = policy->ops->victim(policy);
		policy->ops->touch(policy, victim);
		ck_assert_ptr_ne(policy->ops->victim(policy), victim);
	}
	ck_assert(policy->ops->valid(policy, 3));
	mrrc_policy_close(policy);
	policy = outer;
}

/* While all regions are held, there is no victim; then there is one. */
EACH_TEST(test_all_held, kinds)
{
	struct mrrc_policy *outer = policy;
	int i;

	ck_assert_int_eq(
		mrrc_policy_open(sim_policies, kinds[_i], &attr, &policy), 0);
	for (i = 0; i < COUNT; i++) {
		insert(i, 1 + 3 * i);
		region[i].held = 1 + i;
	}
	for (i = 0; i < 3; i++)
		ck_assert_ptr_null(policy->ops->victim(policy));
	ck_assert(policy->ops->valid(policy, COUNT));
	for (i = 0; i < COUNT; i++) {
		region[i].held = 0;
		ck_assert_ptr_eq(policy->ops->victim(policy), &region[i]);
		policy->ops->remove(policy, &region[i]);
		ck_assert(policy->ops->valid(policy, COUNT - i - 1));
	}
	ck_assert_ptr_null(policy->ops->victim(policy));
	mrrc_policy_close(policy);
	policy = outer;
}

EACH_TEST(test_valid_notices, kinds)
{
	struct mrrc_policy *outer = policy;
	int i;

	ck_assert_int_eq(
		mrrc_policy_open(sim_policies, kinds[_i], &attr, &policy), 0);
	for (i = 0; i < COUNT; i++)
		insert(i, 1 + i);
	ck_assert(policy->ops->valid(policy, COUNT));
	ck_assert(!policy->ops->valid(policy, COUNT - 1));
	ck_assert(!policy->ops->valid(policy, COUNT + 1));
	region[3].state = MRRC_REGION_DEAD;
	ck_assert(!policy->ops->valid(policy, COUNT));
	mrrc_policy_close(policy);
	policy = outer;
}
