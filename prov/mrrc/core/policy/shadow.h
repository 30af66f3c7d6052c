/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A shadow cache: simulates LRU on the requests that a policy's regions serve,
 * and keeps the difference between the policy's cost and LRU's cost.
 *
 * The shadow cache holds ranges of addresses, registers nothing, and splits
 * requests as the cache does. All requests count while the shadow cache has
 * room for their ranges; when it has no room, the shadow cache continues with a
 * sample: half of the addresses, and half of the limits.
 *
 * A range that the policy evicted and LRU still has is at risk: the policy may
 * have to register the range again. The ranges at risk that return are counted.
 *
 * Not thread-safe. Only init allocates.
 *
 * Invariants (mrrc_shadow_valid):
 *   S1 ranges are disjoint, and the list has each of them once
 *   S2 ranges are of sampled addresses, and within both limits together
 *   S3 risk is the cost of the ranges at risk
 */
#ifndef MRRC_SHADOW_H
#define MRRC_SHADOW_H

#include "core/cost/cost.h"
#include "core/index/index.h"

struct mrrc_shadow {
	const struct mrrc_cost *cost;
	/* array of ranges; the first `used` are set */
	struct mrrc_region *range;
	struct mrrc_index index;      /* ranges that LRU would have */
	struct mrrc_region_list list; /* the same ranges, oldest use first */
	struct mrrc_region_list unused;
	size_t used; /* number of entries that were ever used */
	size_t max_bytes, max_ranges;
	/* an address counts if its hash has none of these bits */
	uint64_t sample;
	double spent;	 /* ns that LRU would have spent; old costs fade */
	double over;	 /* ns that the policy has spent beyond LRU */
	double risk;	 /* ns to register all ranges at risk */
	double returned; /* ranges at risk that the policy registered again */
	double gone;	 /* ranges at risk that LRU evicted, too */
};

/*
 * Initialises a shadow cache for a cache of @max_bytes bytes and @max_regions
 * regions. Returns 0 or -ENOMEM.
 */
int mrrc_shadow_init(struct mrrc_shadow *shadow, const struct mrrc_cost *cost,
		     size_t max_bytes, size_t max_regions);
void mrrc_shadow_fini(struct mrrc_shadow *shadow);

/*
 * A region of the policy serves this range; @fresh: the policy's cache has
 * registered the region for this request. The range consists of whole pages, at
 * least one. *hint lets the shadow cache find the range faster the next time;
 * any value is allowed.
 */
void mrrc_shadow_use(struct mrrc_shadow *shadow, uintptr_t start, size_t len,
		     bool fresh, uint32_t *hint);

/* The policy has evicted this range, which LRU may still have. */
void mrrc_shadow_evict(struct mrrc_shadow *shadow, uintptr_t start, size_t len);

/* The range has been invalidated: LRU would have lost the range, too. */
void mrrc_shadow_forget(struct mrrc_shadow *shadow, uintptr_t start,
			size_t len);

/*
 * Returns whether the policy may evict a region of @len bytes against LRU's
 * advice: true if the difference to LRU stays within the allowance, a fixed
 * part of LRU's cost, even if the region has to be registered again. If ranges
 * at risk return as often as they did before, the difference stays within one
 * and a half times the allowance.
 */
bool mrrc_shadow_affords(const struct mrrc_shadow *shadow, size_t len);

bool mrrc_shadow_valid(const struct mrrc_shadow *shadow);

#endif /* MRRC_SHADOW_H */
