/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes on libfabric: what the files of this folder share. The
 * protocol and its states are core/cw.h. Other folders call nothing of it but
 * mrrc_cw_calls_init(): fi_cw_enable() replaces the calls of objects.
 *
 *   enable.c      opting in
 *   ep.c          calls of endpoints that have opted in
 *   cm.c          the application's connection, and marks in its private data
 *   rdm.c         reliable datagrams: a link for each peer, made on demand
 *   accept.c      incoming requests for such an endpoint
 *   ask.c         verifies the sender of such a request
 *   av.c          address vectors with names of such endpoints
 *   name.c        those names
 *   cm_data.c     marks in private data
 *   msg_domain.c  the domain of control endpoints beside reliable datagrams
 *   connect.c     connecting two control endpoints
 *   listen.c      a group's listener
 *   link.c        the control endpoint: buffers, sending, writing, progress
 *   group.c       groups of control endpoints, progress, closing
 *   op.c          operations: posting, their end, cancel
 *   cq.c          completion queues of endpoints that take part, and waiting
 *   progress.c    automatic progress
 *   ext_ops.c     the extension's table of calls
 *
 * A link is what one endpoint has with one peer (struct mrrc_cw_ep): the only
 * one of a connected endpoint, one of many of reliable datagrams.
 *
 * A control endpoint is one of the core's, beside the application's, to the
 * same peer. Messages and the writes themselves go over it, in order: the
 * message that a write is done follows the write, and a write that fails breaks
 * no connection of the application's.
 *
 * Control endpoints of a domain share CQ and EQ by groups, so that a poll looks
 * at few of them. A group's lock guards all that its members have. The core is
 * called under it, but no memory is registered and no CQ's lock is taken.
 * Operations that have ended are put on the member's list, and finished by one
 * thread at a time after the lock is released.
 */
#ifndef MRRC_CW_FI_H
#define MRRC_CW_FI_H

#include <netinet/in.h>

#include <rdma/fi_ext_mrrc.h>

#include "core/cw.h"
#include "core/cw_map.h"
#include "fi/obj/cq.h"
#include "fi/data/op.h"

#define CW_RX	 128 /* messages that fit here, besides HELLO */
#define CW_TX	 64  /* transfers of one endpoint in flight */
#define CW_SLOTS 32  /* of these, those with messages */
#define CW_GROUP 16  /* links that share a CQ */

/* modes that exclude registrations of the provider's own */
#define CW_NO_MODES (FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_RMA_EVENT)

/* The kind of transfer that a completion of the core's is for. */
enum cw_kind { CW_RECV, CW_SEND, CW_WRITE };

struct cw_context {
	struct fi_context2 core; /* first */
	enum cw_kind kind;
	struct mrrc_cw_ep *cw;
};

struct cw_slot {
	struct cw_context context;
	struct cw_slot *next; /* free ones */
	char *buf;
};

struct cw_rec;

/* A part of a write: one for each of the target's segments */
struct cw_piece {
	struct cw_context context; /* first */
	struct cw_rec *rec;
};

/* An operation, from posting until its completion is written. */
struct cw_rec {
	union {
		struct mrrc_cw_wr wr; /* first */
		struct mrrc_cw_target target;
	};
	bool is_wr;
	struct mrrc_cw_ep *cw;
	STAILQ_ENTRY(cw_rec) link; /* ended, or empty and landed */
	struct mrrc_comp *comp;	   /* for the application's CQ */
	void *context;
	void *buf;
	uint64_t flags;
	uint64_t seq; /* of reliable datagrams: its age */
	struct mrrc_cw_node by_context;
	struct mrrc_cw_end end;
	/* a write */
	struct mrrc_op *op; /* holds its buffers, or NULL */
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
	uint64_t trace; /* what record.c ends; else 0 */
};
STAILQ_HEAD(cw_list, cw_rec);

enum cw_mark_kind {
	CW_MARK_CONNECT = 1,
	CW_MARK_ACCEPT,
	CW_MARK_CONTROL,
	/* of reliable datagrams; the sender's name follows */
	CW_MARK_PEER,
	CW_MARK_ASK, /* does this nonce belong to you? */
	CW_MARK_YES,
};

