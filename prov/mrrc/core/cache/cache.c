/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Index + policy + budget (cache.h).
 */
#include "config.h"
#include "core/cache/cache.h"

#include <assert.h>
#include <errno.h>

/* A batch of victims may exceed the needed bytes by this part of the limit. */
#define MRRC_BATCH_PART 32

/*
 * Number of insertions that fail without a try after held regions made an
 * insertion fail.
 */
#define MRRC_TIGHT 16

int mrrc_cache_init(struct mrrc_cache *cache,
		    const struct mrrc_cache_conf *conf)
{
	const struct mrrc_cost *cost = conf->cost;
	struct mrrc_policy_attr attr;
	size_t ranges;
	int i, ret;

	if (!conf->max_bytes || !conf->max_regions || !conf->page ||
	    (conf->page & (conf->page - 1)))
		return -EINVAL;
	if (!cost)
		cost = &mrrc_cost_default;
	if (mrrc_cost_check(cost))
		return -EINVAL;

	*cache = (struct mrrc_cache){
		.cost = *cost,
		.max_bytes = conf->max_bytes,
		.max_regions = conf->max_regions,
		.page = conf->page,
		.moves = 1,
		.stats = conf->stats ? conf->stats : &cache->own,
	};
	cache->stats->value[MRRC_STAT_MAX_BYTES] = conf->max_bytes;
	cache->stats->value[MRRC_STAT_MAX_REGIONS] = conf->max_regions;
	for (i = 0; i < MRRC_ACCESS_CNT; i++)
		mrrc_index_init(&cache->index[i]);
	attr = (struct mrrc_policy_attr){
		.cost = &cache->cost,
		.max_bytes = conf->max_bytes,
		.max_regions = conf->max_regions,
		.arg = conf->policy_arg,
	};
	ret = mrrc_policy_open(conf->policies, conf->policy, &attr,
			       &cache->policy);
	if (ret || !cache->policy->merge)
		return ret;
	ranges = conf->max_bytes / cost->page;
	if (ranges > conf->max_regions)
		ranges = conf->max_regions;
	ret = mrrc_history_init(&cache->merged, ranges);
	if (ret) {
		mrrc_policy_close(cache->policy);
		cache->policy = NULL;
	}
	return ret;
}

/* Counts regions that have entered or left an index. */
static void cache_counts(struct mrrc_cache *cache, int regions, size_t bytes)
{
	atomic_store_explicit(&cache->regions,
			      mrrc_cache_regions(cache) + regions,
			      memory_order_relaxed);
	cache->bytes += bytes;
	cache->moves++;
}

void mrrc_cache_fini(struct mrrc_cache *cache)
{
	assert(!mrrc_cache_regions(cache));
	if (cache->policy->merge)
		mrrc_history_fini(&cache->merged);
	mrrc_policy_close(cache->policy);
}

static void cache_peak(struct mrrc_cache *cache, enum mrrc_stat now,
		       enum mrrc_stat peak)
{
	uint64_t *value = cache->stats->value;

	if (value[now] > value[peak])
		value[peak] = value[now];
}

static void cache_gauge(struct mrrc_cache *cache)
{
	cache->stats->value[MRRC_STAT_BYTES] = cache->bytes;
	cache->stats->value[MRRC_STAT_REGIONS] = mrrc_cache_regions(cache);
	cache_peak(cache, MRRC_STAT_BYTES, MRRC_STAT_BYTES_PEAK);
	cache_peak(cache, MRRC_STAT_REGIONS, MRRC_STAT_REGIONS_PEAK);
}

static struct mrrc_region *cache_from(const struct mrrc_index *index,
				      uintptr_t start)
{
	return index->count ? mrrc_index_from(index, start) : NULL;
}

void mrrc_cache_seek(const struct mrrc_cache *cache, uintptr_t start,
		     enum mrrc_access access, struct mrrc_place *place)
{
	const bool both = access == MRRC_RO;

	if (place->moves == cache->moves && place->start == start &&
	    place->access == access)
		return;
	*place = (struct mrrc_place){
		.start = start,
		.access = access,
		.moves = cache->moves,
	};
	place->at[0] =
		cache_from(&cache->index[both ? MRRC_RW : access], start);
	if (both)
		place->at[1] = cache_from(&cache->index[MRRC_RO], start);
}

