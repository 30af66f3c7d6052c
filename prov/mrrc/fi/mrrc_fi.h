/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of the fi layer: a wrapper for each that an application can
 * hold, and nothing else.
 *
 * Each wrapper embeds the public fid, points to the core provider's object
 * (core) and to its parent. The core's object is opened with our fid as its
 * context, so whatever the core reports about it leads back to us.
 *
 * Every object counts on its parent (mrrc_ref), so closing a parent first
 * answers -FI_EBUSY, as libfabric's providers do.
 *
 * Threading: as the application asked for; see domain.c for what the core is
 * opened with.
 */
#ifndef MRRC_FI_H
#define MRRC_FI_H

#include <limits.h>
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

#include "core/admit.h"
#include "reg.h"
#include "sys/mon.h"
#include "sys/pages.h"

#define MRRC_PROV_NAME "ofi_mrrc"

#ifndef container_of		/* in fabric.h until libfabric 2.x */
#define container_of(ptr, type, field) \
	((type *) ((char *) (ptr) - offsetof(type, field)))
#endif
#ifndef count_of
#define count_of(x)	(sizeof(x) / sizeof((x)[0]))
#endif

/* the libfabric whose headers these are */
#define MRRC_FI_HEADERS	FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

#ifndef FI_AUTH_KEY		/* since 1.20 */
#define FI_AUTH_KEY	(1ULL << 57)
#endif
#if FI_MAJOR_VERSION >= 2
/* deprecated there: each use would warn; older applications still have them */
#undef FI_LOCAL_MR
#define FI_LOCAL_MR	(1ULL << 55)
#undef FI_MR_BASIC
#define FI_MR_BASIC	(1 << 0)
#undef FI_MR_SCALABLE
#define FI_MR_SCALABLE	(1 << 1)
#undef FI_REG_MR
#define FI_REG_MR	(1ULL << 59)
#endif
#ifndef FI_BUFFERED_RECV	/* gone in 2.x: no endpoint has it */
#define FI_BUFFERED_RECV	0
#endif

/*
 * Bits of libfabric's own src/fabric.c and util layer, the same from v1.10 to
 * v2.5, in no public header.
 */
#define MRRC_GETINFO_INTERNAL	(1ULL << 58)	/* a provider asks */
#define MRRC_GETINFO_CORE_ONLY	(1ULL << 59)	/* no utility providers */
#define MRRC_GETINFO_HIDDEN	(1ULL << 60)	/* in spite of FI_PROVIDER */
#define MRRC_MR_NOCACHE		(1ULL << 60)	/* past the core's cache */

#define MRRC_ALL_MR_MODES \
	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | \
	 FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | \
	 FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_COLLECTIVE)

extern struct fi_provider mrrc_prov;