/* In network byte order. FI_CW_CM_DATA bytes */
struct cw_mark {
	uint32_t magic;
	uint8_t version, kind;
	uint16_t len; /* of the application's data */
	uint32_t cookie[2];
	union {
		struct {
			uint16_t port, zero;
		};
		uint32_t number; /* PEER, ASK: as in the name */
	};
};

_Static_assert(sizeof(struct cw_mark) == FI_CW_CM_DATA, "as documented");

/* A name as other sides have it: marked; zero after the address */
struct mrrc_cw_name {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

struct cw_addr_text {
	char text[INET6_ADDRSTRLEN + sizeof(" port 65535")];
};

struct cw_peer_mark {
	struct cw_mark mark;
	struct mrrc_cw_name name;
};

/* A connection request at a group's listener, of reliable datagrams */
struct cw_request {
	STAILQ_ENTRY(cw_request) link;
	struct fid_pep *pep;
	struct fi_info *info;
	struct mrrc_cw_name from;
	uint32_t to; /* our number */
	uint64_t nonce;
	bool asks;		 /* it is a question, not a connection */
	bool proven;		 /* its sender has confirmed it */
	struct mrrc_cw_rdm *rdm; /* that waits for its end, or NULL */
	struct fid_ep *ask;	 /* to the sender, until it answers */
	int64_t ask_by;
	unsigned tries;
};
STAILQ_HEAD(cw_requests, cw_request);

enum cw_phase {
	CW_OPTED,     /* enabled, not connected */
	CW_LISTENING, /* the peer's control endpoint will come */
	CW_CONNECTING,
	CW_UP,
	CW_LOST,  /* the connection ended, or failed */
	CW_ALONE, /* the peer does not take part */
};

/* A link */
struct mrrc_cw_ep {
	struct mrrc_ep *ep;
	/* the control endpoint's domain and info are its: ep, or of below */
	struct mrrc_ep *via;
	struct mrrc_cw_rdm *rdm; /* reliable datagrams; else NULL */
	struct mrrc_cw_group *group;
	TAILQ_ENTRY(mrrc_cw_ep) link;
	/* read without the lock for a first look */
	_Atomic enum cw_phase phase;
	int64_t meet_by;  /* listening or connecting: the deadline */
	atomic_bool lost; /* on the group's list of lost links */
	TAILQ_ENTRY(mrrc_cw_ep) lost_link;
	uint64_t cookie;
	uint64_t tags;		      /* given by fi_cw_tag_alloc() */
	bool accepts;		      /* the passive side */
	struct sockaddr_storage dest; /* the application's destination */
	struct mrrc_cw sm;
	bool sm_live;
	struct fid_ep *ctl;
	struct fid_mr *mr;
	char *mem;
	struct cw_slot rx[CW_RX + 1], tx[CW_SLOTS];
	struct cw_slot *tx_free;
	struct cw_slot *filling; /* the slot being filled, or NULL */
	size_t filled;
	TAILQ_ENTRY(mrrc_cw_ep) unsent_link;
	unsigned busy;		/* transfers in flight, except receives */
	struct cw_rec *partial; /* a write that the core took partly */
	bool full;		/* the core took none: on its group's list */
	TAILQ_ENTRY(mrrc_cw_ep) full_link;
	struct cw_list empty;	       /* issued writes without data */
	struct mrrc_cw_map by_context; /* operations that have not ended */
	uint64_t issued_ns;	       /* when the core got the latest write */
	/* operations ended, not finished; and threads that use the link */
	atomic_int ending;

