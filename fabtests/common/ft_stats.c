/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The provider's counters, and checks of the counters. */
#include "ft_mrrc.h"

bool ft_stats(struct ft_dom *dom, struct fi_mrrc_stats *st)
{
	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	if (ft_opts.raw)
		return false;
	FT_CALL(fi_mrrc_stats_read(dom->domain, st));
	FT_CHECK(st->size == sizeof(*st), "stats: %zu bytes filled", st->size);
	return true;
}

uint64_t ft_counter(struct ft_dom *dom, const char *name)
{
	struct fi_mrrc_counter counter = { .size = sizeof(counter) };
	size_t i = 0;

	if (ft_opts.raw)
		return 0;
	do {
		FT_CALL(fi_mrrc_counter_read(dom->domain, i++, &counter));
	} while (strcmp(counter.name, name));
	return counter.value;
}

bool ft_caches(struct ft_dom *dom)
{
	static bool said;
	struct fi_mrrc_stats st;

	/* some requests are copied instead, if the caller allows copies */
	if (!ft_stats(dom, &st) ||
	    strcmp(getenv("FI_OFI_MRRC_BOUNCE_SIZE"), "0"))
		return false;
	if (strcmp(st.monitor, "none"))
		return true;
	if (!said)
		printf("note: no memory monitor here: nothing is cached\n");
	said = true;
	return false;
}

void ft_print_stats(struct ft_dom *dom, const char *who)
{
	struct fi_mrrc_stats st;

	if (!ft_opts.verbose || !dom->domain || !ft_stats(dom, &st))
		return;
	printf("%s: lookups %" PRIu64 " hits %" PRIu64 " misses %" PRIu64
	       " registrations %" PRIu64 " deregistrations %" PRIu64
	       " failures %" PRIu64 " evictions %" PRIu64
	       " invalidations %" PRIu64 " uncached %" PRIu64 " posts %" PRIu64
	       " completions %" PRIu64 " regions %" PRIu64 " bytes %" PRIu64
	       " held %" PRIu64 " peak %" PRIu64 "/%" PRIu64 " max %" PRIu64
	       "/%" PRIu64 " monitor %.16s\n",
	       who, st.lookups, st.hits, st.misses, st.registrations,
	       st.deregistrations, st.registration_failures, st.evictions,
	       st.invalidations, st.uncached, st.posts, st.completions,
	       st.regions, st.bytes, st.held_regions, st.regions_peak,
	       st.bytes_peak, st.max_regions, st.max_bytes, st.monitor);
}

void ft_check_idle(struct ft_dom *dom, const char *when)
{
	struct fi_mrrc_stats st;

	if (!dom->domain || !ft_stats(dom, &st))
		return;
	FT_CHECK(st.posts == st.completions,
		 "%s: %" PRIu64 " operations posted, %" PRIu64 " completed",
		 when, st.posts, st.completions);
	FT_CHECK(!st.held_regions, "%s: %" PRIu64 " regions still held", when,
		 st.held_regions);
	FT_CHECK(st.lookups == st.hits + st.misses,
		 "%s: %" PRIu64 " lookups, %" PRIu64 " hits, %" PRIu64
		 " misses",
		 when, st.lookups, st.hits, st.misses);
	FT_CHECK(st.regions <= st.max_regions && st.bytes <= st.max_bytes,
		 "%s: %" PRIu64 " regions of %" PRIu64 ", %" PRIu64
		 " bytes of %" PRIu64,
		 when, st.regions, st.max_regions, st.bytes, st.max_bytes);
}

void ft_check_flushed(struct ft_dom *dom, const char *when)
{
	struct fi_mrrc_stats st;

	if (ft_opts.raw || !dom->domain)
		return;
	ft_check_idle(dom, when);
	FT_CALL(fi_mrrc_flush(dom->domain));
	ft_stats(dom, &st);
	FT_CHECK(!st.regions && !st.bytes,
		 "%s: after flush %" PRIu64 " regions, %" PRIu64 " bytes", when,
		 st.regions, st.bytes);
	FT_CHECK(st.registrations == st.deregistrations,
		 "%s: after flush %" PRIu64 " registrations, %" PRIu64
		 " deregistrations",
		 when, st.registrations, st.deregistrations);
}
