/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/ahead: a helper that deregisters between uses and registers ahead of
 * them. Its turns are calls of the test, at times that the test chooses.
 */
#include "config.h"
/* before another `cache` */
#include "sys/ahead_priv.h"
#include "sys/cache_use.h"
#include "mt_fixture.h"
#include "suites.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "sys/budget_priv.h"

#define MS     UINT64_C(1000000)
#define PERIOD (40 * MS)
#define LEARN  24 /* periods */
#define PAGES  5  /* more than 16 KiB */
#define SITE   ((void *) 0x401000)

static const struct mrrc_cost cost = {
	.reg_page = 1000,
	.reg = 10000,
	.dereg_page = 500,
	.dereg = 5000,
	.page = 4096,
};

static struct mrrc_mon_ops ops;
static uint64_t now; /* the test's clock */

static void clock_set(uint64_t ns)
{
	now = ns;
	fault_clock(now);
}

static void setup(void)
{
	mt_setup();
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	mrrc_mon_close(mt_mon);
	ops = fake_mon_ops;
	ops.lazy = true;
	clock_set(1000 * MS);
	ck_assert_int_eq(mrrc_mon_open_ops(&ops, NULL, &mt_mon), 0);
	fake_mon_of(mt_mon)->base = base;
	ck_assert_int_eq(open_cache(&cache), 0);
	mrrc_cache_mt_set_cost(cache, &cost);
	ck_assert_int_eq(mrrc_ahead_open(cache, false, &cache->ahead), 0);
}

static void teardown(void)
{
	fault_clock(0);
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
	mrrc_mon_close(mt_mon);
}

/* As if the node had said so. */
static void leave(bool may, uint64_t move)
{
	cache->ahead->leave.may = may;
	cache->ahead->leave.move_ns = move;
}

/* All that there is to do now; returns when there is more. */
static uint64_t turns(void)
{
	uint64_t wake;
	bool asleep;

	do {
		wake = mrrc_ahead_turn(cache->ahead, &asleep);
	} while (!wake);
	ck_assert(mrrc_cache_mt_valid(cache));
	return wake;
}

static void pass(uint64_t ns)
{
	const uint64_t end = now + ns;
	uint64_t wake = turns();

	while (wake < end) {
		clock_set(wake);
		wake = turns();
	}
	clock_set(end);
}

static void note(unsigned first, unsigned pages)
{
	mrrc_cache_use(cache, (void *) (base + first * page), pages * page,
		       SITE);
	mrrc_cache_use_wake(cache);
}

static void use(unsigned first, unsigned pages)
{
	note(first, pages);
	touch(first, pages);
}

/* Once in each period; the last one has just begun. */
static void learn(unsigned first, unsigned pages)
{
	unsigned i;

	for (i = 0; i < LEARN; i++) {
		use(first, pages);
		pass(PERIOD);
	}
	use(first, pages);
}

/* The window's part is registered. */
static bool registered(unsigned first, unsigned pages)
{
	bool found;

	mrrc_lock_acquire(&cache->lock);
	found = mrrc_cache_find(&cache->cache, base + first * page,
				pages * page, MRRC_RW);
	mrrc_lock_release(&cache->lock);
	return found;
}

START_TEST(test_just_in_time)
{
	uint64_t misses;
	unsigned i;

	learn(0, PAGES);
	misses = stat_of(MRRC_STAT_MISSES);
	for (i = 0; i < 8; i++) {
		ck_assert(registered(0, PAGES));
		pass(PERIOD / 4);
		ck_assert(!registered(0, PAGES));
		ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), PAGES * page);
		pass(PERIOD - PERIOD / 4);
		ck_assert(registered(0, PAGES));
		ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
		use(0, PAGES);
	}
	ck_assert_uint_eq(stat_of(MRRC_STAT_MISSES), misses);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LATE), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 0);
	pass(1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), LEARN + 9);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD),
			  stat_of(MRRC_STAT_AHEAD_USED));
	ck_assert_uint_ge(stat_of(MRRC_STAT_AHEAD), 8);
	ck_assert_uint_ge(stat_of(MRRC_STAT_PREDICTED), LEARN - 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_PREDICTED),
			  stat_of(MRRC_STAT_PREDICTED_5));
}
END_TEST

