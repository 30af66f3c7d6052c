/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of the fi layer: a wrapper for each object that an application
 * can hold, and nothing else.
 *
 * Each wrapper embeds the public fid, points to the core provider's object
 * (core) and to its parent. The core's object is opened with our fid as its
 * context, so every report of the core about its object leads back to ours.
 *
 * Every object counts on its parent (mrrc_ref), so closing a parent first
 * answers -FI_EBUSY, as libfabric's providers do.
 *
 * Threading: as the application asked for; domain.c has the core's threading.
 */
#ifndef MRRC_FI_H
#define MRRC_FI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <rdma/fi_ext_mrrc.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "fi/compat.h"
#include "core/cache/admit.h"
#include "fi/reg.h"
#include "sys/base/lock.h"

#define MRRC_PROV_NAME "ofi_mrrc"

extern struct fi_provider mrrc_prov;

#define MRRC_WARN(subsys, ...) FI_WARN(&mrrc_prov, FI_LOG_##subsys, __VA_ARGS__)
#define MRRC_INFO(subsys, ...) FI_INFO(&mrrc_prov, FI_LOG_##subsys, __VA_ARGS__)
#define MRRC_DBG(subsys, ...)  FI_DBG(&mrrc_prov, FI_LOG_##subsys, __VA_ARGS__)

#define mrrc_likely(x)	 __builtin_expect(!!(x), 1)
#define mrrc_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Functions of the hit path have no stack protector, which would cost 9
 * instructions: the functions have no array to overrun.
 */
#if __has_attribute(no_stack_protector)
#define MRRC_UNGUARDED __attribute__((no_stack_protector))
#else
#define MRRC_UNGUARDED
#endif

typedef atomic_int mrrc_ref; /* children of an object */

struct mrrc_blocks;
struct mrrc_pool;
struct mrrc_op;
struct mrrc_comp;
struct mrrc_poll_cq;
struct mrrc_cq_over;
struct mrrc_domain_over;
struct mrrc_file_domain;
struct mrrc_cw_av;
struct mrrc_cw_cq;
struct mrrc_cw_domain;
struct mrrc_cw_ep;
struct mrrc_request;
struct mrrc_cw_rdm;

/* An object that the core may name in an event: see fid.c. */
struct mrrc_track {
	LIST_ENTRY(mrrc_track) link;
	struct fid *core, *ours;
};
#define MRRC_TRACK_BUCKETS 256

struct mrrc_fabric {
	struct fid_fabric fabric;
	struct fid_fabric *core;
	char *core_prov_name; /* "verbs" of "verbs;ofi_mrrc" */
	mrrc_ref ref;
	struct mrrc_mutex track_lock; /* guards the rest; a leaf */
	LIST_HEAD(mrrc_tracks, mrrc_track) tracks[MRRC_TRACK_BUCKETS];
	struct mrrc_request *requests; /* noted: obj/request.h */
};