#define MRRC_WARN(subsys, ...)	\
	FI_WARN(&mrrc_prov, FI_LOG_##subsys, __VA_ARGS__)
#define MRRC_INFO(subsys, ...)	\
	FI_INFO(&mrrc_prov, FI_LOG_##subsys, __VA_ARGS__)
#define MRRC_DBG(subsys, ...)	\
	FI_DBG(&mrrc_prov, FI_LOG_##subsys, __VA_ARGS__)

#define mrrc_unlikely(x)	__builtin_expect(!!(x), 0)

typedef atomic_int mrrc_ref;	/* children of an object */

struct mrrc_blocks;
struct mrrc_pool;
struct mrrc_op;
struct mrrc_comp;
struct mrrc_poll_cq;
struct mrrc_cw_cq;
struct mrrc_cw_domain;
struct mrrc_cw_ep;
struct mrrc_cw_mark;

/* An object that the core may name in an event: see fid.c. */
struct mrrc_track {
	struct mrrc_track *next;
	struct fid *core, *ours;
};
#define MRRC_TRACK_BUCKETS 256

struct mrrc_fabric {
	struct fid_fabric fabric;
	struct fid_fabric *core;
	char *core_prov_name;	/* "verbs" of "verbs;ofi_mrrc" */
	mrrc_ref ref;
	pthread_mutex_t track_lock;	/* guards what follows; a leaf */
	struct mrrc_track *tracks[MRRC_TRACK_BUCKETS];
	struct mrrc_cw_mark *marks;	/* see cw_cm.c */
};

struct mrrc_domain {
	struct fid_domain domain;
	struct fid_domain *core;
	struct mrrc_fabric *fabric;
	mrrc_ref ref;
	struct mrrc_reg reg;	/* its cache when implicit */
	bool core_local;	/* the core requires local descriptors */
	bool implicit;		/* null descriptors are ours to resolve */
	bool multi_recv;	/* opened with FI_MULTI_RECV */
	char nothing;		/* what stands for empty buffers */
	bool core_rx_always;	/* it completes every receive, as verbs does */
	struct mrrc_eq *eq;	/* bound, for FI_REG_MR */
	/* records in flight, when implicit: a context in it is ours */
	struct mrrc_pool *ops;
	/* copies: blocks, and when to use them (the cache's lock) */
	struct mrrc_blocks *blocks;
	size_t bounce_max;	/* bytes of a buffer; 0: never */
	struct mrrc_admit admit;
	atomic_uint_fast64_t warned;	/* bit per error said once */
	atomic_uint_fast64_t posts;
	atomic_uint_fast64_t completions;
	pthread_mutex_t cq_lock;	/* guards cqs */
	struct mrrc_cq *cqs;	/* every CQ of the domain, linked by next */
	atomic_int internal_cqs;	/* of them, opened by us */
	struct mrrc_cw_domain *cw;	/* once an endpoint has them */
};

struct mrrc_eq {
	struct fid_eq eq;
	struct fid_eq *core;
	struct mrrc_fabric *fabric;
	mrrc_ref ref;		/* domains bound to it */
	atomic_bool cw;		/* private data is to be looked at */
};

struct mrrc_wait {
	struct fid_wait wait;
	struct fid_wait *core;
	struct mrrc_fabric *fabric;
	mrrc_ref ref;		/* queues opened with it */
	atomic_size_t stash_cnt;	/* sum of its CQs' */
};

struct mrrc_poll {
	struct fid_poll poll;
	struct fid_poll *core;
	struct mrrc_domain *domain;
	pthread_mutex_t lock;	/* guards cqs */
	struct mrrc_poll_cq *cqs;	/* the CQs in the set: see poll.c */
};

struct mrrc_pep {
	struct fid_pep pep;
	struct fid_pep *core;
	struct mrrc_fabric *fabric;
	struct mrrc_track track;
	struct mrrc_eq *eq;
	bool cw;		/* conditional writes: fi_cw_enable() */
};

struct mrrc_av {
	struct fid_av av;
	struct fid_av *core;
	struct mrrc_domain *domain;
	struct mrrc_track track;
};

struct mrrc_mr {
	struct fid_mr mr;
	struct fid_mr *core;
	struct mrrc_domain *domain;
	struct mrrc_region *region;	/* of a local one, from the cache */
	uint64_t key;			/* then: as it was requested */
	bool no_desc;			/* the core's is not given */
	uint64_t trace;			/* what record.c ends; else 0 */
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

struct mrrc_cq {
	struct fid_cq cq;
	struct fid_cq *core;
	struct mrrc_domain *domain;
	struct mrrc_cq *next;	/* domain's list */
	mrrc_ref ref;		/* endpoints bound to it */
	size_t entry_size;	/* of the application's format */
	size_t core_entry_size;	/* >= entry_size: formats are prefixes */
	bool internal;		/* opened by us: nobody reads it but us */
	bool rx_selective;	/* of endpoints with a shared context */
	bool wait;		/* it can be slept on */
	bool wait_taken;	/* FI_GETWAIT was answered */
	enum fi_wait_obj wait_obj;
	struct mrrc_cw_cq *cw;	/* of endpoints with conditional writes */
	struct mrrc_wait *wait_set;	/* or NULL */
	bool no_source;		/* the core has no readfrom */
	bool threshold;		/* sread's cond is a count */
	bool buffered;		/* of endpoints with FI_BUFFERED_RECV */
	/* the range of domain->ops, copied for the hit path */
	uintptr_t ops_base;
	size_t ops_len;
	atomic_int lock;	/* spin; guards reading of core and the stash */
	atomic_int signalled;	/* by the application, for sread to return */
	int sreaders;		/* threads inside the core's sread; lock */
	int zombies;		/* records left for them, see sweep.c; lock */
	atomic_int silent;	/* unsignalled operations outstanding */
	/* completions read on behalf of the application, oldest first */
	STAILQ_HEAD(, mrrc_comp) stash;
	atomic_size_t stash_cnt;
	void *err_data;		/* of the last error read from the stash */
};

/* One direction of an endpoint. */
struct mrrc_ep_dir {
	struct mrrc_cq *cq;
	bool selective;		/* FI_SELECTIVE_COMPLETION */
	bool counter;		/* a counter is bound */
	uint64_t op_flags;	/* defaults of the calls without flags */
	size_t iov_limit;
	size_t split_limit;	/* buffers that a message may become; 0: none */
};

/* FI_CLASS_EP, FI_CLASS_SRX_CTX, and scalable endpoints' contexts */
struct mrrc_ep {
	struct fid_ep ep;
	struct fid_ep *core;
	struct mrrc_domain *domain;
	/* the range of domain->ops, copied for the hit path */
	uintptr_t ops_base;
	size_t ops_len;
	struct mrrc_ep_dir tx, rx;
	/* may go through blocks of ours; what is copied in, see ep.c */
	struct {
		bool out, recv, read;
	} copies;
	size_t write_split_limit, read_split_limit;
	bool shared_rx;		/* receives come from a shared context */
	bool is_srx;		/* this is the shared context */
	bool rx_bind_late;	/* rx.cq is yet to be bound to the core */
	bool buffered;		/* FI_BUFFERED_RECV */
	bool plain;		/* messages are data and nothing else */
	bool desc_always;	/* the core uses descriptors of empty buffers */
	size_t inject_size;
	struct mrrc_cq *own_cq;	/* bound by us where a counter alone was */
	struct mrrc_ep *alias_of;
	uint64_t trace_ep;	/* record.c: its number; 0: peers have one */
	struct mrrc_track track;
	mrrc_ref ref;
	struct fi_info *info;	/* the core's view, of FI_EP_MSG */
	struct mrrc_eq *eq;
	bool cw_marked;		/* the peer asked for conditional writes */
	bool connecting;	/* or connected */
	struct mrrc_cw_ep *cw;	/* fi_cw_enable() */
};

/* parent counting */
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

/* fid.c: the core's fid behind one of ours; NULL if it is none of ours */
struct fid *mrrc_fid_core(struct fid *fid);
int mrrc_fid_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int mrrc_fid_control(struct fid *fid, int command, void *arg);
int mrrc_fid_ops_open(struct fid *fid, const char *name, uint64_t flags,
		      void **ops, void *context);
int mrrc_fid_ops_set(struct fid *fid, const char *name, uint64_t flags,
		     void *ops, void *context);
int mrrc_fid_tostr(const struct fid *fid, char *buf, size_t len);
/*
 * From open to close of each endpoint, passive endpoint and address vector:
 * which of ours stands for an object of the core that an event names.
 */
void mrrc_fid_track(struct mrrc_fabric *fabric, struct mrrc_track *track,
		    struct fid *core, struct fid *ours);
void mrrc_fid_untrack(struct mrrc_fabric *fabric, struct mrrc_track *track);
struct fid *mrrc_fid_find(struct mrrc_fabric *fabric, const struct fid *core,
			  struct fid *copy);

/* abi.c: false if the libfabric that loaded us lacks what it needs */
bool mrrc_abi_bind(void);

/* param.c */
enum mrrc_register {
	MRRC_REGISTER_AUTO,	/* where the core requires FI_MR_LOCAL */
	MRRC_REGISTER_ALWAYS,	/* also where it does not: for tests */
	MRRC_REGISTER_NEVER,	/* descriptors are the application's matter */
};

enum mrrc_lazy {
	MRRC_LAZY_AUTO,		/* ofi_rxm's for a rendezvous */
	MRRC_LAZY_ALWAYS,	/* whatever peers can reach */
	MRRC_LAZY_NEVER,
};

enum mrrc_helper {
	MRRC_HELPER_AUTO,	/* where the core can be called by it */
	MRRC_HELPER_ALWAYS,	/* and is made to */
	MRRC_HELPER_NEVER,
};

enum mrrc_hooks {
	MRRC_HOOKS_AUTO,
	MRRC_HOOKS_ON,		/* warn where they cannot be placed */
	MRRC_HOOKS_OFF,
};

struct mrrc_params {
	enum mrrc_register reg;
	enum mrrc_lazy lazy;	/* of the hooking form */
	size_t cache_max_size;	/* bytes; SIZE_MAX: not set, derive */
	size_t alloc_max_size;	/* likewise, of fi_mr_alloc */
	size_t alloc_idle;	/* ms */
	enum mrrc_pages alloc_pages;
	size_t cache_max_count;	/* regions; SIZE_MAX: not set, derive */
	enum mrrc_helper helper;
	enum mrrc_mon_probe probe;
	char policy[64];
	bool cost_measure;
	struct mrrc_cost cost;	/* unless measured */
	char cost_text[96];
	size_t bounce_size;	/* of the largest buffer to be copied */
	char monitor[16];	/* "auto", "uffd", "manual", "none" */
	enum mrrc_hooks hooks;
	char stats_file[PATH_MAX];	/* empty: none */
	char trace[PATH_MAX];	/* empty: none */
	size_t trace_size;	/* bytes */
};
extern struct mrrc_params mrrc_params;
void mrrc_params_init(void);
/* A path with %p replaced by the process; -FI_EINVAL: too long. */
int mrrc_param_path(const char *pattern, char *path, size_t size);

/* init.c: what both providers' entries do; prov, or NULL with a message */
struct fi_provider *mrrc_prov_ini(struct fi_provider *prov);

/* info.c */
int mrrc_getinfo(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info);
/*
 * A copy of an application's info for the core; free with fi_freeinfo().
 * domain is NULL where there is none yet.
 */
/* Whether the core's domain is opened for calls from any thread. */
bool mrrc_info_thread_safe(const struct fi_info *info);

int mrrc_info_to_core(const struct mrrc_domain *domain,
		      const struct mrrc_fabric *fabric,
		      const struct fi_info *info, struct fi_info **core_info);
/*
 * Local registration is ours to do: say so to the core. The old mode bit goes
 * with every mr_mode, the new one only where mr_mode is a set of bits.
 */
void mrrc_info_add_local(struct fi_info *core);
/* Change in place what the core answered into what the application sees. */
void mrrc_info_from_core(struct fi_info *info);
/* What the core that "ofi_mrrc" alone stands on says about a fabric. */
int mrrc_getinfo_best(uint32_t version, const struct fi_info *hints,
		      struct fi_info **info);
/* Does the core under fabric require local descriptors, and what else? */
int mrrc_info_core_mr_mode(const struct mrrc_fabric *fabric,
			   const struct fi_info *info, int *mr_mode,
			   bool *local);
/* malloc'd name of what lies under us in "a;b;ofi_mrrc", or NULL */
char *mrrc_prov_name_below(const char *name);

/* one object a file */
int mrrc_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		     void *context);
int mrrc_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		     struct fid_domain **domain, void *context);
int mrrc_domain_open2(struct fid_fabric *fabric, struct fi_info *info,
		      struct fid_domain **domain, uint64_t flags,
		      void *context);
int mrrc_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		 struct fid_eq **eq, void *context);
int mrrc_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		   struct fid_wait **wait);
int mrrc_trywait(struct fid_fabric *fabric, struct fid **fids, int count);
int mrrc_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		   struct fid_poll **poll);
int mrrc_pep_open(struct fid_fabric *fabric, struct fi_info *info,
		  struct fid_pep **pep, void *context);
