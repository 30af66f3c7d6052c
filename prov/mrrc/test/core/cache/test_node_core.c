/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache/node: the shares of a node's processes, case by case, and rules
 * that hold for random processes.
 */
#include "config.h"
#include "test/case.h"

#include "core/cache/node.h"
#include "test/seed.h"

#define MOST 12

static struct mrrc_node_share share[MOST];
static struct mrrc_node_view view;

static void setup(void)
{
	memset(share, 0, sizeof(share));
	view = (struct mrrc_node_view){ .share = share, .budget = 1000 };
}

static void add(uint64_t reserved, uint64_t want, bool active)
{
	share[view.count++] = (struct mrrc_node_share){
		.reserved = reserved,
		.want = want,
		.active = active,
		.used = reserved,
		.cpus = 1,
		.helper = true,
	};
}

static uint64_t take(size_t self, uint64_t ask)
{
	view.self = self;
	return mrrc_node_take(&view, ask);
}

static uint64_t give(size_t self)
{
	view.self = self;
	return mrrc_node_give(&view);
}

TEST_CASE(node_core, setup, NULL);

/* An active process gives what it has beyond an equal share, and no more. */
TEST(test_active)
{
	add(900, 0, true);
	add(100, 700, true);
	ck_assert_uint_eq(mrrc_node_level(&view), 500);
	ck_assert_uint_eq(give(0), 400);
	share[0].reserved = 500;
	ck_assert_uint_eq(give(0), 0);
	/* An equal share includes bytes that another process does not use. */
	share[0].reserved = 300;
	share[1].reserved = 700;
	ck_assert_uint_eq(mrrc_node_level(&view), 700);
	ck_assert_uint_eq(give(0), 0);
}

/* A process that lacks bytes gives only its bytes beyond 9/8 of its share. */
TEST(test_hungry)
{
	add(700, 100, true);
	add(300, 100, true);
	ck_assert_uint_eq(give(0), 100);
	ck_assert_uint_eq(give(1), 0);
	share[0].reserved = 562;
	share[1].reserved = 438;
	ck_assert_uint_eq(give(0), 0);
	share[0].reserved = 570;
	share[1].reserved = 430;
	ck_assert_uint_eq(give(0), 8);
}

/* A stopped process keeps its bytes, and no bytes are set aside for it. */
TEST(test_deaf)
{
	add(500, 100, true);
	add(250, 0, true);
	add(250, 100, true);
	share[0].deaf = true;
	ck_assert_uint_eq(mrrc_node_level(&view), 250);
	ck_assert_uint_eq(give(0), 0);
	ck_assert_uint_eq(give(1), 0);
	share[1].reserved = 200;
	ck_assert_uint_eq(give(1), 0);
	ck_assert_uint_eq(take(1, 50), 50);
	ck_assert_uint_eq(take(2, 80), 50);
}

/* A process beyond its share takes no bytes that others lack. */
TEST(test_take_turns)
{
	add(600, 10, true);
	add(300, 60, true);
	ck_assert_uint_eq(take(0, 100), 40);
	ck_assert_uint_eq(take(1, 100), 100);
	ck_assert_uint_eq(take(1, 200), 100);
	share[1].want = 200;
	ck_assert_uint_eq(take(0, 100), 0);
}

/* ---- random processes ---- */

static void draw(struct seed *seed)
{
	size_t i, count = 1 + seed_below(seed, MOST);

	view.count = 0;
	view.budget = seed_below(seed, 3) ? seed_below(seed, 10000) :
					    seed_below(seed, MRRC_NODE_UNITS);
	for (i = 0; i < count; i++) {
		const uint64_t most = seed_below(seed, 9) ?
					      view.budget / count + 1 :
					      MRRC_NODE_UNITS;

		add(seed_below(seed, most),
		    seed_below(seed, 2) ? 0 : seed_below(seed, most),
		    seed_below(seed, 2));
		share[i].deaf = !seed_below(seed, 5);
		share[i].helper = seed_below(seed, 2);
		share[i].cpus = 1 + seed_below(seed, 7);
	}
}

LOOP_TEST(test_rules, 0, 3)
{
	struct seed seed = seed_init("node_rules", _i);
	uint64_t level, sum, ask, got, given, lack, surplus, free;
	unsigned turn;
	size_t i;

	for (turn = 0; turn < rounds_of(20000); turn++) {
		draw(&seed);
		level = mrrc_node_level(&view);
		sum = mrrc_node_reserved(&view);
		free = view.budget > sum ? view.budget - sum : 0;
		ck_assert_uint_le(level, view.budget);
		given = lack = surplus = 0;
		for (i = 0; i < view.count; i++) {
			const struct mrrc_node_share *one = &share[i];
			const bool sated = one->deaf || !one->want;

			ask = 1 + seed_below(&seed, 1000);
			ck_assert_uint_le(take(i, ask),
					  ask < free ? ask : free);
			got = give(i);
			given += got;
			ck_assert_uint_le(got, one->reserved);
			ck_assert(!one->deaf || !got);
			if (one->want || one->active)
				ck_assert(!got || one->reserved - got >= level);
			if (!sated && one->reserved < level)
				lack += one->want < level - one->reserved ?
						one->want :
						level - one->reserved;
			if (!one->deaf && !one->want && !one->active)
				surplus += one->reserved;
		}
		/*
		 * The processes give enough if idle processes have enough, and
		 * give too much by at most one unit for each process.
		 */
		ck_assert(given + free >= lack || given >= surplus);
		ck_assert(!given || given <= lack - free + view.count);
	}
}