struct mrrc_domain {
	struct fid_domain domain;
	struct fid_domain *core;
	struct mrrc_fabric *fabric;
	mrrc_ref ref;
	struct mrrc_reg reg; /* registrations, with a cache if `implicit` */
	bool core_local;     /* the core requires local descriptors */
	/*
	 * the core has threads of its own, and answers FI_THREAD_SAFE to any
	 * request
	 */
	bool core_safe;
	bool any_thread; /* threads of ours may read the core's CQs */
	bool implicit;	 /* the provider resolves null descriptors */
	bool multi_recv; /* opened with FI_MULTI_RECV */
	char nothing;	 /* registered in place of empty buffers */
	uint32_t addr_format;
	bool automatic; /* a thread of ours may make progress */
	/* bound event queue, for endpoints without one */
	struct mrrc_eq *eq;
	struct mrrc_eq *mr_eq; /* event queue bound with FI_REG_MR */
	/*
	 * records of operations in flight, if `implicit`, and of receives over
	 * a core that passes on lengths that peers claim. A context inside the
	 * pool is a record
	 */
	struct mrrc_pool *ops;
	/*
	 * blocks for copies, and admission to the cache (guarded by the cache's
	 * lock)
	 */
	struct mrrc_blocks *blocks;
	/* longest buffer that is copied, in bytes; 0: none */
	size_t bounce_max;
	struct mrrc_admit admit;
	/* a bit for each error already logged */
	atomic_uint_fast64_t warned;
	/* operations that no open CQ counts */
	atomic_uint_fast64_t posts;
	/* ended operations, except the short ones that open CQs count */
	atomic_uint_fast64_t completions;
	/* receives whose claimed length was too long */
	atomic_uint_fast64_t claimed_lengths;
	/* guards cqs, and changes of their ops, cw and wait_taken */
	struct mrrc_mutex cq_lock;
	LIST_HEAD(, mrrc_cq) cqs; /* every CQ of the domain */
	/* number of CQs that the provider opened */
	atomic_int internal_cqs;
	/* CQs that a close waits for (data/flush.c); guarded by their locks */
	atomic_int awaited_cqs;
	/* state of fi/file; NULL before the first file is opened */
	struct mrrc_file_domain *_Atomic files;
	void (*files_close)(struct mrrc_domain *domain);
	/* calls of conditional writes; NULL before an endpoint has any */
	const struct mrrc_domain_over *_Atomic over;
	struct mrrc_cw_domain *_Atomic cw;
};

/* Memory for len bytes of an operation of the domain. */
struct mrrc_spare {
	struct mrrc_domain *domain;
	size_t len;
	void *buf;
};

/* Calls for a domain with conditional writes, besides the usual ones. */
struct mrrc_domain_over {
	/* frees the state of conditional writes, or returns -FI_EBUSY */
	int (*close)(struct mrrc_domain *domain);
	/* the application polls for completions, by a poll set */
	void (*progress)(struct mrrc_domain *domain);
	/*
	 * A writer waits for parts of a file that operations read. A
	 * conditional write that reads such a part and has no tag yet takes the
	 * spare buffer, if the length is right; the buffer is NULL then. On
	 * return len is the length that another such write needs, or 0.
	 */
	void (*yield)(struct mrrc_domain *domain, struct mrrc_spare *spare);
};

struct mrrc_eq {
	struct fid_eq eq;
	struct fid_eq *core;
	struct mrrc_fabric *fabric;
	mrrc_ref ref;				 /* domains bound to the EQ */
	const struct mrrc_eq_over *_Atomic over; /* or NULL */
};

/* Maximum length of private data in an event of the cores. */
#define MRRC_EQ_CM_DATA 512

/* Calls that handle events before the application gets them. */
struct mrrc_eq_over {
	/* the event as the core has it, in a buffer; returns its new length */
	size_t (*seen)(struct mrrc_eq *eq, uint32_t event, void *buf,
		       size_t len, uint64_t flags);
	/* the core reported an error for this object */
	void (*gone)(struct mrrc_fabric *fabric, const struct fid *core);
};

struct mrrc_wait {
	struct fid_wait wait;
	struct fid_wait *core;
	struct mrrc_fabric *fabric;
	mrrc_ref ref;		   /* queues in the wait set */
	atomic_size_t pending_cnt; /* pending completions of its CQs, in all */
};

struct mrrc_poll {
	struct fid_poll poll;
	struct fid_poll *core;
	struct mrrc_domain *domain;
	struct mrrc_mutex lock;	  /* guards cqs */
	struct mrrc_poll_cq *cqs; /* the CQs in the set: see poll.c */
};

struct mrrc_pep {
	struct fid_pep pep;
	struct fid_pep *core;
	struct fi_info *info; /* the core's, which sockets goes on reading */
	struct mrrc_fabric *fabric;
	struct mrrc_track track;
	struct mrrc_eq *eq;
	struct fi_mrrc_cw ext_cw; /* for fi_cw_enable() */
};

