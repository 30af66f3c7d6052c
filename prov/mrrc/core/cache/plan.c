/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plans a request: the regions that serve it, and the gaps that have to be
 * registered.
 */
#include "config.h"
#include "core/cache/plan.h"

#include <assert.h>

/*
 * A merge may include pages outside the request up to this part of the byte
 * limit.
 */
#define MRRC_MERGE_PART 4

/*
 * Returns the region at @pos that reaches furthest; if no region is at @pos,
 * the next region that begins before @end. *at is the first region that ends
 * after an earlier position, and is moved on to @pos.
 */
static struct mrrc_region *plan_next(struct mrrc_region **at, uintptr_t pos,
				     uintptr_t end)
{
	struct mrrc_region *region;
	struct mrrc_region *next;

	while (*at && mrrc_region_end(*at) <= pos)
		*at = mrrc_index_next(*at);
	region = next = *at;
	while (next && next->start <= pos) {
		region = next;
		next = mrrc_index_next(region);
	}
	return region && region->start < end ? region : NULL;
}

/* Appends a piece; false if there is no room. */
static bool plan_add(struct mrrc_plan *plan, uintptr_t start, uintptr_t end,
		     struct mrrc_region *region)
{
	if (plan->count == MRRC_PIECES_MAX)
		return false;
	plan->piece[plan->count++] = (struct mrrc_piece){
		start,
		end - start,
		region,
	};
	return true;
}

/*
 * Appends the regions and gaps of [lo, hi) in turn; the plan's place is the
 * place of @lo. Writable regions serve reading, too, and come first. Returns
 * false if there are too many pieces.
 */
static bool plan_walk(uintptr_t lo, uintptr_t hi, enum mrrc_access access,
		      struct mrrc_plan *plan)
{
	struct mrrc_region *at[] = { plan->place.at[0], plan->place.at[1] };
	struct mrrc_region *region;
	struct mrrc_region *other;
	uintptr_t pos = lo;
	uintptr_t end;

	while (pos < hi) {
		region = plan_next(&at[0], pos, hi);
		if (access == MRRC_RO && (!region || region->start > pos)) {
			other = plan_next(&at[1], pos, hi);
			if (!region || (other && other->start < region->start))
				region = other;
		}
		if (!region || region->start > pos) {
			end = region ? region->start : hi;
			if (!plan_add(plan, pos, end, NULL))
				return false;
			pos = end;
			continue;
		}
		end = mrrc_region_end(region);
		if (end > hi)
			end = hi;
		if (!plan_add(plan, pos, end, region))
			return false;
		pos = end;
	}
	return true;
}

/*
 * Bytes that are registered twice if piece @i is registered with a neighbour.
 */
static size_t plan_twice(const struct mrrc_plan *plan, unsigned i)
{
	return plan->piece[i].region ? plan->piece[i].region->len : 0;
}

/* Makes the pieces @i to @last one gap. */
static void plan_merge(struct mrrc_plan *plan, unsigned i, unsigned last)
{
	struct mrrc_piece *piece = &plan->piece[i];
	unsigned n;

	piece->len =
		plan->piece[last].start + plan->piece[last].len - piece->start;
	piece->region = NULL;
	for (n = last + 1; n < plan->count; n++)
		plan->piece[i + n - last] = plan->piece[n];
	plan->count -= last - i;
	plan->merged = true;
}

/* Joins piece @i, which has become a gap, with adjacent gaps. */
static void plan_join(struct mrrc_plan *plan, unsigned i)
{
	unsigned first = i;
	unsigned last = i;

	if (i && !plan->piece[i - 1].region)
		first--;
	if (i + 1 < plan->count && !plan->piece[i + 1].region)
		last++;
	if (first < last)
		plan_merge(plan, first, last);
}

/*
 * Is registering the region again, together with the gaps on both sides,
 * cheaper than a separate registration for each gap?
 */
static bool plan_bridges(const struct mrrc_cost *cost,
			 const struct mrrc_plan *plan, unsigned i)
{
	return plan->piece[i].region && !plan->piece[i - 1].region &&
	       !plan->piece[i + 1].region &&
	       cost->reg_page * mrrc_cost_pages(cost, plan->piece[i].len) <=
		       cost->reg;
}

static void plan_bridge(const struct mrrc_cost *cost, struct mrrc_plan *plan)
{
	unsigned i;

	for (i = 1; i + 1 < plan->count;) {
		if (plan_bridges(cost, plan, i))
			plan_merge(plan, i - 1, i + 1);
		else
			i++;
	}
}

/* Merges the two neighbours whose merge costs least. */
static void plan_shorten(struct mrrc_plan *plan)
{
	size_t least = SIZE_MAX;
	size_t bytes;
	unsigned best = 0;
	unsigned i;

	for (i = 0; i + 1 < plan->count; i++) {
		bytes = plan_twice(plan, i) + plan_twice(plan, i + 1);
		if (bytes < least) {
			least = bytes;
			best = i;
		}
	}
	plan_merge(plan, best, best + 1);
	plan_join(plan, best);
}

