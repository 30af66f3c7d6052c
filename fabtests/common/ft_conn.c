/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens a listener, domains, and connections, of which one thread drives both
 * ends. For reliable datagrams see ft_rdm.c.
 */
#include "ft_conn.h"

struct fi_info *ft_hints(const struct ft_attr *attr)
{
	enum fi_ep_type type = attr->type ? attr->type : ft_ep_type();
	struct fi_info *hints = fi_allocinfo();

	FT_CHECK(hints, "fi_allocinfo");
	hints->fabric_attr->prov_name = strdup(ft_opts.prov);
	hints->caps = attr->caps;
	hints->mode = FI_RX_CQ_DATA | attr->mode;
	if (type == FI_EP_DGRAM)
		hints->mode |= FI_MSG_PREFIX;
	hints->ep_attr->type = type;
	if (attr->srx)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->domain_attr->threading = attr->threading;
	hints->domain_attr->data_progress = attr->progress;
	hints->domain_attr->mr_mode = attr->mr_mode;
	if (!attr->mr_mode && !attr->scalable_mr)
		hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR |
					      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (ft_opts.raw)
		hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	if (type != FI_EP_DGRAM)
		hints->addr_format = strchr(ft_opts.addr, ':') ?
					     FI_SOCKADDR_IN6 :
					     FI_SOCKADDR_IN;
	return hints;
}

static struct fi_info *getinfo(const struct ft_attr *attr, const char *node,
			       uint64_t flags, const void *dest, size_t destlen)
{
	struct fi_info *hints = ft_hints(attr), *info = NULL;
	int ret;

	if (dest) {
		hints->dest_addr = malloc(destlen);
		FT_CHECK(hints->dest_addr, "malloc");
		memcpy(hints->dest_addr, dest, destlen);
		hints->dest_addrlen = destlen;
	}
	ret = fi_getinfo(FT_FIVERSION, node, NULL, flags, hints, &info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		ft_skip("%s offers no such endpoint here", ft_opts.prov);
	FT_CHECK(!ret, "fi_getinfo: %s", fi_strerror(-ret));
	FT_CHECK(!strcmp(info->fabric_attr->prov_name, ft_opts.prov),
		 "asked for %s, got %s", ft_opts.prov,
		 info->fabric_attr->prov_name);
	return info;
}

struct fi_info *ft_getinfo(const struct ft_attr *attr)
{
	return getinfo(attr, ft_opts.addr, FI_SOURCE, NULL, 0);
}

static void eq_open(struct fid_fabric *fabric, struct fid_eq **eq)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	FT_CALL(fi_eq_open(fabric, &attr, eq, NULL));
}