	/* for reliable datagrams; under the AV's lock */
	struct mrrc_cw_node by_name;
	TAILQ_ENTRY(mrrc_cw_ep) of_rdm;
	atomic_bool stranger; /* its name is not in the AV */
	/* under the group's lock */
	struct mrrc_cw_name peer;
	atomic_bool hostile;	     /* quarantined; read without lock */
	uint32_t counted;	     /* its tags in strange_tags */
	bool gone;		     /* about to be freed */
	uint64_t nonce;		     /* nonce of our last attempt to connect */
	uint64_t stale;		     /* a void nonce of the peer's */
	struct cw_request *deferred; /* until ours has ended */
};

/* Of an address vector */
struct mrrc_cw_av {
	bool inet;		/* may have names: IPv4 or IPv6 */
	struct mrrc_mutex lock; /* guards what follows */
	struct mrrc_cw_map by_addr, by_name;
	LIST_HEAD(, mrrc_cw_rdm) rdms; /* endpoints bound to it */
};

#define CW_STRANGERS 64 /* links to strangers, of one endpoint */

/* Of a reliable datagram endpoint. Guarded by its AV's lock, but for atomics */
struct mrrc_cw_rdm {
	struct mrrc_ep *ep;
	LIST_ENTRY(mrrc_cw_rdm) of_av;
	LIST_ENTRY(mrrc_cw_rdm) of_domain; /* the domain's cw->lock */
	struct mrrc_cw_group *home;	   /* the group that listens for it */
	atomic_int users;		   /* threads that use it */
	uint32_t number;
	atomic_bool started; /* it has a name, final from then on */
	struct mrrc_cw_name name;
	TAILQ_HEAD(, mrrc_cw_ep) links;
	struct mrrc_cw_map by_name;
	atomic_uint strangers;
	atomic_uint strange_tags; /* tags that strangers exposed */
	_Atomic uint64_t seq, tags;
	struct fi_mrrc_cw_stats past; /* counters of freed links */
};

struct mrrc_cw_group {
	struct mrrc_cw_group *next; /* the domain's; never removed */
	struct mrrc_cw_domain *cwd;
	struct mrrc_domain *domain; /* of the control endpoints */
	struct mrrc_mutex lock;
	struct fid_cq *cq;
	struct fid_eq *eq;
	int cq_fd, eq_fd;
	int timer_fd;		    /* a deadline of the group passed */
	struct sockaddr_storage at; /* where it listens; port 0 */
	struct fid_pep *pep;	    /* open while a peer is expected */
	_Atomic uint16_t port;	    /* there, in network order */
	unsigned awaited;	    /* links that listen, and homes */
	int spare_fd;		    /* for sys/sockets */
	unsigned vain;		    /* wakes of its EQ without an event */
	/* in ms; 0: not. See cw/listen.c */
	int64_t sweep_at, muted_until, close_at;
	unsigned polls;
	atomic_uint cnt;     /* of eps */
	atomic_uint meeting; /* listening, connecting, or asking */
	TAILQ_HEAD(, mrrc_cw_ep) eps, lost;
	TAILQ_HEAD(, mrrc_cw_ep) unsent; /* links that fill a slot */
	bool more;			 /* FI_MORE: wait for more messages */
	TAILQ_HEAD(, mrrc_cw_ep) full;	 /* links to try again at the core */
	struct cw_list ended;
	bool finishing; /* a thread finishes, unlocked */
	struct cw_requests requests, asks;
	unsigned request_cnt, ask_cnt;
	bool greeting; /* a thread handles requests */
};

/* Of a domain, from the first endpoint that takes part until it closes. */
struct mrrc_cw_domain {
	pid_t pid;		    /* the process that opened it */
	struct mrrc_mutex enabling; /* an endpoint; before other locks */
	struct mrrc_mutex lock;	    /* guards what follows */
	struct mrrc_cw_group *_Atomic groups;
	struct mrrc_cw_cq *cqs;
	int wake_fd; /* epoll: a group has something */
	struct mrrc_cw_auto *_Atomic automatic; /* NULL: none */
	struct mrrc_ep *below; /* of reliable datagrams: cw/msg_domain.c */
	LIST_HEAD(, mrrc_cw_rdm) rdms;
	/*
	 * ns: the last read of a CQ by the application, and the last read after
	 * a gap
	 */
	_Atomic uint64_t seen, missed;
};

/* Of a CQ that such endpoints are bound to. */
struct mrrc_cw_cq {
	struct mrrc_cq *cq;
	struct mrrc_cw_cq *next;	 /* the domain's */
	struct fi_ops_cq *_Atomic below; /* the CQ's own calls */
	int wake_fd;			 /* eventfd: completions are pending */
	int epoll_fd;			 /* core, groups, wake_fd; -1 */
	bool pollfd;			 /* the core waits by a pollfd set */
	atomic_int signalled;		 /* fi_cq_signal() was called */
};

/* CLOCK_MONOTONIC: it is never set. */
static inline uint64_t mrrc_cw_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

#define CW_GAP_NS 500000 /* longer: it does other things */

/*
 * The application makes progress by reading. A post makes none, or only for
 * itself.
 */
static inline void mrrc_cw_seen(struct mrrc_cw_domain *cwd)
{
	int64_t gap;
	uint64_t now;

	if (!atomic_load_explicit(&cwd->automatic, memory_order_relaxed))
		return;
	now = mrrc_cw_now_ns();
	gap = now - atomic_load_explicit(&cwd->seen, memory_order_relaxed);
	if (gap > CW_GAP_NS)
		atomic_store_explicit(&cwd->missed, now, memory_order_relaxed);
	/* another thread's time may be later */
	if (gap > 0)
		atomic_store_explicit(&cwd->seen, now, memory_order_relaxed);
}

/* cw/ep.c: once, before any object is opened */
void mrrc_cw_calls_init(void);
/* Replaces the calls of an endpoint by those of ep.c. */
void mrrc_cw_ep_calls(struct mrrc_ep *ep);
void mrrc_cw_pep_calls(struct mrrc_pep *pep);

/* cw/enable.c */
int mrrc_cw_enable(struct fid *fid, uint64_t flags);

static inline bool mrrc_ep_has_cw(const struct mrrc_ep *ep)
{
	return ep->cw || ep->cw_rdm;
}

/* cw/cm.c: the calls of a connected endpoint; paramlen: without the mark */
int mrrc_cw_connect(struct mrrc_ep *ep, const void *addr, const void *param,
		    size_t paramlen);
int mrrc_cw_accept(struct mrrc_ep *ep, const void *param, size_t paramlen);
void mrrc_cw_shutdown(struct mrrc_ep *ep);
/* From now on the private data of its events is checked for marks. */
void mrrc_cw_eq_join(struct mrrc_eq *eq);

/* cw/cm_data.c */
void mrrc_cw_mark_make(struct cw_mark *mark, enum cw_mark_kind kind, size_t len,
		       uint64_t cookie, uint16_t port);
/*
 * Is there a mark of this kind at data? Later versions begin in the same way.
 */
bool mrrc_cw_mark_read(const void *data, size_t len, enum cw_mark_kind kind,
		       struct cw_mark *mark);
uint64_t mrrc_cw_mark_cookie(const struct cw_mark *mark);

/* cw/name.c. Ports and numbers as they are in the name. */
uint16_t *mrrc_cw_addr_port(void *addr); /* NULL: no such address */
/* For log messages; addr may be NULL */
struct cw_addr_text mrrc_cw_addr_text(const void *addr);
size_t mrrc_cw_addr_len(const struct sockaddr *addr);
uint32_t mrrc_cw_addr_format(const struct sockaddr *addr);
bool mrrc_cw_addr_known(const void *addr); /* has it a host, not "any"? */
bool mrrc_cw_addr_same_host(const void *addr, const void *other);
/* Is this a name? Copies it, unless name is NULL */
bool mrrc_cw_name_read(const void *addr, struct mrrc_cw_name *name);
void mrrc_cw_name_strip(void *addr);
/* false: such an address cannot be marked */
bool mrrc_cw_name_make(const void *addr, uint16_t port, uint32_t number,
		       struct mrrc_cw_name *name);
uint32_t mrrc_cw_name_number(const struct mrrc_cw_name *name);
/* The address where it listens for control connections */
void mrrc_cw_name_dest(const struct mrrc_cw_name *name,
		       struct sockaddr_storage *dest);
/* A key for maps; different names may have the same. */
uint64_t mrrc_cw_name_key(const struct mrrc_cw_name *name);

static inline bool mrrc_cw_name_same(const struct mrrc_cw_name *name,
				     const struct mrrc_cw_name *other)
{
	return !memcmp(name, other, sizeof(*name));
}

/* cw/connect.c. Lock held. */
#define CW_MEET_MS 10000 /* to connect, before it is given up */

static inline bool mrrc_cw_meets(enum cw_phase phase)
{
	return phase == CW_LISTENING || phase == CW_CONNECTING;
}

/* From or to a phase in which the peer is connecting. */
void mrrc_cw_set_phase(struct mrrc_cw_ep *cw, enum cw_phase phase);
/* For a control endpoint to dest, or for a listener (NULL) */
struct fi_info *mrrc_cw_info(const struct mrrc_ep *via,
			     const struct sockaddr *dest);
/* Sets the group's timer to the next deadline of links and questions. */
void mrrc_cw_alarm(struct mrrc_cw_group *group);
/* Info to connect to dest, from from's address if that is not NULL */
int mrrc_cw_info_to(const struct mrrc_ep *via, const struct sockaddr *dest,
		    const struct mrrc_cw_name *from, struct fi_info **info);
/* Open the control endpoint, and connect it; or accept with it. */
int mrrc_cw_dial(struct mrrc_cw_ep *cw, const struct sockaddr *dest,
		 const void *param, size_t len);
int mrrc_cw_answer(struct mrrc_cw_ep *cw, struct fi_info *info,
		   const void *param, size_t len);
/*
 * Handles events of a group's EQ and returns how many; the second also handles
 * deadlines.
 */
unsigned mrrc_cw_events(struct mrrc_cw_group *group);
void mrrc_cw_group_events(struct mrrc_cw_group *group);

/* cw/msg_domain.c. cw->lock held; then it stays until the domain closes. */
int mrrc_cw_below_open(struct mrrc_domain *domain, const struct fi_info *info);
void mrrc_cw_below_close(struct mrrc_cw_domain *cwd);

/* cw/rdm.c. No lock held, unless said otherwise. */
int mrrc_cw_rdm_open(struct mrrc_ep *ep);
/* The link to a peer, which stays until mrrc_cw_put(). */
int mrrc_cw_rdm_get(struct mrrc_ep *ep, fi_addr_t addr,
		    struct mrrc_cw_ep **cw_out);
/* The link to the peer of this name, likewise, or NULL */
struct mrrc_cw_ep *mrrc_cw_rdm_find(struct mrrc_cw_rdm *rdm,
				    const struct mrrc_cw_name *name);
/*
 * The link for a request from this name, likewise; -FI_ENOSPC: too many
 * strangers
 */
int mrrc_cw_rdm_get_from(struct mrrc_cw_rdm *rdm,
			 const struct mrrc_cw_name *name,
			 struct mrrc_cw_ep **cw_out);
/* Can an operation be posted? Connects if needed. The group's lock held */
int mrrc_cw_rdm_ready(struct mrrc_cw_ep *cw);
/* Lets it connect anew. The group's lock held, phase CW_LOST */
void mrrc_cw_rdm_reset(struct mrrc_cw_ep *cw);
/* A name came into the AV. The AV's lock held */
void mrrc_cw_rdm_meet(struct mrrc_av *av, const struct mrrc_cw_name *name);
/* A name left the AV: the links to it end. */
void mrrc_cw_rdm_forget(struct mrrc_av *av, const struct mrrc_cw_name *name);
/*
 * After a change of its tags: all strangers together may have no more than one
 * peer may have; beyond that, a stranger with more than a share loses its
 * connection. The group's lock held
 */
void mrrc_cw_rdm_count(struct mrrc_cw_ep *cw);
void mrrc_cw_rdm_stats(struct mrrc_ep *ep, struct fi_mrrc_cw_stats *sum);
int mrrc_cw_rdm_cancel(struct mrrc_ep *ep, void *context);
/* At fi_enable() of the endpoint; at its close. */
void mrrc_cw_rdm_start(struct mrrc_ep *ep);
void mrrc_cw_rdm_close(struct mrrc_ep *ep);
/* Replaces the core's name in addr, room bytes, by the marked one */
void mrrc_cw_rdm_getname(struct mrrc_ep *ep, void *addr, size_t room,
			 size_t addrlen);

static inline void mrrc_cw_put(struct mrrc_cw_ep *cw)
{
	/* after this it may be gone */
	atomic_fetch_sub(&cw->ending, 1);
}

/* cw/accept.c. Lock held; a request is used up. */
void mrrc_cw_greet_later(struct mrrc_cw_group *group,
			 struct cw_request *request);
void mrrc_cw_refuse(struct cw_request *request);
/* An event of a connection. false: not such a request */
bool mrrc_cw_greet_event(struct mrrc_cw_group *group, struct fi_info *info,
			 const void *data, size_t len);
/* Our own attempt has ended: handle the request that was deferred for it. */
void mrrc_cw_greet_deferred(struct mrrc_cw_ep *cw);
/* Handle the waiting requests; releases the lock meanwhile. */
void mrrc_cw_greet(struct mrrc_cw_group *group);

/* cw/listen.c. Lock held. */
/* Where an endpoint with this info listens: its address, without a port */
void mrrc_cw_listen_at(const struct fi_info *info, struct sockaddr_storage *at);
/* The group listens from then on; via: as in struct mrrc_cw_ep */
int mrrc_cw_listen(struct mrrc_cw_group *group, struct mrrc_ep *via);
/* Stops listening, unless a connection has just come; always: also then */
void mrrc_cw_unlisten(struct mrrc_cw_group *group, bool always);
/* Has its EQ something to read while it listens? */
bool mrrc_cw_listen_woken(const struct mrrc_cw_group *group);
/* After a read of the EQ. in_vain: it was readable, without an event */
void mrrc_cw_listen_tend(struct mrrc_cw_group *group, bool in_vain);
/* When that is to be called next, in ms; 0: at the next chance */
int64_t mrrc_cw_listen_until(const struct mrrc_cw_group *group);

/* Is it time? Then the group's timer has woken the sleeping threads. */
static inline bool mrrc_cw_listen_due(const struct mrrc_cw_group *group)
{
	int64_t at = mrrc_cw_listen_until(group);

	return at && mrrc_now_ms() >= at;
}

/* cw/ask.c. Lock held. */
/*
 * Ask the sender that request names; it gets proven, or is refused. No lock
 * held
 */
int mrrc_cw_ask(struct mrrc_cw_group *group, const struct mrrc_cw_rdm *rdm,
		struct cw_request *request);
/* Is another question possible? One that is not answered makes room. */
bool mrrc_cw_ask_room(struct mrrc_cw_group *group);
/* An event of a core's endpoint that may belong to a question. err: or 0 */
void mrrc_cw_ask_event(struct mrrc_cw_group *group, const struct fid *fid,
		       const void *data, size_t len, int err);
/* The next deadline of questions, in ms, or 0; and giving up those past it. */
int64_t mrrc_cw_ask_until(const struct mrrc_cw_group *group);
void mrrc_cw_ask_late(struct mrrc_cw_group *group);
void mrrc_cw_ask_free(struct mrrc_cw_group *group);

/* cw/av.c: once; then each AV that is opened can have names */
void mrrc_cw_av_init(void);
/* Its lock held */
bool mrrc_cw_av_name(struct mrrc_av *av, fi_addr_t addr,
		     struct mrrc_cw_name *name);
bool mrrc_cw_av_knows(struct mrrc_av *av, const struct mrrc_cw_name *name);

/* cw/link.c. The group's lock held, unless said otherwise. */

int mrrc_cw_link_open(struct mrrc_cw_ep *cw, struct fi_info *info);
/* Ends the connection at the next unlock. */
void mrrc_cw_lose(struct mrrc_cw_ep *cw, const char *why);
/* After each call of the state machine. */
void mrrc_cw_after(struct mrrc_cw_ep *cw);
/* asleep: on behalf of a thread that sleeps until there is something */
void mrrc_cw_group_poll(struct mrrc_cw_group *group, bool asleep);
/* Close its connection, end its operations. */
void mrrc_cw_end_all(struct mrrc_cw_ep *cw, int err);
/*
 * Close its connection, which is not up; then it has none. Operations end if
 * the peer has spoken already.
 */
void mrrc_cw_unlink(struct mrrc_cw_ep *cw);
/* A lost connection: end_all, unless another connection will come. */
void mrrc_cw_lost(struct mrrc_cw_ep *cw);
extern const struct mrrc_cw_ops mrrc_cw_sm_ops;
/* Unlocks, then finishes what has ended. */
void mrrc_cw_group_unlock(struct mrrc_cw_group *group);

/* cw/group.c. Any thread, no lock held. */
/* asleep: the caller is about to block, so idle groups are polled, too. */
void mrrc_cw_progress(struct mrrc_cw_domain *domain, bool asleep);
void mrrc_cw_ep_close(struct mrrc_ep *ep);
int mrrc_cw_domain_open(struct mrrc_domain *domain);
int mrrc_cw_group_join(struct mrrc_cw_ep *cw);
/* A group that listens, with a place taken in it. */
int mrrc_cw_group_home(struct mrrc_ep *ep, struct mrrc_ep *via,
		       struct mrrc_cw_group **group_out);
void mrrc_cw_group_leave_home(struct mrrc_cw_group *group);
/* Ends its operations and removes it: it is not found any more. */
void mrrc_cw_link_free(struct mrrc_cw_ep *cw, int err);
/* Its state machine, as for a new connection */
void mrrc_cw_link_init(struct mrrc_cw_ep *cw);
/*
 * In a child of fork(2): its state is the parent's, as a thread of the parent
 * may have left it, with locks held that are never released.
 */
bool mrrc_cw_inherited(const struct mrrc_domain *domain);
/*
 * Send what is queued before its connection is ended here; until end at most,
 * in ms.
 */
void mrrc_cw_linger(struct mrrc_cw_ep *cw, int64_t end);
#define CW_LINGER_MS 200

/* cw/op.c. No lock held. */
struct mrrc_source;
/* source: NULL, or what is written in place of msg's buffers */
ssize_t mrrc_cw_post_write(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			   uint64_t flags, const struct mrrc_source *source);
ssize_t mrrc_cw_post_tag(struct mrrc_ep *ep, const struct fi_msg_cw *msg,
			 uint64_t flags);
void mrrc_cw_finish(struct cw_list *list);
/*
 * The age of a link's oldest operation with this context; UINT64_MAX: none.
 * Lock held
 */
uint64_t mrrc_cw_oldest(const struct mrrc_cw_ep *cw, const void *context);
int mrrc_cw_cancel_on(struct mrrc_cw_ep *cw, void *context);
/* 0, or -FI_ENOENT */
int mrrc_cw_cancel(struct mrrc_ep *ep, void *context);

/* cw/progress.c. No lock held. */
int mrrc_cw_auto_start(struct mrrc_domain *domain);
void mrrc_cw_auto_stop(struct mrrc_cw_domain *cwd);

/* cw/cq.c. No lock held. */
int mrrc_cw_cq_join(struct mrrc_cq *cq);
void mrrc_cw_cq_add_group(struct mrrc_cw_cq *ccq, struct mrrc_cw_group *group);
/* Adds the descriptors of a group to an epoll set; 0 or -E* */
int mrrc_cw_epoll_group(int epoll_fd, const struct mrrc_cw_group *group);
/*
 * Its EQ wakes no thread, or does again; false: not now. The group's lock held
 */
bool mrrc_cw_epoll_mute(struct mrrc_cw_group *group, bool mute);

/* cw/ext_ops.c: as fi_open_ops() of endpoints */
int mrrc_cw_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context);
extern struct fi_mrrc_ops_cw mrrc_cw_ext_ops;
/* Lock held */
void mrrc_cw_stats_add(struct fi_mrrc_cw_stats *sum,
		       const struct mrrc_cw_ep *cw);

/*
 * Has something for the core that no event will announce: instead of sleeping,
 * a thread asks the core again. Lock held
 */
static inline bool mrrc_cw_group_waits(const struct mrrc_cw_group *group)
{
	return !TAILQ_EMPTY(&group->unsent) || !TAILQ_EMPTY(&group->full);
}

/*
 * Something can happen there, or a peer that connects in vain must be told. In
 * other groups the end of a closed connection may stay unread, and wakes.
 */
static inline bool mrrc_cw_group_used(const struct mrrc_cw_group *group)
{
	return group->cnt || group->port;
}

static inline struct mrrc_ep *mrrc_cw_base(struct mrrc_ep *ep)
{
	return ep->base;
}

#endif /* MRRC_CW_FI_H */
