/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The record of an operation that the provider changes. The record's address is
 * the context of the core's operation from posting until completion, cancel or
 * close.
 *
 * Life: mrrc_op_begin() -> resolve buffers -> posted. Exactly one thread claims
 * a posted record: the thread that reads its completion, under that CQ's lock,
 * or the thread that closes its endpoint (ep.c). The claiming thread then calls
 * mrrc_op_end() outside all locks, because ending may deregister.
 */
#ifndef MRRC_OP_H
#define MRRC_OP_H

#include "fi/mrrc_fi.h"
#include "sys/cache/cache_hit.h"

#define MRRC_OP_REGIONS 6  /* inline; more are allocated */
#define MRRC_IOV_MAX	64 /* entries of one operation, all arrays */
/* records of one domain in flight and spare (sys/cache/region_hints.h) */
#define MRRC_OPS_MAX (1U << 20)

/* an atomic that fetches and compares has three arrays */
_Static_assert(3ULL * MRRC_IOV_MAX * MRRC_OPS_MAX < MRRC_REGION_INDEX_BIT,
	       "all operations may hold the same region");

enum {
	MRRC_OP_SILENT = 1 << 0,    /* no completion is expected */
	MRRC_OP_PLAIN = 1 << 1,	    /* posted without FI_COMPLETION */
	MRRC_OP_MULTI = 1 << 2,	    /* FI_MULTI_RECV: several completions */
	MRRC_OP_CLAIMED = 1 << 3,   /* completed, or not in use */
	MRRC_OP_ZOMBIE = 1 << 4,    /* endpoint closed; see data/flush.c */
	MRRC_OP_RETRIED = 1 << 5,   /* room was made for it once */
	MRRC_OP_RX = 1 << 6,	    /* a receive */
	MRRC_OP_FULL = 1 << 7,	    /* MULTI, and FI_MULTI_RECV was seen */
	MRRC_OP_PEEK = 1 << 8,	    /* FI_PEEK | FI_CLAIM */
	MRRC_OP_FOUND = 1 << 9,	    /* a peek that found a message: op.c */
	MRRC_OP_RETRIEVE = 1 << 10, /* FI_CLAIM of that message */
	MRRC_OP_POSTING = 1 << 11,  /* MULTI: being posted; see op.c */
	MRRC_OP_OVER = 1 << 12,	    /* MULTI: ended while POSTING */
	/*
	 * the operation began in mrrc_op_begin(). Without any flag an operation
	 * is a transmission that is reported, with region[0] and nothing else.
	 */
	MRRC_OP_GENERAL = 1 << 13,
	MRRC_OP_REFUSED = 1 << 14, /* it was not posted, and ends */
};

struct mrrc_op {
	struct fi_context2 core_context; /* the core's; its address is ours */
	void *context;			 /* the application's */
	struct mrrc_ep *_Atomic ep;	 /* read by flushes of any endpoint */
	struct mrrc_domain *domain;
	struct mrrc_op *next; /* in the list of its claimer */
	/* CQ that reports the operation; NULL: posted to a shared context */
	struct mrrc_cq *cq;
	uint64_t seq; /* age in its CQ: smaller is older */
	/* in a free record: bounces and more are NULL, region_cnt is 1 */
	struct mrrc_block *bounces; /* copies instead of buffers */
	/* receive: number of bytes posted; SIZE_MAX: any length is possible */
	size_t rx_len;
	/* multi-receive buffers: see complete.c */
	uintptr_t multi_base;
	size_t multi_min, multi_done, multi_end;
	_Atomic uint32_t flags; /* once posted: under a CQ's lock */
	uint32_t region_cnt;
	uint32_t more_max;
	uint64_t trace; /* for mrrc_record_end(); 0: not recorded */
	struct mrrc_region *region[MRRC_OP_REGIONS];
	struct mrrc_region **more; /* in place of region; allocated */
};

static inline struct mrrc_op *mrrc_op_of(struct mrrc_domain *domain,
					 void *core_context)
{
	return mrrc_pool_owns(domain->ops, core_context) ? core_context : NULL;
}

/*
 * Begins a record for an operation in one direction of ep. flags: those of the
 * call. The caller adds FI_COMPLETION to the flags that it posts.
 */
int mrrc_op_begin(struct mrrc_ep *ep, struct mrrc_ep_dir *dir, uint64_t flags,
		  void *context, struct mrrc_op **op);

/*
 * Returns the calling thread's hints; NULL: the thread has no hints, for
 * example without a cache.
 */
static inline struct mrrc_hints *mrrc_op_hints(const struct mrrc_domain *domain)
{
	return mrrc_likely(domain->reg.cache != NULL) ?
		       mrrc_cache_hit_table(domain->reg.cache) :
		       NULL;
}

/*
 * Allocates a record; NULL: too many operations are in flight. hints: the
 * calling thread's, or NULL.
 */
static inline struct mrrc_op *mrrc_op_alloc(struct mrrc_domain *domain,
					    struct mrrc_hints *hints)
{
	struct mrrc_op *op =
		mrrc_likely(hints != NULL) ? mrrc_hints_spare(hints) : NULL;

