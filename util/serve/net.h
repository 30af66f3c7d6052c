/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What server and client open of libfabric: the provider, fabric and domain for
 * an address.
 */
#ifndef SERVE_NET_H
#define SERVE_NET_H

#include <netdb.h>
#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_mrrc.h>

#define NET_FIVERSION FI_VERSION(1, 17)
#define NET_PORT      "7473"
#define NET_ADDR_TEXT 80

struct net {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
};

/*
 * For the address, at this machine if @source, else a peer's. The provider is
 * the named one, else that of FI_PROVIDER, else verbs;ofi_mrrc, else
 * tcp;ofi_mrrc. 0, or a negative error, and net is as it was.
 */
int net_open(const struct addrinfo *addr, bool source, const char *provider,
	     struct net *net);
void net_close(struct net *net);

/* An endpoint on net's event queue and cq, with conditional writes, enabled. */
int net_endpoint(struct net *net, struct fi_info *info, struct fid_cq *cq,
		 void *context, struct fid_ep **ep);

/* 0, or getaddrinfo()'s error. To be freed by freeaddrinfo(). */
int net_resolve(const char *host, const char *port, struct addrinfo **list);

/* "1.2.3.4:56" or "[::1]:56". */
void net_addr_text(const void *addr, size_t len, char text[NET_ADDR_TEXT]);

/* What to do about an error of net_open(), or NULL. */
const char *net_hint(int ret);

#endif /* SERVE_NET_H */
