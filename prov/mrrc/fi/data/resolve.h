/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Resolves an application's buffers to the core's descriptors. */
#ifndef MRRC_RESOLVE_H
#define MRRC_RESOLVE_H

#include "fi/alloc/alloc.h"
#include "fi/data/op.h"
#include "fi/record/record.h"

/*
 * Can the call go to the core as it is? A call can if it has a descriptor, and
 * a context that cannot be taken for a record: this is the hit path of
 * applications that give descriptors.
 */
static inline bool mrrc_given(const struct mrrc_ep_dir *dir, const void *desc,
			      const void *context)
{
	return desc && (uintptr_t) context - dir->ops_base >= dir->ops_len;
}

/* mrrc_given() for an array of buffers. */
static inline bool mrrc_given_iov(const struct mrrc_ep_dir *dir,
				  void *const *desc, size_t count,
				  const void *context)
{
	size_t i;

	if ((uintptr_t) context - dir->ops_base < dir->ops_len)
		return false;
	if (!count)
		return true;
	if (!desc)
		return false;
	for (i = 0; i < count; i++) {
		if (!desc[i])
			return false;
	}
	return true;
}

/* The buffers that the core gets in place of an application's. */
struct mrrc_bufs {
	struct iovec iov[MRRC_IOV_MAX];
	void *desc[MRRC_IOV_MAX];
	size_t count;
};

/*
 * The shortest path for one buffer of a call without flags, which most calls
 * take: a transmission that completes by default, from or to a region that this
 * thread used before. Returns a record that holds the region, or NULL: take the
 * general path. The form without @calls, which is to be tried first, calls no
 * function and hence saves no register: this form returns NULL where the kernel
 * has to be asked, or a record fetched.
 */
static inline __attribute__((always_inline)) struct mrrc_op *
mrrc_resolve_known(struct mrrc_ep *ep, const struct mrrc_least *least,
		   const void *buf, size_t len, enum mrrc_access access,
		   void *context, void **core_desc, bool calls)
{
	struct mrrc_domain *domain = ep->domain;
	struct mrrc_cache_mt *cache = domain->reg.cache;
	struct mrrc_hints *hints = mrrc_cache_hit_table(cache);
	struct mrrc_region *region;
	uint32_t flags = 0;
	struct mrrc_op *op;

	if (len < (calls ? least->known : least->quick) ||
	    mrrc_unlikely(!hints))
		return NULL;
	op = calls ? NULL : mrrc_hints_spare(hints);
	if (!calls && mrrc_unlikely(!op))
		return NULL;
	region = mrrc_cache_hit(cache, hints, (uintptr_t) buf, len, access,
				calls);
	if (mrrc_unlikely(!region))
		return NULL;
	if (calls)
		op = mrrc_op_alloc(domain, hints);
	else
		mrrc_hints_take_spare(hints);
	if (calls && mrrc_unlikely(!op)) {
		mrrc_cache_mt_put(cache, region);
		return NULL;
	}
	if (calls && mrrc_unlikely(domain->reg.traced)) {
		mrrc_record_hit(&domain->reg, &op->trace, buf, len, access);
		flags = MRRC_OP_GENERAL;
	}
	mrrc_op_start(op, ep, ep->tx.cq, &ep->tx.cq->posts, context, flags);
	op->region[0] = region;
	*core_desc = region->desc;
	return op;
}

/*
 * Is the buffer in fi_mr_alloc() memory of this domain? If so, the call can go
 * to the core with the descriptor of that memory. Nothing has to be held, since
 * the application frees the memory only after use.
 */
static inline bool mrrc_resolve_born(const struct mrrc_ep *ep,
				     const struct mrrc_ep_dir *dir,
				     const void *buf, size_t len,
				     const void *context, void **core_desc)
{
	const struct mrrc_reg *reg = &ep->domain->reg;

	return atomic_load_explicit(&reg->alloc, memory_order_relaxed) &&
	       (uintptr_t) context - dir->ops_base >= dir->ops_len &&
	       mrrc_alloc_desc(reg, buf, len, core_desc);
}

/*
 * Resolves a buffer to the regions of a plan, which are held, and its part in
 * each region.
 */
int mrrc_resolve_plan(struct mrrc_op *op, const struct iovec *iov,
		      const struct mrrc_plan *plan, struct mrrc_bufs *core);

/* A source that is not memory, resolved in place of buffers: a part of a file.
 */
struct mrrc_source {
	int (*resolve)(const struct mrrc_source *source, struct mrrc_op *op,
		       size_t limit, struct mrrc_bufs *core);
};

/* Any valid descriptor, for buffers that are not used. */
int mrrc_resolve_nothing(struct mrrc_op *op, void **core_desc);

/*
 * Gets descriptors for count buffers: those given in desc (which may be NULL,
 * or have NULL entries), or those of regions that op holds from now on. A
 * buffer in several regions becomes several buffers, as long as there are at
 * most limit buffers in all. Sources that cannot be registered, and small
 * buffers for which copying is cheaper, are replaced by copies. On error the
 * caller still has to end op (mrrc_op_posted()). Empty buffers get a
 * neighbour's descriptor: verbs reads every descriptor that it is given. *any:
 * is there a descriptor? The answer is always yes if the core needs
 * descriptors. A domain that resolves nothing passes buffers as they are, and
 * sets no *any.
 */
int mrrc_resolve(struct mrrc_op *op, const struct iovec *iov, void *const *desc,
		 size_t count, size_t limit, enum mrrc_access access,
		 struct mrrc_bufs *core, bool *any);

/* mrrc_resolve() for atomics, whose buffers count elements of datatype. */
int mrrc_resolve_ioc(struct mrrc_op *op, const struct fi_ioc *ioc,
		     void *const *desc, size_t count, enum fi_datatype datatype,
		     enum mrrc_access access, void **core_desc);

/*
 * Does a message that the core copies in the call need its descriptors? In
 * domains with FI_HMEM buffers with descriptors may be device memory.
 */
static inline bool mrrc_any_desc(const struct mrrc_ep *ep, void *const *desc,
				 size_t count)
{
	bool any = false;

	if (mrrc_unlikely(ep->domain->reg.hmem) && desc) {
		while (count)
			any = desc[--count] || any;
	}
	return any;
}

/*
 * Is the message so small that the core copies it in the call? If so, no buffer
 * needs a descriptor: the caller posts the message without descriptors, with
 * *flags and the application's own context. @most: the longest message that the
 * core copies without being asked.
 */
bool mrrc_copied(const struct mrrc_ep *ep, const struct iovec *iov,
		 void *const *desc, size_t count, const void *context,
		 size_t most, uint64_t *flags);

#endif /* MRRC_RESOLVE_H */
