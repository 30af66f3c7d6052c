/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes on libfabric: this folder, and its calls. The protocol and
 * its states are core/cw/cw.h. Objects call nothing of it: fi_cw_enable() replaces
 * their calls. Ranges of files are posted by file/post.c.
 *
 *   mark.h        marks and names, as peers see them
 *   link.h        links and operations
 *   rdm.h         reliable datagrams
 *   group.h       groups, domains and completion queues
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
 *   request.c     requests that wait
 *   conn.c        the connection of a link: its phases, events and end
 *   ctl_info.c    infos of control endpoints
 *   listen.c      a group's listener
 *   link.c        the control endpoint: buffers, sending, writing, completions
 *   poll.c        progress of a group
 *   group.c       groups of control endpoints, closing
 *   op.c          operations: posting, cancel
 *   end.c         their end
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

#include "fi/cw/link.h"

/* modes that exclude registrations of the provider's own */
#define CW_NO_MODES (FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_RMA_EVENT)

/* cw/ep.c: once, before any object is opened */
void mrrc_cw_calls_init(void);
/* Replaces the calls of an endpoint by those of ep.c. */
void mrrc_cw_ep_calls(struct mrrc_ep *ep);
void mrrc_cw_pep_calls(struct mrrc_pep *pep);

/* cw/enable.c */
int mrrc_cw_enable(struct fid *fid, uint64_t flags);

/* cw/cm.c: the calls of a connected endpoint; paramlen: without the mark */
int mrrc_cw_connect(struct mrrc_ep *ep, const void *addr, const void *param,
		    size_t paramlen);
int mrrc_cw_accept(struct mrrc_ep *ep, const void *param, size_t paramlen);
void mrrc_cw_shutdown(struct mrrc_ep *ep);
/* From now on the private data of its events is checked for marks. */
void mrrc_cw_eq_join(struct mrrc_eq *eq);

/* cw/ext_ops.c: as fi_open_ops() of endpoints */
int mrrc_cw_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context);
extern struct fi_mrrc_ops_cw mrrc_cw_ext_ops;

static inline struct mrrc_ep *mrrc_cw_base(struct mrrc_ep *ep)
{
	return ep->base;
}

#endif /* MRRC_CW_FI_H */
