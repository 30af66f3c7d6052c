/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Revokes keys that peers may still know (revoke.h). */
#include "config.h"
#include "core/cache/revoke.h"

#include <assert.h>

/* Regions examined in one turn, during which the lock of the cache is held. */
#define REVOKE_STEP 1024

void mrrc_revoke_init(struct mrrc_revoke *revoke, uint64_t limit)
{
	*revoke = (struct mrrc_revoke){ .due = MRRC_REVOKE_NEVER };
	atomic_init(&revoke->periods, 1);
	if (limit != MRRC_REVOKE_NEVER)
		revoke->half = limit / 2 ? limit / 2 : 1;
}

bool mrrc_revoke_begin(struct mrrc_revoke *revoke, struct mrrc_region *region)
{
	const bool first = revoke->due == MRRC_REVOKE_NEVER;

	assert(revoke->half);
	mrrc_revoke_note(revoke, region);
	revoke->any = true;
	if (first)
		revoke->due = 0;
	return first;
}

/*
 * Has the region's time passed? The count of holds is exact, unless another
 * thread is changing the count.
 */
static bool revoke_is_due(const struct mrrc_region *region, uint64_t periods)
{
	const uint64_t closed =
		atomic_load_explicit(&((struct mrrc_region *) region)->closed,
				     memory_order_relaxed);

	return closed && closed + 1 < periods && !mrrc_region_held(region);
}

/*
 * Walks one index, from the walk's position on. Returns the number of examined
 * regions.
 */
static unsigned revoke_walk(struct mrrc_revoke *revoke,
			    struct mrrc_cache *cache, unsigned most,
			    struct mrrc_region_list *gone)
{
	const uint64_t periods = atomic_load(&revoke->periods);
	struct mrrc_region *region;
	struct mrrc_region *next;
	unsigned count = 0;

	region = mrrc_index_first_overlap(&cache->index[revoke->access],
					  revoke->pos,
					  UINTPTR_MAX - revoke->pos);
	for (; region && count < most; region = next, count++) {
		next = mrrc_index_next(region);
		/*
		 * the walk's next region ends behind this address, even if that
		 * region begins before the address
		 */
		revoke->pos = mrrc_region_end(region);
		if (!revoke_is_due(region, periods)) {
			revoke->any |= mrrc_revoke_begun(region);
			continue;
		}
		mrrc_cache_leave(cache, region, gone);
		mrrc_cache_count(cache, MRRC_STAT_REVOCATIONS);
	}
	if (!region) {
		revoke->access++;
		revoke->pos = 0;
	}
	return count;
}

uint64_t mrrc_revoke_turn(struct mrrc_revoke *revoke, struct mrrc_cache *cache,
			  uint64_t now, struct mrrc_region_list *victims)
{
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	unsigned left = REVOKE_STEP;

	if (!revoke->walking) {
		if (now < revoke->due)
			return revoke->due;
		atomic_fetch_add(&revoke->periods, 1);
		revoke->walking = true;
		revoke->any = false;
		revoke->access = MRRC_REMOTE_READ;
		revoke->pos = 0;
		revoke->due = now + revoke->half;
	}
	while (revoke->access < MRRC_ACCESS_CNT && left)
		left -= revoke_walk(revoke, cache, left, &gone);
	mrrc_cache_left(cache, &gone, victims);
	if (revoke->access < MRRC_ACCESS_CNT)
		return 0;
	revoke->walking = false;
	if (!revoke->any)
		revoke->due = MRRC_REVOKE_NEVER;
	return revoke->due;
}
