/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ofi_mrrc's extension to libfabric: fi_mrrc_stats_read(3).
 *
 * No function of this header needs linking: every call goes through
 * fi_open_ops(3), so a program built with this header also runs where the
 * provider is absent. Without the provider, calls return -FI_ENOSYS, or the
 * error of the provider in use. Inline functions that take a fid of libfabric
 * open the operations at each call; a program may open them once and keep them
 * as long as the object is open. Calls of conditional writes, heaps and files
 * go through the opened objects.
 *
 * How the interface grows: structures begin with their size. Structures of
 * messages have no size: new fields are read only with a new flag, and unknown
 * flags are refused. A table of operations and a structure that the provider
 * fills grow at their ends; FI_CHECK_OP tells whether a table has an operation,
 * and fi_mrrc_feature() whether the provider has a feature. An addition that is
 * not possible in this way gets a new name, "... v2", and providers go on
 * answering the old name. No flag or constant changes its value.
 */
#ifndef FI_EXT_MRRC_H
#define FI_EXT_MRRC_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header. fi_mrrc_feature() tells what the provider has. */
#define FI_MRRC_VERSION FI_VERSION(0, 1)

/* fid.fclass of objects for which libfabric has no class */
#define FI_MRRC_CLASS_MR_HEAP (0x33c << 16)
#define FI_MRRC_CLASS_FILE    ((0x33c << 16) + 1)

/*
 * Name for fi_open_ops() on a domain, which returns struct fi_mrrc_ops_domain.
 */
#define FI_MRRC_DOMAIN_OPS "ofi_mrrc domain ops v1"

/*
 * The counters of a domain that most programs watch, by the same names as for
 * fi_mrrc_counter_read(). The caller sets size to sizeof(struct fi_mrrc_stats);
 * newer providers fill no more bytes than size, older providers fill fewer
 * bytes and set size to the number of bytes filled.
 */
struct fi_mrrc_stats {
	size_t size;
	/* since the domain was opened */
	uint64_t lookups; /* buffers resolved without a descriptor */
	uint64_t hits;	  /* lookups that found a registration */
	uint64_t misses;  /* lookups that found no usable registration */
	/* registrations by the core provider, on our behalf */
	uint64_t registrations;
	uint64_t deregistrations;
	uint64_t registration_failures;
	uint64_t evictions; /* regions that made room for others */
	/* regions whose memory was unmapped or changed */
	uint64_t invalidations;
	uint64_t uncached;    /* buffers registered for one operation only */
	uint64_t posts;	      /* operations with buffers resolved and held */
	uint64_t completions; /* of these, completed, cancelled or flushed */
	uint64_t bounces;     /* buffers copied instead of registered */
	/* now */
	uint64_t regions;      /* registered regions */
	uint64_t bytes;	       /* bytes in them */
	uint64_t held_regions; /* regions in use by operations, kept or not */
	uint64_t regions_peak;
	uint64_t bytes_peak;
	uint64_t max_regions; /* the limits in force */
	uint64_t max_bytes;
	char monitor[16]; /* "uffd+hooks", "uffd", "manual" or "none" */
};

/* kind and scope of a counter */
#define FI_MRRC_COUNTER	      0 /* only grows */
#define FI_MRRC_GAUGE	      1 /* the present value, or a maximum */
#define FI_MRRC_SCOPE_DOMAIN  0
#define FI_MRRC_SCOPE_PROCESS 1
#define FI_MRRC_SCOPE_NODE    2 /* processes of this user */

/* size as in struct fi_mrrc_stats; the provider's strings are constant. */
struct fi_mrrc_counter {
	size_t size;
	uint64_t value;
	const char *name; /* [a-z0-9_]+ */
	const char *help;
	const char *unit; /* "bytes", ...; empty: a number */
	uint32_t scope;
	uint32_t kind;
};

/* Any thread may call these. */
struct fi_mrrc_ops_domain {
	size_t size;
	/* 0, or -FI_EINVAL if stats->size is too small for any field */
	int (*stats)(struct fid_domain *domain, struct fi_mrrc_stats *stats);
	/* Deregisters every cached region that no operation uses. */
	int (*flush)(struct fid_domain *domain);
	/* Forgets a range that is about to be unmapped. */
	int (*invalidate)(struct fid_domain *domain, const void *addr,
			  size_t len);
	/* 1: the provider has the feature, 0: it has not */
	int (*feature)(struct fid_domain *domain, const char *name);
	/* 0, or -FI_ENOENT: no counter has this index */
	int (*counter)(struct fid_domain *domain, size_t index,
		       struct fi_mrrc_counter *counter);
};

