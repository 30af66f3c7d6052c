/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The extension's calls on a domain: fi_mrrc_stats_read(3), rdma/fi_ext_mrrc.h.
 * Any thread.
 */
#include "config.h"
#include <rdma/fi_ext_mrrc.h>

#include "fi/alloc/alloc.h"
#include "fi/data/op.h"
#include "fi/parts.h"

/*
 * Hooking providers (FI_HOOK) hand out our table but keep our fid: such a
 * call comes with a domain that is not ours.
 */
static struct mrrc_domain *domain_check(struct fid_domain *domain)
{
	return mrrc_fid_core(&domain->fid) ? mrrc_domain_of(domain) : NULL;
}

static void stats_fill(struct mrrc_domain *domain, struct mrrc_stats *stats)
{
	uint64_t *value = stats->value;
	struct mrrc_cq *cq;

	*stats = (struct mrrc_stats){ 0 };
	if (domain->implicit)
		mrrc_reg_stats(&domain->reg, stats);
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

static int ext_stats(struct fid_domain *domain_fid, struct fi_mrrc_stats *out)
{
	struct mrrc_domain *domain = domain_check(domain_fid);
	struct mrrc_stats stats;

	if (!domain)
		return -FI_EINVAL;
	stats_fill(domain, &stats);
	return mrrc_stats_out(&stats,
			      domain->implicit ?
				      mrrc_mon_title(domain->reg.mon) :
				      "none",
			      out);
}

static int ext_counter(struct fid_domain *domain_fid, size_t index,
		       struct fi_mrrc_counter *counter)
{
	struct mrrc_domain *domain = domain_check(domain_fid);
	struct mrrc_stats stats;

	if (!domain)
		return -FI_EINVAL;
	stats_fill(domain, &stats);
	return mrrc_stats_out_one(&stats, index, counter);
}

static int ext_flush(struct fid_domain *domain_fid)
{
	struct mrrc_domain *domain = domain_check(domain_fid);

	if (!domain)
		return -FI_EINVAL;
	if (domain->implicit)
		mrrc_cache_mt_flush(domain->reg.cache);
	return 0;
}

static int ext_invalidate(struct fid_domain *domain_fid, const void *addr,
			  size_t len)
{
	struct mrrc_domain *domain = domain_check(domain_fid);

	return domain ? mrrc_reg_invalidate(&domain->reg, addr, len) :
			-FI_EINVAL;
}

static int ext_feature(struct fid_domain *domain_fid, const char *name)
{
	struct mrrc_domain *domain = domain_check(domain_fid);

	if (!domain || !name)
		return -FI_EINVAL;
	if (!strcmp(name, "null-desc"))
		return domain->implicit;
	if (!strcmp(name, "file"))
		return domain->implicit && mrrc_part("files");
	if (!strcmp(name, "cw"))
		return mrrc_part(name);
	return mrrc_part_feature(name) ||
	       mrrc_alloc_feature(&domain->reg, name);
}

const struct fi_mrrc_ops_domain mrrc_domain_ext_ops = {
	.size = sizeof(struct fi_mrrc_ops_domain),
	.stats = ext_stats,
	.flush = ext_flush,
	.invalidate = ext_invalidate,
	.feature = ext_feature,
	.counter = ext_counter,
};
