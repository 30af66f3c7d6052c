/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes that a cache takes from the budget that processes of a node share.
 */
#ifndef MRRC_CACHE_BUDGET_H
#define MRRC_CACHE_BUDGET_H

#include "sys/cache/cache_mt_priv.h"

void mrrc_cache_mt_budget_open(struct mrrc_cache_mt *cache);
void mrrc_cache_mt_budget_close(struct mrrc_cache_mt *cache);

/*
 * Takes bytes of the budget before a registration, and evicts regions to get
 * the bytes. false: the registration exceeds the budget, and therefore may
 * serve one operation only.
 */
bool mrrc_cache_mt_budget_take(struct mrrc_cache_mt *cache, size_t len);

/* Gives the bytes back when the registration has failed or ended. */
static inline void mrrc_cache_mt_budget_put(struct mrrc_cache_mt *cache,
					    size_t len)
{
	if (cache->budget)
		mrrc_budget_put(cache->budget, len);
}

#endif /* MRRC_CACHE_BUDGET_H */
