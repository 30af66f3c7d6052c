/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulates LRU next to a policy (shadow.h).
 */
#include "config.h"
#include "core/policy/shadow.h"

#include "core/text/hash.h"

#include <errno.h>
#include <stdlib.h>

#define RANGES	  4096
#define BLOCK	  (64 * 1024) /* bytes that are sampled together */
#define ALLOWANCE .03	      /* allowance, as a part of LRU's cost */
/* factor of old costs, at each request that LRU misses */
#define FADE .999
/* part of an overhead that is still paid where batches save */
#define SAVED .1
/* limit of difference and risk together, as a factor of the allowance */
#define AT_RISK 1.5
/* prior for the number of risky victims that returned */
#define PRIOR 70.0

/* Data of a range, in its policy words. */
struct shadow_node {
	bool evicted; /* by the policy, so the range is at risk */
};

int mrrc_shadow_init(struct mrrc_shadow *shadow, const struct mrrc_cost *cost,
		     size_t max_bytes, size_t max_regions)
{
	*shadow = (struct mrrc_shadow){
		.cost = cost,
		.max_bytes = max_bytes,
		.max_ranges = max_regions,
	};
	mrrc_index_init(&shadow->index);
	TAILQ_INIT(&shadow->list);
	TAILQ_INIT(&shadow->unused);
	/* not calloc, which clears memory that malloc had given out before */
	shadow->range = malloc(RANGES * sizeof(*shadow->range));
	if (!shadow->range)
		return -ENOMEM;
	*shadow->range = (struct mrrc_region){ 0 };
	return 0;
}

void mrrc_shadow_fini(struct mrrc_shadow *shadow)
{
	free(shadow->range);
}

static bool shadow_sampled(const struct mrrc_shadow *shadow, uintptr_t start)
{
	return !shadow->sample ||
	       !(mrrc_hash(start / BLOCK + 1) & shadow->sample);
}

/* The cost of registering and deregistering @len bytes. */
static double shadow_cost(const struct mrrc_shadow *shadow, size_t len)
{
	const struct mrrc_cost *cost = shadow->cost;

	return mrrc_cost_reg(cost, len) + mrrc_cost_dereg(cost, len) -
	       (cost->batch ? (1 - SAVED) * cost->dereg : 0);
}

static struct shadow_node *shadow_node(const struct mrrc_region *range)
{
	return (struct shadow_node *) range->policy;
}

/* Ends the risk of a range; returns whether the range was at risk. */
static bool shadow_settle(struct mrrc_shadow *shadow, struct mrrc_region *range)
{
	if (!shadow_node(range)->evicted)
		return false;
	shadow_node(range)->evicted = false;
	shadow->risk -= shadow_cost(shadow, range->len);
	return true;
}

static void shadow_drop(struct mrrc_shadow *shadow, struct mrrc_region *range)
{
	shadow_settle(shadow, range);
	mrrc_index_remove(&shadow->index, range);
	TAILQ_REMOVE(&shadow->list, range, link);
	TAILQ_INSERT_HEAD(&shadow->unused, range, link);
	range->len = 0;
}

static void shadow_touch(struct mrrc_shadow *shadow, struct mrrc_region *range)
{
	if (!TAILQ_NEXT(range, link))
		return;
	TAILQ_REMOVE(&shadow->list, range, link);
	TAILQ_INSERT_TAIL(&shadow->list, range, link);
}

/* Continues with half of the addresses. */
static void shadow_thin(struct mrrc_shadow *shadow)
{
	struct mrrc_region *range = TAILQ_FIRST(&shadow->list);
	struct mrrc_region *next;

	shadow->sample = 2 * shadow->sample + 1;
	shadow->max_bytes /= 2;
	shadow->max_ranges -= shadow->max_ranges / 2;
	shadow->spent /= 2;
	shadow->over /= 2;
	for (; range; range = next) {
		next = TAILQ_NEXT(range, link);
		if (!shadow_sampled(shadow, range->start))
			shadow_drop(shadow, range);
	}
	/* if more than half was sampled, the halved limits are exceeded */
	while (shadow->index.bytes > shadow->max_bytes ||
	       shadow->index.count > shadow->max_ranges)
		shadow_drop(shadow, TAILQ_FIRST(&shadow->list));
}

static bool shadow_full(const struct mrrc_shadow *shadow)
{
	return shadow->used == RANGES && TAILQ_EMPTY(&shadow->unused);
}

/*
 * Takes an unused entry. Entries that were never used are not touched, so these
 * entries take no memory.
 */
static struct mrrc_region *shadow_take(struct mrrc_shadow *shadow)
{
	struct mrrc_region *range = TAILQ_FIRST(&shadow->unused);

	if (!range)
		return &shadow->range[shadow->used++];
	TAILQ_REMOVE(&shadow->unused, range, link);
	return range;
}

static void shadow_expire(struct mrrc_shadow *shadow)
{
	struct mrrc_region *oldest = TAILQ_FIRST(&shadow->list);

	shadow->gone += shadow_settle(shadow, oldest);
	shadow_drop(shadow, oldest);
}

