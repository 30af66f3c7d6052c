/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to ahead.c (steps and turns), ahead_uses.c (what was noted) and
 * ahead_away.c (regions between two uses): the state that these share.
 *
 * A buffer is what calls name: where it begins, by page, and the longest
 * length. Regions and buffers need not be the same: a region leaves when the
 * schedule holds none of the buffers in it for registered. From then on it is
 * away, until a buffer that shares a byte with it is due or is used.
 *
 * The helper thread alone uses what is in here, so there is no lock.
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
	TAILQ_ENTRY(mrrc_buffer) link; /* by use, the oldest first */
	bool prepared;		       /* registered ahead of a use to come */
};

/* A region that was deregistered between two uses. */
struct mrrc_away {
	struct mrrc_span span;
	enum mrrc_access access;
	uint64_t token;		     /* mrrc_mon_unchanged() when it left */
	TAILQ_ENTRY(mrrc_away) link; /* the oldest first, or free */
};

TAILQ_HEAD(mrrc_away_list, mrrc_away);

struct mrrc_ahead {
	struct mrrc_cache_mt *cache;
	struct mrrc_predict predict;
	struct mrrc_schedule schedule;
	struct mrrc_ticks ticks;
	size_t made; /* buffers */
	TAILQ_HEAD(, mrrc_buffer) used;
	struct mrrc_spans buffers;
	size_t away_made;
	struct mrrc_away_list gone, free;
	struct mrrc_spans aways;
	uint64_t flushes;		 /* of the cache, as last seen */
	struct mrrc_budget_helper leave; /* of the node: may it act? */
	uint64_t delay;			 /* in each cost */
	uint64_t period;
	unsigned quiet; /* looks in vain */
	/* ns: time before which the use ring may have dropped entries */
	uint64_t lost;
	uint64_t swept;
	/* what counters show */
	uint64_t counted;   /* ns: saved up to then */
	double saved;	    /* byte-nanoseconds not shown yet */
	uint64_t bytes;	    /* away */
	uint64_t predicted; /* the schedule's, shown */
	uint64_t within_5;
	struct mrrc_use use[MRRC_USES_RING];
	struct mrrc_buffer buffer[MRRC_AHEAD_BUFFERS];
	struct mrrc_away away[MRRC_IDLE_MAX];
	_Alignas(16) char entries[]; /* of predict */
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

/* ahead_away.c */

void mrrc_ahead_stat(struct mrrc_ahead *ahead, enum mrrc_stat stat,
		     uint64_t count);

/* The counters follow the present state. */
void mrrc_ahead_show(struct mrrc_ahead *ahead);

/* Adds a region that will be deregistered; an older one may make room. */
void mrrc_away_add(struct mrrc_ahead *ahead, const struct mrrc_region *region);
void mrrc_away_forget(struct mrrc_ahead *ahead, struct mrrc_away *away);

/* The range is in use. Was any of it away? */
bool mrrc_away_back(struct mrrc_ahead *ahead, uintptr_t start, size_t len);

/* Forgets regions whose memory was unmapped; called once in a while. */
void mrrc_away_sweep(struct mrrc_ahead *ahead);

/* ahead_uses.c: reads the rings of all threads once. Were there any uses? */
bool mrrc_ahead_read(struct mrrc_ahead *ahead);

#endif /* MRRC_AHEAD_PRIV_H */
