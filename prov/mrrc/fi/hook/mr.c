/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations on a hooked domain. Registrations that the cache serves are
 * objects of ours that hold a region; the others are the core's own.
 *
 * Local registrations are always cached. Remotely accessible registrations are
 * cached only if their keys may go on working for a while after the close
 * (FI_OFI_MRRC_REVOKE_MS); otherwise the close revokes the key.
 *
 * Any thread, as far as the core allows.
 */
#include "config.h"
#include "fi/hook/hook.h"
#include "fi/param.h"
#include "fi/record/record.h"
#include "sys/cache/cache_use.h"
#include "sys/base/pool.h"
#include "fi/fid.h"

#define HOOK_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* ofi_rxm's own keys have this bit (rxm_msg_mr_reg_internal) */
#define HOOK_RXM_KEY (1ULL << 31)

struct mrrc_hook_mr {
	struct fid_mr mr;
	struct mrrc_hook_domain *domain;
	struct mrrc_region *region;
	bool ends;	/* peers know its key, which will be revoked */
	uint64_t trace; /* for mrrc_record_end(); 0: not recorded */
};

size_t mrrc_hook_mr_size(void)
{
	return sizeof(struct mrrc_hook_mr);
}

static int hook_mr_close(struct fid *fid)
{
	struct mrrc_hook_mr *mr =
		container_of(fid, struct mrrc_hook_mr, mr.fid);
	struct mrrc_hook_domain *domain = mr->domain;

	if (mr->ends)
		mrrc_cache_mt_put_key(domain->reg.cache, mr->region);
	else
		mrrc_cache_mt_put(domain->reg.cache, mr->region);
	if (mrrc_unlikely(mr->trace))
		mrrc_record_end(&mr->trace);
	mrrc_pool_free(domain->mrs, mr);
	return 0;
}

/* The core's registration is shared: it cannot be bound. */
static int hook_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int hook_mr_control(struct fid *fid, int command, void *arg)
{
	struct mrrc_hook_mr *mr =
		container_of(fid, struct mrrc_hook_mr, mr.fid);
	struct fid_mr *core = mr->region->cookie;

	return fi_control(&core->fid, command, arg);
}

static int hook_mr_ops_open(struct fid *fid, const char *name, uint64_t flags,
			    void **ops, void *context)
{
	return -FI_ENOSYS;
}

static int hook_mr_tostr(const struct fid *fid, char *buf, size_t len)
{
	return mrrc_fid_tostr(fid, buf, len);
}

static int hook_mr_ops_set(struct fid *fid, const char *name, uint64_t flags,
			   void *ops, void *context)
{
	return -FI_ENOSYS;
}

/* A copy: with mrrc_fid_tostr() it would count as the utility provider's. */
static struct fi_ops hook_mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = hook_mr_close,
	.bind = hook_mr_bind,
	.control = hook_mr_control,
	.ops_open = hook_mr_ops_open,
	.tostr = hook_mr_tostr,
	.ops_set = hook_mr_ops_set,
};

/*
 * Did ofi_rxm make the registration for a rendezvous (1.17 to 2.x)? By default
 * the key of such a registration is not revoked, since the application does not
 * see the key.
 */
static bool hook_rendezvous(const struct mrrc_hook_domain *domain,
			    const struct fi_mr_attr *attr)
{
	return mrrc_params.revoke == MRRC_REVOKE_AUTO && domain->inner &&
	       (attr->access == FI_REMOTE_READ ||
		attr->access == FI_REMOTE_WRITE) &&
	       (attr->requested_key & HOOK_RXM_KEY);
}

/* The kind of region that serves a registration; false: no region may. */
static bool hook_kind(const struct mrrc_hook_domain *domain,
		      const struct fi_mr_attr *attr, uint64_t flags,
		      enum mrrc_access *kind)
{
	if (atomic_load_explicit(&domain->events, memory_order_relaxed) ||
	    !mrrc_reg_kind(&domain->reg, attr, flags, kind))
		return false;
	return !mrrc_access_remote(*kind) || domain->reg.revoke ||
	       hook_rendezvous(domain, attr);
}

static int hook_mr_cached(struct mrrc_hook_domain *domain,
			  const struct fi_mr_attr *attr, enum mrrc_access kind,
			  struct fid_mr **mr_fid)
{
	struct mrrc_region *region;
	struct mrrc_hook_mr *mr;
	uint64_t trace = 0;
	struct fid_mr *core;
	bool ends;
	int ret;

