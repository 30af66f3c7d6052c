/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Provider, fabric and domain (serve/wire/net.h).
 */
#include "config.h"
#include "serve/wire/net.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/wire/wire.h"

static struct fi_info *hints_for(const struct addrinfo *addr, bool source,
				 const struct net_kind *kind)
{
	struct fi_info *hints = fi_allocinfo();
	void *copy = malloc(addr->ai_addrlen);

	if (!hints || !copy) {
		fi_freeinfo(hints);
		free(copy);
		return NULL;
	}
	memcpy(copy, addr->ai_addr, addr->ai_addrlen);
	hints->ep_attr->type = kind->rdm ? FI_EP_RDM : FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_RX_CQ_DATA;
	/*
	 * reads of the completion queue make all progress: a thread of the
	 * provider would only cost a wakeup for each message
	 */
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
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
	if (kind->provider)
		hints->fabric_attr->prov_name = strdup(kind->provider);
	return hints;
}

/* Without ofi_mrrc there are no conditional writes. */
static int find(const struct addrinfo *addr, bool source,
		const struct net_kind *kind, struct fi_info **found)
{
	struct fi_info *hints = hints_for(addr, source, kind);
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
		    const struct net_kind *kind, struct fi_info **found)
{
	const char *env = getenv("FI_PROVIDER");
	const struct net_kind verbs = {
		kind->rdm ? "verbs;ofi_rxm;ofi_mrrc" : "verbs;ofi_mrrc",
		kind->rdm,
	};
	const struct net_kind tcp = {
		kind->rdm ? "tcp;ofi_rxm;ofi_mrrc" : "tcp;ofi_mrrc",
		kind->rdm,
	};
	int ret;

	if (kind->provider || (env && *env))
		return find(addr, source, kind, found);
	ret = find(addr, source, &verbs, found);
	return ret ? find(addr, source, &tcp, found) : 0;
}

/*
 * ofi_rxm of libfabric 1.17 crashes when it closes a connection on which a
 * message has just arrived, but not where connections share their receives. A
 * client has one connection, so that shared receives need not be more than the
 * connection's own. The user's own settings of ofi_rxm are kept.
 */
static void set_up_rxm(bool server)
{
	setenv("FI_OFI_RXM_USE_SRX", "1", 0);
	if (!server)
		setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0);
}

int net_open(const struct addrinfo *addr, bool source,
	     const struct net_kind *kind, struct net *net)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct net made = { 0 };
	int ret;

	if (kind->rdm)
		set_up_rxm(source);
	ret = find_any(addr, source, kind, &made.info);
	if (!ret)
		ret = fi_fabric(made.info->fabric_attr, &made.fabric, NULL);
	if (!ret)
		ret = fi_domain(made.fabric, made.info, &made.domain, NULL);
	if (!ret)
		ret = fi_eq_open(made.fabric, &attr, &made.eq, NULL);
	if (!ret && kind->rdm)
		ret = fi_av_open(made.domain, &av, &made.av, NULL);
	if (ret)
		net_close(&made);
	else
		*net = made;
	return ret;
}

void net_close(struct net *net)
{
	if (net->av)
		fi_close(&net->av->fid);
	if (net->eq)
		fi_close(&net->eq->fid);
	if (net->domain)
		fi_close(&net->domain->fid);
	if (net->fabric)
		fi_close(&net->fabric->fid);
	fi_freeinfo(net->info);
	memset(net, 0, sizeof(*net));
}

/*
 * A tagged message of a peer makes libfabric's tcp (1.17 to 2.x) call through
 * the receive context of the endpoint, which is NULL unless a context is bound.
 * Tagged messages find no receive in the context that this function binds, and
 * are not read. ofi_rxm binds a context itself.
 */
static bool needs_context(const struct fi_info *info)
{
	return info->ep_attr->type == FI_EP_MSG &&
	       !strncmp(info->fabric_attr->prov_name, "tcp", 3);
}

static int bind_context(struct net *net, struct fi_info *info,
			struct net_link *link)
{
	int ret;

	link->rx = link->ep;
	if (!needs_context(info))
		return 0;
	ret = fi_srx_context(net->domain, info->rx_attr, &link->rx, NULL);
	if (ret) {
		link->rx = NULL;
		return ret;
	}
	return fi_ep_bind(link->ep, &link->rx->fid, 0);
}

