/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Resolves null descriptors through the cache. Any thread. */
#include "config.h"
#include <complex.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "fi/alloc/alloc.h"
#include "fi/record/record.h"
#include "fi/data/bounce.h"
#include "fi/data/resolve.h"

/* Log once per domain and error why memory could not be registered. */
static void resolve_warn(struct mrrc_domain *domain, const struct iovec *iov,
			 enum mrrc_access access, int err)
{
	uint64_t bit = 1ULL << (-err & 63);
	struct mrrc_stats stats;
	struct rlimit limit = { 0 };

	if (atomic_fetch_or(&domain->warned, bit) & bit)
		return;
	if (err == -FI_EFAULT || err == -FI_EACCES || err == -FI_EPERM) {
		MRRC_WARN(MR,
			  "%zu bytes at %p cannot be registered: the memory "
			  "is not mapped, or not %s\n",
			  iov->iov_len, iov->iov_base,
			  access == MRRC_RW ? "writable" : "readable");
		return;
	}
	mrrc_cache_mt_stats(domain->reg.cache, &stats);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	MRRC_WARN(MR,
		  "the core provider cannot register %zu bytes at %p: %s; "
		  "%" PRIu64 " bytes in %" PRIu64 " regions are registered, "
		  "RLIMIT_MEMLOCK is %" PRIu64 " bytes: raise it (ulimit -l), "
		  "or the device's limit of regions is reached\n",
		  iov->iov_len, iov->iov_base, fi_strerror(-err),
		  stats.value[MRRC_STAT_PINNED], stats.value[MRRC_STAT_REGIONS],
		  (uint64_t) limit.rlim_cur);
}

static inline int resolve_pieces(struct mrrc_op *op, const struct iovec *iov,
				 enum mrrc_access access, unsigned pieces,
				 struct mrrc_plan *plan)
{
	struct mrrc_reg *reg = &op->domain->reg;

	if (mrrc_unlikely(reg->traced))
		return mrrc_record_get(reg, &op->trace, iov, access, pieces,
				       plan, NULL, NULL);
	return mrrc_cache_mt_get_pieces(reg->cache, iov->iov_base, iov->iov_len,
					access, pieces, plan);
}

static inline int resolve_or_copy(struct mrrc_op *op, const struct iovec *iov,
				  enum mrrc_access access, unsigned pieces,
				  struct mrrc_plan *plan, bool *copy)
{
	struct mrrc_domain *domain = op->domain;

	if (mrrc_unlikely(domain->reg.traced))
		return mrrc_record_get(&domain->reg, &op->trace, iov, access,
				       pieces, plan, &domain->admit, copy);
	return mrrc_cache_mt_get_or_copy(domain->reg.cache, &domain->admit,
					 iov->iov_base, iov->iov_len, access,
					 pieces, plan, copy);
}

static int resolve_get(struct mrrc_op *op, const struct iovec *iov,
		       enum mrrc_access access, void **core_desc)
{
	struct mrrc_region *region;
	int ret;

	if (mrrc_alloc_desc(&op->domain->reg, iov->iov_base, iov->iov_len,
			    core_desc))
		return 0;
	ret = mrrc_record_get_one(&op->domain->reg, &op->trace, iov, access,
				  &region);
	if (mrrc_unlikely(ret))
		return ret;
	ret = mrrc_op_hold(op, region);
	if (mrrc_unlikely(ret)) {
		mrrc_cache_mt_put(op->domain->reg.cache, region);
		return ret;
	}
	*core_desc = region->desc;
	return 0;
}

static void bufs_add(struct mrrc_bufs *core, void *base, size_t len, void *desc)
{
	core->iov[core->count] = (struct iovec){ base, len };
	core->desc[core->count++] = desc;
}

int mrrc_resolve_plan(struct mrrc_op *op, const struct iovec *iov,
		      const struct mrrc_plan *plan, struct mrrc_bufs *core)
{
	const uintptr_t lo = (uintptr_t) iov->iov_base;
	const uintptr_t hi = lo + iov->iov_len;
	const struct mrrc_piece *piece;
	uintptr_t start, end;
	unsigned i;
	int ret;

	for (i = 0; i < plan->count; i++) {
		piece = &plan->piece[i];
		ret = mrrc_op_hold(op, piece->region);
		if (mrrc_unlikely(ret))
			goto err_put;
		start = piece->start > lo ? piece->start : lo;
		end = piece->start + piece->len;
		if (end > hi)
			end = hi;
		bufs_add(core, (void *) start, end - start,
			 piece->region->desc);
	}
	return 0;

err_put:
	for (; i < plan->count; i++)
		mrrc_cache_mt_put(op->domain->reg.cache, plan->piece[i].region);
	return ret;
}

