/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A domain in two samples, the present and the previous sample: the totals of
 * its counters, and the differences between both samples.
 */
#ifndef STAT_PAIR_H
#define STAT_PAIR_H

#include "core/text/stats.h"
#include "stat/proc.h"

struct stat_pair {
	const struct stat_domain *domain;
	const struct stat_segment *now;
	/* NULL: the domain was not open before */
	const struct stat_segment *before;
	double seconds; /* between now and before */
};

struct stat_pair stat_pair(const struct stat_domain *domain,
			   const struct stat_sample *before);

uint64_t stat_pair_total(const struct stat_pair *pair, enum mrrc_stat stat);

/*
 * Returns the difference of a counter in both samples; 0 if the counter fell,
 * which should not happen.
 */
uint64_t stat_pair_since(const struct stat_pair *pair, enum mrrc_stat stat);

/* Number of reasons why a buffer can be registered for one use. */
#define STAT_CAUSES \
	(MRRC_STAT_UNCACHED_FULL - MRRC_STAT_UNCACHED_NO_MONITOR + 1)

/* Returns the counter of a reason, and the reason without "uncached_". */
enum mrrc_stat stat_cause(unsigned index);
const char *stat_cause_name(unsigned index);

/* Returns the number of buffers registered for one use, for any reason. */
uint64_t stat_pair_uncached(const struct stat_pair *pair);

/*
 * Returns the seconds that hits saved at least, by the cost model in force: for
 * each hit, the cost of registering and deregistering one page.
 */
double stat_pair_saved(const struct stat_pair *pair);

/* Formats seconds as "12.4 s", in at most seven characters. Returns @text. */
const char *stat_seconds_text(double seconds, char *text, size_t size);

/* Formats bytes as "1.2 GiB", in at most eight characters. Returns @text. */
const char *stat_bytes_text(uint64_t bytes, char *text, size_t size);

#endif /* STAT_PAIR_H */
