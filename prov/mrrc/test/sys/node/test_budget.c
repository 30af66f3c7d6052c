/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/node/budget: taking and putting bytes. */
#include "config.h"
#include "test/case.h"
#include "test/sys/node/budget_fixture.h"

/* Acts as another process, just before this one publishes a reservation. */
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

TEST_CASE(budget, budget_setup, budget_teardown);

static bool took_most;

static void *take_most(void *arg)
{
	took_most = mrrc_budget_take(b, ALL - 8 * KIB);
	return arg;
}

/*
 * Two processes reserve at once: the later process sees both reservations, and
 * gives up or reduces its own reservation.
 */
LOOP_TEST(test_meanwhile, 0, 2)
{
	const bool enough = _i;

	meanwhile = take_most;
	ck_assert(mrrc_budget_take(a, enough ? 4 * KIB : GRAIN) == enough);
	ck_assert(took_most);
	ck_assert_uint_eq(reserved(a), enough ? 8 * KIB : 0);
	ck_assert_uint_eq(node(), enough ? ALL : ALL - 8 * KIB);
}

/* Held bytes beyond the budget are given back first. */
TEST(test_over)
{
	ck_assert(mrrc_budget_take(a, ALL - 8 * KIB));
	ck_assert(!mrrc_budget_take_over(a, 64 * KIB));
	ck_assert_uint_eq(node(), ALL + 56 * KIB);
	ck_assert(!mrrc_budget_take(a, 4 * KIB));
	ck_assert(!mrrc_budget_take(b, 4 * KIB));
	mrrc_budget_put(a, 64 * KIB);
	ck_assert_uint_eq(node(), ALL - 8 * KIB);
	/* The other process lacks 4 KiB of its share, and gets these. */
	ck_assert(mrrc_budget_take_over(a, 4 * KIB));
	mrrc_budget_put(a, ALL - 4 * KIB);
	ck_assert_uint_le(node(), 2 * GRAIN);
}

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

TEST(test_race)
{
	pthread_t thread[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++)
		thread[i] = thread_start(race, i & 1 ? a : b);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert(!atomic_load(&beyond));
	ck_assert_uint_eq(atomic_load(&a->used) + atomic_load(&b->used), 0);
	ck_assert_uint_eq(atomic_load(&a->left), a->reserved);
	ck_assert_uint_le(node(), 6 * GRAIN);
}

/* A try to take bytes makes no other process give any. */
TEST(test_try)
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
