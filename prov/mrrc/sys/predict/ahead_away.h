/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Regions that are deregistered between two uses. */
#ifndef MRRC_AHEAD_AWAY_H
#define MRRC_AHEAD_AWAY_H

#include "sys/predict/ahead_priv.h"

void mrrc_ahead_stat(struct mrrc_ahead *ahead, enum mrrc_stat stat,
		     uint64_t count);

/* Sets the counters to the present state. */
void mrrc_ahead_show(struct mrrc_ahead *ahead);

/* Adds a region that will be deregistered; an older region may make room. */
void mrrc_away_add(struct mrrc_ahead *ahead, const struct mrrc_region *region);
void mrrc_away_forget(struct mrrc_ahead *ahead, struct mrrc_away *away);

/* Called when the range is used. Was any region in the range away? */
bool mrrc_away_back(struct mrrc_ahead *ahead, uintptr_t start, size_t len);

/* Forgets regions whose memory was unmapped; called once in a while. */
void mrrc_away_sweep(struct mrrc_ahead *ahead);

#endif /* MRRC_AHEAD_AWAY_H */