static inline int fi_mrrc_stats_read(struct fid_domain *domain,
				     struct fi_mrrc_stats *stats)
{
	const struct fi_mrrc_ops_domain *ops;
	int ret;

	ret = fi_open_ops(&domain->fid, FI_MRRC_DOMAIN_OPS, 0, (void **) &ops,
			  NULL);
	return ret ? ret : ops->stats(domain, stats);
}

/* Returns -FI_ENOSYS, too, with a provider that is older than the call. */
static inline int fi_mrrc_counter_read(struct fid_domain *domain, size_t index,
				       struct fi_mrrc_counter *counter)
{
	const struct fi_mrrc_ops_domain *ops;
	int ret;

	ret = fi_open_ops(&domain->fid, FI_MRRC_DOMAIN_OPS, 0, (void **) &ops,
			  NULL);
	if (ret)
		return ret;
	return FI_CHECK_OP(ops, struct fi_mrrc_ops_domain, counter) ?
		       ops->counter(domain, index, counter) :
		       -FI_ENOSYS;
}

/* As above. */
static inline int fi_mrrc_invalidate(struct fid_domain *domain,
				     const void *addr, size_t len)
{
	const struct fi_mrrc_ops_domain *ops;
	int ret;

	ret = fi_open_ops(&domain->fid, FI_MRRC_DOMAIN_OPS, 0, (void **) &ops,
			  NULL);
	if (ret)
		return ret;
	return ops->size > offsetof(struct fi_mrrc_ops_domain, invalidate) ?
		       ops->invalidate(domain, addr, len) :
		       -FI_ENOSYS;
}

static inline int fi_mrrc_flush(struct fid_domain *domain)
{
	const struct fi_mrrc_ops_domain *ops;
	int ret;

	ret = fi_open_ops(&domain->fid, FI_MRRC_DOMAIN_OPS, 0, (void **) &ops,
			  NULL);
	return ret ? ret : ops->flush(domain);
}

/* ---- conditional writes: fi_cwrite(3) --------------------------------- */

/* Name for fi_open_ops() on endpoints, active and passive. */
#define FI_MRRC_CW_OPS "ofi_mrrc conditional write ops v1"

/* Flag of fi_mrrc_cwtagmsg(): the registration may outlive the operation. */
#define FI_MRRC_CW_KEEP (1ULL << 60)
/* Flag of completions, on both sides: a conditional operation has ended. */
#define FI_MRRC_CW (1ULL << 61)

struct fi_mrrc_msg_cw {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	uint64_t cwtag;
	void *context;
	uint64_t data;
};

/* Limits of an endpoint; size as in struct fi_mrrc_stats. */
struct fi_mrrc_cw_attr {
	size_t size;
	size_t iov_limit;     /* buffers of one write */
	size_t tag_iov_limit; /* number of buffers that one tag exposes */
	size_t max_pending;   /* operations of each kind with one peer */
	/* bytes of private data that the provider takes */
	size_t cm_data_size;
	size_t cq_data_size;   /* bytes of data that reach the target */
	uint64_t app_tag_mask; /* bits of tags that the application chooses */
};

/* Counters of one endpoint; size as in struct fi_mrrc_stats. */
struct fi_mrrc_cw_stats {
	size_t size;
	uint64_t writes; /* posted */
	uint64_t tags;
	uint64_t immediate; /* writes issued in the posting call */
	uint64_t held;	    /* writes issued later */
	uint64_t writes_ended;
	uint64_t tags_ended;
	uint64_t truncated; /* operations of this side that ended truncated */
	uint64_t cancelled;
	uint64_t pending_writes; /* now */
	uint64_t pending_tags;
	uint64_t known_tags; /* tags of the peer without a write */
	uint64_t messages_sent;
	uint64_t messages_received;
	uint64_t stalls; /* messages that waited for room at the peer */
	/* ns of CLOCK_MONOTONIC: time of the latest write */
	uint64_t last_issued;
};