/* Processes have constant demands: in the end no bytes move any more. */
LOOP_TEST(test_settles, 0, 3)
{
	struct seed seed = seed_init("node_settles", _i);
	uint64_t demand[MOST], got, moved = 0, level;
	unsigned run, turn;
	size_t i;

	for (run = 0; run < 300; run++) {
		draw(&seed);
		view.budget = 1000 + seed_below(&seed, 100000);
		for (i = 0; i < view.count; i++) {
			demand[i] = share[i].active ?
					    seed_below(&seed, view.budget) :
					    0;
			share[i].deaf = false;
			share[i].reserved = view.budget / view.count;
			share[i].want = 0;
		}
		for (turn = 0; turn < 200; turn++) {
			moved = 0;
			for (i = 0; i < view.count; i++) {
				if (share[i].reserved >= demand[i])
					continue;
				got = take(i, demand[i] - share[i].reserved);
				share[i].reserved += got;
				share[i].want = demand[i] - share[i].reserved;
			}
			for (i = 0; i < view.count; i++) {
				got = give(i);
				share[i].reserved -= got;
				moved += got;
			}
			ck_assert_uint_le(mrrc_node_reserved(&view),
					  view.budget);
		}
		ck_assert_uint_eq(moved, 0);
		level = mrrc_node_level(&view);
		for (i = 0; i < view.count; i++)
			ck_assert_uint_ge(
				share[i].reserved * 8 + 8 * MOST,
				(demand[i] < level ? demand[i] : level) * 7);
	}
}

/* ---- helper threads ---- */

static uint64_t moved_by;

static bool may(size_t self, enum mrrc_node_helpers policy, unsigned allowed,
		double idle)
{
	const struct mrrc_node_cores cores = { allowed, idle, 1000000 };

	view.self = self;
	return mrrc_node_helper_may(&view, policy, &cores, &moved_by);
}

TEST(test_conservative)
{
	size_t i;

	add(10, 0, true);
	add(30, 0, true);
	add(20, 0, true);
	add(30, 0, true);
	for (i = 0; i < 4; i++)
		ck_assert(!may(i, MRRC_NODE_CONSERVATIVE, 4, 4));
	/* Two idle cores go to the two processes with the most bytes. */
	ck_assert(!may(0, MRRC_NODE_CONSERVATIVE, 6, 0));
	ck_assert(may(1, MRRC_NODE_CONSERVATIVE, 6, 0));
	ck_assert(!may(2, MRRC_NODE_CONSERVATIVE, 6, 0));
	ck_assert(may(3, MRRC_NODE_CONSERVATIVE, 6, 0));
	ck_assert_uint_eq(moved_by, 0);
	/* A process without use for a helper gets none. */
	share[3].helper = false;
	ck_assert(may(2, MRRC_NODE_CONSERVATIVE, 6, 0));
	ck_assert(!may(3, MRRC_NODE_CONSERVATIVE, 6, 0));
	/* A helper gets only cores that its process may run on. */
	share[1].cpus = 2;
	share[2].cpus = 2;
	ck_assert(may(0, MRRC_NODE_CONSERVATIVE, 3, 0));
}

TEST(test_auto)
{
	add(20, 0, true);
	add(10, 0, true);
	ck_assert(!may(0, MRRC_NODE_AUTO, 2, .7));
	ck_assert(may(0, MRRC_NODE_AUTO, 2, .8));
	ck_assert(!may(1, MRRC_NODE_AUTO, 2, .8));
	ck_assert(may(1, MRRC_NODE_AUTO, 2, 2));
	/* The number of idle cores is not measured. */
	ck_assert(!may(0, MRRC_NODE_AUTO, 2, -1));
	ck_assert(may(0, MRRC_NODE_AUTO, 3, -1));
	ck_assert_uint_eq(moved_by, 0);
}

/*
 * There are never more helpers than idle cores, and a process without a helper
 * has no more registered bytes than a process with a helper.
 */
LOOP_TEST(test_helper_rules, 0, 2)
{
	struct seed seed = seed_init("node_helpers", _i);
	unsigned turn, allowed;
	size_t i, k, helpers;
	bool has[MOST];

	for (turn = 0; turn < 5000; turn++) {
		draw(&seed);
		allowed = seed_below(&seed, 2 * MOST);
		for (i = 0; i < view.count; i++)
			share[i].cpus = 1;
		for (i = helpers = 0; i < view.count; i++) {
			has[i] = may(i, MRRC_NODE_CONSERVATIVE, allowed, 0);
			helpers += has[i];
		}
		ck_assert_uint_le(helpers + view.count,
				  allowed > view.count ? allowed : view.count);
		for (i = 0; i < view.count; i++) {
			for (k = 0; k < view.count; k++)
				ck_assert(!has[i] || has[k] ||
					  !share[k].helper ||
					  share[k].used <= share[i].used);
		}
	}
}
