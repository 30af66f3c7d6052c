/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints (pair.h).
 */
#include "config.h"
#include "prof/pair.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prof/cells.h"

#define LIMIT_US 20e6 /* time limit of an event or completion */

static int fail(struct prof_err *err, const char *what, int ret)
{
	return prof_fail(err, ret, "%s: %s", what, fi_strerror(-ret));
}

/* ---- ends ---- */

static int open_end(struct prof_pair *pair, struct fi_info *info,
		    struct prof_end *end, struct prof_err *err)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = FI_AV_UNSPEC, .count = 2 };
	struct prof_device *device = pair->device;
	int ret;

	/* prof_pair_close() closes the opened objects */
	ret = fi_endpoint(device->domain, info, &end->ep, NULL);
	if (ret)
		return fail(err, "fi_endpoint", ret);
	ret = fi_cq_open(device->domain, &cq, &end->cq, NULL);
	if (!ret)
		ret = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret && pair->pep)
		ret = fi_eq_open(device->fabric, &eq, &end->eq, NULL);
	else if (!ret)
		ret = fi_av_open(device->domain, &av, &end->av, NULL);
	if (!ret)
		ret = fi_ep_bind(end->ep,
				 pair->pep ? &end->eq->fid : &end->av->fid, 0);
	if (!ret)
		ret = fi_enable(end->ep);
	return ret ? fail(err, "opening an endpoint", ret) : 0;
}

static void close_end(struct prof_end *end)
{
	if (end->ep)
		fi_close(&end->ep->fid);
	if (end->cq)
		fi_close(&end->cq->fid);
	if (end->eq)
		fi_close(&end->eq->fid);
	if (end->av)
		fi_close(&end->av->fid);
}

/* ---- connected ---- */

/* Reads an event; *got is set if it was the wanted event. */
static int read_event(struct fid_eq *eq, uint32_t want,
		      struct fi_eq_cm_entry *entry, bool *got,
		      struct prof_err *err)
{
	struct fi_eq_err_entry error = { 0 };
	uint32_t event = 0;
	ssize_t ret;

	*got = false;
	ret = fi_eq_read(eq, &event, entry, sizeof(*entry), 0);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(eq, &error, 0);
		return fail(err, "connecting", -error.err);
	}
	if (ret < 0)
		return fail(err, "connecting", (int) ret);
	*got = event == want;
	return *got ? 0 : fail(err, "connecting", -FI_EOTHER);
}

/* Replaces an unspecified address, since no connection to it is possible. */
static void fix_any(void *addr)
{
	struct sockaddr_in *in = addr;
	struct sockaddr_in6 *in6 = addr;

	if (in->sin_family == AF_INET && in->sin_addr.s_addr == INADDR_ANY)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (in->sin_family == AF_INET6 &&
		 IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		in6->sin6_addr = in6addr_loopback;
}

static int open_client(struct prof_pair *pair, struct prof_err *err)
{
	const struct fi_info *info = pair->device->info;
	struct fi_info *hints, *found = NULL;
	char name[256] __attribute__((aligned(8)));
	size_t len = sizeof(name);
	int ret;

	ret = fi_getname(&pair->pep->fid, name, &len);
	if (ret)
		return fail(err, "fi_getname", ret);
	fix_any(name);
	hints = prof_device_hints(info->fabric_attr->prov_name,
				  info->domain_attr->name);
	if (!hints)
		return fail(err, "hints", -FI_ENOMEM);
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = info->addr_format;
	hints->dest_addr = malloc(len);
	if (hints->dest_addr) {
		memcpy(hints->dest_addr, name, len);
		hints->dest_addrlen = len;
		ret = fi_getinfo(PROF_FIVERSION, NULL, NULL, 0, hints, &found);
	} else {
		ret = -FI_ENOMEM;
	}
	fi_freeinfo(hints);
	if (ret)
		return fail(err, "its own address (try --address)", ret);
	ret = open_end(pair, found, &pair->from, err);
	if (!ret) {
		ret = fi_connect(pair->from.ep, found->dest_addr, NULL, 0);
		if (ret)
			fail(err, "fi_connect", ret);
	}
	fi_freeinfo(found);
	return ret;
}

static int accept_one(struct prof_pair *pair, struct fi_info *info,
		      struct prof_err *err)
{
	int ret;

	ret = open_end(pair, info, &pair->to, err);
	if (ret)
		return ret;
	ret = fi_accept(pair->to.ep, NULL, 0);
	return ret ? fail(err, "fi_accept", ret) : 0;
}

static int connect_ends(struct prof_pair *pair, struct prof_err *err)
{
	const double end = prof_now() + LIMIT_US;
	bool accepted = false, up[2] = { false, false }, got;
	struct fi_eq_cm_entry entry;
	int ret = 0;

	while (!ret && (!up[0] || !up[1])) {
		if (prof_stop || prof_now() > end)
			return fail(err, "connecting to itself", -FI_ETIMEDOUT);
		if (!accepted) {
			ret = read_event(pair->peq, FI_CONNREQ, &entry, &got,
					 err);
			if (!ret && got) {
				ret = accept_one(pair, entry.info, err);
				fi_freeinfo(entry.info);
				accepted = true;
			}
		}
		if (!ret && accepted && !up[0])
			ret = read_event(pair->to.eq, FI_CONNECTED, &entry,
					 &up[0], err);
		if (!ret && !up[1])
			ret = read_event(pair->from.eq, FI_CONNECTED, &entry,
					 &up[1], err);
	}
	return ret;
}

static int open_connected(struct prof_pair *pair, struct prof_err *err)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct prof_device *device = pair->device;
	int ret;

	ret = fi_eq_open(device->fabric, &attr, &pair->peq, NULL);
	if (!ret)
		ret = fi_passive_ep(device->fabric, device->info, &pair->pep,
				    NULL);
	if (!ret)
		ret = fi_pep_bind(pair->pep, &pair->peq->fid, 0);
	if (!ret)
		ret = fi_listen(pair->pep);
	if (ret)
		return fail(err, "listening", ret);
	ret = open_client(pair, err);
	return ret ? ret : connect_ends(pair, err);
}

