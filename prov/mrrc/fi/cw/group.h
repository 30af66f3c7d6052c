/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups of control endpoints that share CQ and EQ, and progress (cw/cw.h).
 */
#ifndef MRRC_CW_GROUP_H
#define MRRC_CW_GROUP_H

#include <time.h>

#include "fi/cw/rdm.h"

#define CW_GROUP   16 /* links that share a CQ */
#define CW_CQ_SIZE (CW_GROUP * (CW_TX + CW_RX + 1))

struct mrrc_cw_group {
	/* Set when it is opened; no lock */
	/* next group of the domain; never removed */
	struct mrrc_cw_group *next;
	struct mrrc_cw_domain *cwd;
	struct mrrc_domain *domain; /* of the control endpoints */
	struct mrrc_mutex lock;
	struct fid_cq *cq;
	struct fid_eq *eq;
	int cq_fd, eq_fd;
	/* readable when a deadline of the group has passed */
	int timer_fd;
	int spare_fd;		    /* for sys/base/sockets */
	struct sockaddr_storage at; /* address at which it listens; port 0 */

	/* Written under the lock, read without it as well */
	atomic_uint cnt;       /* number of eps, and of homes */
	atomic_uint meeting;   /* links that listen, connect or ask */
	_Atomic uint16_t port; /* port at which it listens, in network order */
	/*
	 * the listener: open while a peer is expected; in the home group of an
	 * endpoint, until the endpoint leaves the group
	 */
	struct fid_pep *pep;
	struct fi_info *pep_info; /* sockets reads it until pep is closed */

	/* The lock: listening */
	unsigned awaited; /* links that listen, and homes */
	unsigned vain;	  /* wakes of its EQ without an event */
	/* times in ms; 0: none. See cw/listen.c */
	int64_t sweep_at, muted_until, close_at;

	/* The lock: progress */
	bool alarm; /* the next deadline may have changed */
	unsigned polls;
	TAILQ_HEAD(, mrrc_cw_ep) eps, lost;
	TAILQ_HEAD(, mrrc_cw_ep) unsent; /* links whose slot is being filled */
	bool more;			 /* FI_MORE: wait for more messages */
	bool deaf;			 /* a link is deaf */
	TAILQ_HEAD(, mrrc_cw_ep) full;	 /* links to try again at the core */
	struct cw_list ended;
	bool finishing; /* a thread finishes operations, without the lock */

	/* The lock: requests of reliable datagrams */
	struct cw_requests requests, asks;
	unsigned request_cnt, ask_cnt;
	bool greeting; /* a thread handles requests, without the lock */
};

/*
 * The state that a domain has for conditional writes, from the first endpoint
 * that takes part until the domain closes.
 */
struct mrrc_cw_domain {
	/* Set when it is opened; no lock */
	pid_t pid;		 /* the process that opened it */
	int wake_fd;		 /* epoll: a group has something */
	struct mrrc_pool *recs;	 /* struct cw_rec */
	struct mrrc_pool *comps; /* their completions, until they are read */
	/* held to enable an endpoint; taken before other locks */
	struct mrrc_mutex enabling;
	struct mrrc_mutex lock;

	/*
	 * times in ns, no lock: of the application's last read of a CQ, and of
	 * the application's last read after a gap
	 */
	_Atomic uint64_t seen, missed;

	/* Written under the lock, read without it as well */
	struct mrrc_cw_group *_Atomic groups;
	struct mrrc_cw_auto *_Atomic automatic; /* NULL: none */
	/*
	 * the endpoint of the MSG domain, from the first reliable datagram
	 * endpoint until the domain closes: cw/msg_domain.c
	 */
	struct mrrc_ep *below;

	/* The lock */
	LIST_HEAD(, mrrc_cw_cq) cqs;
	LIST_HEAD(, mrrc_cw_rdm) rdms;
	unsigned large; /* links whose messages take more than the minimum */
};

/* State of a CQ to which such endpoints are bound. */
struct mrrc_cw_cq {
	/* Set when it is opened; no lock */
	struct mrrc_cq *cq;
	int wake_fd; /* eventfd: completions are pending */
	bool pollfd; /* the core waits by a pollfd set */

	/* No lock */
	struct fi_ops_cq *_Atomic below; /* the CQ's own calls */
	atomic_int signalled;		 /* fi_cq_signal() was called */

