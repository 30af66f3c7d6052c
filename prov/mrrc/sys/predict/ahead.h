/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The predicting half of a cache's helper thread (li2011): deregisters regions
 * between two uses, and registers a region again ahead of the next use.
 *
 * Threads of the application note their uses (uses.h). The helper reads these
 * uses, asks core/helper/schedule.h for steps, and executes them. A region that
 * no operation holds leaves the cache as by an eviction. A region that is due
 * is registered as by a miss, unless this evicts a region.
 *
 * A region is registered again only if all its pages are known to exist: the
 * monitor goes on watching its memory, and has reported no change
 * (mrrc_mon_unchanged). So the helper registers no memory that the application
 * has unmapped or dropped, and populates no page.
 *
 * mrrc_ahead_turn() is called by the helper thread. All calls: no lock held.
 */
#ifndef MRRC_AHEAD_H
#define MRRC_AHEAD_H

#include "sys/cache/cache_mt_priv.h"

/* The functions below, for the cache. */
extern const struct mrrc_predictor mrrc_ahead_predictor;

/*
 * @counter: the times of uses are the processor's ticks. -ENOMEM; -ENODEV: the
 * monitor cannot tell whether memory has changed.
 */
int mrrc_ahead_open(struct mrrc_cache_mt *cache, bool counter,
		    struct mrrc_ahead **ahead);

/* Closes @ahead, after the helper thread has ended. */
void mrrc_ahead_close(struct mrrc_ahead *ahead);

/*
 * Reads the noted uses, and executes some steps. Returns the time of the next
 * call, in nanoseconds of CLOCK_MONOTONIC; 0: at once, UINT64_MAX: never.
 * *asleep: cache->asleep is set, so that the next use clears it and wakes the
 * helper.
 */
uint64_t mrrc_ahead_turn(struct mrrc_ahead *ahead, bool *asleep);

#endif /* MRRC_AHEAD_H */
