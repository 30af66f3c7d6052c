/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/budget: several in one process, which are as many processes to each
 * other.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "sys/budget_priv.h"
#include "sys/threads.h"

#define KIB   ((size_t) 1024)
#define GRAIN (64 * KIB)
#define ALL   (16 * GRAIN)

static char dir[64], path[128];
static struct mrrc_budget *a, *b;

/* A member with bytes to evict, which it puts back at once. */
struct member {
	struct mrrc_budget_member member;
	struct mrrc_budget *budget;
	struct mrrc_stats stats;
	_Atomic uint64_t uses;
	_Atomic size_t bytes;
	atomic_bool later; /* it does not put them back */
};

static struct member has;

static uint64_t member_uses(struct mrrc_budget_member *member)
{
	return atomic_load(&((struct member *) member)->uses);
}

static size_t member_bytes(struct mrrc_budget_member *member)
{
	return atomic_load(&((struct member *) member)->bytes);
}

static size_t member_evict(struct mrrc_budget_member *member, size_t bytes)
{
	struct member *one = (struct member *) member;

	if (bytes > atomic_load(&one->bytes))
		bytes = atomic_load(&one->bytes);
	atomic_fetch_sub(&one->bytes, bytes);
	if (!atomic_load(&one->later))
		mrrc_budget_put(one->budget, bytes);
	return bytes;
}

/* An allocator with bytes that it keeps free. */
struct keeper {
	struct mrrc_budget_keeper keeper;
	struct mrrc_budget *budget;
	size_t bytes;
	unsigned trims, reaps;
	atomic_uint gives, early; /* before caches have evicted all */
	atomic_uint inside;	  /* in a thread that does not unmap */
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

/* What the member has evicted. */
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

static struct mrrc_budget *open_one(size_t bytes)
{
	const struct mrrc_budget_attr attr = {
		.bytes = bytes,
		.alone = 4 * GRAIN,
		.dir = dir,
	};
	struct mrrc_budget *budget = NULL;
	int alone;

	ck_assert_int_eq(mrrc_budget_open(&attr, &budget, &alone), 0);
	ck_assert_int_eq(alone, 0);
	return budget;
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/dev/shm/test_budget.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/ofi_mrrc-%u.%u", dir,
		 (unsigned) geteuid(), MRRC_NODE_SHM_VERSION);
	a = open_one(ALL);
	b = open_one(ALL);
	memset(&has, 0, sizeof(has));
	has.member.uses = member_uses;
	has.member.bytes = member_bytes;
	has.member.evict = member_evict;
	has.member.stats = &has.stats;
	has.budget = a;
}

static void teardown(void)
{
	mrrc_budget_close(a);
	if (b)
		mrrc_budget_close(b);
	unlink(path);
	rmdir(dir);
}

static uint64_t reserved(struct mrrc_budget *budget)
{
	struct mrrc_budget_stats stats;

	mrrc_budget_stats(budget, &stats);
	return stats.reserved;
}

static uint64_t node(void)
{
	struct mrrc_budget_stats stats;

	mrrc_budget_stats(a, &stats);
	return stats.node;
}

/* Whether what lacks becomes free, which takes a thread some time. */
static bool take_soon(struct mrrc_budget *budget, size_t bytes)
{
	unsigned i;

	for (i = 0; i < 6000; i++) {
		if (mrrc_budget_take(budget, bytes))
			return true;
		usleep(1000);
	}
	return false;
}

/* What another process does just before this one publishes a reservation. */
static _Thread_local void *(*meanwhile)(void *arg);

void __real_mrrc_node_shm_reserve(struct mrrc_node_shm *shm, uint64_t units);
void __wrap_mrrc_node_shm_reserve(struct mrrc_node_shm *shm, uint64_t units);

void __wrap_mrrc_node_shm_reserve(struct mrrc_node_shm *shm, uint64_t units)
{
	void *(*call)(void *arg) = meanwhile;
	pthread_t thread;

	meanwhile = NULL;
	if (call && !pthread_create(&thread, NULL, call, NULL))
		pthread_join(thread, NULL);
	__real_mrrc_node_shm_reserve(shm, units);
}