/* What was deregistered, times how long. */
START_TEST(test_saved)
{
	uint64_t before;

	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	leave(false, 0);
	turns();
	before = stat_of(MRRC_STAT_SAVED);
	pass(PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_SAVED), before);
	leave(true, 0);
	learn(0, PAGES);
	pass(PERIOD / 8);
	turns();
	before = stat_of(MRRC_STAT_SAVED);
	ck_assert(!registered(0, PAGES));
	pass(PERIOD / 2);
	turns();
	/* a fiftieth of a second */
	ck_assert_uint_le(stat_of(MRRC_STAT_SAVED) - before, PAGES * page / 45);
	ck_assert_uint_ge(stat_of(MRRC_STAT_SAVED) - before, PAGES * page / 55);
}
END_TEST

/* Small buffers are not noted, at the paper's threshold. */
START_TEST(test_small)
{
	mrrc_cache_use(cache, (void *) base, 16384, SITE);
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 0);
	mrrc_cache_use(cache, (void *) base, 16385, SITE);
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 1);
}
END_TEST

/* A wrong range is for the call to refuse. */
START_TEST(test_no_range)
{
	mrrc_cache_use(cache, (void *) base, SIZE_MAX, SITE);
	mrrc_cache_use(cache, (void *) (UINTPTR_MAX - 20000), 19999, SITE);
	mrrc_cache_use(cache, (void *) (UINTPTR_MAX - 20000), 20000, SITE);
	mrrc_cache_use(cache, (void *) (UINTPTR_MAX - 20000), 20001, SITE);
	pass(PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 4);
	ck_assert_uint_eq(cache->ahead->buffers.count, 0);
}
END_TEST

/* An operation may last as long as it likes. */
START_TEST(test_in_use)
{
	struct mrrc_region *region;
	unsigned i;

	learn(0, PAGES);
	region = get(0, PAGES);
	fake_reg_use(region, 1);
	for (i = 0; i < 40; i++) {
		pass(PERIOD);
		ck_assert(registered(0, PAGES));
	}
	fake_reg_use(region, -1);
	put(region);
	pass(100 * PERIOD);
	ck_assert(!registered(0, PAGES));
}
END_TEST

/* Held between the look at it and its end: its last put deregisters it. */
static struct mrrc_region *caught;

/* As a hit that has looked at the word before it was written. */
static void hold_it(void)
{
	mrrc_hints_count_hold(mrrc_hints_lane(mrrc_hints_recent,
					      (char *) caught - cache->regions),
			      1);
	fake_reg_use(caught, 1);
}

START_TEST(test_held_meanwhile)
{
	learn(0, PAGES);
	caught = get(0, PAGES);
	put(caught);
	fault_at(FAULT_BARRIER, hold_it);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(fake.live, 1);
	fake_reg_use(caught, -1);
	put(caught);
}
END_TEST

/* Two buffers share a region: it stays for the one that is used often. */
START_TEST(test_shared)
{
	unsigned i;

	touch(0, 3 * PAGES);
	for (i = 0; i < 10 * LEARN; i++) {
		if (i % 10 == 0)
			use(0, PAGES);
		use(2 * PAGES, PAGES);
		pass(MS / 4);
	}
	ck_assert(registered(0, 3 * PAGES));
	ck_assert_uint_eq(stat_of(MRRC_STAT_EARLY), 0);
	ck_assert_uint_eq(fake.regs, 1);
}
END_TEST