static void shadow_add(struct mrrc_shadow *shadow, uintptr_t start, size_t len)
{
	struct mrrc_region *range;

	while (shadow->index.bytes > shadow->max_bytes - len ||
	       shadow->index.count >= shadow->max_ranges || shadow_full(shadow))
		shadow_expire(shadow);
	range = shadow_take(shadow);
	range->start = start;
	range->len = len;
	shadow_node(range)->evicted = false;
	mrrc_index_insert(&shadow->index, range);
	TAILQ_INSERT_TAIL(&shadow->list, range, link);
}

/*
 * Registers each gap of the range; returns the cost. @any: is a part of the
 * range present?
 */
static double shadow_fill(struct mrrc_shadow *shadow, uintptr_t start,
			  uintptr_t end, bool any)
{
	const struct mrrc_region *range = NULL;
	double cost = 0;
	uintptr_t to;

	while (start < end) {
		if (any)
			range = mrrc_index_first_overlap(&shadow->index, start,
							 end - start);
		if (range && range->start <= start) {
			start = mrrc_region_end(range);
			continue;
		}
		to = range ? range->start : end;
		cost += shadow_cost(shadow, to - start);
		shadow_add(shadow, start, to - start);
		start = to;
	}
	return cost;
}

/*
 * Returns the lowest present part of the range, or NULL. *hint: the index of a
 * range that may be the wanted range; ranges do not overlap.
 */
static struct mrrc_region *shadow_first(struct mrrc_shadow *shadow,
					uintptr_t start, size_t len,
					uint32_t *hint)
{
	/* entry 0 is set before it is used */
	struct mrrc_region *range =
		&shadow->range[*hint < shadow->used ? *hint : 0];

	/* unused entries are empty */
	if (start - range->start < range->len)
		return range;
	range = mrrc_index_first_overlap(&shadow->index, start, len);
	if (range)
		*hint = range - shadow->range;
	return range;
}

/*
 * Marks the present parts of a request, from @range on, as used now, in the
 * order of addresses.
 */
static void shadow_find(struct mrrc_shadow *shadow, struct mrrc_region *range,
			uintptr_t start, size_t len)
{
	for (; range; range = mrrc_index_next_overlap(range, start, len))
		shadow_touch(shadow, range);
}

/*
 * Records that the policy has registered a range, of which parts from @range on
 * are present.
 */
static void shadow_fresh(struct mrrc_shadow *shadow, struct mrrc_region *range,
			 uintptr_t start, size_t len)
{
	shadow->over += shadow_cost(shadow, len);
	for (; range; range = mrrc_index_next_overlap(range, start, len))
		shadow->returned += shadow_settle(shadow, range);
}

void mrrc_shadow_use(struct mrrc_shadow *shadow, uintptr_t start, size_t len,
		     bool fresh, uint32_t *hint)
{
	struct mrrc_region *first;
	double cost;

	if (shadow_full(shadow))
		shadow_thin(shadow);
	if (!shadow_sampled(shadow, start) || len > shadow->max_bytes)
		return;
	first = shadow_first(shadow, start, len, hint);
	if (fresh)
		shadow_fresh(shadow, first, start, len);
	if (first && start >= first->start &&
	    len <= mrrc_region_end(first) - start) {
		shadow_touch(shadow, first);
		return;
	}
	shadow_find(shadow, first, start, len);
	cost = shadow_fill(shadow, start, start + len, first);
	if (cost <= 0)
		return;
	shadow->over = FADE * (shadow->over - cost);
	shadow->spent = FADE * (shadow->spent + cost);
}

void mrrc_shadow_evict(struct mrrc_shadow *shadow, uintptr_t start, size_t len)
{
	struct mrrc_region *range;

	/*
	 * the next registration of a range outside the sample does not count,
	 * either
	 */
	if (!shadow_sampled(shadow, start))
		return;
	for (range = mrrc_index_first_overlap(&shadow->index, start, len);
	     range; range = mrrc_index_next_overlap(range, start, len)) {
		shadow_settle(shadow, range);
		shadow_node(range)->evicted = true;
		shadow->risk += shadow_cost(shadow, range->len);
	}
}

void mrrc_shadow_forget(struct mrrc_shadow *shadow, uintptr_t start, size_t len)
{
	struct mrrc_region *range;

	while ((range = mrrc_index_first_overlap(&shadow->index, start, len)))
		shadow_drop(shadow, range);
}

bool mrrc_shadow_affords(const struct mrrc_shadow *shadow, size_t len)
{
	const double returned = PRIOR + shadow->returned;
	const double expected =
		shadow->risk * returned / (returned + shadow->gone);
	const double allowed = ALLOWANCE * shadow->spent;
	const double over = shadow->over + shadow_cost(shadow, len);

	return over <= allowed && over + expected <= AT_RISK * allowed;
}

bool mrrc_shadow_valid(const struct mrrc_shadow *shadow)
{
	const struct mrrc_region *range;
	double risk = shadow->risk;
	size_t count = 0;

	TAILQ_FOREACH(range, &shadow->list, link) {
		if (!shadow_sampled(shadow, range->start) ||
		    mrrc_index_find(&shadow->index, range->start, range->len) !=
			    range)
			return false;
		if (shadow_node(range)->evicted)
			risk -= shadow_cost(shadow, range->len);
		count++;
	}
	/* sums of nanoseconds are not exact */
	if (risk < -1 || risk > 1)
		return false;
	return mrrc_index_valid(&shadow->index) &&
	       count == shadow->index.count &&
	       shadow->index.bytes <= shadow->max_bytes &&
	       count <= shadow->max_ranges;
}
