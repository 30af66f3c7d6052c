/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains of the hooking provider: the core's own domains, in which the calls
 * that register memory are replaced.
 *
 * Threading: open, bind and close as the application calls them.
 */
#include "config.h"

#include "fi/alloc/alloc.h"
#include "fi/hook/hook.h"
#include "fi/import.h"
#include "fi/info.h"
#include "fi/param.h"
#include "fi/obj/attach.h"
#include "sys/cache/cache_mt.h"
#include "sys/base/pool.h"
#include "fi/obj/obj.h"

#define MRRC_HOOK_MRS_MAX   (1U << 20) /* limit for one domain */
#define MRRC_HOOK_REVOKE_MS 1000

static int hook_mr_mode(const struct fi_info *info)
{
	int mode = mrrc_info_mr_bits(info->domain_attr->mr_mode);

	if (info->mode & FI_LOCAL_MR)
		mode |= FI_MR_LOCAL;
	return mode;
}

bool mrrc_hook_domain_local(const struct fi_info *info)
{
	return hook_mr_mode(info) & FI_MR_LOCAL;
}

bool mrrc_hook_domain_wanted(const struct fi_info *info, uint64_t flags)
{
	if (!info || !info->domain_attr || (flags & FI_PEER))
		return false;
	switch (mrrc_params.reg) {
	case MRRC_REGISTER_ALWAYS:
		return true;
	case MRRC_REGISTER_NEVER:
		return false;
	default:
		return mrrc_hook_domain_local(info);
	}
}

/*
 * How long the keys of closed registrations may go on working. libfabric's own
 * cache, where there is one, keeps such keys for as long as the memory is
 * mapped: by default the provider's cache keeps the same keys, but not for
 * long.
 */
static uint64_t hook_revoke(const struct mrrc_reg *reg)
{
	size_t ms = mrrc_params.revoke;

	if (ms == MRRC_REVOKE_UNLIMITED)
		return MRRC_REVOKE_NEVER;
	if (ms == MRRC_REVOKE_AUTO)
		ms = (reg->below & MRRC_BELOW_CACHES) &&
				     mrrc_core_keeps_keys() && reg->helper ?
			     MRRC_HOOK_REVOKE_MS :
			     0;
	if (ms && !reg->helper) {
		MRRC_WARN(DOMAIN,
			  "%s: FI_OFI_MRRC_REVOKE_MS has no effect: there "
			  "is no helper thread to revoke keys\n",
			  reg->core_name);
		ms = 0;
	}
	return ms * UINT64_C(1000000);
}

/* Gives the core its own tables back. */
static void hook_domain_restore(struct mrrc_hook_domain *domain)
{
	domain->core->fid.ops = domain->fid_ops;
	domain->core->mr = domain->reg.core_ops;
}

static int hook_domain_close(struct fid *fid)
{
	struct mrrc_hook_domain *domain = mrrc_hook_owner(fid->ops);
	struct fid_domain *core = domain->core;
	struct fi_ops *fid_ops = core->fid.ops;
	struct fi_ops_mr *mr_ops = core->mr;
	int ret;

	/* the core may refuse to close: nothing is freed before */
	if (mrrc_pool_live(domain->mrs) || mrrc_alloc_busy(&domain->reg))
		return -FI_EBUSY;
	mrrc_reg_flush(&domain->reg);
	hook_domain_restore(domain);
	ret = fi_close(&core->fid);
	if (ret) {
		core->fid.ops = fid_ops;
		core->mr = mr_ops;
		return ret;
	}
	mrrc_alloc_close(&domain->reg);
	mrrc_detach(&domain->reg);
	mrrc_pool_close(domain->mrs);
	mrrc_hook_table_free(fid_ops);
	mrrc_hook_table_free(mr_ops);
	free(domain);
	return 0;
}

/*
 * If events of registrations are wanted, nothing is cached: the core writes
 * events for its own registrations only.
 */
static int hook_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrrc_hook_domain *domain = mrrc_hook_owner(fid->ops);
	int ret;

	ret = domain->fid_ops->bind(fid, bfid, flags);
	if (!ret && (flags & FI_REG_MR))
		atomic_store(&domain->events, true);
	return ret;
}

struct mrrc_reg *mrrc_hook_domain_reg(struct fid_domain *domain)
{
	struct mrrc_hook_domain *hooked;

	if (domain->fid.ops->close != hook_domain_close)
		return NULL;
	hooked = mrrc_hook_owner(domain->fid.ops);
	return &hooked->reg;
}

static int hook_domain_ops_open(struct fid *fid, const char *name,
				uint64_t flags, void **ops, void *context)
{
	struct mrrc_hook_domain *domain = mrrc_hook_owner(fid->ops);
	int ret = mrrc_ext_open(name, flags, ops);

	if (ret != -FI_ENOSYS)
		return ret;
	return domain->fid_ops->ops_open(fid, name, flags, ops, context);
}

static int hook_domain_tables(struct mrrc_hook_domain *domain)
{
	struct fid_domain *core = domain->core;
	struct fi_ops_mr *mr_ops;
	struct fi_ops *fid_ops;

	fid_ops = mrrc_hook_table(core->fid.ops, core->fid.ops->size, domain);
	mr_ops = mrrc_hook_table(core->mr, core->mr->size, domain);
	if (!fid_ops || !mr_ops) {
		mrrc_hook_table_free(fid_ops);
		mrrc_hook_table_free(mr_ops);
		return -FI_ENOMEM;
	}
	domain->fid_ops = core->fid.ops;
	fid_ops->close = hook_domain_close;
	fid_ops->bind = hook_domain_bind;
	fid_ops->ops_open = hook_domain_ops_open;
	mr_ops->reg = mrrc_hook_mr_ops.reg;
	mr_ops->regv = mrrc_hook_mr_ops.regv;
	mr_ops->regattr = mrrc_hook_mr_ops.regattr;
	core->fid.ops = fid_ops;
	core->mr = mr_ops;
	return 0;
}

int mrrc_hook_domain_install(struct mrrc_hook_fabric *fabric,
			     const struct fi_info *info,
			     struct fid_domain *core, bool by_provider)
{
	struct mrrc_hook_domain *domain;
	int ret;

	if (!FI_CHECK_OP(core->mr, struct fi_ops_mr, regattr) ||
	    !FI_CHECK_OP(core->fid.ops, struct fi_ops, ops_open))
		return -FI_ENOSYS;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->core = core;
	domain->inner = by_provider;
	mrrc_reg_init(&domain->reg, fabric->core_name, hook_mr_mode(info), info,
		      info->domain_attr->threading == FI_THREAD_SAFE);
	domain->reg.revoke = hook_revoke(&domain->reg);
	ret = mrrc_pool_open(mrrc_hook_mr_size(), MRRC_HOOK_MRS_MAX,
			     &domain->mrs);
	if (ret)
		goto err_free;
	ret = mrrc_reg_open(&domain->reg);
	if (ret)
		goto err_pool;
	mrrc_attach(&domain->reg, core);
	ret = hook_domain_tables(domain);
	if (ret)
		goto err_reg;
	mrrc_process_add(&domain->reg);
	MRRC_INFO(DOMAIN, "%s: registrations are cached\n", fabric->core_name);
	return 0;

err_reg:
	mrrc_detach(&domain->reg);
err_pool:
	mrrc_pool_close(domain->mrs);
err_free:
	free(domain);
	return ret;
}