/* Not for a time that is hardly longer than it takes. */
START_TEST(test_not_worth)
{
	unsigned i;

	for (i = 0; i < 10 * LEARN; i++) {
		use(0, PAGES);
		pass(MS / 2);
	}
	ck_assert_uint_eq(stat_of(MRRC_STAT_EARLY), 0);
	/* but in the end */
	pass(100 * PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_EARLY), 1);
}
END_TEST

/* Both are due at different times: registered for the first that is. */
START_TEST(test_shared_away)
{
	unsigned i;

	touch(0, 3 * PAGES);
	for (i = 0; i < LEARN; i++) {
		use(0, PAGES);
		use(2 * PAGES, PAGES);
		pass(PERIOD);
		use(0, PAGES);
		pass(PERIOD);
	}
	use(0, PAGES);
	use(2 * PAGES, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	pass(PERIOD - PERIOD / 4);
	ck_assert(registered(0, 3 * PAGES));
	use(0, PAGES);
	ck_assert_uint_eq(stat_of(MRRC_STAT_OVERLAPS), 0);
}
END_TEST

/* Nothing is evicted for the sake of a prediction. */
START_TEST(test_no_room)
{
	size_t regs;
	unsigned i;

	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	for (i = 0; i < MT_REGIONS; i++)
		touch(10 + 2 * i, 1);
	regs = fake.regs;
	pass(PERIOD - PERIOD / 4);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
	/* as if it had never been */
	use(0, PAGES);
	ck_assert(registered(0, PAGES));
}
END_TEST

static void fill_now(void *arg, uintptr_t start, size_t len)
{
	unsigned i;

	fake.hook = NULL;
	for (i = 0; i < MT_REGIONS; i++)
		touch(10 + 2 * i, 1);
}

/* Another thread registers a part of it, and a part of what is beside it. */
static void overlap_now(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	touch(PAGES - 1, 2);
}

/* Not either if there was room when it began. */
START_TEST(test_no_room_meanwhile)
{
	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	fake.hook = _i ? overlap_now : fill_now;
	pass(PERIOD - PERIOD / 4);
	ck_assert_ptr_null(fake.hook);
	ck_assert(!registered(0, PAGES));
	ck_assert(_i ? registered(PAGES - 1, 2) : registered(10, 1));
	ck_assert_uint_eq(stat_of(MRRC_STAT_EVICTIONS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_OVERLAPS), 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
}
END_TEST

/* A limit of the system: once, and nothing makes way. */
START_TEST(test_limit)
{
	size_t fails;

	learn(0, PAGES);
	touch(20, 1);
	pass(PERIOD / 4);
	fake.max_live = fake.live;
	fails = fake.fails;
	pass(PERIOD - PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	ck_assert(registered(20, 1));
	ck_assert_uint_eq(fake.fails, fails + 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	fake.max_live = 0;
	use(0, PAGES);
	ck_assert(registered(0, PAGES));
}
END_TEST

/* The application may protect it meanwhile: an error for nobody. */
START_TEST(test_fails)
{
	learn(0, PAGES);
	pass(PERIOD / 4);
	fake.bad_start = base;
	fake.bad_end = base + page;
	pass(PERIOD);
	fake.bad_end = 0;
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	pass(100 * PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

/* ---- memory that changes between two uses ---- */

static void change(enum mrrc_mon_event event)
{
	fake_mon_raise(mt_mon, base + page, base + 2 * page, event);
}

/* What was unmapped or dropped is not brought back, whatever is there now. */
START_TEST(test_changed)
{
	size_t regs;

	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	regs = fake.regs;
	change(_i ? MRRC_MON_REMOVE : MRRC_MON_UNMAP);
	if (_i > 1)
		mrrc_mon_drain(mt_mon);
	pass(PERIOD);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert_uint_eq(fake.fails, 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
}
END_TEST

/* Another cache has registered what is mapped there now: still another plan. */
START_TEST(test_other_memory)
{
	struct mrrc_cache_mt *other;
	struct mrrc_region *region;
	size_t regs;

	ck_assert_int_eq(open_cache(&other), 0);
	learn(0, PAGES);
	pass(PERIOD / 4);
	change(MRRC_MON_UNMAP);
	mrrc_mon_drain(mt_mon);
	ck_assert_int_eq(mrrc_cache_mt_get(other, (void *) base, PAGES * page,
					   MRRC_RW, &region),
			 0);
	mrrc_cache_mt_put(other, region);
	regs = fake.regs;
	pass(PERIOD - PERIOD / 4);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert_int_eq(mrrc_cache_mt_close(other), 0);
}
END_TEST

static void change_now(void *arg, uintptr_t start, size_t len)
{
	change(MRRC_MON_UNMAP);
	fake_mon_read(mt_mon);
}

/* While it is being registered: not kept. */
START_TEST(test_changes_meanwhile)
{
	learn(0, PAGES);
	pass(PERIOD / 4);
	fake.hook = change_now;
	pass(PERIOD - PERIOD / 4);
	fake.hook = NULL;
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AHEAD_REFUSED), 1);
}
END_TEST

/* Forgotten for room for other ranges: the watch has ended. */
START_TEST(test_watch_ends)
{
	size_t regs;

	learn(0, PAGES);
	pass(PERIOD / 4);
	regs = fake.regs;
	mrrc_mon_unwatch_idle(mt_mon);
	pass(PERIOD - PERIOD / 4);
	ck_assert_uint_eq(fake.regs, regs);
}
END_TEST

/* What was unmapped is not counted as saved for long. */
START_TEST(test_swept)
{
	learn(0, PAGES);
	/* no use any more: expected for some time, then gone */
	pass(20 * PERIOD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), PAGES * page);
	change(MRRC_MON_UNMAP);
	mrrc_mon_drain(mt_mon);
	use(20, PAGES);
	pass(2000 * MS);
	use(20, PAGES);
	pass(1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), 0);
}
END_TEST

/* ---- flushes, limits of what it may ---- */

START_TEST(test_flushed)
{
	size_t regs;

	learn(0, PAGES);
	pass(PERIOD / 4);
	regs = fake.regs;
	mrrc_cache_mt_flush(cache);
	pass(PERIOD);
	/* nor by what is noted after it */
	note(0, PAGES);
	pass(20 * PERIOD);
	ck_assert_uint_eq(fake.regs, regs);
}
END_TEST

static pthread_t flusher;
static atomic_bool flushed;

static void *flush(void *arg)
{
	mrrc_cache_mt_flush(cache);
	atomic_store(&flushed, true);
	return NULL;
}

static uint64_t flushes(void)
{
	uint64_t count;

	mrrc_lock_acquire(&cache->lock);
	count = cache->flushes;
	mrrc_lock_release(&cache->lock);
	return count;
}

static void flush_now(void *arg, uintptr_t start, size_t len)
{
	const uint64_t before = flushes();
	unsigned i;

	fake.hook = NULL;
	pthread_create(&flusher, NULL, flush, NULL);
	/* until it has begun, and then some time to end, which it must not */
	for (i = 0; i < 20000 && flushes() == before; i++)
		usleep(1000);
	for (i = 0; i < 20; i++)
		usleep(1000);
	ck_assert(!atomic_load(&flushed));
}

/* What is being registered goes, too, and what is due next stays away. */
START_TEST(test_flush_waits)
{
	size_t regs;
	unsigned i;

	atomic_store(&flushed, false);
	for (i = 0; i < LEARN; i++) {
		use(0, PAGES);
		use(10, PAGES);
		pass(PERIOD);
	}
	use(0, PAGES);
	use(10, PAGES);
	pass(PERIOD / 4);
	ck_assert_uint_eq(fake.live, 0);
	regs = fake.regs;
	fake.hook = flush_now;
	/* both are due in one turn */
	clock_set(now + PERIOD - PERIOD / 4);
	turns();
	ck_assert_ptr_null(fake.hook);
	pthread_join(flusher, NULL);
	ck_assert_uint_eq(fake.regs, regs + 1);
	ck_assert_uint_eq(fake.live, 0);
}
END_TEST

static pthread_t asker;
static atomic_bool answered;
static bool too_early;
static atomic_size_t held;

static void *ask(void *arg)
{
	atomic_store(&held, mrrc_cache_mt_held(cache));
	atomic_store(&answered, true);
	return NULL;
}

static bool waited_for(void)
{
	bool waiting;

	mrrc_lock_acquire(&cache->lock);
	waiting = cache->waiting;
	mrrc_lock_release(&cache->lock);
	return waiting;
}

static void ask_now(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	pthread_create(&asker, NULL, ask, NULL);
	while (!atomic_load(&answered) && !waited_for())
		usleep(1000);
	too_early = atomic_load(&answered);
}

/* Nor does what the helper holds for a moment keep the cache open. */
START_TEST(test_held_waits)
{
	atomic_store(&answered, false);
	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	fake.hook = ask_now;
	pass(PERIOD);
	ck_assert_ptr_null(fake.hook);
	pthread_join(asker, NULL);
	ck_assert(!too_early);
	ck_assert_uint_eq(held, 0);
}
END_TEST

/* Without leave it only learns; with it again it goes on. */
START_TEST(test_leave)
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
END_TEST

/* Deadlines are earlier by what other helpers may take. */
START_TEST(test_delay)
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
	/* or there is no time at all */
	pass(PERIOD - PERIOD / 4 - (plain - 9 * MS));
	leave(true, PERIOD);
	use(0, PAGES);
	pass(PERIOD / 2);
	ck_assert(registered(0, PAGES));
}
END_TEST

/* It may not act: it looks less and less often, and knows the uses later. */
START_TEST(test_barred)
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
	/* every 512 ms in the end */
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
END_TEST

/* What this thread noted before: two other buffers in its place. */
static void overwrite(void)
{
	unsigned i;

	for (i = 0; i < 2 * MRRC_USES_RING; i++)
		note(2 * PAGES * (1 + i % 2), PAGES);
}

/* Between uses of which some were overwritten is no gap. */
START_TEST(test_lost_gap)
{
	struct mrrc_predict *predict = &cache->ahead->predict;
	uint64_t gaps;

	learn(0, PAGES);
	pass(PERIOD / 4);
	gaps = predict->gaps;
	clock_set(now + 3 * PERIOD);
	overwrite();
	note(0, PAGES);
	turns();
	ck_assert_uint_ge(stat_of(MRRC_STAT_NOTES_LOST), MRRC_USES_RING);
	ck_assert_uint_lt(predict->longest, 2 * PERIOD);
	/* but later ones are: of the two others, seen again and again */
	ck_assert_uint_gt(predict->gaps, gaps);
}
END_TEST

static void elsewhere(void *(*run)(void *) )
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, NULL), 0);
	pthread_join(thread, NULL);
}

