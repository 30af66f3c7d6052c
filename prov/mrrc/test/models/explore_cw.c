/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Explores conditional writes (core/cw/cw.c): two sides and a network between
 * them that keeps order, in every interleaving for small cases, at random for
 * large cases. After each step every invariant holds. From each state reached,
 * when the network delivers all messages, all operations that can end have
 * ended, in order, once, at both sides; and when the connection is lost then,
 * all other operations have ended, too.
 *
 * A step sequence is run again from the start for each of its successors, so
 * that no state must be copied. A state whose digest was seen before is not
 * continued.
 *
 * Faults in cw.c can be switched on, and each fault has to be found.
 * explore_world.c makes the steps, and explore_check.c checks each state.
 */
#include "config.h"
#include "test/suites.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/text/hash.h"
#include "test/models/explore_world.h"

/* ---- every interleaving -------------------------------------------------- */

struct node {
	struct mrrc_cw_node seen;
	uint32_t parent;
	struct step step;
};

#define NODES_MAX (3U << 20)
#define DEPTH_MAX 256

static struct node *nodes;
static uint32_t node_cnt;
static struct mrrc_cw_map seen;
static const struct mrrc_secret secret = { { 1, 2 } };

static void replay(const struct script *script, uint32_t at)
{
	struct step path[DEPTH_MAX];
	unsigned depth = 0;

	for (; at; at = nodes[at].parent) {
		MUST(depth < DEPTH_MAX, "too deep");
		path[depth++] = nodes[at].step;
	}
	world_fini();
	world_init(script);
	while (depth--)
		apply(path[depth]);
}

static unsigned list_steps(struct step *steps)
{
	struct step step;
	unsigned cnt = 0, last;

	for (step.kind = 0; step.kind < S_KINDS; step.kind++) {
		for (step.side = 0; step.side < 2; step.side++) {
			last = step.kind == S_CANCEL_WR ||
					       step.kind == S_CANCEL_TARGET ?
				       8 :
				       1;
			for (step.index = 0; step.index < last; step.index++)
				if (enabled(step))
					steps[cnt++] = step;
		}
	}
	return cnt;
}

/* The function is not inlined, as setjmp() would lose its variables. */
static __attribute__((noinline)) void explore_from(const struct script *script,
						   uint32_t at)
{
	struct step steps[64];
	unsigned cnt, i;
	uint64_t hash;

	replay(script, at);
	cnt = list_steps(steps);
	for (i = 0; i < cnt; i++) {
		if (i)
			replay(script, at);
		apply(steps[i]);
		check_valid();
		hash = world_digest();
		if (mrrc_cw_map_first(&seen, hash))
			continue;
		MUST(node_cnt < NODES_MAX, "too many states: a smaller case");
		nodes[node_cnt].parent = at;
		nodes[node_cnt].step = steps[i];
		mrrc_cw_map_add(&seen, &nodes[node_cnt++].seen, hash);
		finish();
	}
}

static void print_path(uint32_t at)
{
	static const char *const name[] = {
		"post write", "post target",  "deliver from",  "land",
		"fail",	      "cancel write", "cancel target", "room",
		"close",      "notice",	      "garble",
	};

	if (!at)
		return;
	print_path(nodes[at].parent);
	fprintf(stderr, "  %s, side %u, %u\n", name[nodes[at].step.kind],
		nodes[at].step.side, nodes[at].step.index);
}

/* Returns the number of states reached, or 0: violation has the reason. */
static uint32_t explore(const struct script *script, bool loud)
{
	static volatile uint32_t at;
	uint32_t states;

	nodes = calloc(NODES_MAX, sizeof(*nodes));
	ck_assert_ptr_nonnull(nodes);
	node_cnt = 1;
	mrrc_cw_map_init(&seen, &secret);
	at = 0;
	if (!setjmp(violated)) {
		for (at = 0; at < node_cnt; at++)
			explore_from(script, at);
		states = node_cnt;
	} else {
		states = 0;
		if (loud) {
			fprintf(stderr, "%s: %s, after\n", script->name,
				violation);
			print_path(at);
		}
	}
	mrrc_cw_map_fini(&seen);
	free(nodes);
	world_fini();
	return states;
}

static const struct script small[] = {
	{ "one", "one of each, everything may happen", .wrs = { 1, 0 },
	  .targets = { 0, 1 }, .tags = 1, .credits = 4, .greet = true,
	  .cancels = 2, .fails = 1, .closes = 1, .rooms = 2, .garbles = 1 },
	{ "cancels", "two of each, one tag, cancels", .wrs = { 2, 0 },
	  .targets = { 0, 2 }, .tags = 1, .credits = 4, .cancels = 3,
	  .rooms = 1 },
	{ "losses", "two of each, one tag, losses", .wrs = { 2, 0 },
	  .targets = { 0, 2 }, .tags = 1, .credits = 4, .cancels = 1,
	  .closes = 1, .fails = 1, .rooms = 1 },
	{ "tags", "two of each, two tags", .wrs = { 2, 0 }, .targets = { 0, 2 },
	  .tags = 2, .credits = 4, .cancels = 2, .rooms = 2 },
	{ "ways", "both ways", .wrs = { 1, 1 }, .targets = { 1, 1 }, .tags = 1,
	  .credits = 4, .cancels = 1, .rooms = 1 },
	{ "long", "too long", .wrs = { 2, 0 }, .targets = { 0, 2 }, .tags = 1,
	  .credits = 4, .cancels = 2, .rooms = 1, .longer = 1 },
	{ "credits", "three of each, credits run out", .wrs = { 3, 0 },
	  .targets = { 0, 3 }, .tags = 1, .credits = 4, .rooms = 1 },
	{ "order", "three of each, one cancelled", .wrs = { 3, 0 },
	  .targets = { 0, 3 }, .tags = 1, .credits = 4, .cancels = 1,
	  .rooms = 1 },
	{ "inlined", "two of each, the second in a message", .wrs = { 2, 0 },
	  .targets = { 0, 2 }, .tags = 1, .credits = 4, .inlined = true,
	  .cancels = 2, .fails = 1, .closes = 1, .rooms = 1 },
	{ "mixed", "four of each, every second in a message", .wrs = { 4, 0 },
	  .targets = { 0, 4 }, .tags = 1, .credits = 4, .inlined = true,
	  .cancels = 1 },
	{ "stalls", "tags both ways, credits run out", .wrs = { 0, 0 },
	  .targets = { 6, 6 }, .tags = 1, .credits = 4 },
};

