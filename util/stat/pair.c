/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See pair.h. */
#include "config.h"
#include "stat/pair.h"

#include <stdio.h>

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

const char *stat_bytes_text(uint64_t bytes, char *text, size_t size)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = bytes;
	unsigned i;

	for (i = 0; value >= 1024 && i < 4; i++)
		value /= 1024;
	snprintf(text, size, i ? "%.1f %s" : "%.0f %s", value, unit[i]);
	return text;
}