static void listen_on(struct ft_pair *pair)
{
	struct ft_dom *dom = &pair->dom[0];

	dom->info = ft_getinfo(&pair->attr);
	FT_CALL(fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	eq_open(dom->fabric, &pair->peq);
	FT_CALL(fi_passive_ep(dom->fabric, dom->info, &pair->pep, NULL));
	FT_CALL(fi_pep_bind(pair->pep, &pair->peq->fid, 0));
	if (pair->attr.cw_pep)
		FT_CALL(fi_cw_enable(&pair->pep->fid, 0));
	FT_CALL(fi_listen(pair->pep));
}

static void open_client(struct ft_pair *pair, const void *name, size_t len)
{
	struct ft_dom *dom = &pair->dom[1];

	dom->info = getinfo(&pair->attr, NULL, 0, name, len);
	FT_CALL(fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	FT_CALL(fi_domain(dom->fabric, dom->info, &dom->domain, NULL));
}

static void open_own_client(struct ft_pair *pair)
{
	size_t len = FT_NAME_MAX;
	char name[FT_NAME_MAX];

	FT_CALL(fi_getname(&pair->pep->fid, name, &len));
	open_client(pair, name, len);
}

void ft_client_open(struct ft_pair *pair, const struct ft_attr *attr,
		    const char *hex)
{
	char name[FT_NAME_MAX];
	size_t len = ft_hex_name(hex, name);

	memset(pair, 0, sizeof(*pair));
	pair->attr = *attr;
	open_client(pair, name, len);
}

static void open_cq(struct ft_pair *pair, struct ft_ep *ep, enum ft_dir dir)
{
	struct fi_cq_attr attr = {
		.size = pair->attr.cq_size,
		.format = pair->attr.format,
		.wait_obj = pair->attr.wait_obj,
	};

	FT_CALL(fi_cq_open(ep->dom->domain, &attr, &ep->cq[dir], NULL));
}

/*
 * Binds the shared receive context and its queue; the first endpoint that needs
 * the context opens both.
 */
static void bind_srx(struct ft_pair *pair, struct ft_ep *ep)
{
	int ret;

	if (!pair->srx) {
		FT_CALL_OR_SKIP(fi_srx_context(ep->dom->domain,
					       ep->dom->info->rx_attr,
					       &pair->srx, NULL));
		open_cq(pair, ep, FT_RX);
		pair->srx_cq = ep->cq[FT_RX];
		/*
		 * tcp needs a queue that is bound to a shared receive context,
		 * verbs supports no such queue
		 */
		ret = fi_ep_bind(pair->srx, &pair->srx_cq->fid, FI_RECV);
		ft_log("binding a queue to the srx: %d", ret);
		ret = fi_enable(pair->srx);
		FT_CHECK(!ret || ret == -FI_ENOSYS, "enabling an srx: %d", ret);
	}
	ep->cq[FT_RX] = pair->srx_cq;
	ep->srx = pair->srx;
	FT_CALL(fi_ep_bind(ep->ep, &pair->srx->fid, 0));
}

void ft_bind_queues(struct ft_pair *pair, struct ft_ep *ep)
{
	const struct ft_attr *attr = &pair->attr;
	const uint64_t dirs[] = { FI_TRANSMIT, FI_RECV };
	const bool selective[] = { attr->tx_selective, attr->rx_selective };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	uint64_t flags, rma;
	int dir;

	if (attr->srx && ep->dom == &pair->dom[0])
		bind_srx(pair, ep);
	for (dir = FT_TX; dir < FT_DIRS; dir++) {
		if (!attr->no_cq || ft_opts.raw) {
			if (attr->one_cq && dir == FT_RX)
				ep->cq[dir] = ep->cq[FT_TX];
			if (!ep->cq[dir])
				open_cq(pair, ep, dir);
			flags = dirs[dir];
			if (selective[dir])
				flags |= FI_SELECTIVE_COMPLETION;
			FT_CALL(fi_ep_bind(ep->ep, &ep->cq[dir]->fid, flags));
		}
		if (!attr->cntr)
			continue;
		FT_CALL_OR_SKIP(fi_cntr_open(ep->dom->domain, &cntr_attr,
					     &ep->cntr[dir], NULL));
		rma = attr->caps & FI_RMA ? FI_READ | FI_WRITE : 0;
		FT_CALL_OR_SKIP(
			fi_ep_bind(ep->ep, &ep->cntr[dir]->fid,
				   dir == FT_TX ? FI_SEND | rma : FI_RECV));
	}
}

void ft_ep_init(struct ft_pair *pair, struct ft_ep *ep, struct ft_dom *dom)
{
	int dir;

	memset(ep, 0, sizeof(*ep));
	ep->dom = dom;
	ep->format = pair->attr.format;
	for (dir = FT_TX; dir < FT_DIRS; dir++)
		ep->tail[dir] = &ep->head[dir];
}

/* Opens conditional writes of an endpoint, without enabling them. */
void ft_cw_open(struct ft_ep *ep)
{
	if (fi_cw_open(ep->ep, &ep->cw))
		ep->cw = NULL;
}

static void ep_open(struct ft_pair *pair, struct ft_ep *ep, struct ft_dom *dom,
		    struct fi_info *info)
{
	ft_ep_init(pair, ep, dom);
	eq_open(dom->fabric, &ep->eq);
	FT_CALL(fi_endpoint(dom->domain, info, &ep->ep, ep));
	ft_cw_open(ep);
	FT_CALL(fi_ep_bind(ep->ep, &ep->eq->fid, 0));
	ft_bind_queues(pair, ep);
	if (pair->attr.cw)
		FT_CALL(fi_cw_enable(&ep->ep->fid, 0));
	FT_CALL(fi_enable(ep->ep));
}

/*
 * Reads an event of the kind @want, if there is one; any other event fails the
 * test.
 */
static bool event(struct fid_eq *eq, uint32_t want,
		  struct fi_eq_cm_entry *entry)
{
	struct fi_eq_err_entry err = { 0 };
	uint32_t got = 0;
	ssize_t ret;

	ret = fi_eq_read(eq, &got, entry, sizeof(*entry), 0);
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(eq, &err, 0);
		FT_CHECK(0, "event queue: error %d (%s)", err.err,
			 fi_strerror(err.err));
	}
	FT_CHECK(ret >= 0, "fi_eq_read: %zd", ret);
	FT_CHECK(got == want, "event %u, not %u", got, want);
	return true;
}

static void accept_one(struct ft_pair *pair, struct ft_ep *s,
		       struct fi_eq_cm_entry *req)
{
	struct ft_dom *dom = &pair->dom[0];

	FT_CHECK(req->fid == &pair->pep->fid,
		 "FI_CONNREQ for another fid: %p, listener %p",
		 (void *) req->fid, (void *) &pair->pep->fid);
	FT_CHECK(!strcmp(req->info->fabric_attr->prov_name, ft_opts.prov),
		 "FI_CONNREQ from %s", req->info->fabric_attr->prov_name);
	if (!dom->domain)
		FT_CALL(fi_domain(dom->fabric, req->info, &dom->domain, NULL));
	ep_open(pair, s, dom, req->info);
	FT_CALL(fi_accept(s->ep, NULL, 0));
	fi_freeinfo(req->info);
}

static void connected(struct ft_ep *ep, bool *up)
{
	struct fi_eq_cm_entry entry;

	if (*up || !event(ep->eq, FI_CONNECTED, &entry))
		return;
	FT_CHECK(entry.fid == &ep->ep->fid, "FI_CONNECTED for another fid");
	*up = true;
}

/* Connects both halves, or one half if the other is in another process. */
static void connect_halves(struct ft_pair *pair, struct ft_ep *s,
			   struct ft_ep *c)
{
	uint64_t end = ft_deadline();
	bool accepted = !s, up[2] = { !s, !c };
	struct ft_dom *dom = &pair->dom[1];
	struct fi_eq_cm_entry entry;

	if (c) {
		ep_open(pair, c, dom, dom->info);
		FT_CALL(fi_connect(c->ep, dom->info->dest_addr, NULL, 0));
	}
	while (!up[0] || !up[1]) {
		FT_CHECK(ft_limit_us() < end,
			 "no connection: request seen %d, server up %d, "
			 "client up %d",
			 accepted, up[0], up[1]);
		if (!accepted && event(pair->peq, FI_CONNREQ, &entry)) {
			accept_one(pair, s, &entry);
			accepted = true;
		}
		if (accepted && s)
			connected(s, &up[0]);
		if (c)
			connected(c, &up[1]);
	}
	if (s)
		s->peer = c;
	if (c)
		c->peer = s;
}

void ft_connect(struct ft_pair *pair, struct ft_ep *s, struct ft_ep *c)
{
	if (!pair->pep)
		ft_rdm_connect(pair, s, c);
	else
		connect_halves(pair, s, c);
}

void ft_connect_server(struct ft_pair *pair, struct ft_ep *s)
{
	connect_halves(pair, s, NULL);
}

void ft_connect_client(struct ft_pair *pair, struct ft_ep *c)
{
	connect_halves(pair, NULL, c);
}

void ft_wait_shutdown(struct ft_ep *ep)
{
	uint64_t end = ft_deadline();
	struct fi_eq_cm_entry entry;

	if (!ep->eq)
		return;
	while (!event(ep->eq, FI_SHUTDOWN, &entry)) {
		ft_poll(ep);
		FT_CHECK(ft_limit_us() < end, "no FI_SHUTDOWN");
	}
	FT_CHECK(entry.fid == &ep->ep->fid, "FI_SHUTDOWN for another fid");
}

void ft_listen(struct ft_pair *pair, const struct ft_attr *attr)
{
	memset(pair, 0, sizeof(*pair));
	pair->attr = *attr;
	listen_on(pair);
}

void ft_pair_open(struct ft_pair *pair, const struct ft_attr *attr)
{
	if ((attr->type ? attr->type : ft_ep_type()) == FI_EP_RDM) {
		memset(pair, 0, sizeof(*pair));
		pair->attr = *attr;
		ft_rdm_open(pair, &pair->dom[0]);
		ft_rdm_open(pair, &pair->dom[1]);
	} else {
		ft_listen(pair, attr);
		open_own_client(pair);
	}
	ft_connect(pair, &pair->s, &pair->c);
}

void ft_reconnect(struct ft_pair *pair)
{
	ft_ep_close(&pair->s);
	ft_ep_close(&pair->c);
	ft_connect(pair, &pair->s, &pair->c);
}

/* Closes queues, counters and event queue, after the endpoint was closed. */
void ft_queue_close(struct ft_ep *ep)
{
	struct ft_comp *comp;
	int dir;

	if (ep->cq[FT_RX] == ep->cq[FT_TX])
		ep->cq[FT_RX] = NULL;
	for (dir = FT_TX; dir < FT_DIRS; dir++) {
		if (ep->cq[dir] && !(dir == FT_RX && ep->srx))
			FT_CALL(fi_close(&ep->cq[dir]->fid));
		if (ep->cntr[dir])
			FT_CALL(fi_close(&ep->cntr[dir]->fid));
		ep->cq[dir] = NULL;
		ep->cntr[dir] = NULL;
		while ((comp = ep->head[dir])) {
			ep->head[dir] = comp->next;
			free(comp);
		}
		ep->tail[dir] = &ep->head[dir];
	}
	if (ep->eq)
		FT_CALL(fi_close(&ep->eq->fid));
	ep->eq = NULL;
	if (ep->av)
		FT_CALL(fi_close(&ep->av->fid));
	ep->av = NULL;
}

void ft_ep_close(struct ft_ep *ep)
{
	if (!ep->dom)
		return;
	if (ep->ep)
		FT_CALL(fi_close(&ep->ep->fid));
	ep->ep = NULL;
	ft_queue_close(ep);
	ep->dom = NULL;
}

/*
 * ofi_rxm (1.17) keeps registrations of its own for messages that were half
 * transferred when the endpoint closed. Over verbs ofi_rxm registers nothing,
 * so registrations that are left over verbs are the provider's.
 */
static bool core_leaks(const struct ft_pair *pair)
{
	return pair->attr.abandons && ft_rxm() && !ft_core("verbs");
}

void ft_pair_close(struct ft_pair *pair)
{
	const char *who[] = { "server", "client" };
	struct ft_dom *dom;
	int i, ret;

	ft_ep_close(&pair->s);
	ft_ep_close(&pair->c);
	if (pair->srx)
		FT_CALL(fi_close(&pair->srx->fid));
	if (pair->srx_cq)
		FT_CALL(fi_close(&pair->srx_cq->fid));
	for (i = 0; i < 2; i++) {
		dom = &pair->dom[i];
		ft_print_stats(dom, who[i]);
		ft_release(dom);
		ft_check_flushed(dom, who[i]);
		fi_freeinfo(dom->info);
		if (dom->domain) {
			ret = fi_close(&dom->domain->fid);
			if (ret == -FI_EBUSY && core_leaks(pair))
				continue;
			FT_CHECK(!ret, "closing the domain: %d", ret);
		}
		if (pair->pep && i == 0) {
			FT_CALL(fi_close(&pair->pep->fid));
			FT_CALL(fi_close(&pair->peq->fid));
		}
		if (dom->fabric)
			FT_CALL(fi_close(&dom->fabric->fid));
	}
	memset(pair, 0, sizeof(*pair));
}