int mrrc_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		 struct fid_av **av, void *context);
int mrrc_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		   struct fid_cntr **cntr, void *context);
int mrrc_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 struct fid_cq **cq, void *context);
int mrrc_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr,
		  struct fid_stx **stx, void *context);
int mrrc_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		  struct fid_ep **srx, void *context);
int mrrc_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context);
int mrrc_ep_open2(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **ep, uint64_t flags, void *context);
int mrrc_sep_open(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **sep, void *context);

/* ep.c: once, before the core enables an endpoint */
int mrrc_ep_prepare(struct mrrc_ep *ep);

extern struct fi_ops_mr mrrc_mr_ops;
extern struct fi_ops_cm mrrc_cm_ops;	/* endpoints */
extern struct fi_ops_cm mrrc_pep_cm_ops;

/*
 * Data calls: *_fwd_ops only forward, for endpoints that resolve nothing;
 * the others resolve null descriptors.
 */
extern struct fi_ops_msg mrrc_msg_ops, mrrc_msg_fwd_ops;
extern struct fi_ops_rma mrrc_rma_ops, mrrc_rma_fwd_ops;
extern struct fi_ops_tagged mrrc_tagged_ops, mrrc_tagged_fwd_ops;
extern struct fi_ops_atomic mrrc_atomic_ops, mrrc_atomic_fwd_ops;
extern struct fi_ops_collective mrrc_collective_fwd_ops;