struct mrrc_region *mrrc_cache_find_at(const struct mrrc_place *place,
				       size_t len)
{
	struct mrrc_region *region =
		mrrc_index_covers(place->at[0], place->start, len);

	return region ? region :
			mrrc_index_covers(place->at[1], place->start, len);
}

struct mrrc_region *mrrc_cache_find(const struct mrrc_cache *cache,
				    uintptr_t addr, size_t len,
				    enum mrrc_access access)
{
	struct mrrc_region *region = NULL;

	if (access == MRRC_RO)
		region = mrrc_index_find(&cache->index[MRRC_RW], addr, len);
	if (!region)
		region = mrrc_index_find(&cache->index[access], addr, len);
	return region;
}

/* Takes the region out of its index. */
void mrrc_cache_leave(struct mrrc_cache *cache, struct mrrc_region *region,
		      struct mrrc_region_list *gone)
{
	assert(region->state == MRRC_REGION_INDEXED);
	cache->policy->ops->remove(cache->policy, region);
	mrrc_index_remove(&cache->index[region->access], region);
	cache_counts(cache, -1, -region->len);
	region->state = MRRC_REGION_DEAD;
	mrrc_region_retire(region);
	TAILQ_INSERT_TAIL(gone, region, link);
}

/*
 * Sorts regions that have left the index: unheld regions become victims, held
 * regions stay DEAD until their last operation ends.
 */
static void mrrc_cache_part(struct mrrc_cache *cache,
			    struct mrrc_region_list *gone,
			    struct mrrc_region_list *victims)
{
	struct mrrc_region *region;

	if (cache->holders && !TAILQ_EMPTY(gone))
		cache->holders->settle(cache->holders);
	while ((region = TAILQ_FIRST(gone))) {
		TAILQ_REMOVE(gone, region, link);
		region->loose = mrrc_region_held(region);
		if (region->loose)
			cache->loose++;
		else
			TAILQ_INSERT_TAIL(victims, region, link);
	}
}

bool mrrc_cache_both(const struct mrrc_cache *cache,
		     const struct mrrc_region *region, uintptr_t start,
		     size_t len)
{
	const uintptr_t end = start + len, last = mrrc_region_end(region);
	const size_t shared = (last < end ? last : end) -
			      (region->start > start ? region->start : start);

	if (shared == len || shared == region->len)
		return false;
	if (mrrc_access_remote(region->access))
		return shared <= (len < region->len ? len : region->len) / 2;
	return cache->policy->merge &&
	       shared <= (len > region->len ? len : region->len) / 2;
}

/*
 * Uncaches the regions of one index that overlap the range; returns their
 * number. @region: the first region that ends after the start of the range, or
 * NULL. @instead: the new region of the range, which some regions may overlap
 * and stay (mrrc_cache_both), or NULL.
 */
static size_t cache_drop(struct mrrc_cache *cache, struct mrrc_region *region,
			 uintptr_t start, size_t len,
			 const struct mrrc_region *instead,
			 struct mrrc_region_list *gone)
{
	struct mrrc_region *next;
	size_t count = 0;

	while (region && mrrc_region_overlaps(region, start, len)) {
		next = mrrc_index_next(region);
		if (!instead || !mrrc_cache_both(cache, region, start, len)) {
			mrrc_cache_leave(cache, region, gone);
			count++;
		}
		region = next;
	}
	return count;
}

static bool cache_full(const struct mrrc_cache *cache, size_t len)
{
	return mrrc_cache_regions(cache) >= cache->max_regions ||
	       cache->bytes > cache->max_bytes - len;
}

bool mrrc_cache_room(const struct mrrc_cache *cache, size_t len)
{
	return len <= cache->max_bytes && !cache_full(cache, len);
}

/* Should the batch have more victims, though there is enough room already? */
static bool cache_more(const struct mrrc_cache *cache, size_t gone)
{
	struct mrrc_policy *policy = cache->policy;

	return policy->ops->more ? policy->ops->more(policy, gone) :
				   gone < policy->batch;
}

/*
 * Do the victims exceed the needed bytes by a batch's part of the limit? A
 * policy that chooses its batches itself has no such limit.
 */
static bool cache_batch_full(const struct mrrc_cache *cache, size_t beyond)
{
	return !cache->policy->ops->more &&
	       beyond > cache->max_bytes / MRRC_BATCH_PART;
}

