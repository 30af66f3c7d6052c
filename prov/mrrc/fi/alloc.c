/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mr_alloc(3): the domain's own heaps, made as they are asked for.
 */
#include "config.h"

#include "alloc_priv.h"
#include "hook.h"
#include "sys/heap_fast.h"
#include "sys/vm.h"

#define ALLOC_ACCESS	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
			 FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ALLOC_FLAGS	(FI_MR_ALLOC_ISOLATED | FI_MR_ALLOC_ZERO | \
			 MRRC_ALLOC_PAGE_FLAGS)

struct mrrc_reg *mrrc_alloc_reg(struct fid_domain *domain)
{
	if (domain->fid.ops == &mrrc_domain_fid_ops.ops)
		return &mrrc_domain_of(domain)->reg;
	return mrrc_hook_domain_reg(domain);
}

/* ---- the domain's allocator ---------------------------------------------- */

/* Registrations are made in advance, and have one key: can they be? */
static bool alloc_possible(const struct mrrc_reg *reg)
{
	return !(reg->mr_mode & (FI_MR_ENDPOINT | FI_MR_RAW));
}

static size_t alloc_limit(void)
{
	size_t limit = mrrc_vm_memory() / 2, locked = mrrc_vm_memlock();

	if (mrrc_params.alloc_max_size != SIZE_MAX)
		return mrrc_params.alloc_max_size;
	if (locked != MRRC_VM_UNLIMITED && locked / 4 * 3 < limit)
		limit = locked / 4 * 3;
	return limit;
}

int mrrc_alloc_open(struct mrrc_reg *reg, struct mrrc_alloc **out)
{
	struct mrrc_alloc *alloc = atomic_load(&reg->alloc), *fresh;
	int ret;

	if (!alloc) {
		if (!alloc_possible(reg))
			return -FI_EOPNOTSUPP;
		fresh = calloc(1, sizeof(*fresh));
		if (!fresh)
			return -FI_ENOMEM;
		fresh->reg = reg;
		ret = mrrc_heaps_open(&mrrc_alloc_heap_ops, fresh,
				      alloc_limit(), &fresh->heaps);
		if (ret) {
			free(fresh);
			return ret;
		}
		if (atomic_compare_exchange_strong(&reg->alloc, &alloc,
						   fresh)) {
			alloc = fresh;
		} else {
			mrrc_heaps_close(fresh->heaps);
			free(fresh);
		}
	}
	*out = alloc;
	return 0;
}

bool mrrc_alloc_busy(struct mrrc_reg *reg)
{
	struct mrrc_alloc *alloc = atomic_load(&reg->alloc);

	return alloc && atomic_load(&alloc->open) &&
	       !mrrc_heaps_forked(alloc->heaps);
}

void mrrc_alloc_close(struct mrrc_reg *reg)
{
	struct mrrc_alloc *alloc = atomic_exchange(&reg->alloc, NULL);

	if (!alloc)
		return;
	mrrc_heaps_close(alloc->heaps);
	free(alloc);
}

int mrrc_alloc_feature(const struct mrrc_reg *reg, const char *name)
{
	return (!strcmp(name, "alloc") || !strcmp(name, "heap")) &&
	       alloc_possible(reg);
}

bool mrrc_alloc_desc(const struct mrrc_reg *reg, const void *addr, size_t len,
		     void **desc)
{
	struct mrrc_alloc *alloc =
		atomic_load_explicit(&reg->alloc, memory_order_acquire);
	struct mrrc_alloc_mr *mr;

	if (!alloc)
		return false;
	mr = mrrc_heap_cookie(alloc->heaps, addr, len);
	if (!mr)
		return false;
	*desc = mr->mr.mr.mem_desc;
	return true;
}

/* ---- attributes ---------------------------------------------------------- */

bool mrrc_alloc_access(uint64_t access, enum mrrc_access *rights)
{
	unsigned bits = MRRC_RW;

	if (access & ~ALLOC_ACCESS)
		return false;
	if (access & FI_REMOTE_READ)
		bits |= MRRC_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		bits |= MRRC_REMOTE_WRITE;
	*rights = bits;
	return true;
}