/*
 * The conditional operations of one endpoint, valid while the endpoint is open.
 * A program opens them once, by fi_mrrc_cw_open(), and passes them to the
 * calls.
 */
struct fi_mrrc_cw {
	const struct fi_mrrc_ops_cw *ops;
};

/*
 * Any thread may call the operations below, as far as the domain's threading
 * allows. A passive endpoint has the first three calls.
 */
struct fi_mrrc_ops_cw {
	size_t size;
	int (*feature)(struct fi_mrrc_cw *cw, const char *name);
	int (*enable)(struct fi_mrrc_cw *cw, uint64_t flags);
	int (*query)(struct fi_mrrc_cw *cw, struct fi_mrrc_cw_attr *attr);
	ssize_t (*cwrite)(struct fi_mrrc_cw *cw, const void *buf, size_t len,
			  void *desc, fi_addr_t dest_addr, uint64_t cwtag,
			  void *context);
	ssize_t (*cwritev)(struct fi_mrrc_cw *cw, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t dest_addr,
			   uint64_t cwtag, void *context);
	ssize_t (*cwritemsg)(struct fi_mrrc_cw *cw,
			     const struct fi_mrrc_msg_cw *msg, uint64_t flags);
	ssize_t (*cwtag)(struct fi_mrrc_cw *cw, void *buf, size_t len,
			 void *desc, fi_addr_t src_addr, uint64_t cwtag,
			 void *context);
	ssize_t (*cwtagmsg)(struct fi_mrrc_cw *cw,
			    const struct fi_mrrc_msg_cw *msg, uint64_t flags);
	int (*tag_alloc)(struct fi_mrrc_cw *cw, uint64_t *cwtag);
	int (*stats)(struct fi_mrrc_cw *cw, struct fi_mrrc_cw_stats *stats);
};

static inline int fi_mrrc_cw_open(struct fid_ep *ep, struct fi_mrrc_cw **cw)
{
	return fi_open_ops(&ep->fid, FI_MRRC_CW_OPS, 0, (void **) cw, NULL);
}

/*
 * The following calls are for endpoints and passive endpoints, once for each.
 */
static inline int fi_mrrc_cw_enable(struct fid *fid, uint64_t flags)
{
	struct fi_mrrc_cw *cw;
	int ret = fi_open_ops(fid, FI_MRRC_CW_OPS, 0, (void **) &cw, NULL);

	return ret ? ret : cw->ops->enable(cw, flags);
}

static inline int fi_mrrc_cw_query(struct fid *fid,
				   struct fi_mrrc_cw_attr *attr)
{
	struct fi_mrrc_cw *cw;
	int ret = fi_open_ops(fid, FI_MRRC_CW_OPS, 0, (void **) &cw, NULL);

	return ret ? ret : cw->ops->query(cw, attr);
}

static inline ssize_t fi_mrrc_cwrite(struct fi_mrrc_cw *cw, const void *buf,
				     size_t len, void *desc,
				     fi_addr_t dest_addr, uint64_t cwtag,
				     void *context)
{
	return cw->ops->cwrite(cw, buf, len, desc, dest_addr, cwtag, context);
}

static inline ssize_t fi_mrrc_cwritev(struct fi_mrrc_cw *cw,
				      const struct iovec *iov, void **desc,
				      size_t count, fi_addr_t dest_addr,
				      uint64_t cwtag, void *context)
{
	return cw->ops->cwritev(cw, iov, desc, count, dest_addr, cwtag,
				context);
}

static inline ssize_t fi_mrrc_cwritemsg(struct fi_mrrc_cw *cw,
					const struct fi_mrrc_msg_cw *msg,
					uint64_t flags)
{
	return cw->ops->cwritemsg(cw, msg, flags);
}

static inline ssize_t fi_mrrc_cwtag(struct fi_mrrc_cw *cw, void *buf,
				    size_t len, void *desc, fi_addr_t src_addr,
				    uint64_t cwtag, void *context)
{
	return cw->ops->cwtag(cw, buf, len, desc, src_addr, cwtag, context);
}

