/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of sys/node/budget. */
#include "config.h"
#include "test/sys/node/budget_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/fakes/fault.h"

#define MS UINT64_C(1000000)

static uint64_t now; /* time in ns */

char dir[64], path[128];
struct mrrc_budget *a, *b;

struct member has;

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

struct mrrc_budget *open_one(size_t bytes)
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

void budget_open_both(size_t bytes)
{
	now = 100000 * MS;
	fault_clock(now);
	snprintf(dir, sizeof(dir), "/dev/shm/test_budget.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	mrrc_node_shm_path(dir, path, sizeof(path));
	a = open_one(bytes);
	b = open_one(bytes);
}

void budget_setup(void)
{
	budget_open_both(ALL);
	memset(&has, 0, sizeof(has));
	has.member.uses = member_uses;
	has.member.bytes = member_bytes;
	has.member.evict = member_evict;
	has.member.stats = &has.stats;
	has.budget = a;
}

void budget_teardown(void)
{
	mrrc_budget_close(a);
	mrrc_budget_close(b);
	unlink(path);
	rmdir(dir);
	fault_clock(0);
}

uint64_t reserved(struct mrrc_budget *budget)
{
	struct mrrc_budget_stats stats;

	mrrc_budget_stats(budget, &stats);
	return stats.reserved;
}

uint64_t node(void)
{
	struct mrrc_budget_stats stats;

	mrrc_budget_stats(a, &stats);
	return stats.node;
}

static bool answered(struct mrrc_budget *budget)
{
	return atomic_load(&mrrc_node_shm_mine(budget->shm)->heard) ==
	       mrrc_node_shm_bell(budget->shm);
}

void step(uint64_t ms)
{
	now += ms * MS;
	fault_clock(now);
	while (!answered(a) || !answered(b))
		usleep(20);
}

bool take_within(struct mrrc_budget *budget, size_t bytes, uint64_t ms)
{
	for (; ms; ms--) {
		if (mrrc_budget_take(budget, bytes))
			return true;
		step(1);
	}
	return false;
}

bool take_soon(struct mrrc_budget *budget, size_t bytes)
{
	return take_within(budget, bytes, 6000);
}