/* ---- datagrams ---- */

static int insert_peer(struct prof_end *end, const struct prof_end *peer,
		       struct prof_err *err)
{
	char name[256] __attribute__((aligned(8)));
	size_t len = sizeof(name);
	int ret;

	ret = fi_getname(&peer->ep->fid, name, &len);
	if (ret)
		return fail(err, "fi_getname", ret);
	fix_any(name);
	ret = fi_av_insert(end->av, name, 1, &end->peer, 0, NULL);
	return ret == 1 ? 0 : fail(err, "fi_av_insert", -FI_EINVAL);
}

static int open_datagram(struct prof_pair *pair, struct prof_err *err)
{
	int ret;

	ret = open_end(pair, pair->device->info, &pair->from, err);
	if (!ret)
		ret = open_end(pair, pair->device->info, &pair->to, err);
	if (!ret)
		ret = insert_peer(&pair->from, &pair->to, err);
	return ret ? ret : insert_peer(&pair->to, &pair->from, err);
}

int prof_pair_open(struct prof_device *device, struct prof_pair *pair,
		   struct prof_err *err)
{
	const enum fi_ep_type type = device->info->ep_attr->type;
	int ret;

	*pair = (struct prof_pair){ .device = device };
	if (type == FI_EP_MSG)
		ret = open_connected(pair, err);
	else if (type == FI_EP_RDM)
		ret = open_datagram(pair, err);
	else
		return prof_fail(err, -FI_ENOSYS,
				 "neither connected "
				 "endpoints nor reliable datagrams");
	if (ret)
		prof_pair_close(pair);
	return ret;
}

void prof_pair_close(struct prof_pair *pair)
{
	close_end(&pair->from);
	close_end(&pair->to);
	if (pair->pep)
		fi_close(&pair->pep->fid);
	if (pair->peq)
		fi_close(&pair->peq->fid);
}

/* ---- messages ---- */

/* Reads one completion of one end, if there is one. */
static int read_done(struct fid_cq *cq, bool *done, struct prof_err *err)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_entry entry;
	ssize_t ret;

	ret = fi_cq_read(cq, &entry, 1);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(cq, &error, 0);
		return fail(err, "a message", -error.err);
	}
	if (ret < 0)
		return fail(err, "fi_cq_read", (int) ret);
	*done = true;
	return 0;
}

int prof_pair_send(struct prof_pair *pair, const void *from, void *from_desc,
		   void *to, void *to_desc, size_t len, struct prof_err *err)
{
	struct fi_context context[2][2]; /* FI_CONTEXT2 takes two */
	const double end = prof_now() + LIMIT_US;
	bool sent = false, done[2] = { false, false };
	ssize_t ret;

	ret = fi_recv(pair->to.ep, to, len, to_desc, pair->to.peer, context[0]);
	if (ret)
		return fail(err, "fi_recv", (int) ret);
	while (!done[0] || !done[1]) {
		if (prof_now() > end)
			return fail(err, "a message to itself", -FI_ETIMEDOUT);
		if (!sent) {
			ret = fi_send(pair->from.ep, from, len, from_desc,
				      pair->from.peer, context[1]);
			if (ret && ret != -FI_EAGAIN)
				return fail(err, "fi_send", (int) ret);
			sent = !ret;
		}
		ret = read_done(pair->from.cq, &done[0], err);
		if (!ret)
			ret = read_done(pair->to.cq, &done[1], err);
		if (ret)
			return (int) ret;
	}
	return 0;
}
