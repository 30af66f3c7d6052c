/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes pairs of reliable datagram endpoints: each endpoint has an address
 * vector, names are exchanged within the process, and a first message goes each
 * way, so that tests begin when the core has made its connections.
 */
#include "ft_conn.h"

void ft_rdm_open(struct ft_pair *pair, struct ft_dom *dom)
{
	dom->info = ft_getinfo(&pair->attr);
	FT_CALL(fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	FT_CALL(fi_domain(dom->fabric, dom->info, &dom->domain, NULL));
}

void ft_rdm_ep_open(struct ft_pair *pair, struct ft_ep *ep, struct ft_dom *dom)
{
	struct fi_av_attr attr = { .type = pair->attr.av_type };

	ft_ep_init(pair, ep, dom);
	ep->source = pair->attr.caps & FI_SOURCE;
	FT_CALL(fi_av_open(dom->domain, &attr, &ep->av, NULL));
	FT_CALL(fi_endpoint(dom->domain, dom->info, &ep->ep, ep));
	ft_cw_open(ep);
	FT_CALL(fi_ep_bind(ep->ep, &ep->av->fid, 0));
	ft_bind_queues(pair, ep);
	if (pair->attr.cw)
		FT_CALL(fi_cw_enable(&ep->ep->fid, 0));
	FT_CALL(fi_enable(ep->ep));
}

fi_addr_t ft_rdm_insert(struct ft_ep *ep, struct ft_ep *whom)
{
	char name[256];
	size_t len = sizeof(name);
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret;

	FT_CALL(fi_getname(&whom->ep->fid, name, &len));
	ret = fi_av_insert(ep->av, name, 1, &addr, 0, NULL);
	FT_CHECK(ret == 1 && addr != FI_ADDR_NOTAVAIL, "fi_av_insert: %d", ret);
	return addr;
}

/*
 * Inserts the endpoint's own address first, so that a call that omits the
 * peer's address reaches the wrong endpoint.
 */
static void introduce(struct ft_ep *ep, struct ft_ep *peer)
{
	ft_rdm_insert(ep, ep);
	ep->to = ft_rdm_insert(ep, peer);
	ep->peer = peer;
}

/* Sends an empty message; queues and counters stay as they are. */
static void meet(struct ft_pair *pair, struct ft_ep *from)
{
	uint64_t end = ft_deadline();
	struct ft_ep *to = from->peer;
	struct iovec iov = { NULL, 0 };
	void *desc = NULL;
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = to,
	};
	struct ft_comp comp;

	if (pair->attr.mode & FI_BUFFERED_RECV) {
		FT_POST(from, fi_inject(from->ep, NULL, 0, from->to));
		ft_wait(to, FT_RX, &comp);
		msg.context = comp.ctx;
		FT_CALL(fi_recvmsg(to->ep, &msg, FI_DISCARD));
		return;
	}
	FT_POST(from, fi_recvmsg(to->ep, &msg, FI_COMPLETION));
	FT_POST(from, fi_inject(from->ep, NULL, 0, from->to));
	/* completions of a queue for both directions are listed as FT_TX */
	if (to->cq[FT_RX])
		ft_wait_ctx(to, pair->attr.one_cq ? FT_TX : FT_RX, to, 0);
	else
		ft_wait_cntr(to, FT_RX, 1);
	if (!pair->attr.cntr)
		return;
	while (!fi_cntr_read(from->cntr[FT_TX]) ||
	       !fi_cntr_read(to->cntr[FT_RX]))
		FT_CHECK(ft_limit_us() < end, "nothing was counted");
	FT_CALL(fi_cntr_set(from->cntr[FT_TX], 0));
	FT_CALL(fi_cntr_set(to->cntr[FT_RX], 0));
}

void ft_rdm_connect(struct ft_pair *pair, struct ft_ep *s, struct ft_ep *c)
{
	ft_rdm_ep_open(pair, s, &pair->dom[0]);
	ft_rdm_ep_open(pair, c, &pair->dom[1]);
	introduce(s, c);
	introduce(c, s);
	meet(pair, c);
	meet(pair, s);
}
