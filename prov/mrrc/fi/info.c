/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Converts an application's fi_info or hints into the core's, and the core's
 * into the application's. Any thread.
 */
#include "config.h"
#include "fi/info.h"
#include "fi/fid.h"
#include "fi/names.h"
#include "fi/param.h"

void mrrc_info_add_local(struct fi_info *core)
{
	core->mode |= FI_LOCAL_MR;
	if (core->domain_attr && core->domain_attr->mr_mode &&
	    core->domain_attr->mr_mode != FI_MR_BASIC &&
	    core->domain_attr->mr_mode != FI_MR_SCALABLE)
		core->domain_attr->mr_mode |= FI_MR_LOCAL;
}

/*
 * A value that cores do not know must not become a value that cores know. Cores
 * of 2.x know two levels fewer than the enumeration has.
 */
static bool threading_known(enum fi_threading threading)
{
	if (FI_MAJOR_VERSION >= 2 &&
	    (threading == FI_THREAD_FID || threading == FI_THREAD_ENDPOINT))
		return false;
	return (unsigned) threading <= FI_THREAD_ENDPOINT;
}

/*
 * Makes the core's hints for an application without hints. Some cores take
 * attributes of zeroes as requests, and likewise the one optional mode,
 * FI_BUFFERED_RECV.
 */
static struct fi_info *no_hints(void)
{
	struct fi_info *core = fi_allocinfo();

	if (!core)
		return NULL;
	core->mode = ~(uint64_t) FI_BUFFERED_RECV;
	free(core->tx_attr);
	free(core->rx_attr);
	free(core->ep_attr);
	free(core->domain_attr);
	core->tx_attr = NULL;
	core->rx_attr = NULL;
	core->ep_attr = NULL;
	core->domain_attr = NULL;
	return core;
}

struct fi_info *mrrc_hints_to_core(uint32_t version,
				   const struct fi_info *hints,
				   const char *below)
{
	struct fi_info *core;
	struct fid *fid;

	core = hints ? fi_dupinfo(hints) : no_hints();
	if (!core)
		return NULL;
	if (!core->fabric_attr || !core->domain_attr)
		goto complete;

	free(core->fabric_attr->prov_name);
	core->fabric_attr->prov_name = strdup(below);
	if (!core->fabric_attr->prov_name)
		goto err_free;
	mrrc_fabric_name_split(core->fabric_attr->name);

	if (mrrc_params.reg != MRRC_REGISTER_NEVER)
		mrrc_info_add_local(core);
	/* see mrrc_info_to_core() */
	if (core->domain_attr->threading != FI_THREAD_DOMAIN &&
	    threading_known(core->domain_attr->threading))
		core->domain_attr->threading = FI_THREAD_UNSPEC;

	if (core->fabric_attr->fabric) {
		fid = mrrc_fid_core(&core->fabric_attr->fabric->fid);
		core->fabric_attr->fabric =
			fid ? container_of(fid, struct fid_fabric, fid) : NULL;
	}
	if (core->domain_attr->domain) {
		fid = mrrc_fid_core(&core->domain_attr->domain->fid);
		core->domain_attr->domain =
			fid ? container_of(fid, struct fid_domain, fid) : NULL;
	}
	if (core->handle) {
		fid = mrrc_fid_core(core->handle);
		if (fid)
			core->handle = fid;
	}
	return core;

complete:
	/*
	 * Partial hints: add the attributes that we must set, of double size,
	 * since a newer libfabric reads more fields.
	 */
	if (!core->fabric_attr)
		core->fabric_attr = calloc(2, sizeof(*core->fabric_attr));
	if (!core->domain_attr) {
		core->domain_attr = calloc(2, sizeof(*core->domain_attr));
		if (core->domain_attr &&
		    FI_VERSION_GE(version, FI_VERSION(1, 5)))
			core->domain_attr->mr_mode = MRRC_ALL_MR_MODES;
	}
	if (core->fabric_attr && core->domain_attr) {
		struct fi_info *full;

		full = mrrc_hints_to_core(version, core, below);
		fi_freeinfo(core);
		return full;
	}
err_free:
	fi_freeinfo(core);
	return NULL;
}

static void drop_caps(struct fi_info *info)
{
	info->caps &= ~MRRC_CAPS_NEVER;
	if (info->tx_attr)
		info->tx_attr->caps &= ~MRRC_CAPS_NEVER;
	if (info->rx_attr)
		info->rx_attr->caps &= ~MRRC_CAPS_NEVER;
	if (!info->domain_attr)
		return;
	info->domain_attr->caps &= ~MRRC_CAPS_NEVER;
#ifdef MRRC_XPU_CALLS
	info->domain_attr->max_xpu_ctx_cnt = 0;
#endif
}

void mrrc_info_from_core(struct fi_info *info)
{
	drop_caps(info);
	if (mrrc_params.reg == MRRC_REGISTER_NEVER)
		return;
	info->mode &= ~FI_LOCAL_MR;
	if (info->domain_attr) {
		info->domain_attr->mode &= ~FI_LOCAL_MR;
		info->domain_attr->mr_mode &= ~FI_MR_LOCAL;
	}
	if (info->tx_attr)
		info->tx_attr->mode &= ~FI_LOCAL_MR;
	if (info->rx_attr)
		info->rx_attr->mode &= ~FI_LOCAL_MR;
}

int mrrc_info_mr_bits(int mr_mode)
{
	if (mr_mode == FI_MR_BASIC)
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return mr_mode == FI_MR_SCALABLE ? 0 : mr_mode;
}

bool mrrc_info_thread_safe(const struct fi_info *info)
{
	return info->domain_attr->threading != FI_THREAD_DOMAIN ||
	       mrrc_params.helper == MRRC_HELPER_ALWAYS ||
	       mrrc_params.helper == MRRC_HELPER_PREDICT;
}

int mrrc_info_to_core(const struct mrrc_domain *domain,
		      const struct mrrc_fabric *fabric,
		      const struct fi_info *info, struct fi_info **core_info)
{
	struct fi_info *core;
	struct fid *fid;

	core = fi_dupinfo(info);
	if (!core)
		return -FI_ENOMEM;

	if (core->fabric_attr) {
		free(core->fabric_attr->prov_name);
		core->fabric_attr->prov_name = strdup(fabric->core_prov_name);
		if (!core->fabric_attr->prov_name) {
			fi_freeinfo(core);
			return -FI_ENOMEM;
		}
		core->fabric_attr->fabric = fabric->core;
		mrrc_fabric_name_split(core->fabric_attr->name);
	}
	if (core->domain_attr) {
		core->domain_attr->domain = domain ? domain->core : NULL;
		/*
		 * A completion in one thread may deregister what a post in
		 * another uses, and posts read completion queues: unless the
		 * application serialises the whole domain, the core must. The
		 * application cannot serialise the helper's calls, nor those of
		 * a thread that the core starts (ofi_rxm, where progress is
		 * automatic).
		 */
		if ((mrrc_info_thread_safe(info) ||
		     (domain && domain->core_safe)) &&
		    threading_known(core->domain_attr->threading))
			core->domain_attr->threading = FI_THREAD_SAFE;
	}
	if (domain && domain->core_local) {
		mrrc_info_add_local(core);
	}
	if (core->handle) {
		/* a connection request's handle is the core's own */
		fid = mrrc_fid_core(core->handle);
		if (fid)
			core->handle = fid;
	}
	*core_info = core;
	return 0;
}
