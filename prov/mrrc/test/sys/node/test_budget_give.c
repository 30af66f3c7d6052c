/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/node/budget: bytes that a process gives to other processes, and that
 * allocators give to their process.
 */
#include "config.h"
#include "test/case.h"
#include "test/sys/node/budget_fixture.h"

#include "test/fakes/fault.h"
#include "sys/base/threads.h"
#include "sys/node/budget_keep.h"

/* An allocator with bytes that it keeps free. */
struct keeper {
	struct mrrc_budget_keeper keeper;
	struct mrrc_budget *budget;
	size_t bytes;
	unsigned trims, reaps;
	atomic_uint gives, early; /* calls before caches have evicted all */
	atomic_uint inside;	  /* calls by threads that claim not to unmap */
};

static void keeper_trim(struct mrrc_budget_keeper *keeper)
{
	struct keeper *one = (struct keeper *) keeper;

	one->trims++;
	mrrc_budget_put(one->budget, one->bytes);
	one->bytes = 0;
}

static void keeper_give(struct mrrc_budget_keeper *keeper)
{
	struct keeper *one = (struct keeper *) keeper;

	one->early += has.bytes != 0;
	one->inside += (int) atomic_load(&mrrc_threads.outside) < 1;
	one->gives++;
	keeper_trim(keeper);
}

/* Called when the member has evicted regions. */
static void keeper_reap(struct mrrc_budget_keeper *keeper)
{
	((struct keeper *) keeper)->reaps++;
}

static struct keeper keeper_of(struct mrrc_budget *budget, size_t bytes)
{
	return (struct keeper){
		.keeper = {
			.trim = keeper_trim,
			.give = keeper_give,
			.reap = keeper_reap,
			.any_thread = true,
		},
		.budget = budget,
		.bytes = bytes,
	};
}

TEST_CASE(budget_give, budget_setup, budget_teardown);

/*
 * Acts for a millisecond as a process that uses half of the budget; returns the
 * number of bytes that the process lacked and took again.
 */
static size_t use(void)
{
	const size_t bytes = atomic_load(&has.bytes);
	const size_t lacks = bytes < ALL / 2 ? ALL / 2 - bytes : 0;

	step(1);
	atomic_fetch_add(&has.uses, 1);
	if (!lacks || !mrrc_budget_take(a, lacks))
		return 0;
	atomic_fetch_add(&has.bytes, lacks);
	return lacks;
}

/*
 * A process in use keeps its share, however often others ask: the process tries
 * once or twice whether it misses a part.
 */
TEST(test_kept)
{
	size_t evicted = 0;
	uint32_t bell;
	unsigned i;

	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = ALL;
	mrrc_budget_add(a, &has.member);
	for (i = 0; i < 6000 && !mrrc_budget_take(b, ALL / 2); i++)
		use();
	ck_assert_uint_lt(i, 6000);
	bell = mrrc_node_shm_bell(a->shm);
	for (i = 0; i < 4000; i++) {
		mrrc_budget_take(b, GRAIN);
		evicted += use();
	}
	/* The process is not asked all the time. */
	ck_assert_uint_le(mrrc_node_shm_bell(a->shm) - bell, 100);
	ck_assert_uint_ge(reserved(a), ALL / 16 * 7);
	ck_assert_uint_le(node(), ALL);
	ck_assert_uint_le(evicted, ALL / 16 * 4);
	mrrc_budget_remove(a, &has.member);
}

/* Acts as if the process had given a part at that time without missing it. */
static void tried(struct mrrc_budget *budget, uint64_t at)
{
	mrrc_lock_acquire(&budget->lock);
	budget->tried_at = at;
	budget->try_ms = MRRC_BUDGET_TRY_MS;
	budget->missed = false;
	mrrc_lock_release(&budget->lock);
}

/*
 * A process takes, or lacks, bytes soon after a trial: the process misses what
 * it gave, and the next trial is later. A trial is missed at most once, and
 * only for a short time.
 */
LOOP_TEST(test_missed, 0, 2)
{
	const bool lacks = _i;

	if (lacks)
		ck_assert(mrrc_budget_take(b, ALL));
	ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	ck_assert(!a->missed);
	tried(a, mrrc_budget_now() - 2000);
	ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	ck_assert(!a->missed);
	ck_assert_uint_eq(a->try_ms, MRRC_BUDGET_TRY_MS);
	tried(a, mrrc_budget_now());
	ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	ck_assert(a->missed);
	ck_assert_uint_ge(a->try_ms, 1000);
	ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	ck_assert_uint_le(a->try_ms, 2000);
}

/* A process may need a part of what it gave at a trial. */
TEST(test_missed_half)
{
	tried(a, mrrc_budget_now());
	a->trial = 2 * GRAIN / MRRC_NODE_UNIT;
	ck_assert(mrrc_budget_take(a, GRAIN));
	ck_assert(!a->missed);
	ck_assert(mrrc_budget_take(a, GRAIN));
	ck_assert(a->missed);
}

