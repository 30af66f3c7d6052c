/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Provider, fabric and domain (serve/net.h).
 */
#include "config.h"
#include "serve/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fi_info *hints_for(const struct addrinfo *addr, bool source,
				 const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	void *copy = malloc(addr->ai_addrlen);

	if (!hints || !copy) {
		fi_freeinfo(hints);
		free(copy);
		return NULL;
	}
	memcpy(copy, addr->ai_addr, addr->ai_addrlen);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->addr_format = addr->ai_family == AF_INET6 ? FI_SOCKADDR_IN6 :
							   FI_SOCKADDR_IN;
	if (source) {
		hints->src_addr = copy;
		hints->src_addrlen = addr->ai_addrlen;
	} else {
		hints->dest_addr = copy;
		hints->dest_addrlen = addr->ai_addrlen;
	}
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

/* Without ofi_mrrc there are no conditional writes. */
static int find(const struct addrinfo *addr, bool source, const char *provider,
		struct fi_info **found)
{
	struct fi_info *hints = hints_for(addr, source, provider);
	struct fi_info *list = NULL, *info;
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	ret = fi_getinfo(NET_FIVERSION, NULL, NULL, 0, hints, &list);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	for (info = list; info; info = info->next) {
		if (strstr(info->fabric_attr->prov_name, "ofi_mrrc"))
			break;
	}
	*found = info ? fi_dupinfo(info) : NULL;
	fi_freeinfo(list);
	if (!info)
		return -FI_ENODATA;
	return *found ? 0 : -FI_ENOMEM;
}

static int find_any(const struct addrinfo *addr, bool source,
		    const char *provider, struct fi_info **found)
{
	const char *env = getenv("FI_PROVIDER");
	int ret;

	if (provider || (env && *env))
		return find(addr, source, provider, found);
	ret = find(addr, source, "verbs;ofi_mrrc", found);
	return ret ? find(addr, source, "tcp;ofi_mrrc", found) : 0;
}

int net_open(const struct addrinfo *addr, bool source, const char *provider,
	     struct net *net)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct net made = { 0 };
	int ret;

	ret = find_any(addr, source, provider, &made.info);
	if (!ret)
		ret = fi_fabric(made.info->fabric_attr, &made.fabric, NULL);
	if (!ret)
		ret = fi_domain(made.fabric, made.info, &made.domain, NULL);
	if (!ret)
		ret = fi_eq_open(made.fabric, &attr, &made.eq, NULL);
	if (ret)
		net_close(&made);
	else
		*net = made;
	return ret;
}

void net_close(struct net *net)
{
	if (net->eq)
		fi_close(&net->eq->fid);
	if (net->domain)
		fi_close(&net->domain->fid);
	if (net->fabric)
		fi_close(&net->fabric->fid);
	fi_freeinfo(net->info);
	memset(net, 0, sizeof(*net));
}

int net_endpoint(struct net *net, struct fi_info *info, struct fid_cq *cq,
		 void *context, struct fid_ep **ep)
{
	struct fid_ep *made;
	int ret;

	ret = fi_endpoint(net->domain, info, &made, context);
	if (ret)
		return ret;
	ret = fi_ep_bind(made, &net->eq->fid, 0);
	if (!ret)
		ret = fi_ep_bind(made, &cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_cw_enable(&made->fid, 0);
	if (!ret)
		ret = fi_enable(made);
	if (ret)
		fi_close(&made->fid);
	else
		*ep = made;
	return ret;
}

int net_resolve(const char *host, const char *port, struct addrinfo **list)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	return getaddrinfo(host, port, &hints, list);
}

void net_addr_text(const void *addr, size_t len, char text[NET_ADDR_TEXT])
{
	char host[64], port[8];

	if (!addr ||
	    getnameinfo(addr, (socklen_t) len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, NET_ADDR_TEXT, "unknown");
	else
		snprintf(text, NET_ADDR_TEXT,
			 strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

const char *net_hint(int ret)
{
	if (ret == -FI_ENODATA || ret == -FI_ENOSYS)
		return "no provider with ofi_mrrc for this address: see "
		       "fi_info -p 'tcp;ofi_mrrc', FI_PROVIDER_PATH and "
		       "FI_PROVIDER";
	if (ret == -FI_ENOMEM)
		return "memory is short, or may not be locked: see ulimit -l";
	return NULL;
}
