/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Revokes keys that peers may still know. A region whose key was given out
 * stays indexed when its last registration is closed, so that the next
 * registration finds it; if no registration follows within a limit, the region
 * leaves the cache.
 *
 * Time is divided into periods of half the limit. A close notes the number of
 * the period in the region, so that no close reads a clock; at the end of a
 * period, the regions that were last closed before the period began leave the
 * cache. So a key works for at least half the limit after the last close, and
 * is revoked by the end of the limit.
 *
 * The lock of the cache guards struct mrrc_revoke, except that any thread may
 * note a close.
 */
#ifndef MRRC_REVOKE_H
#define MRRC_REVOKE_H

#include "core/cache/cache.h"

#define MRRC_REVOKE_NEVER UINT64_MAX

struct mrrc_revoke {
	uint64_t half;	 /* ns of a period; 0: keys have no end */
	uint64_t due;	 /* end of the period; NEVER: no region has an end */
	bool walking;	 /* a period has ended: the walk examines regions */
	bool any;	 /* an indexed region has an end */
	unsigned access; /* access of the index that is being walked */
	uintptr_t pos;	 /* address from which the walk goes on */
	_Atomic uint64_t periods; /* number of ended periods, plus 1 */
};

/* @limit: ns; MRRC_REVOKE_NEVER: keys have no end. */
void mrrc_revoke_init(struct mrrc_revoke *revoke, uint64_t limit);

/*
 * Called when the key of a held region is given out: from now on the region's
 * key has an end. Returns true if the caller has to call mrrc_revoke_turn() at
 * once, and then whenever the result of that call asks for it.
 */
bool mrrc_revoke_begin(struct mrrc_revoke *revoke, struct mrrc_region *region);

/* Has the region an end already? Any thread that holds the region may ask. */
static inline bool mrrc_revoke_begun(const struct mrrc_region *region)
{
	return atomic_load_explicit(&((struct mrrc_region *) region)->closed,
				    memory_order_relaxed);
}

/*
 * A registration is closed; the region is still held. Any thread may call this.
 */
static inline void mrrc_revoke_note(struct mrrc_revoke *revoke,
				    struct mrrc_region *region)
{
	atomic_store_explicit(&region->closed,
			      atomic_load_explicit(&revoke->periods,
						   memory_order_relaxed),
			      memory_order_relaxed);
}

/*
 * Uncaches regions whose time has passed, and appends them to @victims;
 * examines a bounded number of regions. Returns the time at which to call
 * again; 0: at once.
 */
uint64_t mrrc_revoke_turn(struct mrrc_revoke *revoke, struct mrrc_cache *cache,
			  uint64_t now, struct mrrc_region_list *victims);

#endif /* MRRC_REVOKE_H */
