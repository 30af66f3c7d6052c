/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A sample as tables (stat/show.h).
 */
#include "config.h"
#include "stat/show.h"

#include <errno.h>
#include <inttypes.h>

#include "core/text/stats.h"
#include "out.h"
#include "stat/pair.h"

#define LABEL "%-14s"

static void show_counter(const struct stat_pair *pair, const char *label,
			 enum mrrc_stat stat, FILE *out)
{
	fprintf(out, LABEL " %13" PRIu64, label, stat_pair_total(pair, stat));
	if (pair->before && pair->seconds > 0)
		fprintf(out, " %13.1f",
			stat_pair_since(pair, stat) / pair->seconds);
	fputc('\n', out);
}

static void show_percent(uint64_t part, uint64_t whole, FILE *out)
{
	if (whole)
		fprintf(out, " %12.1f%%", 100.0 * part / whole);
	else
		fprintf(out, " %13s", "-");
}

static void show_ratio(const struct stat_pair *pair, FILE *out)
{
	fprintf(out, LABEL, "hit ratio");
	show_percent(stat_pair_total(pair, MRRC_STAT_HITS),
		     stat_pair_total(pair, MRRC_STAT_LOOKUPS), out);
	if (pair->before)
		show_percent(stat_pair_since(pair, MRRC_STAT_HITS),
			     stat_pair_since(pair, MRRC_STAT_LOOKUPS), out);
	fputc('\n', out);
}

/* Prints misses, and reasons for which buffers were registered for one use. */
static void show_misses(const struct stat_pair *pair, FILE *out)
{
	char label[STAT_NAME_MAX + 3];
	unsigned i;

	show_counter(pair, "misses", MRRC_STAT_MISSES, out);
	for (i = 0; i < STAT_CAUSES; i++) {
		if (!stat_pair_total(pair, stat_cause(i)))
			continue;
		snprintf(label, sizeof(label), "  %s", stat_cause_name(i));
		show_counter(pair, label, stat_cause(i), out);
	}
}

static void show_pending(const struct stat_pair *pair, enum mrrc_stat begin,
			 enum mrrc_stat end, FILE *out)
{
	const uint64_t begun = stat_pair_total(pair, begin),
		       ended = stat_pair_total(pair, end);

	/* the two counters may be of different moments */
	fprintf(out, LABEL " %13" PRIu64 "\n", "  pending",
		begun > ended ? begun - ended : 0);
}

/* Prints conditional writes and tags, if there are any. */
static void show_cw(const struct stat_pair *pair, FILE *out)
{
	if (stat_pair_total(pair, MRRC_STAT_CW_WRITES)) {
		show_counter(pair, "cond. writes", MRRC_STAT_CW_WRITES, out);
		show_pending(pair, MRRC_STAT_CW_WRITES,
			     MRRC_STAT_CW_WRITES_ENDED, out);
	}
	if (stat_pair_total(pair, MRRC_STAT_CW_TAGS)) {
		show_counter(pair, "tags", MRRC_STAT_CW_TAGS, out);
		show_pending(pair, MRRC_STAT_CW_TAGS, MRRC_STAT_CW_TAGS_ENDED,
			     out);
	}
}

static void show_bytes(const struct stat_pair *pair, const char *label,
		       enum mrrc_stat stat, FILE *out)
{
	char text[32];

	fprintf(out, LABEL " %13s\n", label,
		stat_bytes_text(stat_pair_total(pair, stat), text,
				sizeof(text)));
}

static void show_ahead(const struct stat_pair *pair, FILE *out)
{
	if (!stat_pair_total(pair, MRRC_STAT_NOTED))
		return;
	show_counter(pair, "early", MRRC_STAT_EARLY, out);
	show_counter(pair, "ahead", MRRC_STAT_AHEAD, out);
	show_counter(pair, "late", MRRC_STAT_LATE, out);
	show_bytes(pair, "away", MRRC_STAT_AWAY_BYTES, out);
}

/* Prints the budget of the node, if a budget is set. */
static void show_node(const struct stat_pair *pair, FILE *out)
{
	const uint64_t budget = stat_pair_total(pair, MRRC_STAT_NODE_BUDGET);
	char text[32], all[32];

	if (!budget)
		return;
	fprintf(out, LABEL " %13s of %s\n", "node",
		stat_bytes_text(stat_pair_total(pair, MRRC_STAT_NODE_RESERVED),
				text, sizeof(text)),
		stat_bytes_text(budget, all, sizeof(all)));
	show_bytes(pair, "  own", MRRC_STAT_NODE_OWN, out);
	show_bytes(pair, "  lacking", MRRC_STAT_NODE_WANT, out);
	show_bytes(pair, "  given", MRRC_STAT_NODE_GIVEN, out);
}

static void show_domain(const struct stat_pair *pair, FILE *out)
{
	const struct stat_domain *domain = pair->domain;
	const struct stat_segment *segment = pair->now;
	char text[32];

	if (!segment->registers) {
		fprintf(out, "%d %s: open, but %s\n\n", (int) domain->pid,
			domain->command, segment->lacks);
		return;
	}
	fprintf(out, "%d %s: %s, policy %s, monitor %s\n", (int) domain->pid,
		domain->command, segment->provider, segment->policy,
		segment->monitor);
	fprintf(out, "at most %s in %" PRIu64 " regions%s%s\n",
		stat_bytes_text(segment->max_bytes, text, sizeof(text)),
		segment->max_regions,
		!segment->says_asks ? "" :
		*segment->asks	    ? ", lookups of threads ask the kernel: " :
				      ", lookups make no system call",
		segment->asks);
	if (*segment->lacks)
		fprintf(out, "lacks %s\n", segment->lacks);
	fprintf(out, LABEL " %13s %13s\n", "", "total", "per second");
	show_counter(pair, "lookups", MRRC_STAT_LOOKUPS, out);
	show_ratio(pair, out);
	fprintf(out, LABEL " %13s\n", "time saved",
		stat_seconds_text(stat_pair_saved(pair), text, sizeof(text)));
	show_misses(pair, out);
	show_counter(pair, "probes", MRRC_STAT_PROBES, out);
	show_counter(pair, "registrations", MRRC_STAT_REGISTRATIONS, out);
	show_counter(pair, "evictions", MRRC_STAT_EVICTIONS, out);
	show_counter(pair, "invalidations", MRRC_STAT_INVALIDATIONS, out);
	show_bytes(pair, "pinned", MRRC_STAT_PINNED, out);
	fprintf(out, LABEL " %13" PRIu64 "\n", "regions",
		stat_pair_total(pair, MRRC_STAT_REGIONS));
	show_ahead(pair, out);
	show_node(pair, out);
	show_cw(pair, out);
	fputc('\n', out);
}

int stat_show_table(const struct stat_sample *sample,
		    const struct stat_sample *before, FILE *out)
{
	struct stat_pair pair;
	size_t i;

	for (i = 0; i < sample->domains; i++) {
		pair = stat_pair(&sample->domain[i], before);
		show_domain(&pair, out);
	}
	if (!sample->domains)
		fprintf(out, "no domain is open now\n\n");
	return out_flush(out);
}
