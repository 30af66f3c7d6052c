/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations that the application makes. Registrations for local use come
 * from the cache, if there is a cache. A registration that peers can reach is a
 * separate registration of the core, so that closing it revokes its key.
 *
 * Descriptors are the core's: applications pass them in data calls, and the
 * provider passes them on.
 *
 * Events: the core's domain is bound to an EQ without FI_REG_MR, or the core
 * would report registrations of the cache to the application. Without FI_REG_MR
 * registering is synchronous, so mr.c writes FI_MR_COMPLETE.
 *
 * Threading: any thread, as far as the core allows.
 */
#include "config.h"
#include "fi/attr.h"
#include "fi/fid.h"
#include "fi/mrrc_fi.h"
#include "fi/obj/obj.h"
#include "fi/record/record.h"
#include "sys/cache/cache_use.h"

static void mr_refresh(struct mrrc_mr *mr)
{
	mr->mr.mem_desc = mr->no_desc ? NULL : mr->core->mem_desc;
	mr->mr.key = mr->core->key;
	/* show the requested key, which peers cannot use */
	if (mr->region && !(mr->domain->reg.mr_mode & FI_MR_PROV_KEY))
		mr->mr.key = mr->key;
}

static int mr_close(struct fid *fid)
{
	struct mrrc_mr *mr = container_of(fid, struct mrrc_mr, mr.fid);
	int ret;

	if (mr->region) {
		mrrc_cache_mt_put(mr->domain->reg.cache, mr->region);
	} else {
		ret = fi_close(&mr->core->fid);
		if (ret)
			return ret;
	}
	if (mrrc_unlikely(mr->trace))
		mrrc_record_end(&mr->trace);
	mrrc_ref_put(&mr->domain->ref);
	free(mr);
	return 0;
}

/* A registration that may share its region with others cannot be bound. */
static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrrc_mr *mr = container_of(fid, struct mrrc_mr, mr.fid);

	return mr->region ? -FI_ENOSYS : mrrc_fid_bind(fid, bfid, flags);
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct mrrc_mr *mr = container_of(fid, struct mrrc_mr, mr.fid);
	int ret;

	ret = mrrc_fid_control(fid, command, arg);
	/* the core may know the key only now */
	if (!ret && (command == FI_ENABLE || command == FI_REFRESH))
		mr_refresh(mr);
	return ret;
}

static struct fi_ops mrrc_mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

/*
 * An application that need not register its buffers may register them for peers
 * alone, and pass the resulting descriptor. So a descriptor is given only if it
 * allows all local use. Registrations of device memory always have a
 * descriptor, since there is no other way to get one for device memory.
 */
static struct mrrc_mr *mr_alloc(struct mrrc_domain *domain,
				const struct fi_mr_attr *attr, void *context)
{
	const uint64_t local = FI_SEND | FI_RECV;

	struct mrrc_mr *mr;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->domain = domain;
	mr->no_desc = domain->implicit &&
		      mrrc_reg_is_system(&domain->reg, attr) &&
		      (attr->access & local) != local;
	mr->mr.fid.fclass = FI_CLASS_MR;
	mr->mr.fid.context = context;
	mr->mr.fid.ops = &mrrc_mr_fid_ops;
	return mr;
}

/*
 * Registers through the cache. false: the cache cannot make this registration,
 * or failed; a registration by the core then returns the core's error.
 */
static bool mr_cached(struct mrrc_domain *domain, const struct fi_mr_attr *attr,
		      uint64_t flags, struct mrrc_mr *mr)
{
	enum mrrc_access kind;

	if (!domain->implicit ||
	    !mrrc_reg_kind(&domain->reg, attr, flags, &kind) ||
	    mrrc_access_remote(kind) ||
	    mrrc_record_get_one(&domain->reg, &mr->trace, attr->mr_iov, kind,
				&mr->region))
		return false;
	if (domain->reg.predicts &&
	    mrrc_cache_use(domain->reg.cache, attr->mr_iov->iov_base,
			   attr->mr_iov->iov_len, NULL))
		mrrc_cache_use_wake(domain->reg.cache);
	mr->core = mr->region->cookie;
	mr->key = attr->requested_key;
	return true;
}

/* Completes mr after the core registered it, or returned the error ret. */
static int mr_finish(struct mrrc_mr *mr, int ret, struct fid_mr **mr_fid)
{
	struct mrrc_eq *eq = mr->domain->mr_eq;
	struct fi_eq_entry entry;
	ssize_t written;

	if (ret) {
		free(mr);
		return ret;
	}
	mr_refresh(mr);
	mrrc_ref_get(&mr->domain->ref);
	*mr_fid = &mr->mr;
	if (!eq)
		return 0;

	memset(&entry, 0, sizeof(entry));
	entry.fid = &mr->mr.fid;
	entry.context = mr->mr.fid.context;
	written =
		fi_eq_write(&eq->eq, FI_MR_COMPLETE, &entry, sizeof(entry), 0);
	if (written < 0)
		MRRC_WARN(MR,
			  "cannot write FI_MR_COMPLETE to the event queue: "
			  "%s\n",
			  fi_strerror(-written));
	return 0;
}