/*
 * Two processes have their shares, and one process lacks bytes. The other
 * process missed what it gave, and tries again much later, or at once if it has
 * more bytes than at the trial.
 */
LOOP_TEST(test_grown, 0, 2)
{
	const uint64_t half = ALL / 2 / MRRC_NODE_UNIT;

	ck_assert(mrrc_budget_take(a, ALL / 2));
	ck_assert(mrrc_budget_take(b, ALL / 2));
	has.bytes = ALL / 2;
	atomic_fetch_add(&has.uses, 1);
	mrrc_budget_add(a, &has.member);
	mrrc_lock_acquire(&a->lock);
	a->missed = true;
	a->tried_at = mrrc_budget_now();
	a->try_ms = 64000;
	a->tried_with = _i ? half / 2 : half;
	mrrc_lock_release(&a->lock);
	ck_assert(take_within(b, GRAIN, 500) == _i);
	mrrc_budget_remove(a, &has.member);
}

/* Bytes that are evicted, but still registered, are not given yet. */
TEST(test_later)
{
	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = ALL;
	has.later = true;
	mrrc_budget_add(a, &has.member);
	ck_assert(!take_within(b, GRAIN, 300));
	ck_assert_uint_lt(has.bytes, ALL);
	/*
	 * The process does not evict bytes again each time that another process
	 * lacks bytes.
	 */
	ck_assert_uint_ge(has.bytes, ALL / 2);
	ck_assert_uint_eq(reserved(a), ALL);
	mrrc_budget_put(a, ALL - has.bytes);
	ck_assert_uint_le(reserved(a), has.bytes);
	ck_assert(take_soon(b, GRAIN));
	mrrc_budget_remove(a, &has.member);
}

/* An allocator gets bytes that caches of its process keep. */
TEST(test_own)
{
	struct keeper own = keeper_of(a, 0);

	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = ALL;
	mrrc_budget_add(a, &has.member);
	ck_assert(!mrrc_budget_take_wait(a, &own.keeper, ALL + 4 * KIB, 0));
	ck_assert_uint_eq(has.bytes, ALL);
	ck_assert_uint_eq(own.trims, 0);
	ck_assert(mrrc_budget_take_wait(a, &own.keeper, ALL / 2, 0));
	ck_assert_uint_eq(has.bytes, ALL / 2);
	mrrc_budget_remove(a, &has.member);
}

/* Another process has the bytes: an allocation that fails evicts nothing. */
TEST(test_own_missing)
{
	ck_assert(mrrc_budget_take(b, ALL / 4 * 3));
	ck_assert(mrrc_budget_take(a, ALL / 8));
	has.bytes = ALL / 8;
	mrrc_budget_add(a, &has.member);
	ck_assert(!mrrc_budget_take_wait(a, NULL, ALL / 2, 5));
	ck_assert_uint_eq(has.bytes, ALL / 8);
	/* An allocation that succeeds evicts as much as is missing. */
	ck_assert(mrrc_budget_take_wait(a, NULL, ALL / 8 + GRAIN, 0));
	ck_assert_uint_eq(has.bytes, ALL / 8 - GRAIN);
	/* Bytes that others put in the meantime need not be evicted. */
	ck_assert(!mrrc_budget_take_wait(a, NULL, GRAIN * 3, 0));
	ck_assert_uint_eq(has.bytes, ALL / 8 - GRAIN);
	mrrc_budget_put(b, GRAIN * 2);
	step(300);
	ck_assert(mrrc_budget_take_wait(a, NULL, GRAIN * 3, 60000));
	ck_assert_uint_eq(has.bytes, ALL / 8 - 2 * GRAIN);
	mrrc_budget_remove(a, &has.member);
}

/* Bytes that are evicted, but not deregistered yet, are not evicted again. */
TEST(test_own_later)
{
	struct keeper own = keeper_of(a, 0);

	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = ALL;
	has.later = true;
	mrrc_budget_add(a, &has.member);
	ck_assert(!mrrc_budget_take_wait(a, &own.keeper, GRAIN, 20));
	ck_assert_uint_eq(has.bytes, ALL - GRAIN);
	ck_assert_uint_eq(own.reaps, 1);
	mrrc_budget_remove(a, &has.member);
}