/* A thread that loses uses, and later uses the buffer twice. */
static void *note_around(void *arg)
{
	overwrite();
	note(0, PAGES);
	clock_set(now + 3 * PERIOD);
	note(0, PAGES);
	return NULL;
}

/* Nor if another thread's uses in between were overwritten. */
START_TEST(test_lost_gap_of_another)
{
	struct mrrc_predict *predict = &cache->ahead->predict;

	learn(0, PAGES);
	pass(PERIOD / 4);
	elsewhere(note_around);
	clock_set(now - 2 * PERIOD);
	note(0, PAGES);
	clock_set(now + PERIOD);
	overwrite();
	clock_set(now + PERIOD);
	turns();
	ck_assert_uint_ge(stat_of(MRRC_STAT_NOTES_LOST), 2 * MRRC_USES_RING);
	ck_assert_uint_lt(predict->longest, 2 * PERIOD);
}
END_TEST

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

/* With the cache, in place of which there is a new one. */
static void node_leave(struct mrrc_budget *budget)
{
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(budget->would, 0);
	ck_assert_uint_eq(budget->used, 0);
	mrrc_budget_close(budget);
	ck_assert_int_eq(open_cache(&cache), 0);
}

/*
 * With one processor there is none for a helper, unless all processes are to
 * have one. A helper that sleeps or has ended needs none.
 */
