/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The cache's lock, taken while memory is quiet. Lookups are in cache_mt.h. */
#ifndef MRRC_CACHE_GET_H
#define MRRC_CACHE_GET_H

#include "sys/cache/cache_mt_priv.h"

/*
 * Takes the cache's lock while memory is quiet, so that the index is up to
 * date. Errors, without the lock held: -EAGAIN: memory keeps changing; -ENODEV:
 * no monitor.
 */
int mrrc_cache_mt_quiet_lock(struct mrrc_cache_mt *cache);

#endif /* MRRC_CACHE_GET_H */
