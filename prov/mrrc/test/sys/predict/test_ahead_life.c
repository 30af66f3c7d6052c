/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/predict/ahead: flushes, rings of uses, sleep, fork, opening. */
#include "config.h"
#include "test/case.h"
#include "test/sys/predict/ahead_fixture.h"

#include <semaphore.h>

#include "test/fakes/fault.h"

TEST_CASE(ahead_life, ahead_setup, ahead_teardown);

/* ---- flushes ---- */

TEST(test_flushed)
{
	size_t regs;

	learn(0, PAGES);
	pass(PERIOD / 4);
	regs = fake.regs;
	mrrc_cache_mt_flush(cache);
	pass(PERIOD);
	/* A use that is noted after the flush brings no region back, either. */
	note(0, PAGES);
	pass(20 * PERIOD);
	ck_assert_uint_eq(fake.regs, regs);
}

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

/* Acts as the helper while it registers a region. */
static void registering(bool is)
{
	mrrc_lock_acquire(&cache->lock);
	cache->registering = is;
	pthread_cond_broadcast(&cache->settled);
	mrrc_lock_release(&cache->lock);
}

static void begin_flush(void)
{
	const uint64_t before = flushes();

	pthread_create(&flusher, NULL, flush, NULL);
	while (flushes() == before)
		usleep(1000);
}

static void flush_now(void *arg, uintptr_t start, size_t len)
{
	unsigned i;

	fake.hook = NULL;
	begin_flush();
	/* The flush has time to end, but must not. */
	for (i = 0; i < 20; i++)
		usleep(1000);
	ck_assert(!atomic_load(&flushed));
}

/*
 * A flush removes a region that is being registered, and regions that are due
 * later are not registered again.
 */
TEST(test_flush_waits)
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
	/* Both regions are due in one turn. */
	clock_set(now + PERIOD - PERIOD / 4);
	turns();
	ck_assert_ptr_null(fake.hook);
	pthread_join(flusher, NULL);
	ck_assert_uint_eq(fake.regs, regs + 1);
	ck_assert_uint_eq(fake.live, 0);
}

/* A region that leaves during a flush does not come back, either. */
TEST(test_flush_meanwhile)
{
	size_t regs;

	atomic_store(&flushed, false);
	learn(0, PAGES);
	registering(true);
	begin_flush();
	ck_assert(registered(0, PAGES));
	pass(PERIOD / 4);
	ck_assert_uint_eq(stat_of(MRRC_STAT_AWAY_BYTES), PAGES * page);
	registering(false);
	pthread_join(flusher, NULL);
	regs = fake.regs;
	pass(PERIOD);
	ck_assert_uint_eq(fake.regs, regs);
	ck_assert_uint_eq(fake.live, 0);
}

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

static void *invalidate(void *arg)
{
	mrrc_cache_mt_invalidate(cache, (void *) (base + page), page);
	atomic_store(&held, fake.live);
	atomic_store(&answered, true);
	return NULL;
}

static void *(*const askers[])(void *) = { ask, invalidate };

static void ask_now(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	pthread_create(&asker, NULL, arg, NULL);
	while (!atomic_load(&answered) && !waiting())
		usleep(1000);
	too_early = atomic_load(&answered);
}

/*
 * A region that the helper holds for a moment does not keep a cache open, and
 * does not survive an invalidation of its range.
 */
LOOP_TEST(test_held_waits, 0, 2)
{
	atomic_store(&answered, false);
	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	fake.hook = ask_now;
	fake.hook_arg = askers[_i];
	pass(PERIOD);
	ck_assert_ptr_null(fake.hook);
	pthread_join(asker, NULL);
	ck_assert(!too_early);
	ck_assert_uint_eq(held, 0);
}

static void help(void)
{
	turns();
}

