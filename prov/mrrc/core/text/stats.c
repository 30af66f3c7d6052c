/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of the counters (stats.h).
 */
#include "config.h"
#include "core/text/stats.h"

static const struct {
	const char *name;
	const char *help;
} mrrc_stat_text[MRRC_STAT_CNT] = {
#define X(id, name, help) [MRRC_STAT_##id] = { name, help },
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

const char *mrrc_stat_name(enum mrrc_stat stat)
{
	return mrrc_stat_text[stat].name;
}

const char *mrrc_stat_help(enum mrrc_stat stat)
{
	return mrrc_stat_text[stat].help;
}