struct mrrc_av {
	struct fid_av av;
	struct fid_av *core;
	struct mrrc_domain *domain;
	struct mrrc_track track;
	struct mrrc_cw_av *cw; /* names of endpoints: cw/av.c */
};

struct mrrc_mr {
	struct fid_mr mr;
	struct fid_mr *core;
	struct mrrc_domain *domain;
	/* the cache's region, if the registration is local */
	struct mrrc_region *region;
	/* the requested key, if the registration is local */
	uint64_t key;
	/* the application does not get the core's descriptor */
	bool no_desc;
	uint64_t trace; /* for mrrc_record_end(); 0: not recorded */
};

struct mrrc_cntr {
	struct fid_cntr cntr;
	struct fid_cntr *core;
	struct mrrc_domain *domain;
};

struct mrrc_stx {
	struct fid_stx stx;
	struct fid_stx *core;
	struct mrrc_domain *domain;
};

/*
 * Endpoints whose receives the provider treats in a way of their own, by a pair
 * of ways. A completion does not tell its endpoint, so the endpoints of one CQ
 * have the same way of each pair.
 */
enum mrrc_rx_way {
	/* receives of a shared context are unsignalled by default, or not */
	MRRC_RX_SELECTIVE,
	MRRC_RX_ALL,
	/* FI_BUFFERED_RECV, or not */
	MRRC_RX_BUFFERED,
	MRRC_RX_PLAIN,
	MRRC_RX_WAYS,
};

struct mrrc_cq {
	struct fid_cq cq;
	struct fid_cq *core;
	struct mrrc_domain *domain;
	LIST_ENTRY(mrrc_cq) link; /* domain's list */
	mrrc_ref ref;		  /* endpoints bound to the CQ */
	size_t entry_size;	  /* the application's format */
	size_t core_entry_size;	  /* >= entry_size: formats are prefixes */
	bool internal;		  /* opened and read by us alone */
	/* endpoints of each way; guarded by the domain's cq_lock */
	unsigned rx_ways[MRRC_RX_WAYS];
	/*
	 * the CQ has endpoints with a shared context whose receives are
	 * unsignalled by default
	 */
	bool rx_selective;
	bool wait;	 /* has a wait object */
	bool wait_taken; /* FI_GETWAIT was answered */
	enum fi_wait_obj wait_obj;
	const struct mrrc_cq_over *_Atomic over; /* or NULL */
	/* state of conditional writes, or NULL */
	struct mrrc_cw_cq *_Atomic cw;
	struct mrrc_wait *wait_set; /* or NULL */
	bool no_source;		    /* the core has no readfrom */
	bool threshold;		    /* sread's cond is a count */
	bool buffered;		    /* has endpoints with FI_BUFFERED_RECV */
	/* domain->ops, copied for the hit path */
	const struct mrrc_pool *ops;
	/* spin lock; guards reads of the core's CQ, and pending */
	atomic_int lock;
	atomic_int signalled; /* fi_cq_signal() was called */
	/*
	 * threads inside the core's sread, and calls of mrrc_cq_leave_alone()
	 * in force; guarded by lock
	 */
	int sreaders;
	/* records left for sreaders, see data/flush.c; guarded by lock */
	int zombies;
	/*
	 * a close waits for receives of shared contexts, too; guarded by lock
	 */
	bool awaited;
	atomic_int silent; /* unsignalled operations outstanding */
	/* completions read on behalf of the application, oldest first */
	STAILQ_HEAD(, mrrc_comp) pending;
	atomic_size_t pending_cnt;
	void *err_data; /* err_data of the last error read */
	/* short operations that the CQ reported; written under lock */
	atomic_uint_fast64_t completions;
	/*
	 * operations that the CQ is to report; kept apart from the fields that
	 * readers write. Padding is used in place of alignment, so that the
	 * struct can come from calloc(): MemorySanitizer knows that calloc's
	 * memory is set.
	 */
	char apart[64];
	atomic_uint_fast64_t posts;
	char behind[56];
};

