/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domain: holds the cache of registrations and the records of operations.
 *
 * Where the provider resolves null descriptors (domain->implicit), threads that
 * the application does not serialise meet in the provider, so the core is
 * opened FI_THREAD_SAFE unless the application serialises the whole domain
 * (info.c).
 */
#include "config.h"

#include "fi/alloc/alloc.h"
#include "fi/blocks.h"
#include "fi/import.h"
#include "fi/info.h"
#include "fi/data/op.h"
#include "fi/param.h"
#include "fi/obj/attach.h"
#include "fi/data/flush.h"
#include "fi/fid.h"
#include "fi/getinfo.h"
#include "fi/obj/cq.h"
#include "fi/obj/ep.h"
#include "fi/obj/obj.h"

static void domain_cache_close(struct mrrc_domain *domain)
{
	if (domain->blocks)
		mrrc_admit_fini(&domain->admit);
	mrrc_blocks_close(domain->blocks);
	mrrc_detach(&domain->reg);
	if (domain->ops)
		mrrc_pool_close(domain->ops);
}

static int domain_close(struct fid *fid)
{
	struct mrrc_domain *domain =
		container_of(fid, struct mrrc_domain, domain.fid);
	const struct mrrc_domain_over *over;
	int ret;

	if (mrrc_ref_busy(&domain->ref) || mrrc_alloc_busy(&domain->reg))
		return -FI_EBUSY;
	if (atomic_load(&domain->files))
		domain->files_close(domain);
	over = atomic_load(&domain->over);
	ret = over ? over->close(domain) : 0;
	if (ret)
		return ret;
	/* the core's domain cannot close before our registrations */
	mrrc_alloc_close(&domain->reg);
	if (domain->ops)
		mrrc_domain_flush_ops(domain);
	if (domain->implicit) {
		mrrc_blocks_flush(domain->blocks);
		mrrc_reg_flush(&domain->reg);
	}
	ret = fi_close(&domain->core->fid);
	if (ret)
		return ret;
	domain_cache_close(domain);
	if (domain->mr_eq)
		mrrc_ref_put(&domain->mr_eq->ref);
	mrrc_mutex_fini(&domain->cq_lock);
	mrrc_ref_put(&domain->fabric->ref);
	free(domain);
	return 0;
}

/*
 * The EQ is the default for endpoints opened from now on, if the core has such
 * a default. With FI_REG_MR the core would also report registrations of the
 * cache, so mr.c writes the events of the application's registrations.
 */
static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrrc_domain *domain =
		container_of(fid, struct mrrc_domain, domain.fid);
	struct mrrc_eq *eq;
	int ret;

	if ((flags & FI_REG_MR) && domain->mr_eq)
		return -FI_EINVAL;
	ret = mrrc_fid_bind(fid, bfid, flags & ~FI_REG_MR);
	if ((ret && (ret != -FI_ENOSYS || flags != FI_REG_MR)) ||
	    bfid->fclass != FI_CLASS_EQ)
		return ret;
	eq = container_of(bfid, struct mrrc_eq, eq.fid);
	if (!ret)
		domain->eq = eq;
	if (flags & FI_REG_MR) {
		domain->mr_eq = eq;
		mrrc_ref_get(&eq->ref);
	}
	return 0;
}

static int domain_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	int ret = mrrc_ext_open(name, flags, ops);

	if (ret != -FI_ENOSYS)
		return ret;
	return mrrc_fid_ops_open(fid, name, flags, ops, context);
}

struct fi_ops mrrc_domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = mrrc_fid_control,
	.ops_open = domain_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

struct mrrc_reg *mrrc_domain_reg(struct fid_domain *domain)
{
	return domain->fid.ops == &mrrc_domain_fid_ops ?
		       &mrrc_domain_of(domain)->reg :
		       NULL;
}

static int mrrc_query_atomic(struct fid_domain *domain,
			     enum fi_datatype datatype, enum fi_op op,
			     struct fi_atomic_attr *attr, uint64_t flags)
{
	return fi_query_atomic(mrrc_domain_of(domain)->core, datatype, op, attr,
			       flags);
}

static int mrrc_query_collective(struct fid_domain *domain,
				 enum fi_collective_op coll,
				 struct fi_collective_attr *attr,
				 uint64_t flags)
{
	return fi_query_collective(mrrc_domain_of(domain)->core, coll, attr,
				   flags);
}

struct fi_ops_domain mrrc_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = mrrc_av_open,
	.cq_open = mrrc_cq_open,
	.endpoint = mrrc_ep_open,
	.scalable_ep = mrrc_sep_open,
	.cntr_open = mrrc_cntr_open,
	.poll_open = mrrc_poll_open,
	.stx_ctx = mrrc_stx_open,
	.srx_ctx = mrrc_srx_open,
	.query_atomic = mrrc_query_atomic,
	.query_collective = mrrc_query_collective,
	.endpoint2 = mrrc_ep_open2,
#ifdef MRRC_XPU_CALLS
	.xpu_ctx = mrrc_xpu_ctx,
#endif
};

static int domain_cache_open(struct mrrc_domain *domain)
{
	int ret = 0;

	/*
	 * records hold lengths of receives; tcp alone needs no records, since
	 * its lengths are passed on
	 */
	if (domain->implicit || (domain->reg.below & MRRC_BELOW_LEN_CLAIMED &&
				 domain->reg.below & MRRC_BELOW_LAYERED))
		ret = mrrc_pool_open(sizeof(struct mrrc_op), MRRC_OPS_MAX,
				     &domain->ops);
	if (ret)
		return ret;
	if (!domain->implicit) {
		mrrc_reg_idle(&domain->reg);
		return 0;
	}
	domain->reg.records = domain->ops;
	ret = mrrc_reg_open(&domain->reg);
	if (ret)
		mrrc_pool_close(domain->ops);
	return ret;
}

