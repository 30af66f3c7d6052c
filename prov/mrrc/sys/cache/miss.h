/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The registration of a missed range. */
#ifndef MRRC_MISS_H
#define MRRC_MISS_H

#include "sys/cache/cache_mt_priv.h"

/*
 * Called under the lock of a lookup that found a gap: publishes the gap as
 * pending. false: another thread is registering the gap.
 */
bool mrrc_cache_mt_publish(struct mrrc_cache_mt *cache,
			   struct mrrc_pending *pending);

/*
 * After a lookup that found no region: registers the range of @pending,
 * publishes the range if the lookup did not, and inserts the region unless the
 * memory may have changed. The returned region is held. No lock held. @changes:
 * NULL, or the count of changes when pages beyond the request were known to be
 * mapped.
 */
int mrrc_cache_mt_fill(struct mrrc_cache_mt *cache,
		       struct mrrc_pending *pending, const uint64_t *changes,
		       struct mrrc_region **region);

/*
 * Registers a region ahead of its use, without making room for the region.
 * @token: proves that the memory is unchanged (mrrc_mon_unchanged). @flushes:
 * the cache's count of flushes, which must not have grown. -EEXIST: the range
 * is registered already; other errors: the range cannot be registered now.
 */
int mrrc_cache_mt_ahead(struct mrrc_cache_mt *cache, uintptr_t start,
			size_t len, enum mrrc_access access, uint64_t token,
			uint64_t flushes);

/*
 * Registers a range for one operation, and counts the reason @cause
 * (MRRC_STAT_CNT: counted already).
 */
int mrrc_cache_mt_once(struct mrrc_cache_mt *cache, uintptr_t addr, size_t len,
		       enum mrrc_access access, enum mrrc_stat cause,
		       struct mrrc_region **region);

#endif /* MRRC_MISS_H */