/*
 * Makes room for one more region of @len bytes; false: held regions prevent it.
 */
static bool cache_make_room(struct mrrc_cache *cache, size_t len,
			    struct mrrc_region_list *gone)
{
	struct mrrc_policy *policy = cache->policy;
	struct mrrc_region *victim;
	size_t beyond = 0;
	size_t count = 0;
	bool full;

	while ((full = cache_full(cache, len)) ||
	       (count && cache_more(cache, count))) {
		victim = policy->ops->victim(policy);
		if (!victim && full)
			return false;
		if (!victim)
			break;
		beyond += full ? 0 : victim->len;
		if (cache_batch_full(cache, beyond))
			break;
		count++;
		mrrc_cache_leave(cache, victim, gone);
	}
	cache->stats->value[MRRC_STAT_EVICTIONS] += count;
	return true;
}

static void cache_index(struct mrrc_cache *cache, struct mrrc_region *region)
{
	mrrc_index_insert(&cache->index[region->access], region);
	cache_counts(cache, 1, region->len);
	cache->policy->ops->insert(cache->policy, region);
	region->state = MRRC_REGION_INDEXED;
	mrrc_region_publish(region);
}

/*
 * Puts victims back in the index, because even without them there is not enough
 * room.
 */
static void cache_undo(struct mrrc_cache *cache, struct mrrc_region_list *gone)
{
	struct mrrc_region *region;

	while ((region = TAILQ_FIRST(gone))) {
		TAILQ_REMOVE(gone, region, link);
		cache_index(cache, region);
	}
	cache->tight = MRRC_TIGHT;
	cache_gauge(cache);
}

int mrrc_cache_insert(struct mrrc_cache *cache, struct mrrc_region *region,
		      struct mrrc_region_list *victims)
{
	struct mrrc_place place = { .moves = 0 };

	mrrc_cache_seek(cache, region->start, region->access, &place);
	return mrrc_cache_insert_at(cache, region, &place, victims);
}

int mrrc_cache_insert_at(struct mrrc_cache *cache, struct mrrc_region *region,
			 const struct mrrc_place *place,
			 struct mrrc_region_list *victims)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	size_t overlaps;

	assert(region->state == MRRC_REGION_NEW);
	assert(place->moves == cache->moves && place->start == region->start);
	if (region->len > cache->max_bytes)
		return -E2BIG;
	if (cache->tight && cache_full(cache, region->len)) {
		cache->tight--;
		return -ENOSPC;
	}
	overlaps = cache_drop(cache, place->at[region->access == MRRC_RO],
			      region->start, region->len, region, &gone);
	if (!cache_make_room(cache, region->len, &gone)) {
		cache_undo(cache, &gone);
		return -ENOSPC;
	}
	cache->tight = 0;
	mrrc_cache_part(cache, &gone, victims);
	cache->stats->value[MRRC_STAT_OVERLAPS] += overlaps;
	if (region->loose)
		cache->loose--;
	region->loose = false;
	cache_index(cache, region);
	mrrc_cache_count(cache, MRRC_STAT_INSERTIONS);
	cache_gauge(cache);
	return 0;
}

void mrrc_cache_hold(struct mrrc_cache *cache, struct mrrc_region *region)
{
	mrrc_region_hold(region);
	if (region->state == MRRC_REGION_INDEXED || region->loose)
		return;
	region->loose = true;
	cache->loose++;
}

bool mrrc_cache_last(struct mrrc_cache *cache, struct mrrc_region *region)
{
	if (!region->loose || mrrc_region_held(region))
		return false;
	region->loose = false;
	cache->loose--;
	return true;
}

bool mrrc_cache_put(struct mrrc_cache *cache, struct mrrc_region *region)
{
	assert(mrrc_region_held(region));
	mrrc_region_unhold(region);
	return mrrc_cache_last(cache, region);
}

size_t mrrc_cache_held(const struct mrrc_cache *cache)
{
	size_t held = cache->loose;
	struct mrrc_region *region;
	int access;

	for (access = 0; access < MRRC_ACCESS_CNT; access++) {
		for (region = mrrc_index_first(&cache->index[access]); region;
		     region = mrrc_index_next(region))
			held += mrrc_region_held(region) != 0;
	}
	return held;
}