/* Replaces the buffer by a block. On an error the buffer is unchanged. */
static int resolve_block(struct mrrc_op *op, const struct iovec *iov,
			 size_t offset, enum mrrc_access access,
			 struct mrrc_bufs *core)
{
	void *base, *desc;
	int ret;

	ret = mrrc_bounce_block(op, iov, offset, access, &base, &desc);
	if (!ret)
		bufs_add(core, base, iov->iov_len, desc);
	return ret;
}

/*
 * Does this error show a limit of the core or the system, not a property of the
 * memory?
 */
static bool resolve_limited(int ret)
{
	return ret && ret != -FI_EFAULT && ret != -FI_EACCES &&
	       ret != -FI_EINVAL;
}

/*
 * Resolves a buffer in at most @pieces pieces, or by a copy, if that is cheaper
 * or registering fails.
 */
static int resolve_one(struct mrrc_op *op, const struct iovec *iov,
		       size_t offset, enum mrrc_access access, unsigned pieces,
		       struct mrrc_bufs *core)
{
	struct mrrc_domain *domain = op->domain;
	const bool small = iov->iov_len <= domain->bounce_max &&
			   mrrc_bounce_allowed(op, access);
	struct iovec copy = *iov;
	struct mrrc_plan plan;
	bool cheaper = false;
	void *desc;
	int ret = 0;

	if (!iov->iov_len) {
		bufs_add(core, iov->iov_base, 0, NULL);
		return 0;
	}
	/* preregistered memory is not held: its owner frees it after use */
	if (mrrc_alloc_desc(&op->domain->reg, iov->iov_base, iov->iov_len,
			    &desc)) {
		bufs_add(core, iov->iov_base, iov->iov_len, desc);
		return 0;
	}
	if (small)
		ret = resolve_or_copy(op, iov, access, pieces, &plan, &cheaper);
	if (cheaper && !resolve_block(op, iov, offset, access, core))
		return 0;
	if (!small || cheaper)
		ret = resolve_pieces(op, iov, access, pieces, &plan);
	if (mrrc_unlikely(resolve_limited(ret)) && small &&
	    !resolve_block(op, iov, offset, access, core))
		return 0;
	if (mrrc_unlikely((ret == -FI_EFAULT || ret == -FI_EACCES ||
			   ret == -FI_EPERM) &&
			  access == MRRC_RO) &&
	    !mrrc_bounce_out(op, &copy))
		ret = resolve_pieces(op, &copy, access, pieces, &plan);
	if (mrrc_unlikely(ret)) {
		resolve_warn(op->domain, iov, access, ret);
		return ret;
	}
	return mrrc_resolve_plan(op, &copy, &plan, core);
}

int mrrc_resolve_nothing(struct mrrc_op *op, void **core_desc)
{
	struct iovec iov = { &op->domain->nothing, 1 };

	return resolve_get(op, &iov, MRRC_RW, core_desc);
}

int mrrc_resolve(struct mrrc_op *op, const struct iovec *iov, void *const *desc,
		 size_t count, size_t limit, enum mrrc_access access,
		 struct mrrc_bufs *core, bool *any)
{
	unsigned pieces;
	void *some = NULL;
	size_t offset = 0, i;
	int ret;

	if (limit < count)
		limit = count;
	core->count = 0;
	if (mrrc_unlikely(!op->domain->implicit)) {
		for (i = 0; i < count; i++)
			bufs_add(core, iov[i].iov_base, iov[i].iov_len,
				 desc ? desc[i] : NULL);
		mrrc_op_room(op, iov, count);
		return 0;
	}
	for (i = 0; i < count; offset += iov[i++].iov_len) {
		if (desc && desc[i]) {
			bufs_add(core, iov[i].iov_base, iov[i].iov_len,
				 desc[i]);
			continue;
		}
		/* the pieces that the remaining buffers leave */
		pieces = limit - (count - 1 - i) - core->count;
		ret = resolve_one(op, &iov[i], offset, access, pieces, core);
		if (ret)
			return ret;
	}
	op->rx_len = offset;
	for (i = 0; i < core->count && !some; i++)
		some = core->desc[i];
	if (mrrc_unlikely(!some) && count && op->ep->desc_always) {
		ret = mrrc_resolve_nothing(op, &some);
		if (ret)
			return ret;
	}
	for (i = 0; i < core->count && some; i++) {
		if (!core->desc[i])
			core->desc[i] = some;
	}
	*any = some;
	return 0;
}