START_TEST(test_grains)
{
	ck_assert(mrrc_budget_take(a, 4 * KIB));
	ck_assert_uint_eq(reserved(a), GRAIN);
	ck_assert(mrrc_budget_take(a, 60 * KIB));
	ck_assert_uint_eq(reserved(a), GRAIN);
	/* parts of a unit count as one */
	ck_assert(mrrc_budget_take(a, 1));
	ck_assert_uint_eq(reserved(a), 2 * GRAIN);
	ck_assert(mrrc_budget_take(a, 3 * GRAIN));
	ck_assert_uint_eq(reserved(a), GRAIN + 4 * GRAIN);
	mrrc_budget_put(a, 3 * GRAIN);
	/* what is more than two grains goes back, but for one */
	ck_assert_uint_eq(reserved(a), GRAIN + 68 * KIB);
	mrrc_budget_put(a, 64 * KIB);
	mrrc_budget_put(a, 4 * KIB);
	ck_assert_uint_le(reserved(a), 2 * GRAIN);
}
END_TEST

START_TEST(test_limit)
{
	ck_assert(mrrc_budget_take(a, ALL - GRAIN));
	ck_assert(mrrc_budget_take(b, GRAIN - 4 * KIB));
	ck_assert(!mrrc_budget_take(b, 8 * KIB));
	ck_assert(mrrc_budget_take(b, 4 * KIB));
	ck_assert(!mrrc_budget_take(b, 4 * KIB));
	ck_assert(!mrrc_budget_take(a, 4 * KIB));
	ck_assert_uint_eq(node(), ALL);
	mrrc_budget_put(a, ALL - GRAIN);
	ck_assert(mrrc_budget_take(b, 8 * GRAIN));
	ck_assert(!mrrc_budget_take(b, 8 * GRAIN));
	ck_assert_uint_le(node(), ALL);
	mrrc_budget_put(b, 9 * GRAIN);
}
END_TEST

static bool took_most;

static void *take_most(void *arg)
{
	took_most = mrrc_budget_take(b, ALL - 8 * KIB);
	return arg;
}

/*
 * Two that reserve at once: the later one sees both, and goes back, or as far
 * as it has to.
 */
START_TEST(test_meanwhile)
{
	const bool enough = _i;

	meanwhile = take_most;
	ck_assert(mrrc_budget_take(a, enough ? 4 * KIB : GRAIN) == enough);
	ck_assert(took_most);
	ck_assert_uint_eq(reserved(a), enough ? 8 * KIB : 0);
	ck_assert_uint_eq(node(), enough ? ALL : ALL - 8 * KIB);
}
END_TEST

/* What operations hold beyond the budget goes back first. */
START_TEST(test_over)
{
	ck_assert(mrrc_budget_take(a, ALL - 8 * KIB));
	ck_assert(!mrrc_budget_take_over(a, 64 * KIB));
	ck_assert_uint_eq(node(), ALL + 56 * KIB);
	ck_assert(!mrrc_budget_take(a, 4 * KIB));
	ck_assert(!mrrc_budget_take(b, 4 * KIB));
	mrrc_budget_put(a, 64 * KIB);
	ck_assert_uint_eq(node(), ALL - 8 * KIB);
	/* the other one lacks 4 KiB of its share, and these are for it */
	ck_assert(mrrc_budget_take_over(a, 4 * KIB));
	mrrc_budget_put(a, ALL - 4 * KIB);
	ck_assert_uint_le(node(), 2 * GRAIN);
}
END_TEST