START_TEST(test_node)
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
	pass(100 * PERIOD);
	ck_assert(atomic_load(&cache->asleep));
	ck_assert(!cache->member.would);
	note(0, PAGES);
	turns();
	ck_assert(cache->member.would);

	node_leave(budget);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}
END_TEST

/* Two processes of two processors: none is left for a helper until one ends. */
START_TEST(test_node_ends)
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
	mrrc_cpus_look(&cpus);
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
	/* it asks, but not all the time */
	wake = turns();
	ck_assert_uint_le(wake, now + 1000 * MS);
	ck_assert_uint_ge(wake, now + 100 * MS);
	mrrc_budget_close(other);
	pass(2000 * MS);
	ck_assert(!registered(0, PAGES));
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), LEARN + 1);
	/* and nothing is left to ask for */
	pass(100 * PERIOD);
	ck_assert_uint_eq(turns(), UINT64_MAX);

	node_leave(budget);
	snprintf(path, sizeof(path), "%s/ofi_mrrc-%u.%u", dir,
		 (unsigned) geteuid(), MRRC_NODE_SHM_VERSION);
	unlink(path);
	rmdir(dir);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}
END_TEST

/* Peers have the key of such a one. */
START_TEST(test_remote)
{
	const enum mrrc_access access = MRRC_RW | MRRC_REMOTE_WRITE;
	unsigned i;

	for (i = 0; i < LEARN; i++) {
		note(0, PAGES);
		put(get_as(0, PAGES, access));
		pass(PERIOD);
	}
	ck_assert_uint_eq(fake.deregs, 0);
}
END_TEST

