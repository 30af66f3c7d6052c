/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations of ours on the core's domain, as the cache decides on them.
 * Any thread, no lock held.
 */
#include "config.h"
#include "op.h"

#define MRRC_KEY_TRIES	64

/*
 * Where keys are the application's to choose, ours come from the upper half,
 * from a place of each domain's own: the ends of the range are popular. mr.c
 * makes way for an application that wants one of them all the same.
 */
static uint64_t mrrc_reg_key(struct mrrc_domain *domain)
{
	size_t bits = 8 * domain->core_key_size;
	uint64_t next = atomic_fetch_add(&domain->next_key, 1);
	uint64_t top;

	if (!bits || bits > 64)
		bits = 64;
	top = 1ULL << (bits - 1);
	return top | (next & (top - 1));
}

static int mrrc_reg_core(struct mrrc_domain *domain, const struct iovec *iov,
			 uint64_t access, struct fid_mr **mr)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = 1,
		.access = access,
		.iface = FI_HMEM_SYSTEM,
	};
	uint64_t flags = domain->core_nocache ? MRRC_MR_NOCACHE : 0;
	int ret, tries = 0;

	do {
		attr.requested_key = mrrc_reg_key(domain);
		ret = fi_mr_regattr(domain->core, &attr, flags, mr);
	} while (ret == -FI_ENOKEY &&
		 !(domain->core_mr_mode & FI_MR_PROV_KEY) &&
		 ++tries < MRRC_KEY_TRIES);
	return ret;
}

static int mrrc_reg(void *arg, uintptr_t start, size_t len,
		    enum mrrc_access access, void **cookie, void **desc)
{
	struct mrrc_domain *domain = arg;
	struct iovec iov = { (void *) start, len };
	struct fid_mr *mr;
	int ret;

	if (access == MRRC_RW) {
		ret = mrrc_reg_core(domain, &iov, FI_SEND | FI_RECV |
				    FI_READ | FI_WRITE, &mr);
	} else {
		ret = mrrc_reg_core(domain, &iov, FI_SEND | FI_WRITE, &mr);
		/*
		 * FI_WRITE makes verbs ask for writable memory, although an
		 * RDMA write only reads its source (verbs_mr.c, 1.17, 2.x).
		 */
		if (ret)
			ret = mrrc_reg_core(domain, &iov, FI_SEND, &mr);
	}
	if (ret) {
		MRRC_DBG(MR, "%zu bytes at %p, access %d: %s\n", len,
			 iov.iov_base, access, fi_strerror(-ret));
		return ret;
	}
	*cookie = mr;
	*desc = fi_mr_desc(mr);
	return 0;
}

static void mrrc_dereg(void *arg, struct mrrc_region *const *regions,
		       size_t count)
{
	struct fid_mr *mr;
	size_t i;
	int ret;

	for (i = 0; i < count; i++) {
		mr = regions[i]->cookie;
		ret = fi_close(&mr->fid);
		if (ret)
			MRRC_WARN(MR, "the core provider does not deregister "
				  "%zu bytes at %p: %s\n", regions[i]->len,
				  (void *) regions[i]->start,
				  fi_strerror(-ret));
	}
}

const struct mrrc_reg_ops mrrc_domain_reg_ops = {
	.reg = mrrc_reg,
	.dereg = mrrc_dereg,
};