/* A process that uses nothing gives what another one lacks. */
START_TEST(test_given)
{
	struct mrrc_budget_stats stats;

	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = ALL;
	mrrc_budget_add(a, &has.member);
	ck_assert_uint_eq(has.stats.value[MRRC_STAT_NODE_BUDGET], ALL);
	ck_assert(!mrrc_budget_take(b, GRAIN));
	ck_assert(take_soon(b, GRAIN));
	ck_assert_uint_lt(reserved(a), ALL);
	ck_assert_uint_gt(reserved(a), ALL / 4);
	/* all of it, as soon as it is seen to be idle */
	ck_assert(take_soon(b, ALL - 4 * GRAIN));
	ck_assert_uint_le(node(), ALL);
	mrrc_budget_stats(a, &stats);
	ck_assert_uint_eq(stats.budget, ALL);
	ck_assert_uint_ge(stats.given, ALL - 4 * GRAIN);
	ck_assert_uint_ge(stats.taken, ALL);
	ck_assert_uint_ge(has.stats.value[MRRC_STAT_NODE_GIVEN],
			  ALL - 4 * GRAIN);
	mrrc_budget_remove(a, &has.member);
}
END_TEST

static atomic_bool using;

static atomic_size_t evicted;

/* A process that uses half of the budget, and takes again what it lacks. */
static void *use(void *arg)
{
	size_t bytes, lacks;

	while (atomic_load(&using)) {
		atomic_fetch_add(&has.uses, 1);
		bytes = atomic_load(&has.bytes);
		lacks = bytes < ALL / 2 ? ALL / 2 - bytes : 0;
		if (lacks && mrrc_budget_take(a, lacks)) {
			atomic_fetch_add(&has.bytes, lacks);
			atomic_fetch_add(&evicted, lacks);
		}
		usleep(1000);
	}
	return arg;
}

/*
 * One that is in use keeps its share, however often it is asked: it finds out
 * once or twice whether it misses a part.
 */
START_TEST(test_kept)
{
	pthread_t thread;
	uint32_t bell;
	unsigned i;

	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = ALL;
	mrrc_budget_add(a, &has.member);
	atomic_store(&using, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, use, NULL), 0);
	ck_assert(take_soon(b, ALL / 2));
	bell = mrrc_node_shm_bell(a->shm);
	for (i = 0; i < 4000; i++) {
		mrrc_budget_take(b, GRAIN);
		usleep(1000);
	}
	atomic_store(&using, false);
	pthread_join(thread, NULL);
	/* and it is not asked all the time */
	ck_assert_uint_le(mrrc_node_shm_bell(a->shm) - bell, 100);
	ck_assert_uint_ge(reserved(a), ALL / 16 * 7);
	ck_assert_uint_le(node(), ALL);
	ck_assert_uint_le(atomic_load(&evicted), ALL / 16 * 4);
	mrrc_budget_remove(a, &has.member);
}
END_TEST

/* As if it had given a part at that time, without missing it. */
static void tried(struct mrrc_budget *budget, uint64_t at)
{
	mrrc_lock_acquire(&budget->lock);
	budget->tried_at = at;
	budget->try_ms = MRRC_BUDGET_TRY_MS;
	budget->missed = false;
	mrrc_lock_release(&budget->lock);
}

/*
 * Bytes that it takes, or lacks, soon after a trial: what it gave is missed, and
 * the next trial is later. Once for each trial, and not long after it.
 */
START_TEST(test_missed)
{
	const bool lacks = _i;
	unsigned i;

	if (lacks)
		ck_assert(mrrc_budget_take(b, ALL));
	ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	ck_assert(!a->missed);
	tried(a, mrrc_budget_now() - 2000);
	ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	ck_assert(!a->missed);
	ck_assert_uint_eq(a->try_ms, MRRC_BUDGET_TRY_MS);
	/* a second may pass in between */
	for (i = 0; i < 8 && !a->missed; i++) {
		tried(a, mrrc_budget_now());
		ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	}
	ck_assert(a->missed);
	ck_assert_uint_ge(a->try_ms, 1000);
	ck_assert(mrrc_budget_take(a, GRAIN) != lacks);
	ck_assert_uint_le(a->try_ms, 2000);
}
END_TEST

