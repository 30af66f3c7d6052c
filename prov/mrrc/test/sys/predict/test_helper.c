/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A predicting helper as a thread of its own (sys/predict/ahead,
 * sys/cache/reaper): asleep while nothing is used, woken by the next use,
 * beside threads that use, change and flush, and closed at any moment.
 * Registrations are fake; the fake checks that no region is deregistered in use
 * or twice.
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_use.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#include <dirent.h>

#include "sys/node/budget_priv.h"
#include "sys/predict/ahead.h"

#define PAGES  5 /* more than 16 KiB */
#define CROWD  3
#define PLACES 10   /* places of PAGES pages: a few more than the cache keeps */
#define US     3000 /* microseconds between two uses of a thread */

static struct mrrc_mon_ops ops;
static struct mrrc_budget *budget;

static int open_predicting(struct mrrc_cache_mt **out)
{
	const struct mrrc_cache_attr attr = {
		.helper = true,
		.predictor = &mrrc_ahead_predictor,
		.helpers = MRRC_NODE_AGGRESSIVE,
		.budget = budget,
	};
	const struct mrrc_cost cost = {
		.reg = 1000,
		.dereg = 1000,
		.page = 4096,
	};
	const int ret = open_as(attr, out);

	if (!ret)
		mrrc_cache_mt_set_cost(*out, &cost);
	return ret;
}

static void setup(void)
{
	const struct mrrc_budget_attr alone = {
		.bytes = MRRC_BUDGET_NONE,
		.dir = "/nonexistent",
	};
	int why;

	mt_setup();
	ck_assert_int_eq(mrrc_budget_open(&alone, &budget, &why), 0);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	mrrc_mon_close(mt_mon);
	ops = fake_mon_ops;
	ops.lazy = true;
	ck_assert_int_eq(mrrc_mon_open_ops(&ops, NULL, &mt_mon), 0);
	ck_assert_int_eq(open_predicting(&cache), 0);
	ck_assert(mrrc_cache_mt_predicts(cache));
}

static void teardown(void)
{
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
	ck_assert_uint_eq(budget->would, 0);
	ck_assert_uint_eq(budget->used, 0);
	mrrc_budget_close(budget);
	mrrc_mon_close(mt_mon);
}

static void use(struct mrrc_cache_mt *of, unsigned place)
{
	void *const ptr = (void *) (base + place * PAGES * page);
	struct mrrc_region *region;

	mrrc_cache_use(of, ptr, PAGES * page, ptr);
	ck_assert_int_eq(
		mrrc_cache_mt_get(of, ptr, PAGES * page, MRRC_RW, &region), 0);
	mrrc_cache_use_wake(of);
	fake_reg_use(region, 1);
	fake_reg_use(region, -1);
	mrrc_cache_mt_put(of, region);
}

/* Returns how often the helper was woken. */
static long wakes(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	char path[300], line[80];
	bool helper;
	long count = -1, value;
	FILE *file;

	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 entry->d_name);
		file = fopen(path, "r");
		helper = false;
		while (file && fgets(line, sizeof(line), file)) {
			helper |= !!strstr(line, "mrrc-helper");
			if (helper &&
			    sscanf(line, "voluntary_ctxt_switches: %ld",
				   &value) == 1)
				count = value;
		}
		if (file)
			fclose(file);
	}
	closedir(dir);
	return count;
}

static void until_asleep(void)
{
	while (!atomic_load(&cache->asleep))
		usleep(1000);
}

TEST_CASE(helper, setup, teardown);

/* In an idle process, a second passes without a wake-up; no region stays. */
TEST(test_idle)
{
	unsigned i;
	long before;

	for (i = 0; i < 4 * PLACES; i++) {
		use(cache, i % PLACES);
		usleep(US);
	}
	until_asleep();
	while (fake.live)
		usleep(1000);
	/* The helper says early that it sleeps: seconds before, if busy. */
	for (i = 0; i < 10; i++) {
		before = wakes();
		ck_assert_int_ge(before, 1);
		usleep(1000000);
		if (wakes() == before)
			return;
	}
	ck_abort_msg("%ld wake-ups in the last second", wakes() - before);
}

TEST(test_wakes)
{
	uint64_t noted;
	unsigned i;

	for (i = 0; i < 4; i++) {
		until_asleep();
		noted = stat_of(MRRC_STAT_NOTED);
		use(cache, 0);
		while (stat_of(MRRC_STAT_NOTED) == noted)
			usleep(1000);
		ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), noted + 1);
	}
}

/* ---- several threads ---- */

static atomic_bool over;

static void *walk(void *arg)
{
	unsigned seed = (uintptr_t) arg;
	unsigned i;

	/* The uses are regular for a while, then irregular. */
	for (i = 0; !atomic_load(&over); i++) {
		use(cache, i / 64 % 2 ? (unsigned) rand_r(&seed) / 7 % PLACES :
					(i + seed) % PLACES);
		usleep(i / 64 % 2 ? (unsigned) rand_r(&seed) / 7 % US : US);
	}
	return NULL;
}

static void *disturb(void *arg)
{
	unsigned i;

	for (i = 0; !atomic_load(&over); i++) {
		mrrc_cache_mt_invalidate(
			cache, (void *) (base + i % PLACES * PAGES * page), 1);
		if (i % 16 == 0)
			mrrc_cache_mt_flush(cache);
		usleep(10 * US);
	}
	return NULL;
}

TEST(test_crowd)
{
	pthread_t thread[CROWD], other;
	unsigned i, round;

	for (round = 0; round < 3; round++) {
		atomic_store(&over, false);
		other = thread_start(disturb, NULL);
		for (i = 0; i < CROWD; i++)
			thread[i] = thread_start(walk, (void *) (uintptr_t) i);
		usleep(700000);
		atomic_store(&over, true);
		/* Threads end with unread uses in their rings. */
		for (i = 0; i < CROWD; i++)
			pthread_join(thread[i], NULL);
		pthread_join(other, NULL);
	}
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
	printf("%lu noted, %lu early, %lu ahead, %lu refused, %lu late\n",
	       stat_of(MRRC_STAT_NOTED), stat_of(MRRC_STAT_EARLY),
	       stat_of(MRRC_STAT_AHEAD), stat_of(MRRC_STAT_AHEAD_REFUSED),
	       stat_of(MRRC_STAT_LATE));
}

/* Several caches are closed at every moment, with uses unread. */
TEST(test_open_close)
{
	struct mrrc_cache_mt *other;
	unsigned i, j;

	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(open_predicting(&other), 0);
		for (j = 0; j < i % 30; j++) {
			use(other, j % PLACES);
			use(cache, j % PLACES);
			usleep(i * j % 400);
		}
		ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
	}
}