/* parts of the cache's limit; blocks get one */
#define BOUNCE_PART  8
#define BOUNCE_BYTES ((size_t) 8 << 20) /* limit for blocks */
#define EAGER	     16384 /* longer messages of ofi_rxm are read by peers */

/*
 * Without blocks all buffers are registered, so a failure to make blocks is no
 * error. The provider cannot copy device memory.
 */
static void domain_open_blocks(struct mrrc_domain *domain)
{
	struct mrrc_reg *reg = &domain->reg;
	size_t max = mrrc_params.bounce_size;
	size_t bytes, regions;

	mrrc_cache_mt_limits(reg->cache, &bytes, &regions);
	bytes /= BOUNCE_PART;
	if (bytes > BOUNCE_BYTES)
		bytes = BOUNCE_BYTES;
	if (reg->below & MRRC_BELOW_PEERS_READ && max > EAGER)
		max = EAGER;
	if (reg->hmem || !max ||
	    mrrc_blocks_open(reg, max, bytes, &domain->blocks) ||
	    !domain->blocks)
		return;
	if (mrrc_admit_init(&domain->admit, &reg->cost, bytes * BOUNCE_PART,
			    regions)) {
		mrrc_blocks_close(domain->blocks);
		domain->blocks = NULL;
		return;
	}
	domain->bounce_max = mrrc_blocks_max(domain->blocks);
}

static bool domain_implicit(const struct mrrc_domain *domain)
{
	switch (mrrc_params.reg) {
	case MRRC_REGISTER_ALWAYS:
		return true;
	case MRRC_REGISTER_NEVER:
		return false;
	default:
		return domain->core_local;
	}
}

/*
 * Returns the mr_mode bits by which the core's domain works. The core's domain
 * is opened with the application's mr_mode; verbs accepts a mr_mode that lacks
 * bits which verbs needs, and works by these bits all the same.
 */
static int domain_mr_mode(const struct fi_info *info, int core, bool local)
{
	int mode = info->domain_attr->mr_mode;

	if (mode != FI_MR_BASIC && mode != FI_MR_SCALABLE)
		mode |= core;
	return mrrc_info_mr_bits(mode) | (local ? FI_MR_LOCAL : 0);
}

static int domain_open(struct fid_fabric *fabric_fid, struct fi_info *info,
		       struct fid_domain **domain_fid, uint64_t flags,
		       void *context)
{
	struct mrrc_fabric *fabric = mrrc_fabric_of(fabric_fid);
	struct mrrc_domain *domain;
	struct fi_info *core_info;
	int ret, mr_mode;

	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;

	domain->fabric = fabric;
	ret = mrrc_info_core_needs(fabric, info, &mr_mode, &domain->core_local,
				   &domain->core_safe);
	if (ret)
		goto err_free;
	domain->any_thread = mrrc_info_thread_safe(info) || domain->core_safe;
	mr_mode = domain_mr_mode(info, mr_mode, domain->core_local);
	mrrc_reg_init(&domain->reg, fabric->core_prov_name, mr_mode, info,
		      domain->any_thread);
	domain->multi_recv = info->caps & FI_MULTI_RECV;
	domain->addr_format = info->addr_format;
	domain->automatic = info->domain_attr->data_progress ==
				    FI_PROGRESS_AUTO &&
			    info->domain_attr->threading != FI_THREAD_DOMAIN;
	domain->implicit = domain_implicit(domain);
	if (mrrc_params.reg == MRRC_REGISTER_NEVER)
		domain->core_local = false; /* the application registers */
	mrrc_mutex_init(&domain->cq_lock, MRRC_RANK_CQS);
	ret = domain_cache_open(domain);
	if (ret)
		goto err_lock;

	ret = mrrc_info_to_core(domain, fabric, info, &core_info);
	if (ret)
		goto err_cache;
	mrrc_core_open_begin(domain->core_local);
	ret = fi_domain2(fabric->core, core_info, &domain->core, flags,
			 &domain->domain.fid);
	mrrc_core_open_end();
	fi_freeinfo(core_info);
	if (ret)
		goto err_cache;

	mrrc_attach(&domain->reg, domain->core);
	if (domain->implicit)
		domain_open_blocks(domain);
	domain->domain.fid.fclass = FI_CLASS_DOMAIN;
	domain->domain.fid.context = context;
	domain->domain.fid.ops = &mrrc_domain_fid_ops;
	domain->domain.ops = &mrrc_domain_ops;
	domain->domain.mr = &mrrc_mr_ops;
	mrrc_ref_get(&fabric->ref);
	*domain_fid = &domain->domain;
	return 0;

err_cache:
	domain_cache_close(domain);
err_lock:
	mrrc_mutex_fini(&domain->cq_lock);
err_free:
	free(domain);
	return ret;
}

int mrrc_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context)
{
	return domain_open(fabric, info, domain, 0, context);
}

int mrrc_domain_open2(struct fid_fabric *fabric, struct fi_info *info,
		      struct fid_domain **domain, uint64_t flags, void *context)
{
	int ret;

	if (flags & FI_PEER)
		return -FI_ENOSYS;
	ret = domain_open(fabric, info, domain, flags, context);
	if (!ret)
		mrrc_process_add(&mrrc_domain_of(*domain)->reg);
	return ret;
}