/* A part of what it gave at a trial may be needed again. */
START_TEST(test_missed_half)
{
	unsigned i;

	/* a second may pass in between */
	for (i = 0; i < 8 && !a->missed; i++) {
		tried(a, mrrc_budget_now());
		a->trial = 2 * GRAIN / MRRC_NODE_UNIT;
		ck_assert(mrrc_budget_take(a, GRAIN));
		ck_assert(!a->missed);
		ck_assert(mrrc_budget_take(a, GRAIN));
	}
	ck_assert(a->missed);
}
END_TEST

/*
 * Each has its share, and one lacks bytes. The other has missed what it gave, and
 * tries again much later; at once if it has more than it had then.
 */
START_TEST(test_grown)
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
	ck_assert(mrrc_budget_take_wait(b, NULL, GRAIN, 500) == _i);
	mrrc_budget_remove(a, &has.member);
}
END_TEST

/* What is evicted and still registered is not given yet. */
START_TEST(test_later)
{
	ck_assert(mrrc_budget_take(a, ALL));
	has.bytes = ALL;
	has.later = true;
	mrrc_budget_add(a, &has.member);
	ck_assert(!mrrc_budget_take_wait(b, NULL, GRAIN, 300));
	ck_assert_uint_lt(has.bytes, ALL);
	/* nor is it evicted anew each time that a process lacks it */
	ck_assert_uint_ge(has.bytes, ALL / 2);
	ck_assert_uint_eq(reserved(a), ALL);
	mrrc_budget_put(a, ALL - has.bytes);
	ck_assert_uint_le(reserved(a), has.bytes);
	ck_assert(mrrc_budget_take_wait(b, NULL, GRAIN, 6000));
	mrrc_budget_remove(a, &has.member);
}
END_TEST

START_TEST(test_others)
{
	struct member second = has;

	mrrc_budget_add(a, &has.member);
	mrrc_budget_add(a, &second.member);
	has.bytes = second.bytes = GRAIN;
	has.later = second.later = true;
	ck_assert_uint_eq(mrrc_budget_evict_others(a, &has.member, 4 * KIB),
			  4 * KIB);
	ck_assert_uint_eq(has.bytes, GRAIN);
	ck_assert_uint_eq(mrrc_budget_evict_others(a, NULL, ALL),
			  2 * GRAIN - 4 * KIB);
	mrrc_budget_remove(a, &has.member);
	mrrc_budget_remove(a, &second.member);
}
END_TEST

/* Memory of an allocator comes before what caches of its process keep. */
START_TEST(test_own)
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
END_TEST

/* Another process has the bytes: an allocation that fails evicts nothing. */
START_TEST(test_own_missing)
{
	ck_assert(mrrc_budget_take(b, ALL / 4 * 3));
	ck_assert(mrrc_budget_take(a, ALL / 8));
	has.bytes = ALL / 8;
	mrrc_budget_add(a, &has.member);
	ck_assert(!mrrc_budget_take_wait(a, NULL, ALL / 2, 5));
	ck_assert_uint_eq(has.bytes, ALL / 8);
	/* and one that succeeds as much as is missing */
	ck_assert(mrrc_budget_take_wait(a, NULL, ALL / 8 + GRAIN, 0));
	ck_assert_uint_eq(has.bytes, ALL / 8 - GRAIN);
	/* with what others put in the meantime */
	ck_assert(!mrrc_budget_take_wait(a, NULL, GRAIN * 3, 0));
	ck_assert_uint_eq(has.bytes, ALL / 8 - GRAIN);
	mrrc_budget_put(b, GRAIN * 2);
	ck_assert(mrrc_budget_take_wait(a, NULL, GRAIN * 3, 1000));
	ck_assert_uint_eq(has.bytes, ALL / 8 - 2 * GRAIN);
	mrrc_budget_remove(a, &has.member);
}
END_TEST

/* What is evicted and not deregistered yet is not evicted again. */
START_TEST(test_own_later)
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
END_TEST

/* What allocators keep free comes before regions, until it is enough. */
START_TEST(test_keepers)
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
END_TEST

static void lack_later(void)
{
	usleep(20000);
	mrrc_budget_take(a, 2 * ALL);
}