/* ---- rings ---- */

START_TEST(test_lost)
{
	unsigned i;

	for (i = 0; i < 3 * MRRC_USES_RING; i++)
		note(0, PAGES);
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 3 * MRRC_USES_RING);
	/* and the one that the thread might be writing over */
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTES_LOST),
			  2 * MRRC_USES_RING + 1);
}
END_TEST

static void *note_and_end(void *arg)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		use(20, PAGES);
	return NULL;
}

/* What an ended thread left is read, and then its ring freed. */
START_TEST(test_thread_ends)
{
	elsewhere(note_and_end);
	ck_assert(!TAILQ_EMPTY(&cache->hints_list.uses));
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 3);
	turns();
	ck_assert(TAILQ_EMPTY(&cache->hints_list.uses));
	/* and if none is left at the end, it goes with the cache */
	elsewhere(note_and_end);
}
END_TEST

/* ---- sleep ---- */

START_TEST(test_sleeps)
{
	bool asleep = false;
	uint64_t wake = 0;
	unsigned i;

	use(0, PAGES);
	for (i = 0; i < 100 && !asleep; i++) {
		wake = mrrc_ahead_turn(cache->ahead, &asleep);
		if (wake && !asleep)
			clock_set(wake);
	}
	ck_assert(asleep);
	ck_assert(atomic_load(&cache->asleep));
	note(0, PAGES);
	ck_assert(!atomic_load(&cache->asleep));
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 2);
	/* after all is gone, for good */
	pass(100000 * MS);
	ck_assert(!registered(0, PAGES) || turns() > now + 1000 * MS);
}
END_TEST

/* By a thread that has looked at the flag before it was set. */
static void note_it(void)
{
	mrrc_uses_add(mrrc_hints_recent->uses, 1, base, PAGES * page);
}

