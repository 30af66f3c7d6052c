/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The extension's calls on a domain: fi_mrrc_stats_read(3), rdma/fi_ext_mrrc.h.
 * Any thread.
 */
#include "config.h"
#include <rdma/fi_ext_mrrc.h>

#include "fi/alloc/alloc.h"
#include "fi/data/op.h"
#include "fi/init.h"
#include "fi/obj/obj.h"
#include "fi/parts.h"

/* Adds the counters that only the provider's own domains have. */
static void stats_add(struct mrrc_domain *domain, uint64_t *value)
{
	struct mrrc_cq *cq;

	value[MRRC_STAT_CLAIMED] = atomic_load(&domain->claimed_lengths);
	mrrc_mutex_lock(&domain->cq_lock);
	value[MRRC_STAT_POSTS] = atomic_load(&domain->posts);
	value[MRRC_STAT_COMPLETIONS] = atomic_load(&domain->completions);
	LIST_FOREACH(cq, &domain->cqs, link) {
		value[MRRC_STAT_POSTS] += atomic_load(&cq->posts);
		value[MRRC_STAT_COMPLETIONS] += atomic_load(&cq->completions);
	}
	mrrc_mutex_unlock(&domain->cq_lock);
}

/*
 * Hooking providers (FI_HOOK) hand out this table, but not our domain: a call
 * may come with a domain of theirs. Returns NULL for a domain of a hooking
 * provider.
 */
static struct mrrc_reg *stats_fill(struct fid_domain *domain,
				   struct mrrc_stats *stats)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);

	*stats = (struct mrrc_stats){ 0 };
	if (reg && reg->cache)
		mrrc_reg_stats(reg, stats);
	if (mrrc_domain_reg(domain))
		stats_add(mrrc_domain_of(domain), stats->value);
	return reg;
}

static int ext_stats(struct fid_domain *domain, struct fi_mrrc_stats *out)
{
	struct mrrc_stats stats;
	struct mrrc_reg *reg = stats_fill(domain, &stats);

	if (!reg)
		return -FI_EINVAL;
	return mrrc_stats_out(&stats,
			      reg->cache ? mrrc_mon_title(reg->mon) : "none",
			      out);
}

static int ext_counter(struct fid_domain *domain, size_t index,
		       struct fi_mrrc_counter *counter)
{
	struct mrrc_stats stats;

	return stats_fill(domain, &stats) ?
		       mrrc_stats_out_one(&stats, index, counter) :
		       -FI_EINVAL;
}

static int ext_flush(struct fid_domain *domain)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);

	if (!reg)
		return -FI_EINVAL;
	if (reg->cache)
		mrrc_cache_mt_flush(reg->cache);
	return 0;
}

static int ext_invalidate(struct fid_domain *domain, const void *addr,
			  size_t len)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);

	return reg ? mrrc_reg_invalidate(reg, addr, len) : -FI_EINVAL;
}

static int ext_feature(struct fid_domain *domain, const char *name)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);

	if (!reg || !name)
		return -FI_EINVAL;
	if (mrrc_domain_reg(domain)) {
		if (!strcmp(name, "null-desc"))
			return reg->cache != NULL;
		if (!strcmp(name, "file"))
			return reg->cache && mrrc_part("files");
		if (!strcmp(name, "cw"))
			return mrrc_part(name);
	}
	return mrrc_part_feature(name) || mrrc_alloc_feature(reg, name);
}

static const struct fi_mrrc_ops_domain ext_ops = {
	.size = sizeof(struct fi_mrrc_ops_domain),
	.stats = ext_stats,
	.flush = ext_flush,
	.invalidate = ext_invalidate,
	.feature = ext_feature,
	.counter = ext_counter,
};

int mrrc_ext_open(const char *name, uint64_t flags, void **ops)
{
	const void *ours = NULL;

	/* first the table that programs may open at each allocation */
	if (name && !strcmp(name, FI_MRRC_ALLOC_OPS))
		ours = mrrc_alloc_ops;
	else if (name && !strcmp(name, FI_MRRC_DOMAIN_OPS))
		ours = &ext_ops;
	if (!ours)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = (void *) ours;
	return 0;
}