/* An invalidated region does not come back, whenever it is due. */
LOOP_TEST(test_invalidated, 0, 8)
{
	struct mrrc_deadline *due;

	learn(0, PAGES);
	pass(PERIOD / 4);
	ck_assert(!registered(0, PAGES));
	due = mrrc_deadlines_first(&cache->ahead->schedule.planned);
	ck_assert_ptr_nonnull(due);
	clock_set(due->due);
	act_after(_i, help);
	mrrc_cache_mt_invalidate(cache, (void *) (base + page), page);
	mrrc_mon_invalidate(mt_mon, base + page, page);
	fault_at(FAULT_LOCK, NULL);
	ck_assert_uint_eq(fake.live, 0);
	turns();
	ck_assert_uint_eq(fake.live, 0);
}

/* ---- rings ---- */

TEST(test_lost)
{
	unsigned i;

	for (i = 0; i < 3 * MRRC_USES_RING; i++)
		note(0, PAGES);
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 3 * MRRC_USES_RING);
	/* The note that the thread might be overwriting is lost, too. */
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTES_LOST),
			  2 * MRRC_USES_RING + 1);
}

/* Overwrites this thread's notes with those of two other buffers. */
static void overwrite(void)
{
	unsigned i;

	for (i = 0; i < 2 * MRRC_USES_RING; i++)
		note(2 * PAGES * (1 + i % 2), PAGES);
}

/* Two uses have no gap if uses between them were overwritten. */
TEST(test_lost_gap)
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
	/* Later uses of the two other buffers make gaps. */
	ck_assert_uint_gt(predict->gaps, gaps);
}

/* A thread loses uses, and later uses the buffer twice. */
static void *note_around(void *arg)
{
	overwrite();
	note(0, PAGES);
	clock_set(now + 3 * PERIOD);
	note(0, PAGES);
	return NULL;
}

/* Two uses have no gap if another thread's uses between were overwritten. */
TEST(test_lost_gap_of_another)
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

static void *note_and_end(void *arg)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		use(20, PAGES);
	return NULL;
}

/* The notes of an ended thread are read, then its ring is freed. */
TEST(test_thread_ends)
{
	elsewhere(note_and_end);
	ck_assert(!TAILQ_EMPTY(&cache->hints_list.uses));
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 3);
	turns();
	ck_assert(TAILQ_EMPTY(&cache->hints_list.uses));
	/* A ring without unread notes ends with the cache. */
	elsewhere(note_and_end);
}

/* ---- sleep ---- */

/* The helper does not look just before a step, as each step looks, too. */
TEST(test_few_looks)
{
	unsigned looks = 0;
	uint64_t wake, end;

	learn(0, PAGES);
	end = now + PERIOD;
	for (wake = turns(); wake < end; wake = turns()) {
		looks++;
		clock_set(wake);
	}
	ck_assert(registered(0, PAGES));
	/* The helper looks after 2, 4 and 8 ms, and at the step. */
	ck_assert_uint_le(looks, 4);
}

/* Notes a use, as a thread does that looked at the flag before it was set. */
static void note_it(void)
{
	mrrc_uses_add(mrrc_hints_recent->uses, 1, base, PAGES * page);
}

/* A use is noted while the helper falls asleep. */
TEST(test_not_asleep)
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

static sem_t locked, forked;

static void *lock_it(void *arg)
{
	mrrc_lock_acquire(&cache->lock);
	sem_post(&locked);
	sem_wait(&forked);
	mrrc_lock_release(&cache->lock);
	return arg;
}

/* A child notes no uses, and takes no lock that the helper may have held. */
TEST(test_fork)
{
	pthread_t thread;
	pid_t pid;

	use(0, PAGES);
	sem_init(&locked, 0, 0);
	sem_init(&forked, 0, 0);
	thread = thread_start(lock_it, NULL);
	sem_wait(&locked);
	pid = fork();
	if (!pid) {
		end_in(60);
		note(0, PAGES);
		_exit(0);
	}
	sem_post(&forked);
	pthread_join(thread, NULL);
	child_exits(pid);
	turns();
	ck_assert_uint_eq(stat_of(MRRC_STAT_NOTED), 1);
}

TEST(test_no_monitor)
{
	struct mrrc_ahead *ahead = NULL;

	ops.lazy = false;
	ck_assert_int_eq(mrrc_ahead_open(cache, false, &ahead), -ENODEV);
	ops.lazy = true;
	ck_assert_ptr_null(ahead);
}

TEST(test_open_fails)
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
