/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints of one process, connected or reliable datagram, that send to
 * each other over the device. One thread drives both endpoints.
 */
#ifndef PROF_PAIR_H
#define PROF_PAIR_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "prof/device.h"

struct prof_end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_eq *eq; /* for connected endpoints */
	struct fid_av *av; /* for reliable datagrams */
	fi_addr_t peer;
};

struct prof_pair {
	struct prof_device *device;
	struct fid_pep *pep;
	struct fid_eq *peq;
	struct prof_end from, to;
};

/*
 * Opens the endpoints. Returns -FI_ENOSYS if the device has no such endpoints.
 */
int prof_pair_open(struct prof_device *device, struct prof_pair *pair,
		   struct prof_err *err);
void prof_pair_close(struct prof_pair *pair);

/* Sends one message, and returns when both ends have completed it. */
int prof_pair_send(struct prof_pair *pair, const void *from, void *from_desc,
		   void *to, void *to_desc, size_t len, struct prof_err *err);

#endif /* PROF_PAIR_H */
