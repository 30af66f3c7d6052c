/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache/cache with every policy against a naive model: random operations,
 * each answered by cache and model, with mrrc_cache_valid() after every
 * operation.
 *
 * The model keeps regions in an array and knows no tree, no lists, no classes
 * and no sketch: it looks at every region for every question (model_policy.c).
 * Plans must keep their promises; where no region may be merged, there is only
 * one right plan.
 *
 * MRRC_SEED, MRRC_MODEL_OPS: the seed and the number of operations for each
 * policy. The seed is printed.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/policies.h"
#include "test/models/model.h"
#include "core/cache/plan.h"

#define MAX_PAGES   80u
#define MAX_REGIONS 12u
#define POOL	    80u /* regions that are alive at once */
#define BATCH_PART  32u
#define TIGHT	    16u /* failures after a lack of room */

struct model model;
unsigned long seed;
unsigned long step;

static struct mrrc_cache cache;
static struct mrrc_region pool[POOL];
static bool used[POOL];
static unsigned out[POOL]; /* holds of the test, by pool slot */
static unsigned tight;
static uint64_t hits, evictions, splits, merges;

static unsigned pick(unsigned n)
{
	static uint64_t state;

	if (!state)
		state = seed * 2 + 1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

static unsigned total(void)
{
	unsigned pages = 0;
	unsigned i;

	for (i = 0; i < model.count; i++)
		pages += model.entry[i].pages;
	return pages;
}

/* ---- insertion ---- */

static bool model_full(unsigned pages)
{
	return model.count >= MAX_REGIONS || total() + pages > MAX_PAGES;
}

static int by_start(const void *a, const void *b)
{
	const struct mrrc_region *const *x = a;
	const struct mrrc_region *const *y = b;

	return ((*x)->start > (*y)->start) - ((*x)->start < (*y)->start);
}

/* Neighbours may share half of the smaller one, or of the larger one. */
static bool both(const struct entry *e, unsigned first, unsigned pages)
{
	const unsigned end = e->first + e->pages, last = first + pages;
	const unsigned lo = e->first > first ? e->first : first;
	const unsigned hi = end < last ? end : last;
	const unsigned least = e->pages < pages ? e->pages : pages;
	const unsigned most = e->pages < pages ? pages : e->pages;

	if (hi - lo == least)
		return false;
	return mrrc_access_remote(e->access) ?
		       2 * (hi - lo) <= least :
		       cache.policy->merge && 2 * (hi - lo) <= most;
}

static int model_insert(struct mrrc_region *region)
{
	const unsigned first = region->start / PAGE;
	const unsigned pages = region->len / PAGE;
	/* regions that left, and come back on failure */
	struct mrrc_region *left[POOL];
	unsigned beyond = 0, gone = 0, leaving = 0;
	struct entry *e;
	bool full;
	unsigned i;

	if (pages > MAX_PAGES)
		return -E2BIG;
	if (tight && model_full(pages)) {
		tight--;
		return -ENOSPC;
	}
	for (i = 0; i < model.count;) {
		e = &model.entry[i];
		if (e->access == region->access &&
		    entry_overlaps(e, first, pages) && !both(e, first, pages)) {
			left[leaving++] = e->region;
			model_drop(&model, i);
		} else {
			i++;
		}
	}
	qsort(left, leaving, sizeof(left[0]), by_start);
	while ((full = model_full(pages)) ||
	       (gone && model_more(&model, gone))) {
		i = model_victim(&model);
		if (i == model.count && full) {
			for (i = 0; i < leaving; i++)
				model_enter(&model, left[i]);
			tight = TIGHT;
			return -ENOSPC;
		}
		if (i == model.count)
			break;
		beyond += full ? 0 : model.entry[i].pages * PAGE;
		if (!cache.policy->ops->more &&
		    beyond > MAX_PAGES * PAGE / BATCH_PART)
			break;
		gone++;
		left[leaving++] = model.entry[i].region;
		model_drop(&model, i);
	}
	tight = 0;
	evictions += gone;
	model_enter(&model, region);
	return 0;
}

/* ---- comparison ---- */

/* Checks that the same regions are indexed in cache and model. */
static void compare(void)
{
	struct mrrc_region *region;
	unsigned indexed = 0;
	unsigned i;

	check(mrrc_cache_valid(&cache));
	check(cache.stats->value[MRRC_STAT_HITS] == hits);
	check(cache.stats->value[MRRC_STAT_SPLITS] == splits);
	check(cache.stats->value[MRRC_STAT_MERGES] == merges);
	check(cache.stats->value[MRRC_STAT_EVICTIONS] == evictions);
	check(cache.stats->value[MRRC_STAT_BYTES] == total() * PAGE);
	for (i = 0; i < POOL; i++)
		indexed += used[i] && pool[i].state == MRRC_REGION_INDEXED;
	check(indexed == model.count);
	for (i = 0; i < model.count; i++) {
		region = model.entry[i].region;
		check(region->state == MRRC_REGION_INDEXED);
		check(region->start == model.entry[i].first * PAGE);
		check(region->len == model.entry[i].pages * PAGE);
	}
}

/* Deregisters victims: every victim is dead, unheld, and comes once. */
static void reap(struct mrrc_region_list *victims)
{
	struct mrrc_region *region;

	while ((region = TAILQ_FIRST(victims))) {
		TAILQ_REMOVE(victims, region, link);
		check(region->state == MRRC_REGION_DEAD &&
		      !mrrc_region_held(region));
		check(used[region - pool]);
		used[region - pool] = false;
	}
}

static void hold(struct mrrc_region *region)
{
	mrrc_cache_hold(&cache, region);
	out[region - pool]++;
}

static void put(struct mrrc_region *region)
{
	const unsigned slot = region - pool;
	const bool last = mrrc_cache_put(&cache, region);

	out[slot]--;
	check(last == (!out[slot] && region->state != MRRC_REGION_INDEXED));
	if (last)
		used[slot] = false;
}

static unsigned free_slots(void)
{
	unsigned n = 0;
	unsigned i;

	for (i = 0; i < POOL; i++)
		n += !used[i];
	return n;
}

static struct mrrc_region *new_region(const struct mrrc_piece *piece,
				      enum mrrc_access access)
{
	unsigned slot = 0;

	while (used[slot])
		slot++;
	used[slot] = true;
	pool[slot] = (struct mrrc_region){
		.start = piece->start,
		.len = piece->len,
		.access = access,
	};
	return &pool[slot];
}

/* Draws bytes within the pages [first, first + pages), some of each page. */
static void bytes_of(unsigned first, unsigned pages, uintptr_t *addr,
		     size_t *len)
{
	unsigned head = pick(4) ? 0 : pick(PAGE);
	unsigned tail = pick(4) ? 0 : pick(PAGE);

	if (pages == 1 && head + tail >= PAGE)
		head = tail = 0;
	*addr = (uintptr_t) first * PAGE + head;
	*len = (size_t) pages * PAGE - head - tail;
}

/* Registers the missing pieces of a plan. */
static void fill(const struct mrrc_plan *plan, enum mrrc_access access,
		 struct mrrc_region_list *victims)
{
	struct mrrc_region *region;
	unsigned i;
	int ret;

	for (i = 0; i < plan->count; i++) {
		if (plan->piece[i].region)
			continue;
		region = new_region(&plan->piece[i], access);
		if (pick(2))
			hold(region);
		ret = model_insert(region);
		check(ret == mrrc_cache_insert(&cache, region, victims));
		/* A region not in the index ends with its last put. */
		if (ret && !mrrc_region_held(region))
			used[region - pool] = false;
		reap(victims);
	}
}

static void do_request(struct mrrc_region_list *victims)
{
	const enum mrrc_access access = pick(4) ? pick(2) : 2 + pick(2);
	const unsigned first = 1 + pick(SPACE - MAX_PAGES - 8);
	const unsigned pages = 1 + pick(pick(8) ? 12 : MAX_PAGES + 4);
	const unsigned pieces = pick(4) ? 0 : 1 + pick(6);
	unsigned limit = cache.policy->pieces;
	struct mrrc_plan plan;
	uintptr_t addr;
	unsigned i;
	size_t len;

	if (free_slots() < MRRC_PIECES_MAX)
		return;
	if (pieces && pieces < limit)
		limit = pieces;
	bytes_of(first, pages, &addr, &len);
	mrrc_cache_plan(&cache, addr, len, access, pieces, &plan);
	model_check_plan(&model, &plan, first, pages, access, limit);
	model_request(&model, first, pages);
	hits += !plan.missing;
	splits += plan.count > 1;
	merges += plan.merged;
	for (i = 0; i < plan.count; i++) {
		if (plan.piece[i].region)
			model_touch(&model, plan.piece[i].region);
	}
	mrrc_cache_lookup(&cache, addr, len, access, pieces, &plan);
	for (i = 0; i < plan.count; i++) {
		/* A held region cannot be a victim of the next insertion. */
		if (plan.piece[i].region && (plan.missing || pick(2)))
			hold(plan.piece[i].region);
	}
	fill(&plan, access, victims);
}

static void do_put(void)
{
	const unsigned from = pick(POOL);
	unsigned i;

	for (i = 0; i < POOL; i++) {
		if (out[(from + i) % POOL]) {
			put(&pool[(from + i) % POOL]);
			return;
		}
	}
}

/*
 * Regions leave in the order of access, then of address. The order matters,
 * since a policy remembers a region better that leaves later.
 */
static unsigned next_overlap(unsigned first, unsigned pages, bool unheld)
{
	unsigned best = model.count;
	unsigned i;

	for (i = 0; i < model.count; i++) {
		if (entry_overlaps(&model.entry[i], first, pages) &&
		    !(unheld && mrrc_region_held(model.entry[i].region)) &&
		    (best == model.count ||
		     model.entry[i].access < model.entry[best].access ||
		     (model.entry[i].access == model.entry[best].access &&
		      model.entry[i].first < model.entry[best].first)))
			best = i;
	}
	return best;
}

static void do_invalidate(struct mrrc_region_list *victims)
{
	const unsigned first = pick(SPACE);
	const unsigned pages = 1 + pick(pick(10) ? 4 : SPACE);
	unsigned left = 0;
	unsigned i;

	while ((i = next_overlap(first, pages, false)) < model.count) {
		model_drop(&model, i);
		left++;
	}
	check(mrrc_cache_invalidate(&cache, first * PAGE, pages * PAGE,
				    victims) == left);
}

static void do_evict_all(struct mrrc_region_list *victims)
{
	unsigned left = 0;
	unsigned i;

	while ((i = next_overlap(0, SPACE + MAX_PAGES, true)) < model.count) {
		model_drop(&model, i);
		left++;
	}
	evictions += left;
	check(mrrc_cache_evict_all(&cache, victims) == left);
}

static void run_ops(unsigned long ops)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);

	for (step = 0; step < ops; step++) {
		switch (pick(16)) {
		case 0:
			do_invalidate(&victims);
			break;
		case 1:
			if (!pick(40))
				do_evict_all(&victims);
			break;
		case 2:
		case 3:
		case 4:
		case 5:
		case 6:
		case 7:
		case 8:
			do_put();
			break;
		default:
			do_request(&victims);
		}
		reap(&victims);
		compare();
	}
	/* After the last put, all regions leave, and none is left. */
	do_evict_all(&victims);
	while (mrrc_cache_held(&cache))
		do_put();
	do_evict_all(&victims);
	reap(&victims);
	compare();
	check(free_slots() == POOL && !model.count);
}

