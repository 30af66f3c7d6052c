/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects that a GPU posts to and reads by itself (fi_xpu(3), since libfabric
 * 2.7): not supported. The GPU's operations would bypass the provider, and
 * their completions could not be told from those of operations with records.
 * info.c does not offer such objects. An application may call nevertheless, and
 * libfabric does not check a table's size before a call: so each call exists,
 * and refuses.
 *
 * The hooking form leaves all objects to the core, including objects for a GPU.
 *
 * Threading: any.
 */
#include "config.h"
#include "fi/obj/obj.h"

#ifdef MRRC_XPU_CALLS

int mrrc_xpu_ctx(struct fid_domain *domain, struct fi_xpu_attr *attr,
		 struct fid_xpu_ctx **ctx, void *context)
{
	return -FI_ENOSYS;
}

int mrrc_ep_export_xpu(struct fid_ep *ep, uint64_t flags,
		       struct fid_xpu_ep *xpu_ep)
{
	return -FI_ENOSYS;
}

int mrrc_cq_export_xpu(struct fid_cq *cq, uint64_t flags,
		       struct fid_xpu_cq *xpu_cq)
{
	return -FI_ENOSYS;
}

int mrrc_cntr_export_xpu(struct fid_cntr *cntr, uint64_t flags,
			 struct fid_xpu_cntr *xpu_cntr)
{
	return -FI_ENOSYS;
}

#endif
