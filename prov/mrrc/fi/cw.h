/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes on libfabric: what the files cw_*.c share. The protocol
 * and its states are core/cw.h.
 *
 *   cw_cm.c    opt-in, private data, how two control endpoints meet
 *   cw_link.c  the control endpoint: buffers, sending, writing, progress
 *   cw_group.c groups of those, progress, closing
 *   cw_op.c    operations: posting, their end, cancel
 *   cw_cq.c    completion queues of endpoints that take part, and waiting
 *   cw_auto.c  progress without calls
 *   cw_ops.c   the extension's table of calls
 *
 * A control endpoint is one of the core's, beside the application's, to the
 * same peer. Messages and the writes themselves go over it, in order: the
 * message that a write is done follows the write, and a write that fails
 * breaks no connection of the application's.
 *
 * Control endpoints of a domain share CQ and EQ by groups, so that whoever
 * polls looks at few of them. A group's lock guards all that its members
 * have; the core is called under it, but nothing is registered, and nobody
 * takes a CQ's lock under it. What has ended is put on the member's list
 * there, and finished by one thread at a time after the lock is released.
 */
#ifndef MRRC_CW_FI_H
#define MRRC_CW_FI_H

#include <netinet/in.h>

#include <rdma/fi_ext_mrrc.h>

#include "core/cw.h"
#include "cq.h"
#include "op.h"

#define CW_RX		32	/* messages that fit here, and HELLO */
#define CW_TX		64	/* transfers of one endpoint under way */
#define CW_GROUP	16	/* endpoints that share a CQ */

/* What the core gives back: which of the transfers. */
enum cw_kind { CW_RECV, CW_SEND, CW_WRITE };

struct cw_context {
	struct fi_context2 core;	/* first */
	enum cw_kind kind;
	struct mrrc_cw_ep *cw;
};

struct cw_slot {
	struct cw_context context;
	struct cw_slot *next;		/* free ones */
	char *buf;
};

struct cw_rec;

/* A part of a write: one for each of the target's segments */
struct cw_piece {
	struct cw_context context;	/* first */
	struct cw_rec *rec;
};

/* An operation, from posting until its completion is written. */
struct cw_rec {
	union {
		struct mrrc_cw_wr wr;		/* first */
		struct mrrc_cw_target target;
	};
	bool is_wr;
	struct mrrc_cw_ep *cw;
	STAILQ_ENTRY(cw_rec) link;	/* ended, or empty and landed */
	struct mrrc_comp *comp;		/* for the application's CQ */
	void *context;
	void *buf;
	uint64_t flags, seq;
	struct mrrc_cw_end end;
	/* a write */
	struct mrrc_op *op;		/* holds its buffers, or NULL */
	size_t iov_cnt;
	struct iovec *iov;
	void **desc;
	struct cw_piece piece[MRRC_CW_SEGS];
	struct mrrc_cw_seg seg[MRRC_CW_SEGS];
	unsigned piece_cnt, posted, flying;
	int err;
	/* a target */
	unsigned mr_cnt;
	struct fid_mr *mr[MRRC_CW_SEGS];
	struct mrrc_region *region[MRRC_CW_SEGS];
	uint64_t trace;			/* what record.c ends; else 0 */
};
STAILQ_HEAD(cw_list, cw_rec);

enum cw_phase {
	CW_OPTED,	/* enabled, not connected */
	CW_LISTENING,	/* the peer's control endpoint is to come */
	CW_CONNECTING,
	CW_UP,
	CW_LOST,	/* was, or could not be */
	CW_ALONE,	/* the peer does not take part */
};

struct mrrc_cw_ep {
	struct mrrc_ep *ep;
	struct mrrc_cw_group *group;
	TAILQ_ENTRY(mrrc_cw_ep) link;
	enum cw_phase phase;
	int64_t meet_by;	/* listening or connecting: no longer */
	bool lost;		/* on the group's list of those */
	TAILQ_ENTRY(mrrc_cw_ep) lost_link;
	uint64_t cookie;
	uint64_t tags;		/* given by fi_cw_tag_alloc() */
	bool accepts;		/* the passive side */
	struct sockaddr_storage dest;	/* as the application connects */
	struct mrrc_cw sm;
	bool sm_live;
	struct fid_ep *ctl;
	struct fid_mr *mr;
	char *mem;
	struct cw_slot rx[CW_RX + 1], tx[CW_TX];
	struct cw_slot *tx_free;
	unsigned busy;		/* transfers under way, but for receives */
	struct cw_rec *partial;	/* a write that the core took in part */
	struct cw_list empty;	/* writes of nothing, issued */
	uint64_t seq;		/* of operations */
	atomic_int ending;	/* ended, not finished */
};