	/* The domain's cw->lock */
	LIST_ENTRY(mrrc_cw_cq) link; /* the domain's */
	/* epoll set of core, groups and wake_fd; -1: none */
	int epoll_fd;
};

/* CLOCK_MONOTONIC: it is never set. */
static inline uint64_t mrrc_cw_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/*
 * Has the group's timer set to the next deadline when the group is unlocked.
 * Lock held
 */
static inline void mrrc_cw_alarm(struct mrrc_cw_group *group)
{
	group->alarm = true;
}

/* after a longer gap the application does other things */
#define CW_GAP_NS 500000

/*
 * Records that the application read a CQ, which makes progress. Posts are not
 * recorded: a post makes no progress, or only with its own operation.
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

/* cw/poll.c */
/*
 * Polls a group. Lock held. asleep: the poll is for a thread that sleeps until
 * the group has events
 */
void mrrc_cw_group_poll(struct mrrc_cw_group *group, bool asleep);
/* Unlocks, then finishes what has ended. */
void mrrc_cw_group_unlock(struct mrrc_cw_group *group);
/* Unlocks where nothing can have ended. */
void mrrc_cw_group_release(struct mrrc_cw_group *group);
/*
 * Polls all groups. No lock held. asleep: the caller is about to block, so idle
 * groups are polled, too.
 */
void mrrc_cw_progress(struct mrrc_cw_domain *domain, bool asleep);
/*
 * Sends the queued messages of a link whose connection this side is about to
 * end; until the time end (ms) at most. No lock held
 */
void mrrc_cw_linger(struct mrrc_cw_ep *cw, int64_t end);
#define CW_LINGER_MS 180
/*
 * Then waits until all messages have arrived; until the time end (ms) at most.
 * The limit is short: a peer that does not answer has most likely got all.
 */
void mrrc_cw_wait_arrived(struct mrrc_cw_ep *cw, int64_t end);
#define CW_ARRIVED_MS 20
/* Both, for one link */
void mrrc_cw_close_wait(struct mrrc_cw_ep *cw);

/* cw/group.c. Any thread, no lock held. */
void mrrc_cw_ep_close(struct mrrc_ep *ep);
int mrrc_cw_domain_open(struct mrrc_domain *domain);
int mrrc_cw_group_join(struct mrrc_cw_ep *cw);
/* Finds a group that listens, and takes a place in it. */
int mrrc_cw_group_home(struct mrrc_ep *ep, struct mrrc_ep *via,
		       struct mrrc_cw_group **group_out);
void mrrc_cw_group_leave_home(struct mrrc_cw_group *group);
/*
 * Is this process a forked child? If so, the domain's state is a copy of the
 * parent's, in which a thread of the parent may hold locks that are never
 * released.
 */
bool mrrc_cw_inherited(const struct mrrc_domain *domain);
/* cw/listen.c. Lock held. */
/* The address, without a port, at which an endpoint with this info listens */
void mrrc_cw_listen_at(const struct fi_info *info, struct sockaddr_storage *at);
/* Makes the group listen; via: as in struct mrrc_cw_ep */
int mrrc_cw_listen(struct mrrc_cw_group *group, struct mrrc_ep *via);
/* Stops listening, unless a connection has just come; always: even then */
void mrrc_cw_unlisten(struct mrrc_cw_group *group, bool always);
/* Has its EQ something to read while it listens? */
bool mrrc_cw_listen_woken(const struct mrrc_cw_group *group);
/*
 * Called after a read of the EQ. in_vain: the EQ was readable, but had no event
 */
void mrrc_cw_listen_tend(struct mrrc_cw_group *group, bool in_vain);
/*
 * Returns the time in ms at which to call mrrc_cw_listen_tend() again; 0: no
 * time is set
 */
int64_t mrrc_cw_listen_until(const struct mrrc_cw_group *group);

/* Has that time come? Then the group's timer has woken the sleeping threads. */
static inline bool mrrc_cw_listen_due(const struct mrrc_cw_group *group)
{
	int64_t at = mrrc_cw_listen_until(group);

	return at && mrrc_now_ms() >= at;
}

/* cw/ctl_info.c. Any thread, no state. */
/* Gets an info for a control endpoint to dest, or for a listener (NULL) */
struct fi_info *mrrc_cw_info(const struct mrrc_ep *via,
			     const struct sockaddr *dest);