/* One direction of an endpoint. */
struct mrrc_ep_dir {
	/*
	 * range of the records in domain->ops, copied for the hit path: calls
	 * with a context outside this range, and with descriptors, get no
	 * record
	 */
	uintptr_t ops_base;
	size_t ops_len;
	struct mrrc_cq *cq;
	bool selective;	   /* FI_SELECTIVE_COMPLETION */
	bool counter;	   /* a counter is bound */
	bool holds_cq;	   /* mrrc_cq_leave_alone() was called for it */
	uint64_t op_flags; /* defaults of the calls without flags */
	size_t iov_limit;
	/* maximum number of parts of a split buffer; 0: no split */
	size_t split_limit;
};

/* FI_CLASS_EP, FI_CLASS_SRX_CTX, and scalable endpoints' contexts */
struct mrrc_ep {
	struct fid_ep ep;
	struct fid_ep *core;
	struct mrrc_domain *domain;
	struct mrrc_ep_dir tx, rx;
	/* may blocks be used? for each kind of operation: see ep.c */
	struct {
		bool out, recv, read;
	} copies;
	size_t write_split_limit, read_split_limit;
	bool shared_rx;		   /* receives come from a shared context */
	bool is_srx;		   /* this is the shared context */
	bool rx_way[MRRC_RX_WAYS]; /* the endpoint counts in rx.cq's rx_ways */
	bool rx_bind_late;	   /* bind rx.cq to the core later */
	bool buffered;		   /* FI_BUFFERED_RECV */
	bool plain;		   /* messages are data and nothing else */
	bool desc_always; /* the core uses descriptors of empty buffers */
	size_t inject_size;
	size_t buffered_max; /* bytes of one of the core's buffers */
	size_t copied;	     /* longest message that the core copies; 0: none */
	struct mrrc_least {
		size_t known; /* shortest message for mrrc_resolve_known() */
		/* shortest message for the path without function calls */
		size_t quick;
	} least_msg, least_rma;
	/*
	 * CQ that the provider bound where the application bound only a counter
	 */
	struct mrrc_cq *own_cq;
	/* this endpoint, or the endpoint of which it is an alias */
	struct mrrc_ep *base;
	uint64_t trace_ep; /* number for record.c; 0: by address */
	struct mrrc_track track;
	mrrc_ref ref;
	struct fi_info *info; /* the core's info of an FI_EP_MSG endpoint */
	struct mrrc_eq *eq;
	bool accepts;	    /* made from a connection request */
	bool request_noted; /* the request was noted (obj/request.c) */
	struct mrrc_av *av;
	bool connecting; /* also: connected, or enabled with an AV */
	/* fi_cw_enable() was called: connected, reliable datagrams */
	struct mrrc_cw_ep *cw;
	struct mrrc_cw_rdm *cw_rdm;
	struct fi_mrrc_cw ext_cw; /* for fi_cw_open() */
};

/* counts of children */
static inline void mrrc_ref_get(mrrc_ref *ref)
{
	atomic_fetch_add_explicit(ref, 1, memory_order_relaxed);
}

static inline void mrrc_ref_put(mrrc_ref *ref)
{
	atomic_fetch_sub_explicit(ref, 1, memory_order_release);
}

static inline bool mrrc_ref_busy(mrrc_ref *ref)
{
	return atomic_load_explicit(ref, memory_order_acquire) != 0;
}

static inline struct mrrc_domain *mrrc_domain_of(struct fid_domain *domain)
{
	return container_of(domain, struct mrrc_domain, domain);
}

static inline struct mrrc_fabric *mrrc_fabric_of(struct fid_fabric *fabric)
{
	return container_of(fabric, struct mrrc_fabric, fabric);
}

static inline struct mrrc_ep *mrrc_ep_of(struct fid_ep *ep)
{
	return container_of(ep, struct mrrc_ep, ep);
}

#endif /* MRRC_FI_H */
