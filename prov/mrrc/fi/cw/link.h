/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link: the state between one endpoint and one peer (cw/cw.h), and the
 * operations on it.
 */
#ifndef MRRC_CW_LINK_H
#define MRRC_CW_LINK_H

#include "core/cw/cw.h"
#include "core/cw/cw_map.h"
#include "core/cw/cw_phase.h"
#include "fi/cw/mark.h"
#include "fi/data/op.h"
#include "fi/obj/cq.h"

#define CW_RX	 128	     /* messages that a peer may send, besides HELLO */
#define CW_BUFS	 (CW_RX + 2) /* HELLO's, and one that is not posted */
#define CW_TX	 64	     /* transfers of one endpoint in flight */
#define CW_SLOTS 32	     /* limit of transfers with messages */

#define CW_LARGE 16 /* links of a domain with buffers for MRRC_CW_INLINE */

#define CW_PENDING 65536 /* limit of operations of each kind */

/* Levels of completion that a conditional write does not have */
#define CW_NO_LEVELS \
	(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE)

/* The kind of transfer that a completion of the core reports */
enum cw_kind { CW_RECV, CW_SEND, CW_WRITE };

struct cw_context {
	struct fi_context2 core; /* first */
	enum cw_kind kind;
	struct mrrc_cw_ep *cw;
};

struct cw_slot {
	struct cw_context context;
	struct cw_slot *next; /* list of free slots */
	char *buf;
};

struct cw_rec;

/* A part of a write: one for each of the target's segments */
struct cw_piece {
	struct cw_context context; /* first */
	struct cw_rec *rec;
};

/*
 * An operation, from posting until its completion is written. An operation
 * belongs first to the posting thread; then the group's lock guards the
 * operation until its end; then the operation belongs to the thread that
 * finishes it.
 */
struct cw_rec {
	union {
		struct mrrc_cw_wr wr; /* first */
		struct mrrc_cw_target target;
	};
	bool is_wr;
	struct mrrc_cw_ep *cw;
	STAILQ_ENTRY(cw_rec) link; /* in the list of ended operations */
	struct mrrc_comp *comp;	   /* completion for the application's CQ */
	void *context;
	void *buf;
	uint64_t flags;
	uint64_t seq; /* reliable datagrams: age of the operation */
	struct mrrc_cw_node by_context;
	bool noted; /* in the endpoint's by_context */
	struct mrrc_cw_end end;
	/* deadline for the peer's confirmation of a cancelled target; or 0 */
	int64_t confirm_by;
	TAILQ_ENTRY(cw_rec) confirm_link;
	/* a write */
	struct mrrc_op *op; /* holds its buffers, or NULL */
	unsigned piece_cnt, posted, flying;
	int err;
	size_t iov_cnt;
	struct iovec *iov; /* points to `few`, or is allocated */
	void **desc;
	/* a target */
	unsigned mr_cnt;
	uint64_t trace; /* for mrrc_record_end(); 0: not recorded */
	/*
	 * not cleared in a new record: the counts tell which entries are valid
	 */
	struct iovec few[MRRC_CW_SEGS]; /* a target's buffers */
	void *few_desc[MRRC_CW_SEGS];
	struct cw_piece piece[MRRC_CW_SEGS];
	struct mrrc_cw_seg seg[MRRC_CW_SEGS];
	struct fid_mr *mr[MRRC_CW_SEGS];
	struct mrrc_region *region[MRRC_CW_SEGS];
};
STAILQ_HEAD(cw_list, cw_rec);

/* A link. ANY: written under the group's lock, read without it as well */
struct mrrc_cw_ep {
	/* Set before other threads find the link; no lock */
	struct mrrc_ep *ep;
	/*
	 * the endpoint whose domain and info the control endpoint shares: ep,
	 * or the MSG domain's endpoint
	 */
	struct mrrc_ep *via;
	struct mrrc_cw_rdm *rdm; /* reliable datagrams; else NULL */
	struct mrrc_cw_group *group;
	struct mrrc_cw_name peer; /* of reliable datagrams */
	uint16_t inline_max;	  /* most bytes of a write in a message */

	/* No lock: the application's call to connect, or to accept, sets them */
	struct sockaddr_storage dest; /* the application's destination */
	bool accepts;		      /* this is the passive side */

