/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of a helper that registers ahead of use. */
#include "config.h"
#include "test/sys/predict/ahead_fixture.h"

#include "test/case.h"
#include "test/fakes/fault.h"

static const struct mrrc_cost cost = {
	.reg_page = 1000,
	.reg = 10000,
	.dereg_page = 500,
	.dereg = 5000,
	.page = 4096,
};

struct mrrc_mon_ops ops;
uint64_t now;

void clock_set(uint64_t ns)
{
	now = ns;
	fault_clock(now);
}

void ahead_setup(void)
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
	cache->predictor = &mrrc_ahead_predictor;
	ck_assert_int_eq(mrrc_ahead_open(cache, false, &cache->ahead), 0);
}

void ahead_teardown(void)
{
	fault_clock(0);
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.regs, fake.deregs);
	mrrc_mon_close(mt_mon);
}

void leave(bool may, uint64_t move)
{
	cache->ahead->leave.may = may;
	cache->ahead->leave.move_ns = move;
}

uint64_t turns(void)
{
	uint64_t wake;
	bool asleep;

	do {
		wake = mrrc_ahead_turn(cache->ahead, &asleep);
	} while (!wake);
	ck_assert(mrrc_cache_mt_valid(cache));
	return wake;
}

void pass(uint64_t ns)
{
	const uint64_t end = now + ns;
	uint64_t wake = turns();

	while (wake < end) {
		clock_set(wake);
		wake = turns();
	}
	clock_set(end);
}

void note(unsigned first, unsigned pages)
{
	mrrc_cache_use(cache, (void *) (base + first * page), pages * page,
		       SITE);
	mrrc_cache_use_wake(cache);
}

void use(unsigned first, unsigned pages)
{
	note(first, pages);
	touch(first, pages);
}

void learn(unsigned first, unsigned pages)
{
	unsigned i;

	for (i = 0; i < LEARN; i++) {
		use(first, pages);
		pass(PERIOD);
	}
	use(first, pages);
}

bool registered(unsigned first, unsigned pages)
{
	bool found;

	mrrc_lock_acquire(&cache->lock);
	found = mrrc_cache_find(&cache->cache, base + first * page,
				pages * page, MRRC_RW);
	mrrc_lock_release(&cache->lock);
	return found;
}

static unsigned moments; /* locks before the call */
static void (*act)(void);

static void act_later(void)
{
	if (mrrc_locks_inside > 1 || moments--)
		fault_at(FAULT_LOCK, act_later);
	else
		act();
}

void act_after(unsigned count, void (*call)(void))
{
	moments = count;
	act = call;
	fault_at(FAULT_LOCK, act_later);
}

void elsewhere(void *(*run)(void *) )
{
	pthread_join(thread_start(run, NULL), NULL);
}