static inline ssize_t fi_mrrc_cwtagmsg(struct fi_mrrc_cw *cw,
				       const struct fi_mrrc_msg_cw *msg,
				       uint64_t flags)
{
	return cw->ops->cwtagmsg(cw, msg, flags);
}

static inline int fi_mrrc_cw_tag_alloc(struct fi_mrrc_cw *cw, uint64_t *cwtag)
{
	return cw->ops->tag_alloc(cw, cwtag);
}

static inline int fi_mrrc_cw_stats_read(struct fi_mrrc_cw *cw,
					struct fi_mrrc_cw_stats *stats)
{
	return cw->ops->stats(cw, stats);
}

/* For a domain, an endpoint or a passive endpoint */
static inline int fi_mrrc_feature(struct fid *fid, const char *name)
{
	const struct fi_mrrc_ops_domain *ops;
	struct fi_mrrc_cw *cw;
	int ret;

	if (fid->fclass != FI_CLASS_DOMAIN) {
		ret = fi_open_ops(fid, FI_MRRC_CW_OPS, 0, (void **) &cw, NULL);
		return ret ? ret : cw->ops->feature(cw, name);
	}
	ret = fi_open_ops(fid, FI_MRRC_DOMAIN_OPS, 0, (void **) &ops, NULL);
	if (ret)
		return ret;
	/* older providers have fewer calls */
	return FI_CHECK_OP(ops, struct fi_mrrc_ops_domain, feature) ?
		       ops->feature((struct fid_domain *) fid, name) :
		       0;
}

/*
 * Preregistered memory: fi_mr_alloc(3), fi_mr_heap(3).
 */
#define FI_MRRC_ALLOC_OPS "ofi_mrrc alloc ops v1"

/* flags of allocations and heaps */
#define FI_MRRC_MR_ALLOC_ISOLATED (1ULL << 0) /* own registration */
#define FI_MRRC_MR_ALLOC_ZERO	  (1ULL << 1)
#define FI_MRRC_MR_HEAP_PREFAULT  (1ULL << 2) /* heaps only */
/*
 * Kind of pages: at most one of the flags below, and no such flag for
 * allocations from a heap. The smallest pages, transparent huge pages, or pages
 * of hugetlbfs of 2^(log2) bytes, as MAP_HUGE_SHIFT has it: log2 is 21 or 30.
 */
#define FI_MRRC_MR_ALLOC_BASE	    (1ULL << 4)
#define FI_MRRC_MR_ALLOC_THP	    (1ULL << 5)
#define FI_MRRC_MR_ALLOC_HUGE(log2) ((uint64_t) (log2) << 26)

#define FI_MRRC_MR_HEAP_NODE(n) ((n) + 1)  /* for numa_node */
#define FI_MRRC_MR_HEAP_KEEP	UINT32_MAX /* for idle_ms */

struct fi_mrrc_mr_query_attr {
	size_t size;
	void *base; /* the allocation */
	size_t len;
	struct fid_mr *mr;
	void *desc;
	uint64_t key;
	uint64_t raddr;	  /* address of base for peers */
	void *block_base; /* memory that the registration covers */
	size_t block_len;
	uint64_t access;
	size_t page_size;
};

struct fi_mrrc_mr_heap_attr {
	size_t size;
	uint64_t access; /* FI_REMOTE_READ, FI_REMOTE_WRITE */
	uint64_t flags;
	size_t block_size; /* minimum; 0: default */
	size_t max_bytes;  /* 0: only the domain's limit */
	int numa_node;	   /* FI_MRRC_MR_HEAP_NODE(n), or 0 */
	uint32_t idle_ms;  /* 0: default */
};

struct fi_mrrc_mr_heap_stats {
	size_t size;
	uint64_t allocs;
	uint64_t frees;
	uint64_t live; /* allocations now */
	uint64_t live_bytes;
	uint64_t kept_bytes; /* freed bytes, available for one size only */
	uint64_t blocks;     /* registered now */
	uint64_t bytes;
	uint64_t bytes_peak;
	uint64_t idle_blocks; /* of these, blocks without allocations */
	uint64_t idle_bytes;
	uint64_t limit; /* on bytes */
	uint64_t registrations;
	uint64_t deregistrations;
	uint64_t registration_failures;
	uint64_t huge_bytes; /* of bytes: hugetlbfs */
	/* bytes in blocks with transparent huge pages allowed */
	uint64_t thp_bytes;
	/* mistakes of the application that were detected */
	uint64_t mistakes;
};