int mrrc_alloc_pages(uint64_t flags, enum mrrc_pages *pages)
{
	switch (flags & MRRC_ALLOC_PAGE_FLAGS) {
	case 0:
		*pages = mrrc_params.alloc_pages;
		return 0;
	case FI_MR_ALLOC_4K:
		*pages = MRRC_PAGES_4K;
		return 0;
	case FI_MR_ALLOC_THP:
		*pages = MRRC_PAGES_THP;
		return 0;
	case FI_MR_ALLOC_2M:
		*pages = MRRC_PAGES_2M;
		return 0;
	case FI_MR_ALLOC_1G:
		*pages = MRRC_PAGES_1G;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

/* ---- calls --------------------------------------------------------------- */

/* The heap for some rights and pages; the first to ask makes it. */
static int alloc_own_heap(struct mrrc_reg *reg, enum mrrc_access rights,
			  enum mrrc_pages pages, struct mrrc_heap **out)
{
	const struct mrrc_heap_attr attr = {
		.access = rights,
		.pages = pages,
		.node = -1,
		.idle_ms = mrrc_params.alloc_idle,
	};
	struct mrrc_heap *_Atomic *at;
	struct mrrc_heap *heap, *fresh;
	struct mrrc_alloc *alloc;
	int ret;

	ret = mrrc_alloc_open(reg, &alloc);
	if (ret)
		return ret;
	at = &alloc->heap[rights / MRRC_REMOTE_READ][pages];
	heap = atomic_load(at);
	if (!heap) {
		ret = mrrc_heap_open(alloc->heaps, &attr, &fresh);
		if (ret)
			return ret;
		if (atomic_compare_exchange_strong(at, &heap, fresh))
			heap = fresh;
		else
			mrrc_heap_close(fresh);
	}
	if (pages == mrrc_params.alloc_pages)
		atomic_store(&alloc->usual[rights / MRRC_REMOTE_READ], heap);
	*out = heap;
	return 0;
}

static int alloc_slow(struct mrrc_reg *reg, size_t align, size_t len,
		      uint64_t access, uint64_t flags, void **buf,
		      struct fid_mr **mr)
{
	enum mrrc_access rights;
	enum mrrc_pages pages;
	struct mrrc_heap *heap;
	void *addr, *cookie;
	int ret;

	if (!reg || (flags & ~ALLOC_FLAGS) ||
	    !mrrc_alloc_access(access, &rights))
		return -FI_EINVAL;
	ret = mrrc_alloc_pages(flags, &pages);
	if (!ret)
		ret = alloc_own_heap(reg, rights, pages, &heap);
	if (!ret)
		ret = mrrc_heap_alloc(heap, align, len,
				      mrrc_alloc_flags(flags), &addr, &cookie);
	if (ret)
		return ret;
	*buf = addr;
	if (mr)
		*mr = cookie;
	return 0;
}

static int alloc_alloc(struct fid_domain *domain, size_t align, size_t len,
		       uint64_t access, uint64_t flags, void **buf,
		       struct fid_mr **mr)
{
	return alloc_slow(mrrc_alloc_reg(domain), align, len, access, flags,
			  buf, mr);
}

static int alloc_free(struct fid_domain *domain, void *buf)
{
	struct mrrc_reg *reg = mrrc_alloc_reg(domain);
	struct mrrc_alloc *alloc;
	int ret;

	if (!reg)
		return -FI_EINVAL;
	if (!buf)
		return 0;
	/* if nothing was allocated: to say whose it is not */
	ret = mrrc_alloc_open(reg, &alloc);
	if (ret)
		return ret;
	ret = mrrc_heap_free(alloc->heaps, buf);
	return ret == -EDOM ? -FI_EDOMAIN : ret;
}

/*
 * By way of the domain's own table (struct fi_mrrc_tail), so that there is no
 * doubt whose domain it is. What is unusual goes the other way.
 */
static int alloc_fast(struct fid_domain *domain, size_t align, size_t len,
		      uint64_t access, uint64_t flags, void **buf,
		      struct fid_mr **mr)
{
	struct mrrc_alloc *alloc =
		atomic_load_explicit(&mrrc_domain_of(domain)->reg.alloc,
				     memory_order_acquire);
	const unsigned rights = access / FI_REMOTE_READ % MRRC_ALLOC_RIGHTS;
	struct mrrc_heap *heap;
	void *cookie;

	_Static_assert(FI_REMOTE_WRITE == 2 * FI_REMOTE_READ,
		       "two bits side by side");
	if (!mrrc_likely(alloc && !(flags | (access & ~ALLOC_ACCESS))))
		goto other;
	heap = atomic_load_explicit(&alloc->usual[rights],
				    memory_order_acquire);
	if (!mrrc_likely(heap && mrrc_heap_alloc_try(heap, align, len, buf,
						     &cookie)))
		goto other;
	if (mr)
		*mr = cookie;
	return 0;
other:
	return alloc_alloc(domain, align, len, access, flags, buf, mr);
}

static int free_fast(struct fid_domain *domain, void *buf)
{
	struct mrrc_alloc *alloc =
		atomic_load_explicit(&mrrc_domain_of(domain)->reg.alloc,
				     memory_order_acquire);
	int ret;

	if (mrrc_likely(alloc && mrrc_heap_free_try(alloc->heaps, buf, &ret)))
		return ret;
	return alloc_free(domain, buf);
}

static uint64_t alloc_raddr(const struct mrrc_reg *reg,
			    const struct mrrc_heap_place *place)
{
	return reg->mr_mode & FI_MR_VIRT_ADDR ? place->base :
						place->base - place->block;
}

static int alloc_query(struct fid_domain *domain, const void *addr,
		       struct fi_mr_query_attr *attr)
{
	struct mrrc_reg *reg = mrrc_alloc_reg(domain);
	struct mrrc_heap_place place;
	struct fi_mr_query_attr full;
	enum mrrc_access access;
	struct mrrc_alloc *alloc;
	struct fid_mr *mr;

	if (!reg || !attr || attr->size <= sizeof(attr->size))
		return -FI_EINVAL;
	alloc = atomic_load(&reg->alloc);
	if (!alloc || mrrc_heap_query(alloc->heaps, (uintptr_t) addr, &place))
		return -FI_ENOENT;
	mr = place.cookie;
	access = mrrc_heap_attr(place.heap)->access;
	full = (struct fi_mr_query_attr) {
		.size = attr->size < sizeof(full) ? attr->size : sizeof(full),
		.base = (void *) place.base,
		.len = place.len,
		.mr = mr,
		.desc = fi_mr_desc(mr),
		.key = fi_mr_key(mr),
		.raddr = alloc_raddr(reg, &place),
		.block_base = (void *) place.block,
		.block_len = place.block_len,
		.access = ((access & MRRC_REMOTE_READ) ? FI_REMOTE_READ : 0) |
			  ((access & MRRC_REMOTE_WRITE) ? FI_REMOTE_WRITE : 0),
		.page_size = mrrc_pages_size(place.pages),
	};
	memcpy(attr, &full, full.size);
	return 0;
}

static int alloc_trim(struct fid_domain *domain)
{
	struct mrrc_reg *reg = mrrc_alloc_reg(domain);
	struct mrrc_alloc *alloc;

	if (!reg)
		return -FI_EINVAL;
	alloc = atomic_load(&reg->alloc);
	if (alloc)
		mrrc_heaps_trim(alloc->heaps);
	return 0;
}

int mrrc_alloc_stats_out(const struct mrrc_heap_stats *from,
			 struct fi_mr_heap_stats *stats)
{
	struct fi_mr_heap_stats full = {
		.allocs = from->allocs,
		.frees = from->frees,
		.live = from->live,
		.live_bytes = from->live_bytes,
		.kept_bytes = from->kept_bytes,
		.blocks = from->blocks,
		.bytes = from->bytes,
		.bytes_peak = from->bytes_peak,
		.idle_blocks = from->idle_blocks,
		.idle_bytes = from->idle_bytes,
		.limit = from->limit,
		.registrations = from->regs,
		.deregistrations = from->deregs,
		.registration_failures = from->reg_fails,
		.huge_bytes = from->huge_bytes,
		.thp_bytes = from->thp_bytes,
		.mistakes = from->mistakes,
	};

	if (!stats || stats->size <= sizeof(stats->size))
		return -FI_EINVAL;
	full.size = stats->size < sizeof(full) ? stats->size : sizeof(full);
	memcpy(stats, &full, full.size);
	return 0;
}

static int alloc_stats(struct fid_domain *domain,
		       struct fi_mr_heap_stats *stats)
{
	struct mrrc_reg *reg = mrrc_alloc_reg(domain);
	struct mrrc_heap_stats sum = { 0 };
	struct mrrc_alloc *alloc;

	if (!reg)
		return -FI_EINVAL;
	alloc = atomic_load(&reg->alloc);
	if (alloc)
		mrrc_heaps_stats(alloc->heaps, &sum);
	else
		sum.limit = alloc_limit();
	return mrrc_alloc_stats_out(&sum, stats);
}

#define ALLOC_OPS(alloc_call, free_call)				\
	{								\
		.size = sizeof(struct fi_mrrc_ops_alloc),		\
		.alloc = alloc_call,					\
		.free = free_call,					\
		.query = alloc_query,					\
		.trim = alloc_trim,					\
		.stats = alloc_stats,					\
		.heap_open = mrrc_alloc_heap_open,			\
	}

struct fi_mrrc_ops_alloc mrrc_alloc_ops = ALLOC_OPS(alloc_alloc, alloc_free);
struct fi_mrrc_ops_alloc mrrc_alloc_fast_ops = ALLOC_OPS(alloc_fast,
							 free_fast);