	ret = mrrc_record_get_one(&domain->reg, &trace, attr->mr_iov, kind,
				  &region);
	if (ret)
		return ret;
	if (domain->reg.predicts &&
	    mrrc_cache_use(domain->reg.cache, attr->mr_iov->iov_base,
			   attr->mr_iov->iov_len, NULL))
		mrrc_cache_use_wake(domain->reg.cache);
	mr = mrrc_pool_alloc(domain->mrs);
	if (!mr) {
		mrrc_cache_mt_put(domain->reg.cache, region);
		mrrc_record_end(&trace);
		return -FI_ENOMEM;
	}
	ends = mrrc_access_remote(kind) && !hook_rendezvous(domain, attr);
	if (ends)
		mrrc_cache_mt_key_given(domain->reg.cache, region);
	core = region->cookie;
	*mr = (struct mrrc_hook_mr){
		.mr.fid.fclass = FI_CLASS_MR,
		.mr.fid.context = attr->context,
		.mr.fid.ops = &hook_mr_fid_ops,
		.mr.mem_desc = region->desc,
		.mr.key = fi_mr_key(core),
		.domain = domain,
		.region = region,
		.ends = ends,
		.trace = trace,
	};
	/* show the requested key, which peers cannot use */
	if (!mrrc_access_remote(kind) &&
	    !(domain->reg.mr_mode & FI_MR_PROV_KEY))
		mr->mr.key = attr->requested_key;
	*mr_fid = &mr->mr;
	return 0;
}

/*
 * Returns the flags of a registration by the core. Closing a remotely
 * accessible registration must revoke its key, so such a registration bypasses
 * a cache of the core. Our cache never has device memory: where keys may
 * outlive their registrations, the core's cache has device memory.
 */
static uint64_t hook_core_flags(const struct mrrc_hook_domain *domain,
				const struct fi_mr_attr *attr, uint64_t flags)
{
	const struct mrrc_reg *reg = &domain->reg;
	bool ends = mrrc_reg_is_system(reg, attr) ?
			    reg->revoke != MRRC_REVOKE_NEVER :
			    !reg->revoke;

	if (reg->below & MRRC_BELOW_CACHES && (attr->access & HOOK_REMOTE) &&
	    ends)
		flags |= MRRC_MR_NOCACHE;
	return flags;
}

static struct mrrc_hook_domain *hook_domain_of(struct fid *fid)
{
	return mrrc_hook_owner(container_of(fid, struct fid_domain, fid)->mr);
}

static int hook_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			uint64_t flags, struct fid_mr **mr)
{
	struct mrrc_hook_domain *domain = hook_domain_of(fid);
	enum mrrc_access kind;
	uint64_t start;
	int ret;

	MRRC_RECORD_REG(&domain->reg);
	if (!attr)
		return domain->reg.core_ops->regattr(fid, attr, flags, mr);
	/*
	 * if the cache cannot register the memory, the core registers it, or
	 * returns its own error
	 */
	if (hook_kind(domain, attr, flags, &kind) &&
	    !hook_mr_cached(domain, attr, kind, mr))
		return 0;
	start = mrrc_record_start(&domain->reg);
	ret = domain->reg.core_ops->regattr(
		fid, attr, hook_core_flags(domain, attr, flags), mr);
	mrrc_record_own(&domain->reg, start, attr, ret, NULL);
	return ret;
}

static int hook_register(struct fid *fid, const struct iovec *iov, size_t count,
			 uint64_t access, uint64_t offset,
			 uint64_t requested_key, uint64_t flags,
			 struct fid_mr **mr, void *context)
{
	struct mrrc_hook_domain *domain = hook_domain_of(fid);
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
		.iface = FI_HMEM_SYSTEM,
	};
	enum mrrc_access kind;
	uint64_t start;
	int ret;

	if (hook_kind(domain, &attr, flags, &kind) &&
	    !hook_mr_cached(domain, &attr, kind, mr))
		return 0;
	start = mrrc_record_start(&domain->reg);
	ret = domain->reg.core_ops->regv(fid, iov, count, access, offset,
					 requested_key,
					 hook_core_flags(domain, &attr, flags),
					 mr, context);
	mrrc_record_own(&domain->reg, start, &attr, ret, NULL);
	return ret;
}

static int hook_reg(struct fid *fid, const void *buf, size_t len,
		    uint64_t access, uint64_t offset, uint64_t requested_key,
		    uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = { (void *) buf, len };

	MRRC_RECORD_REG(&hook_domain_of(fid)->reg);
	return hook_register(fid, &iov, 1, access, offset, requested_key, flags,
			     mr, context);
}

static int hook_regv(struct fid *fid, const struct iovec *iov, size_t count,
		     uint64_t access, uint64_t offset, uint64_t requested_key,
		     uint64_t flags, struct fid_mr **mr, void *context)
{
	MRRC_RECORD_REG(&hook_domain_of(fid)->reg);
	return hook_register(fid, iov, count, access, offset, requested_key,
			     flags, mr, context);
}

const struct fi_ops_mr mrrc_hook_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = hook_reg,
	.regv = hook_regv,
	.regattr = hook_regattr,
};