struct fid_mrrc_mr_heap;

/* Any thread. */
struct fi_mrrc_ops_mr_heap {
	size_t size;
	int (*alloc)(struct fid_mrrc_mr_heap *heap, size_t align, size_t len,
		     uint64_t flags, void **buf, struct fid_mr **mr);
	int (*release)(struct fid_mrrc_mr_heap *heap, void *buf);
	int (*trim)(struct fid_mrrc_mr_heap *heap);
	int (*stats)(struct fid_mrrc_mr_heap *heap,
		     struct fi_mrrc_mr_heap_stats *stats);
};

struct fid_mrrc_mr_heap {
	struct fid fid;
	const struct fi_mrrc_ops_mr_heap *ops;
};

/*
 * An address, and the registration that covers it; or an error from -4095 to -1
 * as address.
 */
struct fi_mrrc_mr_place {
	intptr_t addr;
	struct fid_mr *mr;
};

/*
 * Operations of one domain, valid until the domain is closed. A program that
 * allocates often opens the operations once and calls them directly. Any
 * thread.
 */
struct fi_mrrc_ops_alloc {
	size_t size;
	int (*alloc)(struct fid_domain *domain, size_t align, size_t len,
		     uint64_t access, uint64_t flags, void **buf,
		     struct fid_mr **mr);
	int (*release)(struct fid_domain *domain, void *buf);
	int (*query)(struct fid_domain *domain, const void *addr,
		     struct fi_mrrc_mr_query_attr *attr);
	int (*trim)(struct fid_domain *domain);
	int (*stats)(struct fid_domain *domain,
		     struct fi_mrrc_mr_heap_stats *stats);
	int (*heap_open)(struct fid_domain *domain,
			 const struct fi_mrrc_mr_heap_attr *attr,
			 struct fid_mrrc_mr_heap **heap, void *context);
	/*
	 * Like alloc with align 1 and no flags, but returns the result by
	 * value, which is the fastest way.
	 */
	struct fi_mrrc_mr_place (*place)(struct fid_domain *domain, size_t len,
					 uint64_t access);
};

static inline int fi_mrrc_alloc_open(struct fid_domain *domain,
				     const struct fi_mrrc_ops_alloc **ops)
{
	return fi_open_ops(&domain->fid, FI_MRRC_ALLOC_OPS, 0, (void **) ops,
			   NULL);
}

/* fi_mrrc_mr_alloc() for a program that has opened the operations. */
static inline int fi_mrrc_alloc(const struct fi_mrrc_ops_alloc *ops,
				struct fid_domain *domain, size_t len,
				uint64_t access, uint64_t flags, void **buf,
				struct fid_mr **mr)
{
	struct fi_mrrc_mr_place place;

	if (flags)
		return ops->alloc(domain, 1, len, access, flags, buf, mr);
	place = ops->place(domain, len, access);
	/* the error is never 0, which compilers cannot know */
	if ((uintptr_t) place.addr >= (uintptr_t) -4095)
		return (int) place.addr ? (int) place.addr : -FI_EOTHER;
	*buf = (void *) place.addr;
	if (mr)
		*mr = place.mr;
	return 0;
}

static inline int fi_mrrc_mr_memalign(struct fid_domain *domain, size_t align,
				      size_t len, uint64_t access,
				      uint64_t flags, void **buf,
				      struct fid_mr **mr)
{
	const struct fi_mrrc_ops_alloc *ops;
	int ret = fi_mrrc_alloc_open(domain, &ops);

	return ret ? ret :
		     ops->alloc(domain, align, len, access, flags, buf, mr);
}

static inline int fi_mrrc_mr_alloc(struct fid_domain *domain, size_t len,
				   uint64_t access, uint64_t flags, void **buf,
				   struct fid_mr **mr)
{
	const struct fi_mrrc_ops_alloc *ops;
	int ret = fi_mrrc_alloc_open(domain, &ops);

	return ret ? ret :
		     fi_mrrc_alloc(ops, domain, len, access, flags, buf, mr);
}

