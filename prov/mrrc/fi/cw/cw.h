/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes over libfabric: the files of this folder, and the calls
 * that it offers. core/cw/cw.h has the protocol and its states. The objects'
 * files call no function of this folder: fi_cw_enable() replaces the objects'
 * calls. file/post.c posts conditional writes of parts of files.
 *
 *   mark.h        marks and names, as peers see them
 *   link.h        links and operations
 *   rdm.h         reliable datagrams
 *   group.h       groups, domains and completion queues
 *
 * Each file calls only files that come later in the list below; calls in the
 * other direction go through a table, struct mrrc_cw_over.
 *
 *   ext_ops.c     the extension's table of calls
 *   enable.c      opting in
 *   ep.c          calls of endpoints that have opted in
 *   cm.c          the application's connection, and marks in its private data
 *   op.c          operations: posting, cancel
 *   av.c          address vectors with names of reliable datagram endpoints
 *   accept.c      incoming requests for such an endpoint
 *   rdm.c         reliable datagrams: a link for each peer, made on demand
 *   ask.c         verifies the sender of such a request
 *   av_names.c    which names an address vector has
 *   group.c       groups of control endpoints, closing
 *   msg_domain.c  the domain of control endpoints beside reliable datagrams
 *   progress.c    automatic progress
 *   cq.c          completion queues of endpoints that take part, and waiting
 *   poll.c        progress of a group
 *   listen.c      a group's listener
 *   conn.c        the connection of a link: its phases, events and end
 *   link.c        the control endpoint: buffers, sending, writing, completions
 *   end.c         the end of operations
 *   request.c     requests that wait
 *   ctl_info.c    infos of control endpoints
 *   cm_data.c     marks in private data
 *   name.c        names of reliable datagram endpoints
 *
 * A link (struct mrrc_cw_ep) is the state between one endpoint and one peer: a
 * connected endpoint has one, a reliable datagram endpoint one for each peer.
 *
 * A control endpoint is an endpoint of the core, in addition to the
 * application's, to the same peer. Messages and the writes themselves go over
 * the control endpoint, in order: the message that a write is done follows the
 * write. A conditional write that fails breaks no connection of the
 * application's.
 *
 * Control endpoints of a domain share CQ and EQ by groups, so that a poll reads
 * few queues. A group's lock guards the state of all its members. The core is
 * called under a group's lock, but no memory is registered and no CQ's lock is
 * taken there. Operations that have ended go to a list of the group; one thread
 * at a time finishes them after the lock is released.
 */
#ifndef MRRC_CW_FI_H
#define MRRC_CW_FI_H

#include "fi/cw/link.h"

/*
 * mr_mode bits of a core domain with which conditional writes are not possible:
 * the provider cannot make registrations of its own that need these bits
 */
#define CW_NO_MODES (FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_RMA_EVENT)

/* cw/ep.c: to be called once */
void mrrc_cw_ep_init(void);
/* Replaces the calls of an endpoint by those of ep.c. */
void mrrc_cw_ep_calls(struct mrrc_ep *ep);
void mrrc_cw_pep_calls(struct mrrc_pep *pep);

/* cw/enable.c */
int mrrc_cw_enable_ep(struct mrrc_ep *ep);
int mrrc_cw_enable_pep(struct mrrc_pep *pep);

/*
 * cw/cm.c: the connection calls of a connected endpoint; paramlen: without the
 * mark
 */
int mrrc_cw_connect(struct mrrc_ep *ep, const void *addr, const void *param,
		    size_t paramlen);
int mrrc_cw_accept(struct mrrc_ep *ep, const void *param, size_t paramlen);
void mrrc_cw_shutdown(struct mrrc_ep *ep);
/* From now on the private data of the EQ's events is checked for marks. */
void mrrc_cw_eq_join(struct mrrc_eq *eq);

/* cw/ext_ops.c: once, before any object is opened */
void mrrc_cw_calls_init(void);

static inline struct mrrc_ep *mrrc_cw_base(struct mrrc_ep *ep)
{
	return ep->base;
}

#endif /* MRRC_CW_FI_H */
