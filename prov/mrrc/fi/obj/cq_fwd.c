/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CQs of a domain that resolves no descriptors: calls go to the core's CQs,
 * with no context to map. Threading: the core's.
 */
#include "config.h"
#include "fi/obj/cq_fwd.h"
#include "fi/obj/obj.h"

static ssize_t fwd_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return fi_cq_read(mrrc_cq_of(cq)->core, buf, count);
}

static ssize_t fwd_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
			       fi_addr_t *src)
{
	return fi_cq_readfrom(mrrc_cq_of(cq)->core, buf, count, src);
}

static ssize_t fwd_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry,
			      uint64_t flags)
{
	struct fid_cq *core = mrrc_cq_of(cq)->core;

	/* not fi_cq_readerr(), which may write to fields that entry lacks */
	return core->ops->readerr(core, entry, flags);
}

static ssize_t fwd_cq_sread(struct fid_cq *cq, void *buf, size_t count,
			    const void *cond, int timeout)
{
	return fi_cq_sread(mrrc_cq_of(cq)->core, buf, count, cond, timeout);
}

static ssize_t fwd_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count,
				fi_addr_t *src, const void *cond, int timeout)
{
	return fi_cq_sreadfrom(mrrc_cq_of(cq)->core, buf, count, src, cond,
			       timeout);
}

int mrrc_cq_signal(struct fid_cq *cq)
{
	return fi_cq_signal(mrrc_cq_of(cq)->core);
}

const char *mrrc_cq_strerror(struct fid_cq *cq, int prov_errno,
			     const void *err_data, char *buf, size_t len)
{
	return fi_cq_strerror(mrrc_cq_of(cq)->core, prov_errno, err_data, buf,
			      len);
}

struct fi_ops_cq mrrc_cq_fwd_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = fwd_cq_read,
	.readfrom = fwd_cq_readfrom,
	.readerr = fwd_cq_readerr,
	.sread = fwd_cq_sread,
	.sreadfrom = fwd_cq_sreadfrom,
	.signal = mrrc_cq_signal,
	.strerror = mrrc_cq_strerror,
#ifdef MRRC_XPU_CALLS
	.export_xpu = mrrc_cq_export_xpu,
#endif
};