/* domain.c: calls of a domain, and what fi_ext_mrrc.h looks for behind them */
struct mrrc_domain_fid_ops {
	struct fi_ops ops;
	struct fi_mrrc_tail tail;
};
extern struct mrrc_domain_fid_ops mrrc_domain_fid_ops;

/* stats.c: FI_MRRC_DOMAIN_OPS */
struct fi_mrrc_ops_domain;
int mrrc_stats_out(const struct fi_mrrc_stats *full,
		   struct fi_mrrc_stats *stats);
extern struct fi_mrrc_ops_domain mrrc_domain_ext_ops;

/* cq.c: the lock of every CQ of a domain */
void mrrc_domain_lock_cqs(struct mrrc_domain *domain);
void mrrc_domain_unlock_cqs(struct mrrc_domain *domain);

/* cq.c: read what is there on the application's behalf; any thread */
void mrrc_cq_drain(struct mrrc_cq *cq);
void mrrc_domain_drain(struct mrrc_domain *domain);
/* cq.c: an endpoint with FI_BUFFERED_RECV is bound to it */
void mrrc_cq_set_buffered(struct mrrc_cq *cq);
int mrrc_cq_open_internal(struct mrrc_domain *domain, struct mrrc_cq **cq);

/*
 * cw_*.c, conditional writes. What other files call, where an object has
 * them; struct mrrc_ep's cw, struct mrrc_eq's and so on tell.
 */