static size_t datatype_size(enum fi_datatype datatype)
{
	static const uint8_t size[] = {
		[FI_INT8] = 1,
		[FI_UINT8] = 1,
		[FI_INT16] = 2,
		[FI_UINT16] = 2,
		[FI_INT32] = 4,
		[FI_UINT32] = 4,
		[FI_INT64] = 8,
		[FI_UINT64] = 8,
		[FI_FLOAT] = sizeof(float),
		[FI_DOUBLE] = sizeof(double),
		[FI_FLOAT_COMPLEX] = sizeof(float complex),
		[FI_DOUBLE_COMPLEX] = sizeof(double complex),
		[FI_LONG_DOUBLE] = sizeof(long double),
		[FI_LONG_DOUBLE_COMPLEX] = sizeof(long double complex),
		[FI_INT128] = 16,
		[FI_UINT128] = 16,
#if FI_MAJOR_VERSION >= 2
		[FI_FLOAT16] = 2,
		[FI_BFLOAT16] = 2,
		[FI_FLOAT8_E4M3] = 1,
		[FI_FLOAT8_E5M2] = 1,
#endif
	};

	return (size_t) datatype < sizeof(size) ? size[datatype] : 0;
}

int mrrc_resolve_ioc(struct mrrc_op *op, const struct fi_ioc *ioc,
		     void *const *desc, size_t count, enum fi_datatype datatype,
		     enum mrrc_access access, void **core_desc)
{
	size_t size = datatype_size(datatype), i;
	struct iovec iov;
	int ret;

	for (i = 0; i < count; i++) {
		if (desc && desc[i]) {
			core_desc[i] = desc[i];
			continue;
		}
		if (!size) /* a datatype that only the core may know */
			return -FI_EOPNOTSUPP;
		iov.iov_base = ioc[i].addr;
		if (__builtin_mul_overflow(ioc[i].count, size, &iov.iov_len))
			return -FI_EINVAL;
		core_desc[i] = NULL;
		if (!iov.iov_len)
			continue;
		ret = resolve_get(op, &iov, access, &core_desc[i]);
		if (ret) {
			resolve_warn(op->domain, &iov, access, ret);
			return ret;
		}
	}
	return 0;
}

/* Some cores read each descriptor of an array, and none without an array. */
static bool desc_full(void *const *desc, size_t count)
{
	while (count && desc[count - 1])
		count--;
	return !count;
}

bool mrrc_copied(const struct mrrc_ep *ep, const struct iovec *iov,
		 void *const *desc, size_t count, const void *context,
		 size_t most, uint64_t *flags)
{
	const struct mrrc_ep_dir *dir = &ep->tx;
	const bool seen = dir->cq && !dir->cq->internal &&
			  (!dir->selective || *flags & FI_COMPLETION);
	const bool injects =
		!(*flags & (FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE |
			    FI_MATCH_COMPLETE));
	size_t len = 0, i;

	if ((uintptr_t) context - dir->ops_base < dir->ops_len)
		return false;
	/* buffers with descriptors may be device memory */
	if (mrrc_any_desc(ep, desc, count))
		return (*flags & FI_INJECT) && desc_full(desc, count);
	if (*flags & FI_INJECT)
		return true;
	/*
	 * operations that the application does not see need a record: the
	 * provider reads their CQ, since the core needs progress
	 */
	if (!seen) {
		/*
		 * ofi_rxm passes a write with FI_INJECT and without
		 * FI_COMPLETION to fi_inject_write() of its core, whose
		 * inject_size may be less than ofi_rxm's: such a write would
		 * return -FI_EAGAIN for ever
		 */
		if (!most && ep->desc_always)
			return false;
		most = 0;
	}
	/* forced registration is for tests, which must see it */
	if (!ep->domain->core_local || (!injects && !most) ||
	    *flags & FI_TRIGGER)
		return false;
	if (injects && most < ep->inject_size)
		most = ep->inject_size;
	for (i = 0; i < count; i++) {
		if (iov[i].iov_len > most - len)
			return false;
		len += iov[i].iov_len;
	}
	if (injects && len <= ep->inject_size)
		*flags |= FI_INJECT;
	return true;
}