static void run(const char *policy, unsigned long ops)
{
	const struct mrrc_cache_conf conf = {
		.max_bytes = MAX_PAGES * PAGE,
		.max_regions = MAX_REGIONS,
		.page = PAGE,
		.policy = policy,
		.policies = sim_policies,
		.cost = &mrrc_cost_default,
	};

	hits = evictions = splits = merges = 0;
	tight = 0;
	check(!mrrc_cache_init(&cache, &conf));
	model_open(&model, &cache);
	run_ops(ops);
	printf("%s: %lu hits, %lu evictions, %lu splits, %lu merges\n", policy,
	       hits, evictions, splits, merges);
	check(ops < 10000 || (hits && evictions));
	mrrc_cache_fini(&cache);
	model_close(&model);
}

int main(void)
{
	static const char *const policies[] = {
		"lru",
		"lru:pieces=4",
		"lru:merge=1",
		"fmrd:batch=3:pieces=32",
		"mre-text",
		"mre-text:resort=100:evict=30",
		"mre-fig4",
		"mre-fig4:resort=20:evict=50",
		"gdsf",
		"gdsf:history=0:merge=0",
		"gdsf:pieces=2:batch=1",
		"gdl",
		"gdl:duel=0:merge=0",
		"gdl:pieces=1",
	};
	const char *text = getenv("MRRC_SEED");
	const char *ops = getenv("MRRC_MODEL_OPS");
	size_t i;

	seed = text ? strtoul(text, NULL, 0) :
		      (unsigned long) time(NULL) ^ (unsigned long) getpid()
							   << 16;
	printf("MRRC_SEED=%lu\n", seed);
	fflush(stdout);
	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		run(policies[i], ops ? strtoul(ops, NULL, 0) : 100000);
	return EXIT_SUCCESS;
}