struct mrrc_cw_group {
	struct mrrc_cw_group *next;	/* the domain's; never removed */
	struct mrrc_domain *domain;
	pthread_mutex_t lock;
	struct fid_cq *cq;
	struct fid_eq *eq;
	int cq_fd, eq_fd;
	struct fid_pep *pep;		/* listens, once one accepts */
	uint16_t port;			/* there, in network order */
	unsigned cnt, polls;
	atomic_uint meeting;		/* listening or connecting */
	TAILQ_HEAD(, mrrc_cw_ep) eps, lost;
	struct cw_list ended;
	bool finishing;			/* some thread does, unlocked */
};

/* Of a domain, from the first endpoint that takes part until it closes. */
struct mrrc_cw_domain {
	pthread_mutex_t lock;		/* guards what follows */
	struct mrrc_cw_group *_Atomic groups;
	struct mrrc_cw_cq *cqs;
	struct mrrc_cw_auto *automatic;	/* NULL: progress is the calls' */
	atomic_uint reads;		/* of CQs, by the application */
};

/* Of a CQ that such endpoints are bound to. */
struct mrrc_cw_cq {
	struct mrrc_cq *cq;
	struct mrrc_cw_cq *next;	/* the domain's */
	struct fi_ops_cq *below;	/* the CQ's own calls */
	int wake_fd;			/* eventfd: the stash has something */
	int epoll_fd;			/* core, groups, wake_fd; -1 */
	bool pollfd;			/* the core's wait object is a set */
	atomic_int signalled;		/* as the CQ's own, for our sread */
};

/* cw_cm.c */
int mrrc_cw_enable(struct fid *fid, uint64_t flags);
/* Events of a group's EQ. Lock held. */
void mrrc_cw_group_events(struct mrrc_cw_group *group);

/* cw_link.c. The group's lock held, unless said otherwise. */

int mrrc_cw_link_open(struct mrrc_cw_ep *cw, struct fi_info *info);
/* The connection is to be ended; the next unlock does it. */
void mrrc_cw_lose(struct mrrc_cw_ep *cw, const char *why);
/* After any call of the state machine's. */
void mrrc_cw_after(struct mrrc_cw_ep *cw);
void mrrc_cw_group_poll(struct mrrc_cw_group *group);
/* Close its connection, end its operations. */
void mrrc_cw_end_all(struct mrrc_cw_ep *cw, int err);
extern const struct mrrc_cw_ops mrrc_cw_sm_ops;
/* Then finish what has ended. */
void mrrc_cw_group_unlock(struct mrrc_cw_group *group);
/* cw_group.c. Any thread, no lock held. */
int mrrc_cw_domain_open(struct mrrc_domain *domain);
int mrrc_cw_group_join(struct mrrc_cw_ep *cw);

/* cw_op.c. No lock held. */
ssize_t mrrc_cw_post_write(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			   uint64_t flags);
ssize_t mrrc_cw_post_tag(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			 uint64_t flags);
void mrrc_cw_finish(struct cw_list *list);

/* cw_auto.c. No lock held. */
int mrrc_cw_auto_start(struct mrrc_domain *domain, const struct fi_info *info);
void mrrc_cw_auto_stop(struct mrrc_cw_domain *cwd);

/* cw_cq.c. No lock held. */
int mrrc_cw_cq_join(struct mrrc_cq *cq);
void mrrc_cw_cq_add_group(struct mrrc_cw_cq *ccq, struct mrrc_cw_group *group);

/* cw_ops.c */
extern struct fi_mrrc_ops_cw mrrc_cw_ext_ops;

static inline struct mrrc_ep *mrrc_cw_base(struct mrrc_ep *ep)
{
	return ep->alias_of ? ep->alias_of : ep;
}

#endif /* MRRC_CW_FI_H */
