/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/predict/ahead: a helper that may act or not, as the node's processors
 * allow.
 */
#include "config.h"
#include "test/case.h"
#include "sys/cache/cache_budget.h"
#include "test/sys/predict/ahead_fixture.h"

#include <sched.h>

#include "sys/node/budget_priv.h"

TEST_CASE(ahead_node, ahead_setup, ahead_teardown);

/* A helper that may not act only learns; when it may, it goes on. */
TEST(test_leave)
{
	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	leave(false, 0);
	pass(PERIOD);
	ck_assert(!registered(0, PAGES));
	learn(0, PAGES);
	pass(PERIOD / 2);
	ck_assert(registered(0, PAGES));
	leave(true, 0);
	use(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
}

/* Deadlines are earlier by the time that other helpers may take. */
TEST(test_delay)
{
	uint64_t plain;

	learn(0, PAGES);
	pass(PERIOD / 4);
	for (plain = 0; !registered(0, PAGES); plain += MS)
		pass(MS);
	pass(PERIOD - PERIOD / 4 - plain);
	leave(true, 10 * MS);
	use(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	pass(plain - 9 * MS);
	ck_assert(registered(0, PAGES));
	/* With a longer delay there is no time to deregister at all. */
	pass(PERIOD - PERIOD / 4 - (plain - 9 * MS));
	leave(true, PERIOD);
	use(0, PAGES);
	pass(PERIOD / 2);
	ck_assert(registered(0, PAGES));
}

/* If others may use the processor, the helper looks as rarely as they do. */
TEST(test_crowded)
{
	uint64_t move;

	learn(0, PAGES);
	for (move = 0; move < PERIOD; move += 10 * MS) {
		leave(true, move);
		use(0, PAGES);
		ck_assert_uint_ge(turns() - now, move);
		pass(PERIOD);
	}
}

/* A helper asks no more often whether an operation has ended, either. */
TEST(test_crowded_in_use)
{
	struct mrrc_region *region;
	unsigned looks = 0;
	uint64_t wake, end;

	leave(true, 8 * MS);
	learn(0, PAGES);
	region = get(0, PAGES);
	fake_reg_use(region, 1);
	end = now + PERIOD;
	for (wake = turns(); wake < end; wake = turns()) {
		looks++;
		clock_set(wake);
	}
	ck_assert_uint_le(looks, PERIOD / (8 * MS));
	fake_reg_use(region, -1);
	put(region);
}

/* A helper that may not act looks less and less often, and reads uses later. */
TEST(test_barred)
{
	uint64_t wake, noted;
	unsigned i, looks = 0;

	learn(0, PAGES);
	leave(false, 0);
	wake = turns();
	noted = stat_of(MRRC_STAT_NOTED);
	for (i = 0; i < 100; i++) {
		clock_set(now + PERIOD);
		use(0, PAGES);
		if (now < wake)
			continue;
		wake = turns();
		looks++;
	}
	/* In the end, the helper looks every 512 ms. */
	ck_assert_uint_le(looks, 100 * PERIOD / (512 * MS) + 8);
	ck_assert(!atomic_load(&cache->asleep));
	ck_assert(registered(0, PAGES));
	clock_set(wake);
	leave(true, 0);
	wake = turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), noted + 100);
	ck_assert_uint_le(wake, now + 16 * MS);
	use(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
}

static struct mrrc_budget *node_open(const char *dir)
{
	const struct mrrc_budget_attr attr = {
		.bytes = MRRC_BUDGET_NONE,
		.dir = dir,
	};
	struct mrrc_budget *budget = NULL;
	int alone;

	ck_assert_int_eq(mrrc_budget_open(&attr, &budget, &alone), 0);
	return budget;
}

static void node_join(struct mrrc_budget *budget, enum mrrc_node_helpers policy)
{
	cache->budget = budget;
	cache->helpers = policy;
	mrrc_cache_mt_budget_open(cache);
}

/* Closes the budget with the cache, and opens a new cache. */
static void node_leave(struct mrrc_budget *budget)
{
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(budget->would, 0);
	ck_assert_uint_eq(budget->used, 0);
	mrrc_budget_close(budget);
	ck_assert_int_eq(open_cache(&cache), 0);
}

/*
 * With one processor no helper may run, unless the policy allows each process a
 * helper. A helper that sleeps or has ended needs no processor.
 */
LOOP_TEST(test_node, 0, 2)
{
	struct mrrc_budget *budget = node_open("/nonexistent");
	cpu_set_t all, one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	node_join(budget, _i ? MRRC_NODE_AGGRESSIVE : MRRC_NODE_CONSERVATIVE);

	learn(0, PAGES);
	pass(PERIOD / 2);
	ck_assert(cache->member.would);
	ck_assert(registered(0, PAGES) == !_i);
	ck_assert(_i == !!cache->ahead->leave.move_ns);
	/* Neither policy reads the idle time. */
	ck_assert_uint_eq(budget->cpus.when, 0);
	pass(100 * PERIOD);
	ck_assert(atomic_load(&cache->asleep));
	ck_assert(!cache->member.would);
	note(0, PAGES);
	turns();
	ck_assert(cache->member.would);

	node_leave(budget);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* Two processes have two processors: a helper may run when one process ends. */
TEST(test_node_ends)
{
	char dir[] = "/dev/shm/test_ahead.XXXXXX", path[80];
	struct mrrc_budget_member member = { 0 };
	struct mrrc_budget *budget, *other;
	struct mrrc_cpus cpus = { 0 };
	cpu_set_t all, two;
	uint64_t wake;
	int cpu;

	CPU_ZERO(&two);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	for (cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++) {
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &two);
	}
	ck_assert_int_eq(sched_setaffinity(0, sizeof(two), &two), 0);
	mrrc_cpus_look(&cpus, false);
	if (cpus.allowed < 2)
		skip("one processor\n");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	budget = node_open(dir);
	other = node_open(dir);
	mrrc_budget_helper(other, &member, MRRC_NODE_CONSERVATIVE, true);
	node_join(budget, MRRC_NODE_CONSERVATIVE);

	learn(0, PAGES);
	pass(100 * PERIOD);
	ck_assert(registered(0, PAGES));
	ck_assert(atomic_load(&cache->asleep));
	ck_assert(!cache->member.would);
	/* The helper asks, but not all the time. */
	wake = turns();
	ck_assert_uint_le(wake, now + 1000 * MS);
	ck_assert_uint_ge(wake, now + 100 * MS);
	mrrc_budget_close(other);
	pass(2000 * MS);
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), LEARN + 1);
	/* There is nothing left to ask for. */
	pass(100 * PERIOD);
	ck_assert_uint_eq(turns(), UINT64_MAX);

	node_leave(budget);
	mrrc_node_shm_path(dir, path, sizeof(path));
	unlink(path);
	rmdir(dir);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}