	if (mrrc_likely(op != NULL)) {
		mrrc_hints_take_spare(hints);
		return op;
	}
	op = mrrc_pool_alloc(domain->ops);
	if (mrrc_likely(op != NULL)) {
		op->domain = domain;
		op->region_cnt = 1;
	}
	return op;
}

/*
 * Adds one to a counter that is written under a lock and read without a lock:
 * this takes one instruction, which does not lock the bus.
 */
static inline void mrrc_count_one(atomic_uint_fast64_t *counter)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__("addq $1, %0" : "+m"(*(uint64_t *) counter) : : "cc");
#else
	atomic_store_explicit(counter,
			      1 + atomic_load_explicit(counter,
						       memory_order_relaxed),
			      memory_order_relaxed);
#endif
}

/*
 * Returns the counter of the operations that a CQ reports; cq NULL: the counter
 * of operations that no CQ reports.
 */
static inline atomic_uint_fast64_t *mrrc_op_posts(struct mrrc_domain *domain,
						  struct mrrc_cq *cq)
{
	return cq ? &cq->posts : &domain->posts;
}

/* The last step of beginning a record: from now on flushes find it. */
static inline void mrrc_op_start(struct mrrc_op *op, struct mrrc_ep *ep,
				 struct mrrc_cq *cq,
				 atomic_uint_fast64_t *posts, void *context,
				 uint32_t op_flags)
{
	op->context = context;
	atomic_store_explicit(&op->ep, ep->base, memory_order_relaxed);
	op->cq = cq;
	op->seq = atomic_fetch_add_explicit(posts, 1, memory_order_relaxed);
	atomic_store_explicit(&op->flags, op_flags, memory_order_release);
}

/* The record no longer counts among its CQ's unsignalled operations. */
static inline void mrrc_op_retire_silent(struct mrrc_op *op)
{
	if (op->cq && (atomic_load_explicit(&op->flags, memory_order_relaxed) &
		       MRRC_OP_SILENT))
		atomic_fetch_sub_explicit(&op->cq->silent, 1,
					  memory_order_relaxed);
}

/*
 * Begins a record for FI_PEEK | FI_CLAIM, and for the FI_CLAIM that follows.
 * Cores keep the first call's context, or data in it, until the second call:
 * both calls get the same record, and the application's struct fi_context holds
 * the record's address. -FI_EINVAL: no message was found with this context.
 */
int mrrc_op_peek(struct mrrc_ep *ep, uint64_t flags, struct fi_context *context,
		 struct mrrc_op **op);
int mrrc_op_retrieve(struct mrrc_ep *ep, uint64_t flags,
		     const struct fi_context *context, struct mrrc_op **op);

/* Add a region that the operation holds. */
int mrrc_op_hold(struct mrrc_op *op, struct mrrc_region *region);

/*
 * Notes the length of the buffers posted for the operation: no received message
 * may be longer.
 */
static inline void mrrc_op_room(struct mrrc_op *op, const struct iovec *iov,
				size_t count)
{
	size_t i;

	op->rx_len = 0;
	for (i = 0; i < count; i++)
		op->rx_len += iov[i].iov_len;
}

/*
 * Ends the record of an operation that the core refused, and returns the core's
 * error.
 */
ssize_t mrrc_op_refused(struct mrrc_op *op, ssize_t ret);

/* Handles the result of posting to the core: an error ends the record. */
static inline ssize_t mrrc_op_posted(struct mrrc_op *op, ssize_t ret)
{
	return mrrc_unlikely(ret) ? mrrc_op_refused(op, ret) : 0;
}

/*
 * To be called after -FI_EAGAIN, once per operation: returns true if reading
 * unsignalled completions may have made room.
 */
bool mrrc_op_make_room(struct mrrc_op *op);

/*
 * Like mrrc_op_posted(), for a multi-receive buffer. @cq: the record's, or NULL
 * on a shared context, where the record may be another operation's by now.
 */
ssize_t mrrc_op_posted_multi(struct mrrc_op *op, struct mrrc_cq *cq,
			     ssize_t ret);

/* Put the regions and free the record. No lock held. */
void mrrc_op_end(struct mrrc_op *op);
void mrrc_op_end_list(struct mrrc_op *list);

/* Post to the core; on -FI_EAGAIN make room and try again, once. */
#define MRRC_OP_TRY(op, call)                                              \
	({                                                                 \
		ssize_t mrrc_ret;                                          \
		do {                                                       \
			mrrc_ret = (call);                                 \
		} while (mrrc_ret == -FI_EAGAIN && mrrc_op_make_room(op)); \
		mrrc_ret;                                                  \
	})
#define MRRC_OP_POST(op, call) mrrc_op_posted(op, MRRC_OP_TRY(op, call))

/*
 * Is the operation in flight, with nothing to do at its end but to put
 * region[0]?
 */
static inline bool mrrc_op_is_short(const struct mrrc_op *op)
{
	return !atomic_load_explicit(&op->flags, memory_order_acquire);
}

#endif /* MRRC_OP_H */