	/*
	 * No lock: numbers of ended operations that are not finished, and of
	 * threads that use the link
	 */
	atomic_int ending;

	/* The AV's lock; reliable datagrams */
	struct mrrc_cw_node by_name;
	TAILQ_ENTRY(mrrc_cw_ep) of_rdm;
	/* the peer's name is not in the AV. Read without a lock */
	atomic_bool stranger;

	/* The group's lock: its connection */
	TAILQ_ENTRY(mrrc_cw_ep) link;
	_Atomic enum cw_phase phase; /* ANY; changed by conn.c alone */
	int64_t meet_by;	     /* listening or connecting: the deadline */
	atomic_bool lost; /* ANY: on the group's list of lost links */
	TAILQ_ENTRY(mrrc_cw_ep) lost_link;
	uint64_t cookie; /* of a connected endpoint */
	struct fid_ep *ctl;
	/* The group's lock, links of reliable datagrams: */
	atomic_bool hostile; /* ANY: quarantined */
	bool gone;	     /* about to be freed */
	uint32_t counted;    /* number of its tags in strange_tags */
	uint64_t nonce;	     /* nonce of our last attempt to connect */
	uint64_t stale;	     /* a void nonce of the peer's */
	/* request that waits until our attempt has ended */
	struct cw_request *deferred;

	/* The group's lock: messages and writes */
	struct mrrc_cw sm;
	struct fid_mr *mr;
	char *mem;
	struct cw_slot rx[CW_BUFS], tx[CW_SLOTS];
	struct cw_slot *rx_spare; /* the one that is not posted */
	struct cw_slot *tx_free;
	struct cw_slot *filling; /* the slot being filled, or NULL */
	size_t filled;
	TAILQ_ENTRY(mrrc_cw_ep) unsent_link;
	unsigned busy; /* transfers in flight, except receives */
	bool deaf;     /* a receive could not be posted */
	/*
	 * a message told the peer of a write, and may still be in the core
	 * although it has completed (tcp; verbs completes what has arrived)
	 */
	bool unconfirmed;
	bool confirm;		/* messages complete when they have arrived */
	struct cw_rec *partial; /* a write that the core took partly */
	/* the core had no room: in the group's list `full` */
	bool full;
	TAILQ_ENTRY(mrrc_cw_ep) full_link;

	/* The group's lock: operations */
	TAILQ_HEAD(, cw_rec) confirms; /* cancelled targets, oldest first */
	struct mrrc_cw_map by_context; /* operations that fi_cancel() finds */
	uint64_t issued_ns;	       /* when the core got the latest write */
	/* number of tags that fi_cw_tag_alloc() gave */
	uint64_t tags;
};

static inline bool mrrc_ep_has_cw(const struct mrrc_ep *ep)
{
	return ep->cw || ep->cw_rdm;
}

/*
 * Returns the most bytes of a write that a message of a new link may carry;
 * large: number of the domain's links with buffers for MRRC_CW_INLINE. Device
 * memory is not copied into messages. Over tcp one long message costs less than
 * a core write and a message; a network card places a write without a copy.
 */
static inline uint16_t mrrc_cw_inline_max(const struct mrrc_domain *domain,
					  unsigned large)
{
	if (domain->reg.hmem)
		return 0;
	if (domain->core_local || large >= CW_LARGE)
		return MRRC_CW_INLINE_MIN;
	return MRRC_CW_INLINE;
}

static inline bool mrrc_cw_up(const struct mrrc_cw_ep *cw)
{
	return cw->phase == CW_UP;
}

/* Is the link closed, or about to be? */
static inline bool mrrc_cw_closed(const struct mrrc_cw_ep *cw)
{
	return cw->phase == CW_LOST || cw->lost;
}

static inline void mrrc_cw_put(struct mrrc_cw_ep *cw)
{
	/* from now on the link may be gone */
	atomic_fetch_sub(&cw->ending, 1);
}

/*
 * cw/end.c. The group's lock held. Sets a deadline for the peer to confirm that
 * it will not write to a cancelled target. After the deadline the connection
 * ends.
 */
