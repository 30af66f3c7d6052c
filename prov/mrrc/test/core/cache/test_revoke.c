/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache/revoke: how long the key of a closed registration works, measured
 * by a clock of the test.
 */
#include "config.h"
#include "test/case.h"

#include "core/cache/revoke.h"
#include "test/seed.h"

#define PAGE  4096u
#define MANY  3000u /* more regions than one turn looks at */
#define KEYS  MRRC_REMOTE_READ
#define LIMIT 1000u
#define HALF  (LIMIT / 2)

static struct mrrc_cache cache;
static struct mrrc_revoke ends;
static struct mrrc_region region[MANY];
/* time of closing; 0: open, or the key never ends */
static uint64_t closed[MANY];
static uint64_t now, wake;

static void setup(void)
{
	ck_assert_int_eq(mrrc_cache_init(&cache,
					 &(struct mrrc_cache_conf){
						 .max_bytes = 2 * MANY * PAGE,
						 .max_regions = MANY,
						 .page = PAGE,
						 .policy = "lru",
					 }),
			 0);
	mrrc_revoke_init(&ends, LIMIT);
	memset(region, 0, sizeof(region));
	now = 12345;
	wake = MRRC_REVOKE_NEVER;
}

static bool kept(unsigned i)
{
	return region[i].state == MRRC_REGION_INDEXED;
}

/* Makes all turns that are due by now. */
static unsigned turns(void)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);
	unsigned count = 0;

	while (wake <= now) {
		wake = mrrc_revoke_turn(&ends, &cache, now, &victims);
		count++;
	}
	ck_assert(mrrc_cache_valid(&cache));
	return count;
}

static void until(uint64_t end)
{
	turns();
	for (; now < end; turns())
		now = wake < end ? wake : end;
}

static void insert(unsigned i)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);

	mrrc_region_renew(&region[i], i);
	region[i].start = (i + 1) * 2 * PAGE;
	region[i].len = 2 * PAGE;
	region[i].access = i % 2 ? KEYS : KEYS | MRRC_RW | MRRC_REMOTE_WRITE;
	region[i].state = MRRC_REGION_NEW;
	region[i].closed = closed[i] = 0;
	ck_assert_int_eq(mrrc_cache_insert(&cache, &region[i], &victims), 0);
}

/* Makes a registration and gives its key out. */
static void begin(unsigned i)
{
	mrrc_cache_hold(&cache, &region[i]);
	closed[i] = 0;
	if (!mrrc_revoke_begun(&region[i]) &&
	    mrrc_revoke_begin(&ends, &region[i]))
		wake = 0;
}

static void end(unsigned i)
{
	mrrc_revoke_note(&ends, &region[i]);
	mrrc_cache_put(&cache, &region[i]);
	closed[i] = now;
}

static void teardown(void)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);

	mrrc_cache_invalidate(&cache, 0, SIZE_MAX, &victims);
	mrrc_cache_fini(&cache);
}

TEST_CASE(revoke, setup, teardown);

/* A key works for half the limit at least, and for all of it at most. */
TEST(test_limit)
{
	insert(0);
	begin(0);
	turns();
	until(now + 3 * LIMIT + 77);
	ck_assert(kept(0)); /* The registration is open. */
	end(0);
	until(closed[0] + HALF - 1);
	ck_assert(kept(0));
	until(closed[0] + LIMIT);
	ck_assert(!kept(0));
	ck_assert_uint_eq(cache.stats->value[MRRC_STAT_REVOCATIONS], 1);
	/* No turn is due while no key is to end. */
	ck_assert_uint_eq(wake, MRRC_REVOKE_NEVER);
}

/* The time of a key begins anew each time that its region is used again. */
TEST(test_used_again)
{
	unsigned i;

	insert(0);
	for (i = 0; i < 10; i++) {
		begin(0);
		end(0);
		until(now + HALF - 1);
		ck_assert(kept(0));
	}
	/* The region is in use throughout several periods, then closed. */
	begin(0);
	until(now + 5 * LIMIT);
	end(0);
	turns();
	ck_assert(kept(0));
	until(now + LIMIT);
	ck_assert(!kept(0));
}

/* A region whose key was never given out stays, whatever other keys end. */
TEST(test_no_end)
{
	insert(0);
	insert(1);
	begin(1);
	end(1);
	until(now + 5 * LIMIT);
	ck_assert(kept(0));
	ck_assert(!kept(1));
	ck_assert_uint_eq(wake, MRRC_REVOKE_NEVER);
	/* The region is registered again. */
	insert(1);
	begin(1);
	ck_assert_uint_eq(wake, 0);
	end(1);
	until(now + LIMIT);
	ck_assert(!kept(1));
}

/* There are more regions than one turn looks at, and some overlap. */
TEST(test_many)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);
	struct mrrc_region *over = &region[MANY - 1];
	unsigned i;

	for (i = 0; i < MANY - 1; i++) {
		insert(i);
		begin(i);
		end(i);
	}
	mrrc_region_renew(over, 0);
	over->start = region[1].start + PAGE;
	over->len = 2 * PAGE;
	over->access = KEYS;
	ck_assert_int_eq(mrrc_cache_insert(&cache, over, &victims), 0);
	turns();
	now += HALF;
	ck_assert_uint_ge(turns(), 2);
	ck_assert_uint_eq(mrrc_cache_regions(&cache), 1);
	ck_assert(kept(MANY - 1));
}

/* Uses, closes and times are random; each key ends within its bounds. */
LOOP_TEST(test_random, 0, 20)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);
	struct seed seed = seed_init("revoke", _i);
	unsigned step, i, open[16] = { 0 };
	bool had[16];

	for (i = 0; i < 16; i++)
		insert(i);
	for (step = 0; step < 5000; step++) {
		i = (unsigned) seed_below(&seed, 16);
		switch (seed_below(&seed, 5)) {
		case 0:
			for (i = 0; i < 16; i++)
				had[i] = kept(i);
			until(now + seed_below(&seed, HALF));
			for (i = 0; i < 16; i++)
				ck_assert(!had[i] || kept(i) ||
					  (!open[i] && closed[i] &&
					   now >= closed[i] + HALF));
			break;
		case 1:
			TAILQ_INIT(&victims);
			mrrc_cache_invalidate(&cache, region[i].start, 1,
					      &victims);
			break;
		case 2:
			if (!open[i] && !kept(i))
				insert(i);
			break;
		case 3:
			if (!kept(i))
				break;
			open[i]++;
			begin(i);
			break;
		default:
			if (!open[i])
				break;
			end(i);
			if (--open[i])
				closed[i] = 0;
		}
		for (i = 0; i < 16; i++)
			ck_assert(!kept(i) || open[i] || !closed[i] ||
				  now < closed[i] + LIMIT);
	}
}
