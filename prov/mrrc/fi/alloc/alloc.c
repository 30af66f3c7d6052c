/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mr_alloc(3): the domain's heaps, made when first needed.
 */
#include "config.h"
#include <inttypes.h>
#include <unistd.h>

#include "fi/alloc/alloc_priv.h"
#include "fi/param.h"
#include "fi/sized.h"
#include "sys/heap/heap_fast.h"
#include "sys/base/vm.h"
#include "sys/heap/heap_mag.h"
#include "fi/init.h"
#include "fi/reg_budget.h"

#define ALLOC_ACCESS                                               \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | \
	 FI_REMOTE_WRITE)
#define ALLOC_FLAGS \
	(FI_MR_ALLOC_ISOLATED | FI_MR_ALLOC_ZERO | MRRC_ALLOC_PAGE_FLAGS)

static const struct fi_ops *alloc_own;

void mrrc_alloc_set_own(const struct fi_ops *ops)
{
	alloc_own = ops;
}

/* ---- the domain's allocator ---------------------------------------------- */

/* Can the core register blocks in advance, with one key each? */
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
		/* a child cannot use its parent's domain, now or later */
		if (!alloc_possible(reg) || reg->pid != getpid())
			return -FI_EOPNOTSUPP;
		fresh = calloc(1, sizeof(*fresh));
		if (!fresh)
			return -FI_ENOMEM;
		fresh->reg = reg;
		ret = mrrc_reg_join(false, &fresh->budget);
		if (ret)
			goto err_free;
		ret = mrrc_heaps_open(&mrrc_alloc_heap_ops, fresh,
				      alloc_limit(), &fresh->heaps);
		if (ret)
			goto err_leave;
		mrrc_alloc_keeper_init(fresh);
		if (atomic_compare_exchange_strong(&reg->alloc, &alloc,
						   fresh)) {
			alloc = fresh;
			if (alloc->budget)
				mrrc_budget_keep(alloc->budget, &alloc->keeper);
			atomic_store(&reg->alloc_heaps, alloc->heaps);
		} else {
			mrrc_heaps_close(fresh->heaps);
			mrrc_budget_leave(fresh->budget);
			free(fresh);
		}
	}
	*out = alloc;
	return 0;

err_leave:
	mrrc_budget_leave(fresh->budget);
err_free:
	free(fresh);
	return ret;
}

/* @end: closes or abandons the heaps */
static void alloc_end(struct mrrc_reg *reg, void (*end)(struct mrrc_heaps *))
{
	struct mrrc_alloc *alloc = atomic_exchange(&reg->alloc, NULL);
	unsigned i;

	if (!alloc)
		return;
	for (i = 0; i < MRRC_ALLOC_RIGHTS; i++)
		atomic_store(&reg->alloc_usual[i], NULL);
	atomic_store(&reg->alloc_heaps, NULL);
	/* a child leaves its parent's budget alone */
	if (alloc->budget && !mrrc_heaps_forked(alloc->heaps))
		mrrc_budget_keep_end(alloc->budget, &alloc->keeper);
	end(alloc->heaps);
	mrrc_budget_leave(alloc->budget);
	/* a child may still close heaps that its parent opened */
	if (!atomic_load(&alloc->open))
		free(alloc);
}

void mrrc_alloc_close(struct mrrc_reg *reg)
{
	alloc_end(reg, mrrc_heaps_close);
}

bool mrrc_alloc_has_live(struct mrrc_reg *reg)
{
	struct mrrc_alloc *alloc = atomic_load(&reg->alloc);
	struct mrrc_heap_stats stats;
	int open;

	if (!alloc || mrrc_heaps_forked(alloc->heaps))
		return false;
	open = atomic_load(&alloc->open);
	if (open) {
		MRRC_WARN(MR,
			  "the domain is not closed: heaps of fi_mr_heap are "
			  "open (%d): close them first\n",
			  open);
		return true;
	}
	mrrc_heaps_trim(alloc->heaps);
	/* idle blocks that another thread is deregistering still count */
	if (alloc->budget)
		mrrc_budget_keep_wait(alloc->budget);
	mrrc_heaps_stats(alloc->heaps, &stats);
	if (!stats.blocks)
		return false;
	if (alloc->process) {
		alloc_end(reg, mrrc_heaps_abandon);
		return false;
	}
	MRRC_WARN(MR,
		  "the domain is not closed: %" PRIu64 " allocations of "
		  "fi_mr_alloc, %" PRIu64 " bytes: free them first\n",
		  stats.live, stats.live_bytes);
	return true;
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
	case FI_MR_ALLOC_BASE:
		*pages = MRRC_PAGES_4K;
		return 0;
	case FI_MR_ALLOC_THP:
		*pages = MRRC_PAGES_THP;
		return 0;
	case FI_MR_ALLOC_HUGE(21):
		*pages = MRRC_PAGES_2M;
		return 0;
	case FI_MR_ALLOC_HUGE(30):
		*pages = MRRC_PAGES_1G;
		return 0;
	default:
		return -FI_EBADFLAGS;
	}
}