int mrrc_cw_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context);
void mrrc_cw_ep_close(struct mrrc_ep *ep);
void mrrc_cw_domain_close(struct mrrc_domain *domain);
void mrrc_cw_progress(struct mrrc_cw_domain *domain);
int mrrc_cw_connect(struct mrrc_ep *ep, const void *addr, const void *param,
		    size_t paramlen);
int mrrc_cw_accept(struct mrrc_ep *ep, const void *param, size_t paramlen);
void mrrc_cw_shutdown(struct mrrc_ep *ep);
void mrrc_cw_gone(struct mrrc_ep *ep);
/* After getopt: private data that is left to the application; 0 */
int mrrc_cw_cm_data(int level, int optname, void *optval);
/* As fi_eq_read(), or with wait as fi_eq_sread(). */
ssize_t mrrc_cw_eq_read(struct mrrc_eq *eq, uint32_t *event, void *buf,
			size_t len, bool wait, int timeout, uint64_t flags);
/* A request's handle was used, or refused: was it marked? */
bool mrrc_cw_mark_take(struct mrrc_fabric *fabric, const struct fid *handle);
void mrrc_cw_marks_free(struct mrrc_fabric *fabric);
/* 0, or -FI_ENOENT */
int mrrc_cw_cancel(struct mrrc_ep *ep, void *context);
void mrrc_cw_cq_close(struct mrrc_cq *cq);
void mrrc_cw_cq_wake(struct mrrc_cq *cq);
int mrrc_cw_cq_getwait(struct mrrc_cq *cq, int *fd);
/* Before fi_trywait(): 0 or -FI_EAGAIN */
int mrrc_cw_cq_trywait(struct mrrc_cq *cq);

/* eq.c: change what an event names into ours */
void mrrc_eq_from_core(struct mrrc_eq *eq, uint32_t event, void *buf,
		       size_t len);

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