/*
 * verbs keeps closed registrations in libfabric's cache, with all rights, so
 * that fi_close() would not revoke a key; the flag MRRC_MR_NOCACHE bypasses
 * that cache. Device memory without a key for peers is not in this provider's
 * cache, so verbs may cache the registration.
 */
static uint64_t mr_core_flags(const struct mrrc_domain *domain,
			      const struct fi_mr_attr *attr, uint64_t flags)
{
	if (domain->reg.below & MRRC_BELOW_CACHES &&
	    (mrrc_reg_is_system(&domain->reg, attr) ||
	     (attr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE))))
		flags |= MRRC_MR_NOCACHE;
	return flags;
}

/*
 * If an idle region of the cache may have the key, evicts idle regions. true:
 * try again.
 */
static bool mr_make_way(struct mrrc_domain *domain, uint64_t key, int ret)
{
	return ret == -FI_ENOKEY && domain->implicit &&
	       !(domain->reg.mr_mode & FI_MR_PROV_KEY) &&
	       (key & mrrc_reg_key_top(&domain->reg)) &&
	       mrrc_cache_mt_flush(domain->reg.cache);
}

static struct mrrc_domain *mr_domain(struct fid *fid)
{
	return container_of(fid, struct mrrc_domain, domain.fid);
}

static int mr_register(struct mrrc_domain *domain, const struct iovec *iov,
		       size_t count, uint64_t access, uint64_t offset,
		       uint64_t requested_key, uint64_t flags,
		       struct fid_mr **mr_fid, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.iface = FI_HMEM_SYSTEM,
	};
	struct mrrc_mr *mr;
	uint64_t start;
	int ret;

	mr = mr_alloc(domain, &attr, context);
	if (!mr)
		return -FI_ENOMEM;
	if (mr_cached(domain, &attr, flags, mr))
		return mr_finish(mr, 0, mr_fid);
	start = mrrc_record_start(&domain->reg);
	do {
		ret = fi_mr_regv(domain->core, iov, count, access, offset,
				 requested_key,
				 mr_core_flags(domain, &attr, flags), &mr->core,
				 context);
	} while (mr_make_way(domain, requested_key, ret));
	mrrc_record_own(&domain->reg, start, &attr, ret, &mr->trace);
	return mr_finish(mr, ret, mr_fid);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t requested_key, uint64_t flags,
		  struct fid_mr **mr_fid, void *context)
{
	const struct iovec iov = { (void *) buf, len };

	MRRC_RECORD_REG(&mr_domain(fid)->reg);
	return mr_register(mr_domain(fid), &iov, 1, access, offset,
			   requested_key, flags, mr_fid, context);
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		   uint64_t access, uint64_t offset, uint64_t requested_key,
		   uint64_t flags, struct fid_mr **mr_fid, void *context)
{
	MRRC_RECORD_REG(&mr_domain(fid)->reg);
	return mr_register(mr_domain(fid), iov, count, access, offset,
			   requested_key, flags, mr_fid, context);
}

/*
 * From API 2.0 on, base_mr names the registration that contains the new
 * registration. *attr names the provider's registration; the copy that *attr
 * points to on return names the core's.
 */
static int mr_base_to_core(const struct mrrc_domain *domain,
			   const struct fi_mr_attr **attr,
			   struct mrrc_mr_attrs *copy)
{
#if FI_MAJOR_VERSION >= 2
	uint32_t version = domain->fabric->fabric.api_version;
	struct fi_mr_attr *core_attr;
	struct fid *base;

	if (FI_VERSION_LT(version, FI_VERSION(2, 0)) || !(*attr)->base_mr)
		return 0;
	base = mrrc_fid_core((struct fid *) &(*attr)->base_mr->fid);
	if (!base)
		return -FI_EINVAL;
	core_attr = mrrc_mr_attr_copy(copy, *attr, version);
	core_attr->base_mr = container_of(base, struct fid_mr, fid);
	*attr = core_attr;
#endif
	return 0;
}

/*
 * The core gets the application's attributes unchanged, with the application's
 * context: the structure of the attributes may be longer than in this header.
 */
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **mr_fid)
{
	struct mrrc_domain *domain = mr_domain(fid);
	struct mrrc_mr_attrs copy;
	struct mrrc_mr *mr;
	uint64_t start;
	int ret;

	MRRC_RECORD_REG(&domain->reg);
	if (!attr)
		return -FI_EINVAL;
	/* the key of FI_AUTH_KEY names an address vector of ours */
	if (flags & FI_AUTH_KEY)
		return -FI_ENOSYS;
	ret = mr_base_to_core(domain, &attr, &copy);
	if (ret)
		return ret;
	mr = mr_alloc(domain, attr, attr->context);
	if (!mr)
		return -FI_ENOMEM;
	if (attr != copy.attr && mr_cached(domain, attr, flags, mr))
		return mr_finish(mr, 0, mr_fid);
	start = mrrc_record_start(&domain->reg);
	do {
		ret = fi_mr_regattr(domain->core, attr,
				    mr_core_flags(domain, attr, flags),
				    &mr->core);
	} while (mr_make_way(domain, attr->requested_key, ret));
	mrrc_record_own(&domain->reg, start, attr, ret, &mr->trace);
	return mr_finish(mr, ret, mr_fid);
}

struct fi_ops_mr mrrc_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