int net_endpoint(struct net *net, struct fi_info *info, struct fid_cq *cq,
		 void *context, struct net_link *link)
{
	struct fid *names = net->av ? &net->av->fid : &net->eq->fid;
	struct net_link made = { 0 };
	int ret;

	ret = fi_endpoint(net->domain, info, &made.ep, context);
	if (ret)
		return ret;
	ret = fi_ep_bind(made.ep, names, 0);
	if (!ret)
		ret = fi_ep_bind(made.ep, &cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_cw_enable(&made.ep->fid, 0);
	if (!ret)
		ret = fi_cw_open(made.ep, &made.cw);
	/* fi_cw_enable() accepts no endpoint with a shared context */
	if (!ret)
		ret = bind_context(net, info, &made);
	if (!ret)
		ret = fi_enable(made.ep);
	if (ret) {
		net_endpoint_close(&made);
	} else {
		link->ep = made.ep;
		link->cw = made.cw;
		link->rx = made.rx;
	}
	return ret;
}

void net_endpoint_close(struct net_link *link)
{
	if (link->ep)
		fi_close(&link->ep->fid);
	if (link->rx && link->rx != link->ep)
		fi_close(&link->rx->fid);
	link->ep = link->rx = NULL;
	link->cw = NULL;
}

ssize_t net_send(const struct net_link *link, uint8_t *buf, size_t len,
		 void *context)
{
	if (link->rdm)
		len = serve_seal(buf, len, link->session);
	return fi_send(link->ep, buf, len, NULL, link->addr, context);
}

int net_name(struct fid_ep *ep, uint8_t *name, size_t *len)
{
	int ret;

	*len = SERVE_NAMED_MAX;
	ret = fi_getname(&ep->fid, name, len);
	if (!ret && !serve_named_valid(name, *len, true))
		ret = -FI_EADDRNOTAVAIL;
	return ret;
}

int net_insert(struct net *net, const uint8_t *name, size_t len,
	       fi_addr_t *addr)
{
	char copy[SERVE_NAMED_MAX] __attribute__((aligned(8))) = { 0 };
	int ret;

	memcpy(copy, name, len);
	ret = fi_av_insert(net->av, copy, 1, addr, 0, NULL);
	return ret == 1 ? 0 : ret < 0 ? ret : -FI_EINVAL;
}

int net_address(struct net *net, struct net_link *link, uint8_t *name,
		size_t *len)
{
	int ret;

	link->rdm = true;
	ret = net_name(link->ep, name, len);
	return ret ? ret :
		     net_insert(net, net->info->dest_addr,
				net->info->dest_addrlen, &link->addr);
}

int net_meet(struct net *net, const struct serve_msg *welcome, void *context,
	     struct net_link *link)
{
	static char never[8]; /* only a faulty server writes to this memory */
	uint8_t name[SERVE_NAMED_MAX];
	int ret;

	/*
	 * take the address at which the client reached the server: the server
	 * may not know its own address as seen by clients
	 */
	memcpy(name, welcome->name, welcome->name_len);
	if (serve_named_move(name, net->info->dest_addr))
		return -FI_EINVAL;
	ret = net_insert(net, name, welcome->name_len, &link->addr);
	return ret ? ret :
		     (int) fi_cwtag(link->cw, never, sizeof(never), NULL,
				    link->addr, SERVE_TAG_CLIENT, context);
}

void net_other(const struct net_kind *kind, char *provider, size_t room,
	       struct net_kind *other)
{
	static const char rxm[] = "ofi_rxm;";
	const char *name = kind->provider ? kind->provider :
					    getenv("FI_PROVIDER");
	const char *at = name ? strstr(name, kind->rdm ? rxm : "ofi_mrrc") :
				NULL;

	*other = (struct net_kind){ at ? provider : NULL, !kind->rdm };
	if (at)
		snprintf(provider, room, "%.*s%s%s", (int) (at - name), name,
			 kind->rdm ? "" : rxm,
			 at + (kind->rdm ? strlen(rxm) : 0));
}

int net_endpoints(const char *text, bool *rdm)
{
	if (strcmp(text, "msg") && strcmp(text, "rdm"))
		return -FI_EINVAL;
	*rdm = !strcmp(text, "rdm");
	return 0;
}

int net_resolve(const char *host, const char *port, struct addrinfo **list)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	return getaddrinfo(host, port, &hints, list);
}

void net_addr_text(const void *addr, size_t len, char text[NET_ADDR_TEXT])
{
	struct sockaddr_in6 copy = { 0 };
	char host[64], port[8];

	/*
	 * a name with a mark has a number of the provider in place of the scope
	 */
	memcpy(&copy, addr ? addr : &copy,
	       len < sizeof(copy) ? len : sizeof(copy));
	if (copy.sin6_family == AF_INET6 &&
	    !IN6_IS_ADDR_LINKLOCAL(&copy.sin6_addr))
		copy.sin6_scope_id = 0;
	if (!addr || getnameinfo((struct sockaddr *) &copy, (socklen_t) len,
				 host, sizeof(host), port, sizeof(port),
				 NI_NUMERICHOST | NI_NUMERICSERV))
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
