/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reliable datagrams: links made on demand, and the requests for them (cw/cw.h).
 */
#ifndef MRRC_CW_RDM_H
#define MRRC_CW_RDM_H

#include "fi/cw/link.h"

/*
 * A connection request at a group's listener, of reliable datagrams. The
 * group's lock guards a request in one of the group's lists; a request that was
 * taken out of the list belongs to the thread that did so.
 */
struct cw_request {
	STAILQ_ENTRY(cw_request) link;
	struct fid_pep *pep;
	struct fi_info *info;
	struct mrrc_cw_name from;
	uint32_t to; /* number of our endpoint */
	uint64_t nonce;
	bool asks;   /* a question, not a connection */
	bool proven; /* the sender has confirmed it */
	/* endpoint that waits for the end of the request, or NULL */
	struct mrrc_cw_rdm *rdm;
	/* endpoint for the question to the sender, until the answer */
	struct fid_ep *ask;
	int64_t ask_by;
	unsigned tries;
};
STAILQ_HEAD(cw_requests, cw_request);

/* State of an address vector for conditional writes */
struct mrrc_cw_av {
	bool inet;		/* may have names: IPv4 or IPv6 */
	struct mrrc_mutex lock; /* guards the rest */
	struct mrrc_cw_map by_addr, by_name;
	LIST_HEAD(, mrrc_cw_rdm) rdms; /* endpoints bound to the AV */
};

#define CW_STRANGERS 64 /* an endpoint's links to strangers */

/* State of a reliable datagram endpoint with conditional writes */
struct mrrc_cw_rdm {
	/* Set when the endpoint is opened; no lock */
	struct mrrc_ep *ep;
	struct mrrc_cw_group *home; /* the group that listens */
	uint32_t number;

	/* No lock */
	atomic_int users; /* threads that use the endpoint */
	/* the endpoint has a name, which is final from then on */
	atomic_bool started;
	struct mrrc_cw_name name;
	atomic_uint strange_tags; /* tags that strangers exposed */
	_Atomic uint64_t seq, tags;

	/* The domain's cw->lock */
	LIST_ENTRY(mrrc_cw_rdm) of_domain;

	/* Its AV's lock */
	LIST_ENTRY(mrrc_cw_rdm) of_av;
	TAILQ_HEAD(, mrrc_cw_ep) links;
	struct mrrc_cw_map by_name;
	atomic_uint strangers;	      /* read without the lock as well */
	struct fi_mrrc_cw_stats past; /* counters of freed links */
};

/* cw/rdm.c. No lock held, unless said otherwise. */
int mrrc_cw_rdm_open(struct mrrc_ep *ep);
/* The link to a peer, which stays until mrrc_cw_put(). */
int mrrc_cw_rdm_get(struct mrrc_ep *ep, fi_addr_t addr,
		    struct mrrc_cw_ep **cw_out);
/* Like mrrc_cw_rdm_get(), by the peer's name; NULL: there is no such link */
struct mrrc_cw_ep *mrrc_cw_rdm_find(struct mrrc_cw_rdm *rdm,
				    const struct mrrc_cw_name *name);
/*
 * Like mrrc_cw_rdm_get(), for a request from this name; -FI_ENOSPC: there are
 * too many strangers
 */
int mrrc_cw_rdm_get_from(struct mrrc_cw_rdm *rdm,
			 const struct mrrc_cw_name *name,
			 struct mrrc_cw_ep **cw_out);
/* Can an operation be posted? Connects if needed. The group's lock held */
int mrrc_cw_rdm_ready(struct mrrc_cw_ep *cw);
/* A name came into the AV. The AV's lock held */
void mrrc_cw_rdm_meet(struct mrrc_av *av, const struct mrrc_cw_name *name);
/* Ends the links to a name that left the AV. */
void mrrc_cw_rdm_forget(struct mrrc_av *av, const struct mrrc_cw_name *name);
/*
 * Enforces the limit after a change of the link's tags: all strangers together
 * may have as many tags as one peer. If strangers have more tags, a stranger
 * with more than its share loses its connection. The group's lock held
 */
void mrrc_cw_rdm_count(struct mrrc_cw_ep *cw);
void mrrc_cw_rdm_stats(struct mrrc_ep *ep, struct fi_mrrc_cw_stats *sum);
/*
 * Gets the link with the oldest operation of this context; the link stays until
 * mrrc_cw_put()
 */
struct mrrc_cw_ep *mrrc_cw_rdm_oldest(struct mrrc_ep *ep, const void *context);
/* Called at fi_enable() of the endpoint, and at its close. */
void mrrc_cw_rdm_start(struct mrrc_ep *ep);
void mrrc_cw_rdm_close(struct mrrc_ep *ep);
/* Replaces the core's name in addr, room bytes, by the marked one */
void mrrc_cw_rdm_getname(struct mrrc_ep *ep, void *addr, size_t room,
			 size_t addrlen);

/* cw/request.c. Lock held; the request belongs to the callee. */
void mrrc_cw_greet_later(struct mrrc_cw_group *group,
			 struct cw_request *request);
void mrrc_cw_refuse(struct cw_request *request);
/*
 * Handles the request that was deferred until now, when our own attempt has
 * ended.
 */
void mrrc_cw_greet_deferred(struct mrrc_cw_ep *cw);

/* cw/ask.c. Lock held. */
/*
 * Asks the endpoint that the request names as its sender; the request is then
 * proven, or refused. No lock held
 */
int mrrc_cw_ask(struct mrrc_cw_group *group, const struct mrrc_cw_rdm *rdm,
		struct cw_request *request);
/* Is another question possible? An unanswered question makes room. */
bool mrrc_cw_ask_room(struct mrrc_cw_group *group);
/* Calls of mrrc_cw_admission */
void mrrc_cw_ask_event(struct mrrc_cw_group *group, const struct fid *fid,
		       const void *data, size_t len, int err);
int64_t mrrc_cw_ask_until(const struct mrrc_cw_group *group);
void mrrc_cw_ask_late(struct mrrc_cw_group *group);
void mrrc_cw_ask_free(struct mrrc_cw_group *group);

/* cw/accept.c */
extern const struct mrrc_cw_over mrrc_cw_admission;

/* An address of the core's, with a name. Guarded by its AV's lock */
struct cw_av_entry {
	struct mrrc_cw_node by_addr; /* key: the address */
	struct mrrc_cw_node by_name;
	struct mrrc_cw_name name;
	unsigned uses; /* number of inserts */
};

/* cw/av.c: to be called once; AVs opened later can have names */
void mrrc_cw_av_init(void);

/* cw/av_names.c. The AV's lock held */
struct cw_av_entry *mrrc_cw_av_entry(struct mrrc_av *av, fi_addr_t addr);
bool mrrc_cw_av_name(struct mrrc_av *av, fi_addr_t addr,
		     struct mrrc_cw_name *name);
bool mrrc_cw_av_knows(struct mrrc_av *av, const struct mrrc_cw_name *name);

#endif /* MRRC_CW_RDM_H */