/* What lacks since the answer began is not what has lacked for long. */
START_TEST(test_lacks_meanwhile)
{
	fault_at(FAULT_LOCK, lack_later);
	mrrc_budget_answer(a);
	mrrc_lock_acquire(&a->lock);
	ck_assert_uint_ne(a->want, 0);
	mrrc_lock_release(&a->lock);
}
END_TEST

/* For other processes: after all that caches evict, until it is enough. */
START_TEST(test_keepers_give)
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
	/* nothing is owed for what does not come */
	gives = last.gives;
	for (i = 0; i < 6000 && last.gives == gives; i++) {
		mrrc_budget_take(b, ALL);
		usleep(1000);
	}
	ck_assert_uint_ne(last.gives, gives);
	for (i = 0; i < 6000 && atomic_load(&a->owe); i++)
		usleep(1000);
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
END_TEST

/* No segment: a part of its own, and never the whole node's. */
START_TEST(test_alone)
{
	const struct mrrc_budget_attr attr = {
		.bytes = ALL,
		.alone = 4 * GRAIN,
		.dir = "/nonexistent",
	};
	struct mrrc_budget_stats stats;
	struct mrrc_budget *budget;
	uint64_t begin;
	int alone;

	ck_assert_int_eq(mrrc_budget_open(&attr, &budget, &alone), 0);
	ck_assert_int_eq(alone, -ENOENT);
	ck_assert(mrrc_budget_take(budget, 4 * GRAIN));
	/* for what? */
	begin = mrrc_budget_now();
	ck_assert(!mrrc_budget_take_wait(budget, NULL, 4 * KIB, 5000));
	ck_assert(!mrrc_budget_take_wait(budget, NULL, 8 * GRAIN, 5000));
	ck_assert_uint_le(mrrc_budget_now() - begin, 2500);
	ck_assert(!mrrc_budget_take_over(budget, 4 * KIB));
	mrrc_budget_put(budget, 4 * KIB);
	mrrc_budget_stats(budget, &stats);
	ck_assert_uint_eq(stats.budget, 4 * GRAIN);
	ck_assert_uint_eq(stats.reserved, 4 * GRAIN);
	ck_assert(mrrc_budget_helper(budget, &has.member, MRRC_NODE_AGGRESSIVE,
				     true)
			  .may);
	mrrc_budget_close(budget);
}
END_TEST

START_TEST(test_open_fails)
{
	const struct mrrc_budget_attr attr = { .bytes = ALL, .dir = dir };
	const unsigned threads = fault_threads(), fds = fault_fds();
	struct mrrc_budget *budget = NULL;
	bool fired = true;
	int n, alone, ret;

	for (n = 1; fired; n++) {
		fault_arm(n);
		ret = mrrc_budget_open(&attr, &budget, &alone);
		if (!ret)
			mrrc_budget_close(budget);
		fired = fault_disarm();
		ck_assert(!fault_leaks());
		ck_assert(fired || (!ret && !alone));
		ck_assert_uint_eq(fault_threads_left(threads), threads);
		ck_assert_uint_eq(fault_fds(), fds);
	}
	ck_assert_int_gt(n, 5);
}
END_TEST

/* The segment's descriptor is closed by the application: no more sharing. */
START_TEST(test_closed)
{
	struct stat want, got;
	int fd;

	ck_assert(mrrc_budget_take(a, GRAIN));
	ck_assert_int_eq(stat(path, &want), 0);
	for (fd = 3; fd < 256; fd++) {
		if (!fstat(fd, &got) && got.st_ino == want.st_ino &&
		    got.st_dev == want.st_dev)
			close(fd);
	}
	ck_assert(mrrc_budget_take(a, 3 * GRAIN));
	ck_assert(!mrrc_budget_take(a, GRAIN));
	mrrc_budget_put(a, 4 * GRAIN);
}
END_TEST

/* ---- other processes ---- */

static int told[2];

