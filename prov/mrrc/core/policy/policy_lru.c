/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Evicts the least recently used region, whatever its size.
 *
 * `lru` is the pin-down cache (Tezuka et al. 1998): one region for a request,
 * one deregistration at a time. `fmrd` (Wu et al. 2003) is `lru` with batched
 * deregistration. With pieces=4, `lru` and `fmrd` split overlaps as MRRC does.
 *
 * The state is a list from the oldest to the newest use. A region that is in
 * use when a victim is sought counts as used now, so that no region is
 * inspected twice for the same use.
 */
#include "config.h"
#include "core/policy/policy.h"

struct mrrc_lru {
	struct mrrc_policy policy;
	struct mrrc_region_list list; /* oldest use first */
	size_t count;
};

static struct mrrc_lru *lru_of(struct mrrc_policy *policy)
{
	return (struct mrrc_lru *) policy;
}

static int lru_init(struct mrrc_policy *policy,
		    const struct mrrc_policy_attr *attr)
{
	struct mrrc_lru *lru = lru_of(policy);

	TAILQ_INIT(&lru->list);
	lru->count = 0;
	return 0;
}

static void lru_fini(struct mrrc_policy *policy)
{
}

static void lru_insert(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_lru *lru = lru_of(policy);

	TAILQ_INSERT_TAIL(&lru->list, region, link);
	lru->count++;
}

static void lru_touch(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_lru *lru = lru_of(policy);

	if (!TAILQ_NEXT(region, link))
		return;
	TAILQ_REMOVE(&lru->list, region, link);
	TAILQ_INSERT_TAIL(&lru->list, region, link);
}

static void lru_remove(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_lru *lru = lru_of(policy);

	TAILQ_REMOVE(&lru->list, region, link);
	lru->count--;
}

static struct mrrc_region *lru_victim(struct mrrc_policy *policy)
{
	struct mrrc_lru *lru = lru_of(policy);
	struct mrrc_region *region;
	size_t left;

	for (left = lru->count; left; left--) {
		region = TAILQ_FIRST(&lru->list);
		if (!mrrc_region_held(region))
			return region;
		lru_touch(policy, region);
	}
	return NULL;
}

static bool lru_valid(const struct mrrc_policy *policy, size_t count)
{
	const struct mrrc_lru *lru = (const struct mrrc_lru *) policy;
	struct mrrc_region *region;
	size_t seen = 0;

	TAILQ_FOREACH(region, &lru->list, link) {
		if (region->state != MRRC_REGION_INDEXED)
			return false;
		seen++;
	}
	return seen == count && lru->count == count;
}

#define MRRC_LRU_OPS                                                         \
	.size = sizeof(struct mrrc_lru), .init = lru_init, .fini = lru_fini, \
	.insert = lru_insert, .touch = lru_touch, .remove = lru_remove,      \
	.victim = lru_victim, .valid = lru_valid

const struct mrrc_policy_ops mrrc_policy_lru_ops = {
	.name = "lru",
	.help = "pin-down cache: the least recently used region",
	.pieces = 1,
	.batch = 1,
	MRRC_LRU_OPS,
};

const struct mrrc_policy_ops mrrc_policy_fmrd_ops = {
	.name = "fmrd",
	.help = "the same, deregistering in batches",
	.pieces = 1,
	.batch = 16,
	MRRC_LRU_OPS,
};