START_TEST(every_interleaving)
{
	uint32_t states = explore(&small[_i], true);

	ck_assert_uint_gt(states, 0);
	fprintf(stderr, "%s: %u states\n", small[_i].name, states);
}
END_TEST

/* ---- at random ----------------------------------------------------------- */

static uint64_t x_seed;

static uint64_t x_rand(void)
{
	x_seed += UINT64_C(0x9e3779b97f4a7c15);
	return mrrc_hash(x_seed);
}

static __attribute__((noinline)) void random_run(const struct script *script,
						 unsigned steps)
{
	/* Kinds occur here in proportion to their frequency. */
	static const uint8_t kinds[] = {
		S_POST_WR,	 S_POST_WR, S_POST_TARGET, S_POST_TARGET,
		S_DELIVER,	 S_DELIVER, S_DELIVER,	   S_DELIVER,
		S_DELIVER,	 S_LAND,    S_LAND,	   S_CANCEL_WR,
		S_CANCEL_TARGET, S_ROOM,
	};
	struct step step;
	unsigned i;

	world_fini();
	world_init(script);
	for (i = 0; i < steps; i++) {
		step.kind = kinds[x_rand() % (sizeof(kinds))];
		step.side = x_rand() % 2;
		step.index = x_rand() % OPS_MAX;
		if (step.kind == S_CANCEL_WR && world.side[step.side].wrs)
			step.index %= world.side[step.side].wrs;
		if (step.kind == S_CANCEL_TARGET &&
		    world.side[step.side].targets)
			step.index %= world.side[step.side].targets;
		if (!(x_rand() % 4096))
			step.kind = S_FAIL + x_rand() % (S_KINDS - S_FAIL);
		if (enabled(step))
			apply(step);
		if (!(i % 512))
			check_valid();
	}
	finish();
}

static bool random_ok(uint64_t seed, bool loud)
{
	const unsigned n = x_seed = seed, tags[] = { 1, 3, 17, 64 };
	struct script script = {
		.id = "random",
		.name = "random",
		.wrs = { 1 + seed % 2000, 1 + seed % 37 },
		.targets = { 1 + seed % 41, 1 + seed % 1900 },
		.tags = tags[n % 4],
		.credits = 4 + seed % 13,
		.cancels = seed % 3 ? 400 : 0,
		.rooms = 1000,
		.fails = !(seed % 5),
		.closes = !(seed % 7),
		.garbles = !(seed % 11),
		.longer = seed % 200,
		.inlined = seed % 2,
	};

	if (!setjmp(violated)) {
		random_run(&script, 20000);
		world_fini();
		return true;
	}
	if (loud)
		fprintf(stderr, "seed %lu: %s\n", (unsigned long) seed,
			violation);
	world_fini();
	return false;
}

START_TEST(at_random)
{
	const char *given = getenv("MRRC_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) :
				(uint64_t) getpid() * 1000003;
	unsigned i;

	fprintf(stderr, "MRRC_TEST_SEED=%lu\n", (unsigned long) seed);
	for (i = 0; i < 60; i++)
		ck_assert(random_ok(seed + i, true));
}
END_TEST

/* ---- can it fail? -------------------------------------------------------- */

START_TEST(fault_is_found)
{
	bool found = false;
	unsigned i;

	mrrc_cw_fault = _i + 1;
	for (i = 0; i < sizeof(small) / sizeof(small[0]) && !found; i++)
		found = !explore(&small[i], false);
	for (i = 0; i < 20 && !found; i++)
		found = !random_ok(i + 1, false);
	mrrc_cw_fault = 0;
	ck_assert_msg(found, "fault %d is not found", _i + 1);
	fprintf(stderr, "fault %d: %s\n", _i + 1, violation);
}
END_TEST

/* EXPLORE_CASES=N runs only the first N cases of each kind, for slow tools. */
static int cases(int all)
{
	const char *some = getenv("EXPLORE_CASES");
	const int count = some ? atoi(some) : all;

	return count > 0 && count < all ? count : all;
}

static TCase *explore_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 0);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static Suite *explore_suite(void)
{
	const int scripts = cases(sizeof(small) / sizeof(small[0]));
	Suite *suite = suite_create("explore_cw");
	int i;

	for (i = 0; i < scripts; i++)
		tcase_add_loop_test(explore_case(suite, small[i].id),
				    every_interleaving, i, i + 1);
	tcase_add_test(explore_case(suite, "random"), at_random);
	tcase_add_loop_test(explore_case(suite, "faults"), fault_is_found, 0,
			    cases(FAULTS));
	return suite;
}

int main(void)
{
	return run_suite(explore_suite(), CK_NOFORK);
}
