/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The extension's calls on a domain: fi_mrrc(7), rdma/fi_ext_mrrc.h.
 * Any thread.
 */
#include "config.h"
#include <rdma/fi_ext_mrrc.h>

#include "op.h"

/*
 * Hooking providers (FI_HOOK) hand out our table but keep our fid: such a
 * call comes with a domain that is not ours.
 */
static struct mrrc_domain *mrrc_domain_check(struct fid_domain *domain)
{
	return mrrc_fid_core(&domain->fid) ? mrrc_domain_of(domain) : NULL;
}

static void mrrc_stats_fill(struct mrrc_domain *domain,
			    struct fi_mrrc_stats *out)
{
	struct mrrc_stats stats;
	const uint64_t *value = stats.value;
	size_t max_bytes, max_regions;

	out->posts = atomic_load(&domain->posts);
	out->completions = atomic_load(&domain->completions);
	out->bounces = atomic_load(&domain->bounces);
	if (!domain->implicit) {
		strcpy(out->monitor, "none");
		return;
	}
	mrrc_cache_mt_stats(domain->cache, &stats);
	mrrc_cache_mt_limits(domain->cache, &max_bytes, &max_regions);
	out->lookups = value[MRRC_STAT_LOOKUPS];
	out->hits = value[MRRC_STAT_HITS];
	out->misses = value[MRRC_STAT_MISSES];
	out->registrations = value[MRRC_STAT_REGISTRATIONS];
	out->deregistrations = value[MRRC_STAT_DEREGISTRATIONS];
	out->registration_failures = value[MRRC_STAT_REG_FAILURES];
	out->evictions = value[MRRC_STAT_EVICTIONS];
	out->invalidations = value[MRRC_STAT_INVALIDATIONS];
	out->uncached = value[MRRC_STAT_UNCACHED_NO_MONITOR] +
			value[MRRC_STAT_UNCACHED_NOT_PRIVATE] +
			value[MRRC_STAT_UNCACHED_UNWATCHABLE] +
			value[MRRC_STAT_UNCACHED_WATCH_LIMIT] +
			value[MRRC_STAT_UNCACHED_RACED] +
			value[MRRC_STAT_UNCACHED_TOO_BIG] +
			value[MRRC_STAT_UNCACHED_FULL];
	out->regions = value[MRRC_STAT_REGIONS];
	out->bytes = value[MRRC_STAT_BYTES];
	out->held_regions = value[MRRC_STAT_HELD];
	out->regions_peak = value[MRRC_STAT_REGIONS_PEAK];
	out->bytes_peak = value[MRRC_STAT_BYTES_PEAK];
	out->max_regions = max_regions;
	out->max_bytes = max_bytes;
	strncpy(out->monitor, mrrc_mon_name(domain->mon),
		sizeof(out->monitor) - 1);
	memcpy(out->policy, mrrc_params.policy, sizeof(out->policy));
}

static int mrrc_ext_stats(struct fid_domain *domain_fid,
			  struct fi_mrrc_stats *stats)
{
	struct mrrc_domain *domain = mrrc_domain_check(domain_fid);
	struct fi_mrrc_stats full = { 0 };

	if (!domain || !stats || stats->size <= sizeof(stats->size))
		return -FI_EINVAL;
	mrrc_stats_fill(domain, &full);
	full.size = stats->size < sizeof(full) ? stats->size : sizeof(full);
	memcpy(stats, &full, full.size);
	return 0;
}

static int mrrc_ext_flush(struct fid_domain *domain_fid)
{
	struct mrrc_domain *domain = mrrc_domain_check(domain_fid);

	if (!domain)
		return -FI_EINVAL;
	if (domain->implicit)
		mrrc_cache_mt_flush(domain->cache);
	return 0;
}

struct fi_mrrc_ops_domain mrrc_domain_ext_ops = {
	.size = sizeof(struct fi_mrrc_ops_domain),
	.stats = mrrc_ext_stats,
	.flush = mrrc_ext_flush,
};