static inline int fi_mrrc_mr_free(struct fid_domain *domain, void *buf)
{
	const struct fi_mrrc_ops_alloc *ops;
	int ret = fi_mrrc_alloc_open(domain, &ops);

	return ret ? ret : ops->release(domain, buf);
}

static inline int fi_mrrc_mr_query(struct fid_domain *domain, const void *addr,
				   struct fi_mrrc_mr_query_attr *attr)
{
	const struct fi_mrrc_ops_alloc *ops;
	int ret = fi_mrrc_alloc_open(domain, &ops);

	return ret ? ret : ops->query(domain, addr, attr);
}

static inline int fi_mrrc_mr_trim(struct fid_domain *domain)
{
	const struct fi_mrrc_ops_alloc *ops;
	int ret = fi_mrrc_alloc_open(domain, &ops);

	return ret ? ret : ops->trim(domain);
}

static inline int
fi_mrrc_mr_alloc_stats_read(struct fid_domain *domain,
			    struct fi_mrrc_mr_heap_stats *stats)
{
	const struct fi_mrrc_ops_alloc *ops;
	int ret = fi_mrrc_alloc_open(domain, &ops);

	return ret ? ret : ops->stats(domain, stats);
}

static inline int fi_mrrc_mr_heap_open(struct fid_domain *domain,
				       const struct fi_mrrc_mr_heap_attr *attr,
				       struct fid_mrrc_mr_heap **heap,
				       void *context)
{
	const struct fi_mrrc_ops_alloc *ops;
	int ret = fi_mrrc_alloc_open(domain, &ops);

	return ret ? ret : ops->heap_open(domain, attr, heap, context);
}

static inline int fi_mrrc_mr_heap_close(struct fid_mrrc_mr_heap *heap)
{
	return fi_close(&heap->fid);
}

static inline int fi_mrrc_mr_heap_memalign(struct fid_mrrc_mr_heap *heap,
					   size_t align, size_t len,
					   uint64_t flags, void **buf,
					   struct fid_mr **mr)
{
	return heap->ops->alloc(heap, align, len, flags, buf, mr);
}

static inline int fi_mrrc_mr_heap_alloc(struct fid_mrrc_mr_heap *heap,
					size_t len, uint64_t flags, void **buf,
					struct fid_mr **mr)
{
	return heap->ops->alloc(heap, 1, len, flags, buf, mr);
}

static inline int fi_mrrc_mr_heap_free(struct fid_mrrc_mr_heap *heap, void *buf)
{
	return heap->ops->release(heap, buf);
}

static inline int fi_mrrc_mr_heap_trim(struct fid_mrrc_mr_heap *heap)
{
	return heap->ops->trim(heap);
}

static inline int
fi_mrrc_mr_heap_stats_read(struct fid_mrrc_mr_heap *heap,
			   struct fi_mrrc_mr_heap_stats *stats)
{
	return heap->ops->stats(heap, stats);
}

/* ---- parts of files as sources: fi_mrrc_file(3) ------------------------ */

#define FI_MRRC_FILE_OPS "ofi_mrrc file ops v1"

/* flags of fi_mrrc_file_open(): one of them at most */
#define FI_MRRC_FILE_COPY   (1ULL << 0)
#define FI_MRRC_FILE_MAP    (1ULL << 1)
#define FI_MRRC_FILE_DIRECT (1ULL << 2)

struct fi_mrrc_file_msg {
	uint64_t offset; /* offset of the part in the file */
	size_t len;
	fi_addr_t addr; /* the peer */
	void *context;
	uint64_t data; /* with FI_REMOTE_CQ_DATA */
	/* tagged messages: the tag; conditional writes: the cwtag */
	uint64_t tag;
	uint64_t rma_addr; /* writes: target address, and the peer's key */
	uint64_t key;
};

struct fi_mrrc_file_stats {
	size_t size;
	uint64_t length; /* current length of the file */
	uint64_t mapped; /* operations that read the file's own pages */
	uint64_t copied; /* operations that read a copy of these */
	uint64_t mapped_bytes;
	uint64_t copied_bytes;
	uint64_t leases; /* leases taken */
	char why[80];	 /* why there is no lease now; empty: there is one */
	uint64_t direct; /* operations that read a copy written by the disk */
	uint64_t direct_bytes;
	/* of these bytes, those read before the posting */
	uint64_t ahead_bytes;
};