/* ---- calls --------------------------------------------------------------- */

/* The heap for these rights and pages, which the first caller makes. */
static int alloc_own_heap(struct mrrc_reg *reg, enum mrrc_access rights,
			  enum mrrc_pages pages, struct mrrc_heap **out)
{
	const struct mrrc_heap_attr attr = {
		.access = rights,
		.pages = pages,
		.populated = reg->mr_mode & FI_MR_ALLOCATED,
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
		atomic_store(&reg->alloc_usual[rights / MRRC_REMOTE_READ],
			     heap);
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

	if (!reg || !mrrc_alloc_access(access, &rights))
		return -FI_EINVAL;
	if (flags & ~ALLOC_FLAGS)
		return -FI_EBADFLAGS;
	ret = mrrc_alloc_pages(flags, &pages);
	if (!ret)
		ret = alloc_own_heap(reg, rights, pages, &heap);
	if (!ret)
		ret = mrrc_heap_alloc(heap, align, len, mrrc_alloc_flags(flags),
				      &addr, &cookie);
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
	return alloc_slow(mrrc_reg_of(domain), align, len, access, flags, buf,
			  mr);
}

int mrrc_alloc_take(struct mrrc_reg *reg, size_t align, size_t len, void **buf)
{
	return alloc_slow(reg, align, len, 0, 0, buf, NULL);
}

void mrrc_alloc_give(struct mrrc_reg *reg, void *buf)
{
	struct mrrc_alloc *alloc = atomic_load(&reg->alloc);

	if (alloc)
		mrrc_heap_free(alloc->heaps, buf);
}

int mrrc_alloc_free(struct mrrc_alloc *alloc, void *buf)
{
	int ret = buf ? mrrc_heap_free(alloc->heaps, buf) : 0;

	return ret == -EDOM ? -FI_EDOMAIN : ret;
}

static int alloc_free_any(struct fid_domain *domain, void *buf)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);
	struct mrrc_alloc *alloc;
	int ret;

	if (!reg)
		return -FI_EINVAL;
	if (!buf)
		return 0;
	/* opened even if nothing was allocated, to tell that buf is not ours */
	ret = mrrc_alloc_open(reg, &alloc);
	if (ret)
		return reg->pid != getpid() ? 0 : ret;
	return mrrc_alloc_free(alloc, buf);
}

/* A key that identifies an open domain together with valid access rights. */
static uintptr_t alloc_key(const struct fid_domain *domain, uint64_t access)
{
	_Static_assert(ALLOC_ACCESS / FI_REMOTE_READ == MRRC_ALLOC_RIGHTS - 1 &&
			       _Alignof(struct fid_domain) >= MRRC_ALLOC_RIGHTS,
		       "the rights are the lowest bits of a domain's address");
	return (uintptr_t) domain + access / FI_REMOTE_READ;
}

/*
 * Allocating and freeing spend most of their time on jumps, and on instructions
 * that wait for jumps. So the usual case of both calls runs straight on to the
 * return, and other cases continue in separate functions.
 */