size_t mrrc_cache_invalidate(struct mrrc_cache *cache, uintptr_t start,
			     size_t len, struct mrrc_region_list *victims)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	size_t count = 0;
	int access;

	for (access = 0; access < MRRC_ACCESS_CNT; access++)
		count += cache_drop(cache,
				    cache_from(&cache->index[access], start),
				    start, len, NULL, &gone);
	mrrc_cache_part(cache, &gone, victims);
	cache->stats->value[MRRC_STAT_INVALIDATIONS] += count;
	cache_gauge(cache);
	return count;
}

void mrrc_cache_left(struct mrrc_cache *cache, struct mrrc_region_list *gone,
		     struct mrrc_region_list *victims)
{
	mrrc_cache_part(cache, gone, victims);
	cache_gauge(cache);
}

size_t mrrc_cache_evict_some(struct mrrc_cache *cache, size_t bytes,
			     size_t regions, struct mrrc_region_list *victims)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	struct mrrc_region *victim;
	size_t count = 0, len = 0;

	while ((len < bytes || count < regions) &&
	       (victim = cache->policy->ops->victim(cache->policy))) {
		len += victim->len;
		mrrc_cache_leave(cache, victim, &gone);
		mrrc_cache_count(cache, MRRC_STAT_EVICTIONS);
		count++;
	}
	mrrc_cache_part(cache, &gone, victims);
	cache_gauge(cache);
	return count;
}

size_t mrrc_cache_evict_all(struct mrrc_cache *cache,
			    struct mrrc_region_list *victims)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	struct mrrc_region *region;
	struct mrrc_region *next;
	size_t count = 0;
	int access;

	for (access = 0; access < MRRC_ACCESS_CNT; access++) {
		for (region = mrrc_index_first(&cache->index[access]); region;
		     region = next) {
			next = mrrc_index_next(region);
			if (mrrc_region_held(region))
				continue;
			mrrc_cache_leave(cache, region, &gone);
			mrrc_cache_count(cache, MRRC_STAT_EVICTIONS);
			count++;
		}
	}
	mrrc_cache_part(cache, &gone, victims);
	cache_gauge(cache);
	return count;
}

void mrrc_cache_registered(struct mrrc_cache *cache, size_t len)
{
	mrrc_cache_count(cache, MRRC_STAT_REGISTRATIONS);
	cache->stats->value[MRRC_STAT_PINNED] += len;
	cache_peak(cache, MRRC_STAT_PINNED, MRRC_STAT_PINNED_PEAK);
}

void mrrc_cache_deregistered(struct mrrc_cache *cache, size_t len)
{
	mrrc_cache_count(cache, MRRC_STAT_DEREGISTRATIONS);
	assert(cache->stats->value[MRRC_STAT_PINNED] >= len);
	cache->stats->value[MRRC_STAT_PINNED] -= len;
}

bool mrrc_cache_valid(const struct mrrc_cache *cache)
{
	const uint64_t *value = cache->stats->value;
	struct mrrc_region *region;
	size_t regions = 0, bytes = 0;
	int access;

	for (access = 0; access < MRRC_ACCESS_CNT; access++) {
		regions += cache->index[access].count;
		bytes += cache->index[access].bytes;
		if (!mrrc_index_valid(&cache->index[access]))
			return false;
		for (region = mrrc_index_first(&cache->index[access]); region;
		     region = mrrc_index_next(region)) {
			/* C1, first half */
			if (region->state != MRRC_REGION_INDEXED ||
			    region->access != (enum mrrc_access) access ||
			    (region->start | region->len) & (cache->page - 1))
				return false;
			if (!(mrrc_region_tag(region) & 1))
				return false;
		}
	}
	/* C1, second half */
	if (!cache->policy->ops->valid(cache->policy,
				       mrrc_cache_regions(cache)))
		return false;
	/* C3 */
	return bytes == cache->bytes && bytes <= cache->max_bytes &&
	       regions == mrrc_cache_regions(cache) &&
	       regions <= cache->max_regions &&
	       value[MRRC_STAT_BYTES] == bytes &&
	       value[MRRC_STAT_REGIONS] == regions &&
	       value[MRRC_STAT_LOOKUPS] ==
		       value[MRRC_STAT_HITS] + value[MRRC_STAT_MISSES];
}