struct fid_mrrc_file;

/* Posting: as the endpoint's threading allows; query: any thread. */
struct fi_mrrc_ops_file {
	size_t size;
	ssize_t (*sendmsg)(struct fid_mrrc_file *file, struct fid_ep *ep,
			   const struct fi_mrrc_file_msg *msg, uint64_t flags);
	ssize_t (*tsendmsg)(struct fid_mrrc_file *file, struct fid_ep *ep,
			    const struct fi_mrrc_file_msg *msg, uint64_t flags);
	ssize_t (*writemsg)(struct fid_mrrc_file *file, struct fid_ep *ep,
			    const struct fi_mrrc_file_msg *msg, uint64_t flags);
	ssize_t (*cwritemsg)(struct fid_mrrc_file *file, struct fid_ep *ep,
			     const struct fi_mrrc_file_msg *msg,
			     uint64_t flags);
	int (*query)(struct fid_mrrc_file *file,
		     struct fi_mrrc_file_stats *attr);
};

struct fid_mrrc_file {
	struct fid fid;
	const struct fi_mrrc_ops_file *ops;
};

/* Of a domain. Any thread. */
struct fi_mrrc_ops_files {
	size_t size;
	int (*file_open)(struct fid_domain *domain, int fd, uint64_t flags,
			 struct fid_mrrc_file **file, void *context);
};

static inline int fi_mrrc_file_open(struct fid_domain *domain, int fd,
				    uint64_t flags, struct fid_mrrc_file **file,
				    void *context)
{
	const struct fi_mrrc_ops_files *ops;
	int ret;

	ret = fi_open_ops(&domain->fid, FI_MRRC_FILE_OPS, 0, (void **) &ops,
			  NULL);
	return ret ? ret : ops->file_open(domain, fd, flags, file, context);
}

static inline ssize_t fi_mrrc_file_sendmsg(struct fid_mrrc_file *file,
					   struct fid_ep *ep,
					   const struct fi_mrrc_file_msg *msg,
					   uint64_t flags)
{
	return file->ops->sendmsg(file, ep, msg, flags);
}

static inline ssize_t fi_mrrc_file_tsendmsg(struct fid_mrrc_file *file,
					    struct fid_ep *ep,
					    const struct fi_mrrc_file_msg *msg,
					    uint64_t flags)
{
	return file->ops->tsendmsg(file, ep, msg, flags);
}

static inline ssize_t fi_mrrc_file_writemsg(struct fid_mrrc_file *file,
					    struct fid_ep *ep,
					    const struct fi_mrrc_file_msg *msg,
					    uint64_t flags)
{
	return file->ops->writemsg(file, ep, msg, flags);
}

static inline ssize_t fi_mrrc_file_cwritemsg(struct fid_mrrc_file *file,
					     struct fid_ep *ep,
					     const struct fi_mrrc_file_msg *msg,
					     uint64_t flags)
{
	return file->ops->cwritemsg(file, ep, msg, flags);
}

/* A message with the fields that all kinds of operations have. */
static inline struct fi_mrrc_file_msg
fi_mrrc_file_part(uint64_t offset, size_t len, fi_addr_t addr, void *context)
{
	struct fi_mrrc_file_msg msg;

	msg.offset = offset;
	msg.len = len;
	msg.addr = addr;
	msg.context = context;
	msg.data = msg.tag = msg.rma_addr = msg.key = 0;
	return msg;
}

static inline ssize_t fi_mrrc_file_send(struct fid_mrrc_file *file,
					struct fid_ep *ep, uint64_t offset,
					size_t len, fi_addr_t dest_addr,
					void *context)
{
	struct fi_mrrc_file_msg msg =
		fi_mrrc_file_part(offset, len, dest_addr, context);

	return file->ops->sendmsg(file, ep, &msg, FI_COMPLETION);
}