/* Noted while it falls asleep. */
START_TEST(test_not_asleep)
{
	bool asleep = false;
	uint64_t wake = 0;
	unsigned i;

	use(0, PAGES);
	fault_at(FAULT_BARRIER, note_it);
	for (i = 0; i < 100 && stat_of(MRRC_STAT_NOTED) < 2; i++) {
		wake = mrrc_ahead_turn(cache->ahead, &asleep);
		ck_assert(!asleep);
		if (wake)
			clock_set(wake);
	}
	fault_at(FAULT_BARRIER, NULL);
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 2);
}
END_TEST

static sem_t locked, forked;

static void *lock_it(void *arg)
{
	mrrc_lock_acquire(&cache->lock);
	sem_post(&locked);
	sem_wait(&forked);
	mrrc_lock_release(&cache->lock);
	return arg;
}

/* The child notes nothing, and takes no lock that the helper may have had. */
START_TEST(test_fork)
{
	pthread_t thread;
	int status;
	pid_t pid;

	use(0, PAGES);
	sem_init(&locked, 0, 0);
	sem_init(&forked, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, lock_it, NULL), 0);
	sem_wait(&locked);
	pid = fork();
	if (!pid) {
		end_in(20);
		note(0, PAGES);
		_exit(0);
	}
	sem_post(&forked);
	pthread_join(thread, NULL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 1);
}
END_TEST

START_TEST(test_no_monitor)
{
	struct mrrc_ahead *ahead = NULL;

	ops.lazy = false;
	ck_assert_int_eq(mrrc_ahead_open(cache, false, &ahead), -ENODEV);
	ops.lazy = true;
	ck_assert_ptr_null(ahead);
}
END_TEST

START_TEST(test_open_fails)
{
	struct mrrc_ahead *ahead = NULL;
	bool fired = true;
	int n, ret = 0;

	for (n = 1; fired; n++) {
		fault_arm(n);
		ret = mrrc_ahead_open(cache, false, &ahead);
		fired = fault_disarm();
		ck_assert(!fired == !ret);
		ck_assert(!fired || (!ahead && !fault_leaks()));
	}
	mrrc_ahead_close(ahead);
}
END_TEST

Suite *ahead_suite(void)
{
	Suite *suite = suite_create("ahead");
	TCase *tcase = tcase_create("ahead");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_just_in_time);
	tcase_add_test(tcase, test_saved);
	tcase_add_test(tcase, test_small);
	tcase_add_test(tcase, test_no_range);
	tcase_add_test(tcase, test_in_use);
	tcase_add_test(tcase, test_held_meanwhile);
	tcase_add_test(tcase, test_shared);
	tcase_add_test(tcase, test_not_worth);
	tcase_add_test(tcase, test_shared_away);
	tcase_add_test(tcase, test_no_room);
	tcase_add_loop_test(tcase, test_no_room_meanwhile, 0, 2);
	tcase_add_test(tcase, test_limit);
	tcase_add_test(tcase, test_fails);
	tcase_add_loop_test(tcase, test_changed, 0, 3);
	tcase_add_test(tcase, test_other_memory);
	tcase_add_test(tcase, test_changes_meanwhile);
	tcase_add_test(tcase, test_watch_ends);
	tcase_add_test(tcase, test_swept);
	tcase_add_test(tcase, test_flushed);
	tcase_add_test(tcase, test_flush_waits);
	tcase_add_test(tcase, test_held_waits);
	tcase_add_test(tcase, test_leave);
	tcase_add_test(tcase, test_delay);
	tcase_add_test(tcase, test_barred);
	tcase_add_test(tcase, test_lost_gap);
	tcase_add_test(tcase, test_lost_gap_of_another);
	tcase_add_loop_test(tcase, test_node, 0, 2);
	tcase_add_test(tcase, test_node_ends);
	tcase_add_test(tcase, test_remote);
	tcase_add_test(tcase, test_lost);
	tcase_add_test(tcase, test_thread_ends);
	tcase_add_test(tcase, test_sleeps);
	tcase_add_test(tcase, test_not_asleep);
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_no_monitor);
	tcase_add_test(tcase, test_open_fails);
	suite_add_tcase(suite, tcase);
	return suite;
}
