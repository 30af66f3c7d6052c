/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Declarations that the files of fi_mr_alloc(3) share (alloc.h).
 */
#ifndef MRRC_ALLOC_PRIV_H
#define MRRC_ALLOC_PRIV_H

#include <rdma/fi_ext_mrrc.h>

#include "fi/alloc/alloc.h"
#include "fi/mrrc_fi.h"
#include "sys/node/budget.h"
#include "sys/heap/heap.h"

struct mrrc_alloc {
	struct mrrc_reg *reg;
	struct mrrc_heaps *heaps;
	struct mrrc_budget *budget;	  /* the node's; or NULL */
	struct mrrc_budget_keeper keeper; /* in the budget */
	bool process; /* allocations of process.c; its lock guards this */
	/* number of heaps that the application opened */
	atomic_int open;
	/* a bit for each event already logged */
	atomic_uint_fast32_t said;
	/* the domain's own heaps, made as needed */
	struct mrrc_heap *_Atomic heap[MRRC_ALLOC_RIGHTS][MRRC_PAGES_CNT];
};

/* A block's registration, as the application has it. */
struct mrrc_alloc_mr {
	struct mrrc_mr mr;
	void *start;
	size_t len;
	atomic_int
		/* slot in the domain's ring, from 1; 0: none; -1: refused */
		slot;
};

/* The domain's allocator, made at first use */
int mrrc_alloc_open(struct mrrc_reg *reg, struct mrrc_alloc **alloc);

/*
 * Does the work of mrrc_alloc_busy() for a domain that process.c does not use.
 * Abandons allocations of process.c.
 */
bool mrrc_alloc_has_live(struct mrrc_reg *reg);

/* 0 or -FI_E*, as fi_mr_free() */
int mrrc_alloc_free(struct mrrc_alloc *alloc, void *buf);

/* -FI_EBADFLAGS: more than one kind, or pages of another size */
int mrrc_alloc_pages(uint64_t flags, enum mrrc_pages *pages);
bool mrrc_alloc_access(uint64_t access, enum mrrc_access *rights);
int mrrc_alloc_stats_out(const struct mrrc_heap_stats *from,
			 struct fi_mr_heap_stats *stats);

/* mr.c */
void mrrc_alloc_keeper_init(struct mrrc_alloc *alloc);
extern const struct mrrc_heap_ops mrrc_alloc_heap_ops;

/* heap.c: heaps of the application */
int mrrc_alloc_heap_open(struct fid_domain *domain,
			 const struct fi_mr_heap_attr *attr,
			 struct fid_mr_heap **heap, void *context);

#define MRRC_ALLOC_PAGE_FLAGS \
	(FI_MR_ALLOC_BASE | FI_MR_ALLOC_THP | FI_MR_ALLOC_HUGE(63))

static inline unsigned mrrc_alloc_flags(uint64_t flags)
{
	_Static_assert(FI_MR_ALLOC_ISOLATED == MRRC_HEAP_ISOLATED &&
			       FI_MR_ALLOC_ZERO == MRRC_HEAP_ZERO,
		       "the same bits in sys");

	return flags & (FI_MR_ALLOC_ISOLATED | FI_MR_ALLOC_ZERO);
}

#endif /* MRRC_ALLOC_PRIV_H */
