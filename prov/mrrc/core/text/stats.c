/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of the counters (stats.h).
 */
#include "config.h"
#include "core/text/stats.h"

const struct mrrc_stat_text mrrc_stat_text[MRRC_STAT_CNT] = {
#define X(id, name, part, kind, unit, scope, help)                     \
	[MRRC_STAT_##id] = { #name, help, unit, MRRC_STAT_KIND_##kind, \
			     MRRC_STAT_SCOPE_##scope },
	MRRC_STATS(X)
#undef X
};

void mrrc_stats_copy(struct mrrc_stats *to, const struct mrrc_stats *from)
{
	int i;

	for (i = 0; i < MRRC_STAT_CNT; i++)
		to->value[i] =
			__atomic_load_n(&from->value[i], __ATOMIC_RELAXED);
}
