/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See pair.h. */
#include "config.h"
#include "stat/pair.h"

#include <stdio.h>
#include <string.h>

static const struct stat_domain *find(const struct stat_sample *sample,
				      const struct stat_domain *like)
{
	const struct stat_domain *domain;
	size_t i;

	for (i = 0; i < sample->domains; i++) {
		domain = &sample->domain[i];
		if (domain->pid == like->pid && domain->id == like->id &&
		    domain->segment.opened == like->segment.opened)
			return domain;
	}
	return NULL;
}

struct stat_pair stat_pair(const struct stat_domain *domain,
			   const struct stat_sample *before)
{
	const struct stat_domain *then = find(before, domain);

	return (struct stat_pair){
		.domain = domain,
		.now = &domain->segment,
		.before = then ? &then->segment : NULL,
		.seconds = then ? domain->when - then->when : 0,
	};
}

uint64_t stat_pair_total(const struct stat_pair *pair, enum mrrc_stat stat)
{
	return stat_segment_value(pair->now, mrrc_stat_name(stat));
}

uint64_t stat_pair_since(const struct stat_pair *pair, enum mrrc_stat stat)
{
	const uint64_t now = stat_pair_total(pair, stat);
	const uint64_t then =
		stat_segment_value(pair->before, mrrc_stat_name(stat));

	return now > then ? now - then : 0;
}

enum mrrc_stat stat_cause(unsigned index)
{
	return MRRC_STAT_UNCACHED_NO_MONITOR + index;
}

const char *stat_cause_name(unsigned index)
{
	return mrrc_stat_name(stat_cause(index)) + strlen("uncached_");
}

uint64_t stat_pair_uncached(const struct stat_pair *pair)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < STAT_CAUSES; i++)
		sum += stat_pair_total(pair, stat_cause(i));
	return sum;
}

double stat_pair_saved(const struct stat_pair *pair)
{
	const double hits = stat_pair_total(pair, MRRC_STAT_HITS);
	double ns = 0;
	int i;

	for (i = MRRC_STAT_COST_REG_PAGE; i <= MRRC_STAT_COST_DEREG; i++)
		ns += stat_pair_total(pair, i);
	return hits * ns * 1e-9;
}

const char *stat_seconds_text(double seconds, char *text, size_t size)
{
	if (seconds < 1e-3)
		snprintf(text, size, "%.0f us", seconds * 1e6);
	else if (seconds < 1)
		snprintf(text, size, "%.*f ms", seconds < .09995,
			 seconds * 1e3);
	else if (seconds < 600)
		snprintf(text, size, "%.1f s", seconds);
	else if (seconds < 36000)
		snprintf(text, size, "%.0f min", seconds / 60);
	else
		snprintf(text, size, "%.0f h", seconds / 3600);
	return text;
}

const char *stat_bytes_text(uint64_t bytes, char *text, size_t size)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = bytes;
	unsigned i;

	for (i = 0; value >= 1024 && i < 4; i++)
		value /= 1024;
	snprintf(text, size, "%.*f %s", i && value < 99.95, value, unit[i]);
	return text;
}
