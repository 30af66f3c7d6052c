/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens the libfabric objects of server and client: provider, fabric and domain
 * for an address, endpoints, and links to peers.
 */
#ifndef SERVE_NET_H
#define SERVE_NET_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_mrrc.h>

#include "serve/wire/wire.h"

#define NET_FIVERSION FI_VERSION(1, 17)
#define NET_PORT      "7473"
#define NET_ADDR_TEXT 80

struct net {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_av *av; /* address vector of reliable datagrams, else NULL */
};

/* The provider to open, and the kind of its endpoints. */
struct net_kind {
	const char *provider; /* provider list; NULL: net_open() chooses */
	bool rdm;	      /* FI_EP_RDM endpoints, else FI_EP_MSG */
};

/* A link: the objects by which messages and writes of a peer are sent. */
struct net_link {
	struct fid_ep *ep;
	struct fi_mrrc_cw *cw; /* conditional writes of ep */
	/* endpoint for receives: ep, or its shared context */
	struct fid_ep *rx;
	bool rdm;
	/* over reliable datagrams: the peer's address, and the session */
	fi_addr_t addr;
	uint64_t session;
};

/*
 * Opens a provider for an address, which is this machine's if @source, else a
 * peer's. The provider is the named one, else FI_PROVIDER's, else verbs with
 * ofi_mrrc, else tcp. Returns 0, or a negative error with net unchanged.
 */
int net_open(const struct addrinfo *addr, bool source,
	     const struct net_kind *kind, struct net *net);
void net_close(struct net *net);

/*
 * Opens and enables an endpoint with conditional writes, bound to cq and to
 * net's event queue or address vector: link->ep and link->rx.
 */
int net_endpoint(struct net *net, struct fi_info *info, struct fid_cq *cq,
		 void *context, struct net_link *link);
/* Closes link->ep and link->rx, if they are open. */
void net_endpoint_close(struct net_link *link);

/*
 * Sends a message of len bytes at buf; buf has SERVE_TAIL more bytes of room.
 * Returns as fi_send() does.
 */
ssize_t net_send(const struct net_link *link, uint8_t *buf, size_t len,
		 void *context);

/*
 * Gets the name of a reliable datagram endpoint, at most SERVE_NAMED_MAX bytes.
 */
int net_name(struct fid_ep *ep, uint8_t *name, size_t *len);

/* Inserts a name; returns its address. */
int net_insert(struct net *net, const uint8_t *name, size_t len,
	       fi_addr_t *addr);

/*
 * For a client's link.ep over reliable datagrams: makes link a link to the
 * address of net_open(), for messages alone, and stores the endpoint's name in
 * name.
 */
int net_address(struct net *net, struct net_link *link, uint8_t *name,
		size_t *len);

/*
 * Enables conditional writes with the server, after its WELCOME. An operation
 * under context completes with an error when the server ends.
 */
int net_meet(struct net *net, const struct serve_msg *welcome, void *context,
	     struct net_link *link);

/*
 * Stores in *other the kind of endpoints that kind is not, over the same
 * provider: with ofi_rxm or without. provider has room bytes for the provider's
 * name.
 */
void net_other(const struct net_kind *kind, char *provider, size_t room,
	       struct net_kind *other);

/* Parses "msg" or "rdm", else -EINVAL. */
int net_endpoints(const char *text, bool *rdm);

/*
 * Looks an address up. Returns 0, or getaddrinfo()'s error; freeaddrinfo()
 * frees the list.
 */
int net_resolve(const char *host, const char *port, struct addrinfo **list);

/* Prints "1.2.3.4:56" or "[::1]:56". */
void net_addr_text(const void *addr, size_t len, char text[NET_ADDR_TEXT]);

/* Returns a hint for the user about an error of net_open(), or NULL. */
const char *net_hint(int ret);

#endif /* SERVE_NET_H */