void mrrc_cw_confirm(struct cw_rec *rec);
void mrrc_cw_confirmed(struct cw_rec *rec);
/* cw/end.c. No lock held. Ends the exposure of a target's buffers. */
void mrrc_cw_conceal(struct mrrc_domain *domain, struct cw_rec *rec);
void mrrc_cw_rec_free(struct cw_rec *rec);
void mrrc_cw_finish(struct cw_list *list);

/*
 * Calls upward, to the code of reliable datagrams, for events of any
 * connection. The group's lock held
 */
struct mrrc_cw_over {
	/* Called after a change of the link's tags */
	void (*count)(struct mrrc_cw_ep *cw);
	/*
	 * Handles a request at the listener. false: the request is for a
	 * connected endpoint
	 */
	bool (*request)(struct mrrc_cw_group *group, struct fi_info *info,
			const void *data, size_t len);
	/*
	 * Handles an event of a core's endpoint that belongs to no link. err:
	 * the event's error, or 0
	 */
	void (*answer)(struct mrrc_cw_group *group, const struct fid *fid,
		       const void *data, size_t len, int err);
	/*
	 * until: returns the next deadline in ms, or 0. late: ends requests
	 * whose deadline has passed
	 */
	int64_t (*until)(const struct mrrc_cw_group *group);
	void (*late)(struct mrrc_cw_group *group);
	/* Handles waiting requests, with the lock released. */
	void (*greet)(struct mrrc_cw_group *group);
	/* Called when the group stops listening. */
	void (*shut)(struct mrrc_cw_group *group);
};
extern const struct mrrc_cw_over *mrrc_cw_over; /* set once, by ext_ops.c */

/* cw/link.c. The group's lock held, unless said otherwise. */

int mrrc_cw_link_open(struct mrrc_cw_ep *cw, struct fi_info *info);
/* Ends the connection at the next unlock. */
void mrrc_cw_lose(struct mrrc_cw_ep *cw, const char *why);
/* Called after each call of the state machine. */
void mrrc_cw_after(struct mrrc_cw_ep *cw);
/*
 * Sends the queued messages of all links. Messages that the core does not take
 * now are sent with the next completion.
 */
void mrrc_cw_flush_all(struct mrrc_cw_group *group);
/*
 * Handles completions of the group's links, and posts transfers for which the
 * core had no room before. asleep: the caller is about to sleep, so no
 * completion may stay in the CQ
 */
void mrrc_cw_links_poll(struct mrrc_cw_group *group, bool asleep);
/*
 * Handles the completions that the group's CQ has now. A peer's writes with
 * data may fill the CQ without end, so the call reads a limited number.
 */
void mrrc_cw_links_drain(struct mrrc_cw_group *group);
/* The oldest operation with this context that was not forgotten, or NULL */
struct cw_rec *mrrc_cw_oldest(const struct mrrc_cw_ep *cw, const void *context);
/* fi_cancel() no longer finds the operation. The group's lock held */
void mrrc_cw_forget(struct mrrc_cw_ep *cw, struct cw_rec *rec);
/*
 * From now until the connection ends, messages complete only when they have
 * arrived at the peer; one more message shows that earlier messages have. Returns
 * whether messages are still on their way.
 */
bool mrrc_cw_unconfirmed(struct mrrc_cw_ep *cw);
/* Closes the control endpoint; the link's operations stay. */
void mrrc_cw_link_close(struct mrrc_cw_ep *cw);
void mrrc_cw_stats_add(struct fi_mrrc_cw_stats *sum,
		       const struct mrrc_cw_ep *cw);
extern const struct mrrc_cw_ops mrrc_cw_sm_ops;

/* cw/group.c. Any thread, no lock held. */
/*
 * Ends the link's operations, removes the link from its group, and frees the
 * link.
 */
void mrrc_cw_link_free(struct mrrc_cw_ep *cw, int err);

/* cw/op.c. No lock held. */
struct mrrc_source;
/* source: NULL, or the source that is written in place of msg's buffers */
ssize_t mrrc_cw_post_write(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			   uint64_t flags, const struct mrrc_source *source);
ssize_t mrrc_cw_post_tag(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			 uint64_t flags);
/* 0, or -FI_ENOENT */
int mrrc_cw_cancel(struct mrrc_ep *ep, void *context);

#endif /* MRRC_CW_LINK_H */