/*
 * @region was merged into the first or last piece of the plan. Are the region's
 * pages outside the request registered with the request? Yes if these pages
 * were used before, or if the request had to be merged before (@again):
 * otherwise two requests would displace each other permanently. No if both
 * registrations can stay: a growing row of neighbours that share a page would
 * be registered again and again.
 */
static bool plan_includes(const struct mrrc_cache *cache,
			  const struct mrrc_region *region, bool again,
			  const struct mrrc_piece *piece)
{
	return region && !piece->region && (again || region->reused) &&
	       !mrrc_cache_both(cache, region, piece->start, piece->len);
}

static void plan_extend(const struct mrrc_cache *cache,
			const struct mrrc_region *first,
			const struct mrrc_region *last, bool again,
			struct mrrc_plan *plan)
{
	const size_t most = cache->max_bytes / MRRC_MERGE_PART;
	struct mrrc_piece *piece = &plan->piece[0];
	size_t len;

	if (plan_includes(cache, first, again, piece)) {
		len = piece->start + piece->len - first->start;
		if (len <= most) {
			piece->start = first->start;
			piece->len = len;
		}
	}
	piece = &plan->piece[plan->count - 1];
	if (plan_includes(cache, last, again, piece)) {
		len = mrrc_region_end(last) - piece->start;
		if (len <= most)
			piece->len = len;
	}
}

/* Limits the plan to @pieces pieces. */
static void plan_fit(const struct mrrc_cache *cache, uintptr_t lo,
		     unsigned pieces, struct mrrc_plan *plan)
{
	const struct mrrc_region *first = plan->piece[0].region;
	const struct mrrc_region *last = plan->piece[plan->count - 1].region;

	if (plan->count <= pieces)
		return;
	while (plan->count > pieces)
		plan_shorten(plan);
	if (cache->policy->merge)
		plan_extend(cache, first, last,
			    mrrc_history_get(&cache->merged, lo / cache->page),
			    plan);
}

void mrrc_cache_plan(const struct mrrc_cache *cache, uintptr_t addr, size_t len,
		     enum mrrc_access access, unsigned pieces,
		     struct mrrc_plan *plan)
{
	const uintptr_t mask = cache->page - 1;
	const uintptr_t lo = addr & ~mask;
	const uintptr_t hi = ((addr + len - 1) | mask) + 1;
	struct mrrc_region *region;
	struct mrrc_region *at;
	unsigned i;

	assert(lo < hi);
	if (!pieces || pieces > cache->policy->pieces)
		pieces = cache->policy->pieces;
	plan->count = 0;
	plan->missing = 0;
	plan->merged = false;
	plan->place.moves = 0;
	mrrc_cache_seek(cache, lo, access, &plan->place);
	region = mrrc_cache_find_at(&plan->place, hi - lo);
	if (region) {
		plan_add(plan, lo, hi, region);
		return;
	}
	if (mrrc_access_remote(access) || !plan_walk(lo, hi, access, plan)) {
		at = plan->place.at[0];
		plan->merged = plan->count || plan_next(&at, lo, hi);
		plan->count = 0;
		plan_add(plan, lo, hi, NULL);
	}
	if (cache->policy->merge)
		plan_bridge(&cache->cost, plan);
	plan_fit(cache, lo, pieces, plan);
	for (i = 0; i < plan->count; i++)
		plan->missing += !plan->piece[i].region;
}

static void cache_requested(struct mrrc_cache *cache, uintptr_t addr,
			    size_t len)
{
	struct mrrc_policy *policy = cache->policy;

	if (policy->ops->request)
		policy->ops->request(policy, addr & ~(cache->page - 1),
				     (addr & (cache->page - 1)) + len);
}

static void cache_used(struct mrrc_cache *cache, struct mrrc_region *region)
{
	region->reused = true;
	cache->policy->ops->touch(cache->policy, region);
}

void mrrc_cache_served(struct mrrc_cache *cache, uintptr_t addr, size_t len,
		       enum mrrc_access access)
{
	struct mrrc_region *region;

	cache_requested(cache, addr, len);
	region = mrrc_cache_find(cache, addr, len, access);
	if (region)
		cache_used(cache, region);
}

void mrrc_cache_lookup(struct mrrc_cache *cache, uintptr_t addr, size_t len,
		       enum mrrc_access access, unsigned pieces,
		       struct mrrc_plan *plan)
{
	unsigned i;

	cache_requested(cache, addr, len);
	mrrc_cache_plan(cache, addr, len, access, pieces, plan);
	mrrc_cache_count(cache, MRRC_STAT_LOOKUPS);
	mrrc_cache_count(cache,
			 plan->missing ? MRRC_STAT_MISSES : MRRC_STAT_HITS);
	if (plan->count > 1)
		mrrc_cache_count(cache, MRRC_STAT_SPLITS);
	if (plan->merged) {
		mrrc_cache_count(cache, MRRC_STAT_MERGES);
		if (cache->policy->merge)
			mrrc_history_add(&cache->merged, addr / cache->page);
	}
	for (i = 0; i < plan->count; i++) {
		if (plan->piece[i].region)
			cache_used(cache, plan->piece[i].region);
	}
}
