/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mr_heap(3): heaps that the application opens.
 */
#include "config.h"

#include "fi/alloc/alloc_priv.h"
#include "fi/fid.h"
#include "fi/init.h"
#include "fi/param.h"
#include "sys/heap/heap_fast.h"

#define HEAP_FLAGS \
	(FI_MR_ALLOC_ISOLATED | FI_MR_HEAP_PREFAULT | MRRC_ALLOC_PAGE_FLAGS)
#define HEAP_ALLOC (FI_MR_ALLOC_ISOLATED | FI_MR_ALLOC_ZERO)

struct mrrc_fi_heap {
	struct fid_mr_heap fid;
	struct mrrc_alloc *alloc;
	struct mrrc_heap *heap;
};

static struct mrrc_fi_heap *heap_of(struct fid_mr_heap *fid)
{
	return container_of(fid, struct mrrc_fi_heap, fid);
}

static int heap_close(struct fid *fid)
{
	struct mrrc_fi_heap *heap =
		container_of(fid, struct mrrc_fi_heap, fid.fid);

	mrrc_heap_close(heap->heap);
	atomic_fetch_sub(&heap->alloc->open, 1);
	free(heap);
	return 0;
}

static int heap_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int heap_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

static struct fi_ops heap_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = heap_close,
	.bind = heap_bind,
	.control = heap_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static int MRRC_UNGUARDED heap_alloc(struct fid_mr_heap *fid, size_t align,
				     size_t len, uint64_t flags, void **buf,
				     struct fid_mr **mr)
{
	void *cookie;
	int ret;

	if (mrrc_unlikely(flags & ~HEAP_ALLOC))
		return -FI_EBADFLAGS;
	ret = mrrc_heap_alloc(heap_of(fid)->heap, align, len,
			      mrrc_alloc_flags(flags), buf, &cookie);
	if (!ret && mr)
		*mr = cookie;
	return ret;
}

static int heap_release(struct fid_mr_heap *fid, void *buf)
{
	return mrrc_alloc_free(heap_of(fid)->alloc, buf);
}

static int heap_trim(struct fid_mr_heap *fid)
{
	mrrc_heap_trim(heap_of(fid)->heap);
	return 0;
}

static int heap_stats(struct fid_mr_heap *fid, struct fi_mr_heap_stats *stats)
{
	struct mrrc_heap_stats from;

	mrrc_heap_stats(heap_of(fid)->heap, &from);
	return mrrc_alloc_stats_out(&from, stats);
}

static const struct fi_ops_mr_heap heap_ops = {
	.size = sizeof(struct fi_ops_mr_heap),
	.alloc = heap_alloc,
	.release = heap_release,
	.trim = heap_trim,
	.stats = heap_stats,
};

/* A size beyond that of any header's struct: the caller did not set it. */
#define HEAP_ATTR_MAX 4096

/* Unknown properties must be 0. */
static bool heap_attr_known(const struct fi_mr_heap_attr *user)
{
	const char *byte = (const char *) user;
	size_t at;

	if (user->size <= sizeof(user->size) || user->size > HEAP_ATTR_MAX)
		return false;
	for (at = sizeof(*user); at < user->size; at++) {
		if (byte[at])
			return false;
	}
	return true;
}

/*
 * Copies the fields of attr that the caller's header has; the others are zero.
 */
static int heap_attr(const struct mrrc_reg *reg,
		     const struct fi_mr_heap_attr *user,
		     struct mrrc_heap_attr *attr)
{
	struct fi_mr_heap_attr full = { 0 };

	if (user) {
		if (!heap_attr_known(user))
			return -FI_EINVAL;
		memcpy(&full, user,
		       user->size < sizeof(full) ? user->size : sizeof(full));
	}
	if (full.flags & ~HEAP_FLAGS)
		return -FI_EBADFLAGS;
	if (full.numa_node < 0)
		return -FI_EINVAL;
	*attr = (struct mrrc_heap_attr){
		.prefault = full.flags & FI_MR_HEAP_PREFAULT,
		.populated = reg->mr_mode & FI_MR_ALLOCATED,
		.isolated = full.flags & FI_MR_ALLOC_ISOLATED,
		.node = full.numa_node - 1,
		.block_size = full.block_size,
		.max_bytes = full.max_bytes,
		.idle_ms = full.idle_ms ? full.idle_ms : mrrc_params.alloc_idle,
	};
	if (!mrrc_alloc_access(full.access, &attr->access))
		return -FI_EINVAL;
	return mrrc_alloc_pages(full.flags, &attr->pages);
}

int mrrc_alloc_heap_open(struct fid_domain *domain,
			 const struct fi_mr_heap_attr *user,
			 struct fid_mr_heap **fid, void *context)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);
	struct mrrc_heap_attr attr;
	struct mrrc_fi_heap *heap;
	int ret;

	if (!reg)
		return -FI_EINVAL;
	ret = heap_attr(reg, user, &attr);
	if (ret)
		return ret;
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return -FI_ENOMEM;
	ret = mrrc_alloc_open(reg, &heap->alloc);
	if (!ret)
		ret = mrrc_heap_open(heap->alloc->heaps, &attr, &heap->heap);
	if (ret) {
		free(heap);
		return ret;
	}
	atomic_fetch_add(&heap->alloc->open, 1);
	heap->fid.fid.fclass = FI_MRRC_CLASS_MR_HEAP;
	heap->fid.fid.context = context;
	heap->fid.fid.ops = &heap_fid_ops;
	heap->fid.ops = &heap_ops;
	*fid = &heap->fid;
	return 0;
}