static inline ssize_t fi_mrrc_file_write(struct fid_mrrc_file *file,
					 struct fid_ep *ep, uint64_t offset,
					 size_t len, fi_addr_t dest_addr,
					 uint64_t addr, uint64_t key,
					 void *context)
{
	struct fi_mrrc_file_msg msg =
		fi_mrrc_file_part(offset, len, dest_addr, context);

	msg.rma_addr = addr;
	msg.key = key;
	return file->ops->writemsg(file, ep, &msg, FI_COMPLETION);
}

static inline ssize_t fi_mrrc_file_cwrite(struct fid_mrrc_file *file,
					  struct fid_ep *ep, uint64_t offset,
					  size_t len, fi_addr_t dest_addr,
					  uint64_t cwtag, void *context)
{
	struct fi_mrrc_file_msg msg =
		fi_mrrc_file_part(offset, len, dest_addr, context);

	msg.tag = cwtag;
	return file->ops->cwritemsg(file, ep, &msg, FI_COMPLETION);
}

static inline int fi_mrrc_file_query(struct fid_mrrc_file *file,
				     struct fi_mrrc_file_stats *attr)
{
	return file->ops->query(file, attr);
}

/* ---- short names ---- */

/*
 * The names of the manual, without mrrc_. libfabric may one day use a short
 * name itself; a program that defines FI_MRRC_NO_SHORT_NAMES has only the long
 * names.
 */
#ifndef FI_MRRC_NO_SHORT_NAMES
#define fi_cw_open	 fi_mrrc_cw_open
#define fi_cw_enable	 fi_mrrc_cw_enable
#define fi_cw_query	 fi_mrrc_cw_query
#define fi_cw_tag_alloc	 fi_mrrc_cw_tag_alloc
#define fi_cw_stats_read fi_mrrc_cw_stats_read
#define fi_cwrite	 fi_mrrc_cwrite
#define fi_cwritev	 fi_mrrc_cwritev
#define fi_cwritemsg	 fi_mrrc_cwritemsg
#define fi_cwtag	 fi_mrrc_cwtag
#define fi_cwtagmsg	 fi_mrrc_cwtagmsg
#define fi_msg_cw	 fi_mrrc_msg_cw

#define fi_mr_alloc	       fi_mrrc_mr_alloc
#define fi_mr_memalign	       fi_mrrc_mr_memalign
#define fi_mr_free	       fi_mrrc_mr_free
#define fi_mr_query	       fi_mrrc_mr_query
#define fi_mr_trim	       fi_mrrc_mr_trim
#define fi_mr_alloc_stats_read fi_mrrc_mr_alloc_stats_read
#define fi_mr_query_attr       fi_mrrc_mr_query_attr
#define fi_mr_place	       fi_mrrc_mr_place

#define fi_mr_heap_open	      fi_mrrc_mr_heap_open
#define fi_mr_heap_close      fi_mrrc_mr_heap_close
#define fi_mr_heap_memalign   fi_mrrc_mr_heap_memalign
#define fi_mr_heap_alloc      fi_mrrc_mr_heap_alloc
#define fi_mr_heap_free	      fi_mrrc_mr_heap_free
#define fi_mr_heap_trim	      fi_mrrc_mr_heap_trim
#define fi_mr_heap_stats_read fi_mrrc_mr_heap_stats_read
#define fi_mr_heap_attr	      fi_mrrc_mr_heap_attr
#define fi_mr_heap_stats      fi_mrrc_mr_heap_stats
#define fid_mr_heap	      fid_mrrc_mr_heap
#define fi_ops_mr_heap	      fi_mrrc_ops_mr_heap

#define FI_MR_ALLOC_ISOLATED FI_MRRC_MR_ALLOC_ISOLATED
#define FI_MR_ALLOC_ZERO     FI_MRRC_MR_ALLOC_ZERO
#define FI_MR_ALLOC_BASE     FI_MRRC_MR_ALLOC_BASE
#define FI_MR_ALLOC_THP	     FI_MRRC_MR_ALLOC_THP
#define FI_MR_ALLOC_HUGE     FI_MRRC_MR_ALLOC_HUGE
#define FI_MR_HEAP_PREFAULT  FI_MRRC_MR_HEAP_PREFAULT
#define FI_MR_HEAP_NODE	     FI_MRRC_MR_HEAP_NODE
#define FI_MR_HEAP_KEEP	     FI_MRRC_MR_HEAP_KEEP
#endif

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_MRRC_H */