static pid_t start(size_t bytes)
{
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (!pid) {
		struct mrrc_budget *own;
		int alone;

		end_in(60);
		if (mrrc_budget_open(&(struct mrrc_budget_attr){ .bytes = ALL,
								 .dir = dir },
				     &own, &alone) ||
		    alone || !mrrc_budget_take(own, bytes))
			_exit(1);
		write(told[1], "p", 1);
		for (;;)
			pause();
	}
	close(told[1]);
	ck_assert_int_eq(read(told[0], &c, 1), 1);
	close(told[0]);
	return pid;
}

START_TEST(test_killed)
{
	pid_t pid;

	if (!CHILD_MAY_THREAD)
		skip("the child has a thread\n");
	pid = start(12 * GRAIN);
	ck_assert(mrrc_budget_take(a, 4 * GRAIN));
	ck_assert(!mrrc_budget_take(b, GRAIN));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert(take_soon(b, 12 * GRAIN));
	ck_assert_uint_eq(node(), ALL);
}
END_TEST

/* It has its memory registered, and is not waited for. */
START_TEST(test_stopped)
{
	pid_t pid;

	if (!CHILD_MAY_THREAD)
		skip("the child has a thread\n");
	pid = start(12 * GRAIN);
	kill(pid, SIGSTOP);
	ck_assert(mrrc_budget_take(a, 4 * GRAIN));
	ck_assert(!mrrc_budget_take_wait(b, NULL, GRAIN, 50));
	ck_assert_uint_eq(node(), ALL);
	mrrc_budget_put(a, 4 * GRAIN);
	ck_assert(mrrc_budget_take(b, 3 * GRAIN));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/* The one of a process is one, and a child's is another. */
START_TEST(test_join)
{
	const struct mrrc_budget_attr attr = { .bytes = ALL, .dir = dir };
	struct mrrc_budget *one, *two;
	int alone, status;
	pid_t pid;

	ck_assert_int_eq(mrrc_budget_join(&attr, &one, &alone), 0);
	ck_assert_int_eq(mrrc_budget_join(&attr, &two, &alone), 0);
	ck_assert_ptr_eq(one, two);
	ck_assert(mrrc_budget_take(one, GRAIN));
	pid = CHILD_MAY_THREAD ? fork() : 1;
	if (!pid) {
		mrrc_budget_leave(one);
		if (mrrc_budget_join(&attr, &two, &alone) || two == one ||
		    alone || !mrrc_budget_take(two, ALL - GRAIN) ||
		    mrrc_budget_take(two, GRAIN))
			_exit(1);
		mrrc_budget_leave(two);
		_exit(0);
	}
	if (CHILD_MAY_THREAD) {
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
	mrrc_budget_leave(one);
	ck_assert_uint_eq(node(), GRAIN);
	mrrc_budget_leave(one);
	ck_assert_uint_eq(node(), 0);
}
END_TEST

static void *join_cancelled(void *arg)
{
	const struct mrrc_budget_attr attr = { .bytes = ALL, .dir = dir };
	struct mrrc_budget *one = NULL;
	int alone;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	mrrc_budget_join(&attr, &one, &alone);
	mrrc_budget_leave(one);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* A thread that is cancelled leaves no lock behind, which fork would want. */
START_TEST(test_join_cancelled)
{
	pthread_t thread;
	void *ended;

	ck_assert_int_eq(pthread_create(&thread, NULL, join_cancelled, a), 0);
	pthread_join(thread, &ended);
	ck_assert_ptr_eq(ended, a);
	ck_assert_uint_eq(node(), 0);
}
END_TEST

/* ---- at once ---- */

#define THREADS 8
#define TURNS	20000

static atomic_size_t taken;
static atomic_bool beyond;

static void *race(void *arg)
{
	struct mrrc_budget *budget = arg;
	unsigned i;
	size_t len;

	for (i = 0; i < TURNS; i++) {
		len = (1 + i * 7 % 40) * 4 * KIB;
		if (!mrrc_budget_take(budget, len))
			continue;
		if (atomic_fetch_add(&taken, len) + len > ALL)
			atomic_store(&beyond, true);
		atomic_fetch_sub(&taken, len);
		mrrc_budget_put(budget, len);
	}
	return arg;
}

START_TEST(test_race)
{
	pthread_t thread[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, race,
						i & 1 ? a : b),
				 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert(!atomic_load(&beyond));
	ck_assert_uint_eq(atomic_load(&a->used) + atomic_load(&b->used), 0);
	ck_assert_uint_eq(atomic_load(&a->left), a->reserved);
	ck_assert_uint_le(node(), 6 * GRAIN);
}
END_TEST

/* ---- helper threads ---- */

static struct mrrc_budget_helper ask(struct mrrc_budget *budget,
				     struct member *member, bool would)
{
	return mrrc_budget_helper(budget, &member->member, MRRC_NODE_AGGRESSIVE,
				  would);
}

/* As @b finds it. */
static struct mrrc_node_share share_of_a(void)
{
	struct mrrc_node_share share;
	struct mrrc_node_view view;

	mrrc_lock_acquire(&b->lock);
	mrrc_budget_view(b, true, mrrc_budget_now(), &view);
	ck_assert_uint_eq(view.count, 2);
	share = b->share[!view.self];
	mrrc_lock_release(&b->lock);
	return share;
}

START_TEST(test_helper)
{
	struct member other = { 0 };

	ck_assert(mrrc_budget_take(a, GRAIN));
	ck_assert(ask(a, &has, true).may);
	ck_assert(!ask(b, &other, false).may);
	ck_assert(share_of_a().helper);
	ck_assert_uint_eq(share_of_a().used, GRAIN / MRRC_NODE_UNIT);
	ck_assert_uint_ne(share_of_a().cpus, 0);
	/* not before its time, unless the question is another one */
	ck_assert(!ask(a, &has, false).may);
	ck_assert(!share_of_a().helper);
	ck_assert(!ask(a, &has, false).may);
	ck_assert(ask(a, &has, true).may);
	ck_assert(share_of_a().helper);
}
END_TEST

/* While nothing changes, files are read less and less often. */
START_TEST(test_helper_period)
{
	unsigned i;

	ask(a, &has, true);
	ck_assert_uint_eq(a->ask_ms, MRRC_BUDGET_HELPER_MS);
	for (i = 0; i < 8; i++) {
		a->asked_at -= a->ask_ms;
		ask(a, &has, true);
	}
	ck_assert_uint_eq(a->ask_ms, MRRC_BUDGET_HELPER_MAX_MS);
	a->asked_at -= a->ask_ms;
	a->helper.may = false; /* as if it could not, the last time */
	ask(a, &has, true);
	ck_assert_uint_eq(a->ask_ms, MRRC_BUDGET_HELPER_MS);
}
END_TEST

/* The process would use one while any of its members would. */
START_TEST(test_helper_members)
{
	struct member second = { 0 };

	ck_assert(ask(a, &has, true).may);
	ck_assert(ask(a, &second, true).may);
	ck_assert(!ask(a, &has, false).may);
	ck_assert(share_of_a().helper);
	ck_assert(ask(a, &second, true).may);
	ck_assert(!ask(a, &second, false).may);
	ck_assert(!share_of_a().helper);
}
END_TEST

#define ASKERS 4

static void *ask_often(void *arg)
{
	struct member own = { 0 };
	unsigned i;

	for (i = 0; i < 4000; i++) {
		if (!ask(arg, &own, true).may || !share_of_a().helper)
			return arg;
		ask(arg, &own, false);
	}
	return NULL;
}

/* A helper thread for each domain. */
START_TEST(test_helper_race)
{
	pthread_t thread[ASKERS];
	void *wrong;
	unsigned i;

	ck_assert(ask(a, &has, true).may);
	for (i = 0; i < ASKERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, ask_often, a),
				 0);
	for (i = 0; i < ASKERS; i++) {
		pthread_join(thread[i], &wrong);
		ck_assert_ptr_null(wrong);
	}
	ck_assert(share_of_a().helper);
	ck_assert(!ask(a, &has, false).may);
	ck_assert(!share_of_a().helper);
}
END_TEST

/* Processes without a limit: what they use is counted, and nothing else. */
START_TEST(test_no_limit)
{
	struct mrrc_budget *free = open_one(MRRC_BUDGET_NONE);
	struct mrrc_budget_stats stats;

	ck_assert_uint_eq(mrrc_budget_limit(free), MRRC_BUDGET_NONE);
	ck_assert(!free->runs);
	mrrc_budget_add(free, &has.member);
	ck_assert(mrrc_budget_take(free, 4 * ALL));
	ck_assert(mrrc_budget_take_over(free, SIZE_MAX / 4));
	ck_assert(ask(free, &has, true).may);
	mrrc_budget_put(free, SIZE_MAX / 4);
	ck_assert_uint_eq(free->used, 4 * ALL / MRRC_NODE_UNIT);
	ck_assert_uint_eq(free->reserved, 0);
	mrrc_budget_stats(free, &stats);
	ck_assert_uint_eq(stats.budget | stats.node | stats.reserved, 0);
	/* those with a limit have all of it */
	ck_assert(mrrc_budget_take(b, ALL));
	ck_assert_uint_eq(node(), ALL);
	mrrc_budget_put(b, ALL);
	mrrc_budget_put(free, 4 * ALL);
	ck_assert_uint_eq(free->used, 0);
	ask(free, &has, false);
	mrrc_budget_remove(free, &has.member);
	mrrc_budget_close(free);
}
END_TEST

/* What is only tried has no other process give. */
START_TEST(test_try)
{
	uint32_t bell;

	ck_assert(mrrc_budget_try(a, ALL - GRAIN));
	bell = mrrc_node_shm_bell(a->shm);
	ck_assert(!mrrc_budget_try(b, 2 * GRAIN));
	ck_assert_uint_eq(b->want, 0);
	ck_assert_uint_eq(mrrc_node_shm_bell(a->shm), bell);
	ck_assert(mrrc_budget_try(b, GRAIN));
	ck_assert(!mrrc_budget_take(b, GRAIN));
	ck_assert_uint_ne(b->want, 0);
	ck_assert_uint_ne(mrrc_node_shm_bell(a->shm), bell);
	mrrc_budget_put(b, GRAIN);
	mrrc_budget_put(a, ALL - GRAIN);
}
END_TEST

Suite *budget_suite(void)
{
	Suite *suite = suite_create("budget");
	TCase *tcase = tcase_create("budget");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_grains);
	tcase_add_test(tcase, test_limit);
	tcase_add_loop_test(tcase, test_meanwhile, 0, 2);
	tcase_add_test(tcase, test_over);
	tcase_add_test(tcase, test_given);
	tcase_add_test(tcase, test_kept);
	tcase_add_loop_test(tcase, test_missed, 0, 2);
	tcase_add_test(tcase, test_missed_half);
	tcase_add_loop_test(tcase, test_grown, 0, 2);
	tcase_add_test(tcase, test_later);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_own);
	tcase_add_test(tcase, test_own_missing);
	tcase_add_test(tcase, test_own_later);
	tcase_add_test(tcase, test_keepers);
	tcase_add_test(tcase, test_keepers_give);
	tcase_add_test(tcase, test_lacks_meanwhile);
	tcase_add_test(tcase, test_alone);
	tcase_add_test(tcase, test_open_fails);
	tcase_add_test(tcase, test_closed);
	tcase_add_test(tcase, test_killed);
	tcase_add_test(tcase, test_stopped);
	tcase_add_test(tcase, test_join);
	tcase_add_test(tcase, test_join_cancelled);
	tcase_add_test(tcase, test_race);
	tcase_add_test(tcase, test_helper);
	tcase_add_test(tcase, test_helper_period);
	tcase_add_test(tcase, test_helper_members);
	tcase_add_test(tcase, test_helper_race);
	tcase_add_test(tcase, test_no_limit);
	tcase_add_test(tcase, test_try);
	suite_add_tcase(suite, tcase);
	return suite;
}