static __attribute__((noinline)) struct fi_mr_place
alloc_place_slow(struct fid_domain *domain, size_t len, uint64_t access)
{
	struct mrrc_heap *heap = NULL;
	void *buf = NULL, *cookie = NULL;
	struct fid_mr *mr = NULL;
	int ret;

	if (domain->fid.ops == alloc_own && !(access & ~ALLOC_ACCESS))
		heap = atomic_load(
			&mrrc_domain_of(domain)
				 ->reg.alloc_usual[access / FI_REMOTE_READ]);
	if (heap) {
		ret = mrrc_heap_alloc(heap, 1, len, 0, &buf, &cookie);
		mr = cookie;
		mrrc_heap_usual(heap, alloc_key(domain, access));
	} else {
		ret = alloc_alloc(domain, 1, len, access, 0, &buf, &mr);
	}
	return (struct fi_mr_place){
		.addr = ret ? ret : (intptr_t) buf,
		.mr = mr,
	};
}

static struct fi_mr_place alloc_place(struct fid_domain *domain, size_t len,
				      uint64_t access)
{
	struct mrrc_heap_got got;

	if (!mrrc_likely(
		    !(access & ~ALLOC_ACCESS) &&
		    mrrc_heap_alloc_key(alloc_key(domain, access), len, &got)))
		return alloc_place_slow(domain, len, access);
	return (struct fi_mr_place){ got.object, got.cookie };
}

static __attribute__((noinline)) int alloc_free_slow(struct fid_domain *domain,
						     void *buf)
{
	return alloc_free_any(domain, buf);
}

static int alloc_free(struct fid_domain *domain, void *buf)
{
	struct mrrc_heaps *heaps;

	if (!mrrc_likely(domain->fid.ops == alloc_own))
		return alloc_free_slow(domain, buf);
	heaps = atomic_load_explicit(&mrrc_domain_of(domain)->reg.alloc_heaps,
				     memory_order_acquire);
	return mrrc_likely(mrrc_heap_free_try(heaps, buf)) ?
		       0 :
		       alloc_free_slow(domain, buf);
}

/* To be called between mrrc_heap_look() and mrrc_heap_looked(). */
static int alloc_describe(const struct mrrc_reg *reg, struct mrrc_alloc *alloc,
			  const void *addr, struct fi_mr_query_attr *full)
{
	struct mrrc_heap_place place;
	enum mrrc_access access;
	struct fid_mr *mr;

	if (mrrc_heap_query(alloc->heaps, (uintptr_t) addr, &place))
		return -FI_ENOENT;
	mr = place.cookie;
	access = mrrc_heap_attr(place.heap)->access;
	*full = (struct fi_mr_query_attr){
		.base = (void *) place.base,
		.len = place.len,
		.mr = mr,
		.desc = fi_mr_desc(mr),
		.key = fi_mr_key(mr),
		.raddr = mrrc_reg_remote(reg, (void *) place.base, place.block),
		.block_base = (void *) place.block,
		.block_len = place.block_len,
		.access = ((access & MRRC_REMOTE_READ) ? FI_REMOTE_READ : 0) |
			  ((access & MRRC_REMOTE_WRITE) ? FI_REMOTE_WRITE : 0),
		.page_size = mrrc_pages_size(place.pages),
	};
	return 0;
}

static int alloc_query(struct fid_domain *domain, const void *addr,
		       struct fi_mr_query_attr *attr)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);
	struct fi_mr_query_attr full;
	struct mrrc_tcache *look;
	struct mrrc_alloc *alloc;
	int ret;

	if (!reg)
		return -FI_EINVAL;
	alloc = atomic_load(&reg->alloc);
	if (!alloc)
		return -FI_ENOENT;
	look = mrrc_heap_look();
	ret = alloc_describe(reg, alloc, addr, &full);
	mrrc_heap_looked(look);
	if (ret)
		return ret;
	return mrrc_sized_out(attr, &full, sizeof(full));
}

static int alloc_trim(struct fid_domain *domain)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);
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

	return mrrc_sized_out(stats, &full, sizeof(full));
}

static int alloc_stats(struct fid_domain *domain,
		       struct fi_mr_heap_stats *stats)
{
	struct mrrc_reg *reg = mrrc_reg_of(domain);
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

static const struct fi_mrrc_ops_alloc alloc_ops = {
	.size = sizeof(struct fi_mrrc_ops_alloc),
	.alloc = alloc_alloc,
	.release = alloc_free,
	.query = alloc_query,
	.trim = alloc_trim,
	.stats = alloc_stats,
	.heap_open = mrrc_alloc_heap_open,
	.place = alloc_place,
};

const struct fi_mrrc_ops_alloc *const mrrc_alloc_ops = &alloc_ops;
