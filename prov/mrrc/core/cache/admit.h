/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Admission decides whether a request that misses is registered. Copying the
 * request through registered memory may be cheaper, and keeping the request's
 * region may evict other regions.
 *
 * The rule is that of ski rental (Karlin and others 1988): a request is copied
 * until the copies so far have cost as much as registering would have cost, and
 * then registered. Whatever requests follow, ski rental costs at most twice the
 * optimum (2-competitive). When a region is lost, the count of copies starts
 * again: memory that keeps being unmapped is copied again.
 *
 * If nothing has to be evicted, past registrations decide. A request is
 * registered at once if past regions were used so often on average that
 * registering each region at its first request would have saved twice the cost,
 * and if almost no region was lost.
 *
 * Not thread-safe. Only init allocates.
 */
#ifndef MRRC_ADMIT_H
#define MRRC_ADMIT_H

#include "core/cache/cache.h"
#include "core/cost/cost.h"
#include "core/policy/history.h"

enum mrrc_admission {
	MRRC_ADMIT_KEEP,   /* register the request and index the region */
	MRRC_ADMIT_ONCE,   /* register the request for this operation */
	MRRC_ADMIT_BOUNCE, /* copy the request */
};

struct mrrc_admit {
	struct mrrc_cost cost;
	struct mrrc_history history; /* number of misses for each range */
	size_t max_bytes;
	/* the cache's counters when admission last read them */
	uint64_t hits, registrations, lost;
};

/*
 * Initialises admission for a cache of @max_bytes bytes and @max_regions
 * regions. Returns 0 or -ENOMEM.
 */
int mrrc_admit_init(struct mrrc_admit *admit, const struct mrrc_cost *cost,
		    size_t max_bytes, size_t max_regions);
void mrrc_admit_fini(struct mrrc_admit *admit);

/*
 * Decides about a request of @len bytes, of which @missing bytes are not
 * registered.
 */
enum mrrc_admission mrrc_admit(struct mrrc_admit *admit,
			       const struct mrrc_cache *cache, uintptr_t addr,
			       size_t len, size_t missing);

/* Is a single copy cheaper than a registration that would not be kept? */
bool mrrc_admit_copy_once(const struct mrrc_admit *admit, size_t len);

#endif /* MRRC_ADMIT_H */
