/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state that ahead.c (uses, steps and turns) and ahead_away.c (regions
 * between two uses) share.
 *
 * A buffer is memory that calls name: it begins at a page, and has the longest
 * length used from this page on. Regions and buffers can differ: a region is
 * deregistered when, by the schedule, no buffer in it has to stay registered.
 * From then on the region is away, until a buffer that shares a byte with it is
 * due or is used.
 *
 * Only the helper thread uses this state, so there is no lock.
 */
#ifndef MRRC_AHEAD_PRIV_H
#define MRRC_AHEAD_PRIV_H

#include "core/helper/schedule.h"
#include "core/index/spans.h"
#include "sys/predict/ahead.h"

#define MRRC_AHEAD_BUFFERS 4096

struct mrrc_buffer {
	struct mrrc_scheduled item;
	struct mrrc_span span;
	TAILQ_ENTRY(mrrc_buffer) link; /* by last use, the oldest first */
	bool prepared;		       /* registered ahead of an expected use */
};

/* A region that was deregistered between two uses. */
struct mrrc_away {
	struct mrrc_span span;
	enum mrrc_access access;
	uint64_t token; /* mrrc_mon_unchanged() when the region left */
	/* by age, the oldest first; or in the free list */
	TAILQ_ENTRY(mrrc_away) link;
};

TAILQ_HEAD(mrrc_away_list, mrrc_away);

struct mrrc_ahead {
	struct mrrc_cache_mt *cache;
	struct mrrc_predict predict;
	struct mrrc_schedule schedule;
	struct mrrc_ticks ticks;
	size_t made; /* number of buffers made */
	TAILQ_HEAD(, mrrc_buffer) used;
	struct mrrc_spans buffers;
	size_t away_made;
	struct mrrc_away_list gone, free;
	struct mrrc_spans aways;
	/* flushes of the cache, as last seen */
	uint64_t flushes;
	/* permission of the node: may the helper act? */
	struct mrrc_budget_helper leave;
	uint64_t delay; /* ns that are part of each cost */
	uint64_t period;
	unsigned quiet; /* number of looks in vain */
	/* ns: time before which the use ring may have dropped entries */
	uint64_t lost;
	uint64_t swept;
	/* state of the counters */
	uint64_t counted;   /* ns: time up to which `saved` is counted */
	double saved;	    /* byte-nanoseconds not reported yet */
	uint64_t bytes;	    /* bytes that are away */
	uint64_t predicted; /* the schedule's number, as shown */
	uint64_t within_5;
	struct mrrc_use use[MRRC_USES_RING];
	struct mrrc_buffer buffer[MRRC_AHEAD_BUFFERS];
	struct mrrc_away away[MRRC_IDLE_MAX];
	_Alignas(16) char entries[]; /* entries of @predict */
};

static inline struct mrrc_buffer *mrrc_ahead_buffer(struct mrrc_span *span)
{
	return (struct mrrc_buffer *) ((char *) span -
				       offsetof(struct mrrc_buffer, span));
}

static inline struct mrrc_away *mrrc_away_at(struct mrrc_span *span)
{
	return (struct mrrc_away *) ((char *) span -
				     offsetof(struct mrrc_away, span));
}

#endif /* MRRC_AHEAD_PRIV_H */
