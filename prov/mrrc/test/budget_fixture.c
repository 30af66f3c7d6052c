/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the tests of sys/budget share. */
#include "config.h"
#include "budget_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void budget_setup(void)
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

void budget_teardown(void)
{
	mrrc_budget_close(a);
	if (b)
		mrrc_budget_close(b);
	unlink(path);
	rmdir(dir);
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

bool take_soon(struct mrrc_budget *budget, size_t bytes)
{
	unsigned i;

	for (i = 0; i < 6000; i++) {
		if (mrrc_budget_take(budget, bytes))
			return true;
		usleep(1000);
	}
	return false;
}
