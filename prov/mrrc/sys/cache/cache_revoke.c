/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of keys of closed registrations (core/cache/revoke.h), by the cache's
 * helper.
 *
 * If a new registration finds the region just before it leaves the index, it
 * holds the region, which is then deregistered when the registration is closed.
 */
#include "config.h"
#include "sys/cache/cache_mt_priv.h"
#include "sys/cache/uses.h"

__attribute__((noinline)) static void
cache_revoke_begin(struct mrrc_cache_mt *cache, struct mrrc_region *region)
{
	if (mrrc_mon_forked(cache->mon))
		return;
	mrrc_lock_acquire(&cache->lock);
	if (mrrc_revoke_begin(&cache->revoke, region))
		pthread_cond_signal(&cache->work);
	mrrc_lock_release(&cache->lock);
}

void mrrc_cache_mt_key_given(struct mrrc_cache_mt *cache,
			     struct mrrc_region *region)
{
	if (cache->revoke.half && !mrrc_revoke_begun(region))
		cache_revoke_begin(cache, region);
}

void mrrc_cache_mt_put_key(struct mrrc_cache_mt *cache,
			   struct mrrc_region *region)
{
	if (cache->revoke.half)
		mrrc_revoke_note(&cache->revoke, region);
	mrrc_cache_mt_put(cache, region);
}

uint64_t mrrc_cache_mt_revoke(struct mrrc_cache_mt *cache)
{
	mrrc_lock_assert_held(&cache->lock);
	if (cache->revoke.due == MRRC_REVOKE_NEVER)
		return MRRC_REVOKE_NEVER;
	return mrrc_revoke_turn(&cache->revoke, &cache->cache, mrrc_uses_ns(),
				&cache->victims);
}