/* Info to connect to dest, from from's address if that is not NULL */
int mrrc_cw_info_to(const struct mrrc_ep *via, const struct sockaddr *dest,
		    const struct mrrc_cw_name *from, struct fi_info **info);
/*
 * Adapts a copy of the application's info, or the info of a request, to a
 * control endpoint: its port, flags, order, sizes and contexts.
 */
void mrrc_cw_info_adapt(struct fi_info *info);

/* cw/conn.c. Lock held. */
/*
 * Time in ms after which an attempt to connect is given up: many connections at
 * once take over ten seconds on a busy host
 */
#define CW_MEET_MS 30000

/* Moves the link to its next phase; returns the action to take */
enum cw_act mrrc_cw_step(struct mrrc_cw_ep *cw, enum cw_event event);
/* The link's next deadline; 0: none */
int64_t mrrc_cw_until(const struct mrrc_cw_ep *cw);
/* Does a connection to the peer exist, or is one being set up? */
bool mrrc_cw_meets(const struct mrrc_cw_ep *cw);
/* Initialises the link's state machine, as for a new connection */
void mrrc_cw_link_init(struct mrrc_cw_ep *cw);
/* Close its connection, end its operations. */
void mrrc_cw_end_all(struct mrrc_cw_ep *cw, int err);
/*
 * Closes the link's connection, which is not established. The link's operations
 * end if the peer has sent a message already.
 */
void mrrc_cw_unlink(struct mrrc_cw_ep *cw);
/*
 * Handles a lost connection: ends all operations, unless another connection
 * will come.
 */
void mrrc_cw_lost(struct mrrc_cw_ep *cw);
/* Resets a link in CW_LOST, so that it can connect again. */
void mrrc_cw_renew(struct mrrc_cw_ep *cw);
/*
 * Makes the link await a connection for which the peer asks. false: our own
 * attempt goes first. ours_first: our own attempt goes first if both sides
 * connect
 */
bool mrrc_cw_make_way(struct mrrc_cw_ep *cw, bool ours_first);
/*
 * Does the nonce belong to our attempt to connect? If so, the peer is about to
 * accept.
 */
bool mrrc_cw_attempt(struct mrrc_cw_ep *cw, uint64_t nonce);
/*
 * Opens the control endpoint, and connects this endpoint to dest or accepts a
 * request.
 */
int mrrc_cw_dial(struct mrrc_cw_ep *cw, const struct sockaddr *dest,
		 const void *param, size_t len);
int mrrc_cw_answer(struct mrrc_cw_ep *cw, struct fi_info *info,
		   const void *param, size_t len);
/* Handles events of a group's EQ and returns how many. */
unsigned mrrc_cw_events(struct mrrc_cw_group *group);

/*
 * cw/msg_domain.c: opens the MSG domain, which stays until the domain closes.
 * cw->lock held.
 */
int mrrc_cw_below_open(struct mrrc_domain *domain, const struct fi_info *info);
void mrrc_cw_below_close(struct mrrc_cw_domain *cwd);

/* cw/progress.c. No lock held. */
int mrrc_cw_auto_start(struct mrrc_domain *domain);
void mrrc_cw_auto_stop(struct mrrc_cw_domain *cwd);

/* cw/cq.c. No lock held. */
int mrrc_cw_cq_join(struct mrrc_cq *cq);
void mrrc_cw_cq_add_group(struct mrrc_cw_cq *ccq, struct mrrc_cw_group *group);
/* Adds the descriptors of a group to an epoll set; 0 or -E* */
int mrrc_cw_epoll_group(int epoll_fd, const struct mrrc_cw_group *group);

/*
 * Has the group transfers for which the core had no room? No event announces
 * that the core has room again, so a thread asks the core again instead of
 * sleeping. Lock held
 */
static inline bool mrrc_cw_group_waits(const struct mrrc_cw_group *group)
{
	return !TAILQ_EMPTY(&group->unsent) || !TAILQ_EMPTY(&group->full);
}

/*
 * Can this group have events, or must it refuse a peer that connects in vain?
 * Other groups may leave the event of a closed connection unread, and this
 * event would wake threads.
 */
static inline bool mrrc_cw_group_used(const struct mrrc_cw_group *group)
{
	return group->cnt || group->port;
}

#endif /* MRRC_CW_GROUP_H */