/* Bytes that allocators keep free are used before regions are evicted. */
TEST(test_keepers)
{
	struct keeper own = keeper_of(a, GRAIN), shy = keeper_of(a, GRAIN);
	struct keeper first = keeper_of(a, GRAIN), last = keeper_of(a, GRAIN);

	shy.keeper.any_thread = false;
	mrrc_budget_keep(a, &shy.keeper);
	mrrc_budget_keep(a, &own.keeper);
	mrrc_budget_keep(a, &first.keeper);
	mrrc_budget_keep(a, &last.keeper);
	has.bytes = ALL - 4 * GRAIN;
	mrrc_budget_add(a, &has.member);
	ck_assert(mrrc_budget_take(a, ALL));
	ck_assert(mrrc_budget_take_wait(a, &own.keeper, GRAIN, 0));
	ck_assert_uint_eq(own.trims, 1);
	ck_assert_uint_eq(first.trims, 0);
	ck_assert(mrrc_budget_take_wait(a, &own.keeper, GRAIN, 0));
	ck_assert_uint_eq(own.trims, 2);
	ck_assert_uint_eq(first.trims, 1);
	ck_assert_uint_eq(last.trims, 0);
	ck_assert_uint_eq(has.bytes, ALL - 4 * GRAIN);
	ck_assert(mrrc_budget_take_wait(a, &own.keeper, 2 * GRAIN, 0));
	ck_assert_uint_eq(last.trims, 1);
	ck_assert_uint_eq(has.bytes, ALL - 5 * GRAIN);
	ck_assert_uint_eq(shy.trims, 0);
	mrrc_budget_keep_end(a, &shy.keeper);
	mrrc_budget_keep_end(a, &own.keeper);
	mrrc_budget_keep_end(a, &first.keeper);
	mrrc_budget_keep_end(a, &last.keeper);
	mrrc_budget_remove(a, &has.member);
}

static pthread_barrier_t giving;
static atomic_bool gave;

static void slow_give(struct mrrc_budget_keeper *keeper)
{
	pthread_barrier_wait(&giving);
	usleep(20000);
	atomic_store(&gave, true);
}

static void *give_one(void *budget)
{
	mrrc_budget_give_kept(budget, 1);
	return NULL;
}

/* mrrc_budget_keep_wait() returns after another thread's keeper has freed. */
TEST(test_keep_wait)
{
	struct keeper own = keeper_of(a, 0);
	pthread_t thread;

	own.keeper.give = slow_give;
	mrrc_budget_keep(a, &own.keeper);
	pthread_barrier_init(&giving, NULL, 2);
	thread = thread_start(give_one, a);
	pthread_barrier_wait(&giving);
	mrrc_budget_keep_wait(a);
	ck_assert(atomic_load(&gave));
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&giving);
	mrrc_budget_keep_end(a, &own.keeper);
}

static void lack_later(void)
{
	step(20);
	mrrc_budget_take(a, 2 * ALL);
}

/*
 * Bytes that are lacking since the answer began do not count as lacking for
 * long.
 */
TEST(test_lacks_meanwhile)
{
	fault_at(FAULT_LOCK, lack_later);
	mrrc_budget_answer(a);
	mrrc_lock_acquire(&a->lock);
	ck_assert_uint_ne(a->want, 0);
	mrrc_lock_release(&a->lock);
}

/*
 * Allocators give kept bytes to other processes after caches evicted all, and
 * give only as many bytes as are lacking.
 */
TEST(test_keepers_give)
{
	struct keeper shy = keeper_of(a, GRAIN), one = keeper_of(a, GRAIN);
	struct keeper last = keeper_of(a, ALL - 3 * GRAIN);
	const uint64_t units = GRAIN / MRRC_NODE_UNIT;
	unsigned i, gives;

	shy.keeper.any_thread = false;
	mrrc_budget_keep(a, &shy.keeper);
	mrrc_budget_keep(a, &one.keeper);
	mrrc_budget_keep(a, &last.keeper);
	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = GRAIN;
	mrrc_budget_add(a, &has.member);
	ck_assert(take_soon(b, GRAIN));
	ck_assert(take_soon(b, ALL - 3 * GRAIN));
	ck_assert_uint_eq(shy.trims, 0);
	ck_assert_uint_eq(one.early + last.early, 0);
	ck_assert_uint_eq(one.inside + last.inside, 0);
	/* A process owes nothing if no bytes come. */
	gives = last.gives;
	for (i = 0; i < 6000 && last.gives == gives; i++) {
		mrrc_budget_take(b, ALL);
		step(1);
	}
	ck_assert_uint_ne(last.gives, gives);
	ck_assert_uint_eq(atomic_load(&a->owe), 0);
	mrrc_budget_remove(a, &has.member);
	mrrc_budget_put(b, ALL - 2 * GRAIN);

	one.bytes = last.bytes = GRAIN;
	one.gives = last.gives = 0;
	ck_assert(mrrc_budget_take(a, 2 * GRAIN));
	atomic_store(&a->owe, units);
	ck_assert_uint_eq(mrrc_budget_give_kept(a, units), units);
	ck_assert_uint_eq(one.gives, 1);
	ck_assert_uint_eq(last.gives, 0);
	mrrc_budget_keep_end(a, &shy.keeper);
	mrrc_budget_keep_end(a, &one.keeper);
	mrrc_budget_keep_end(a, &last.keeper);
}
