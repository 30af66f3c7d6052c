/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the regions that a helper has deregistered between two uses
 * (ahead_priv.h), and the counters that show the saved bytes and times.
 */
#include "config.h"
#include "sys/predict/ahead_away.h"

/* ns between sweeps: memory of regions that are away may have been unmapped */
#define SWEEP_NS 1000000000

/* ---- counters ------------------------------------------------------------ */

void mrrc_ahead_stat(struct mrrc_ahead *ahead, enum mrrc_stat stat,
		     uint64_t count)
{
	if (count)
		mrrc_stats_add(ahead->cache->cache.stats, stat, count);
}

/*
 * Accounts for the bytes that were away until now, before their number changes.
 */
static void ahead_account(struct mrrc_ahead *ahead)
{
	const uint64_t now = mrrc_uses_ns();
	const double second = 1e9;
	uint64_t whole;

	ahead->saved += (double) ahead->bytes * (double) (now - ahead->counted);
	ahead->counted = now;
	whole = (uint64_t) (ahead->saved / second);
	ahead->saved -= (double) whole * second;
	mrrc_ahead_stat(ahead, MRRC_STAT_SAVED, whole);
}

void mrrc_ahead_show(struct mrrc_ahead *ahead)
{
	const struct mrrc_schedule_stats *stats = &ahead->schedule.stats;

	ahead_account(ahead);
	mrrc_ahead_stat(ahead, MRRC_STAT_PREDICTED,
			stats->predicted - ahead->predicted);
	mrrc_ahead_stat(ahead, MRRC_STAT_PREDICTED_5,
			stats->within_5 - ahead->within_5);
	ahead->predicted = stats->predicted;
	ahead->within_5 = stats->within_5;
}

/* ---- what is away -------------------------------------------------------- */

static void away_bytes(struct mrrc_ahead *ahead, int64_t change)
{
	ahead_account(ahead);
	ahead->bytes += (uint64_t) change;
	mrrc_stats_add(ahead->cache->cache.stats, MRRC_STAT_AWAY_BYTES,
		       (uint64_t) change);
}

void mrrc_away_forget(struct mrrc_ahead *ahead, struct mrrc_away *away)
{
	away_bytes(ahead, -(int64_t) away->span.len);
	mrrc_spans_remove(&ahead->aways, &away->span);
	TAILQ_REMOVE(&ahead->gone, away, link);
	TAILQ_INSERT_TAIL(&ahead->free, away, link);
}

void mrrc_away_add(struct mrrc_ahead *ahead, const struct mrrc_region *region)
{
	const uint64_t token = mrrc_mon_unchanged(ahead->cache->mon,
						  region->start, region->len);
	struct mrrc_away *away;

	if (!token)
		return;
	away = TAILQ_FIRST(&ahead->free);
	if (!away && ahead->away_made < MRRC_IDLE_MAX) {
		away = &ahead->away[ahead->away_made++];
	} else {
		if (!away)
			mrrc_away_forget(ahead, TAILQ_FIRST(&ahead->gone));
		away = TAILQ_FIRST(&ahead->free);
		TAILQ_REMOVE(&ahead->free, away, link);
	}
	TAILQ_INSERT_TAIL(&ahead->gone, away, link);
	away->span.start = region->start;
	away->span.len = region->len;
	away->access = region->access;
	away->token = token;
	mrrc_spans_add(&ahead->aways, &away->span);
	away_bytes(ahead, (int64_t) region->len);
}

bool mrrc_away_back(struct mrrc_ahead *ahead, uintptr_t start, size_t len)
{
	struct mrrc_span *span, *next;
	bool any = false;

	for (span = mrrc_spans_first(&ahead->aways, start, len); span;
	     span = next) {
		next = mrrc_spans_next(span, start, len);
		mrrc_away_forget(ahead, mrrc_away_at(span));
		any = true;
	}
	return any;
}

void mrrc_away_sweep(struct mrrc_ahead *ahead)
{
	struct mrrc_away *away, *next;

	if (ahead->ticks.ns - ahead->swept < SWEEP_NS)
		return;
	ahead->swept = ahead->ticks.ns;
	for (away = TAILQ_FIRST(&ahead->gone); away; away = next) {
		next = TAILQ_NEXT(away, link);
		if (mrrc_mon_unchanged(ahead->cache->mon, away->span.start,
				       away->span.len) != away->token)
			mrrc_away_forget(ahead, away);
	}
}
