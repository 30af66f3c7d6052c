/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_dgram: tests datagrams with null descriptors, also where messages
 * carry a prefix of the provider's (verbs), with an address vector and every
 * variant of the calls.
 *
 * The test is skipped over a core without datagrams (tcp), and runs over udp.
 */
#include "ft_mrrc.h"

#define SLOTS 16

struct end {
	struct ft_dom dom;
	struct ft_ep ep;
	struct fid_av *av;
	fi_addr_t peer;
	size_t prefix[FT_DIRS]; /* bytes of the prefix before the payload */
	size_t max;		/* maximum bytes of payload */
	char *tx, *rx;		/* SLOTS buffers of buf_len bytes each */
	size_t buf_len;
};

static void end_open(struct end *e, const struct ft_attr *attr)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = attr->format };
	struct fi_info *info;

	memset(e, 0, sizeof(*e));
	e->dom.info = info = ft_getinfo(attr);
	if (info->tx_attr->mode & FI_MSG_PREFIX)
		e->prefix[FT_TX] = info->ep_attr->msg_prefix_size;
	if (info->rx_attr->mode & FI_MSG_PREFIX)
		e->prefix[FT_RX] = info->ep_attr->msg_prefix_size;
	e->max = info->ep_attr->max_msg_size - e->prefix[FT_TX];
	e->buf_len = (e->max + info->ep_attr->msg_prefix_size + 63) & ~63UL;
	FT_CALL(fi_fabric(info->fabric_attr, &e->dom.fabric, NULL));
	FT_CALL(fi_domain(e->dom.fabric, info, &e->dom.domain, NULL));
	e->ep.dom = &e->dom;
	e->ep.format = attr->format;
	e->ep.tail[FT_TX] = &e->ep.head[FT_TX];
	e->ep.tail[FT_RX] = &e->ep.head[FT_RX];
	FT_CALL(fi_av_open(e->dom.domain, &av_attr, &e->av, NULL));
	FT_CALL(fi_cq_open(e->dom.domain, &cq_attr, &e->ep.cq[FT_TX], NULL));
	FT_CALL(fi_cq_open(e->dom.domain, &cq_attr, &e->ep.cq[FT_RX], NULL));
	FT_CALL(fi_endpoint(e->dom.domain, info, &e->ep.ep, NULL));
	FT_CALL(fi_ep_bind(e->ep.ep, &e->av->fid, 0));
	FT_CALL(fi_ep_bind(e->ep.ep, &e->ep.cq[FT_TX]->fid, FI_TRANSMIT));
	FT_CALL(fi_ep_bind(e->ep.ep, &e->ep.cq[FT_RX]->fid, FI_RECV));
	FT_CALL(fi_enable(e->ep.ep));
	e->tx = ft_map(NULL, SLOTS * e->buf_len);
	e->rx = ft_map(NULL, SLOTS * e->buf_len);
}

static void introduce(struct end *to, struct end *whom)
{
	char name[256];
	size_t len = sizeof(name);
	int ret;

	FT_CALL(fi_getname(&whom->ep.ep->fid, name, &len));
	ret = fi_av_insert(to->av, name, 1, &to->peer, 0, NULL);
	FT_CHECK(ret == 1, "fi_av_insert: %d", ret);
	to->ep.peer = &whom->ep;
}

static void end_close(struct end *e)
{
	ft_print_stats(&e->dom, "end");
	FT_CALL(fi_close(&e->ep.ep->fid));
	e->ep.ep = NULL;
	ft_queue_close(&e->ep);
	FT_CALL(fi_close(&e->av->fid));
	ft_unmap(e->tx, SLOTS * e->buf_len);
	ft_unmap(e->rx, SLOTS * e->buf_len);
	ft_release(&e->dom);
	ft_check_flushed(&e->dom, "closed");
	FT_CALL(fi_close(&e->dom.domain->fid));
	FT_CALL(fi_close(&e->dom.fabric->fid));
	fi_freeinfo(e->dom.info);
}

/* Cuts the payload into pieces; the prefix has to be in one piece. */
static size_t cut(struct end *e, enum ft_dir dir, char *buf, size_t len,
		  struct iovec *iov, void **desc)
{
	size_t count = ft_iov_limit(&e->ep) > 1 && len > 8 ? 2 : 1;
	size_t total = e->prefix[dir] + len;
	size_t first = count == 1 ? total : e->prefix[dir] + len / 3;

	iov[0] = (struct iovec){ buf, first };
	iov[1] = (struct iovec){ buf + first, total - first };
	desc[0] = ft_desc(&e->dom, buf, first);
	desc[1] = ft_desc(&e->dom, buf + first, total - first);
	return count;
}

static void post_recv(struct end *e, unsigned i, size_t len)
{
	char *buf = e->rx + i % SLOTS * e->buf_len;
	size_t total = e->prefix[FT_RX] + len;
	struct iovec iov[2];
	void *desc[2];
	struct fi_msg msg = {
		.msg_iov = iov,
		.desc = desc,
		.addr = FI_ADDR_UNSPEC,
		.context = buf,
	};

	memset(buf, 0, total);
	msg.iov_count = cut(e, FT_RX, buf, len, iov, desc);
	switch (i % 3) {
	case 0:
		FT_POST(&e->ep, fi_recv(e->ep.ep, buf, total,
					ft_desc(&e->dom, buf, total),
					FI_ADDR_UNSPEC, buf));
		break;
	case 1:
		FT_POST(&e->ep, fi_recvv(e->ep.ep, iov, desc, msg.iov_count,
					 FI_ADDR_UNSPEC, buf));
		break;
	default:
		FT_POST(&e->ep, fi_recvmsg(e->ep.ep, &msg, 0));
	}
}

/* Returns true if a completion is to come */
static bool post_send(struct end *e, unsigned i, size_t len)
{
	char *buf = e->tx + i % SLOTS * e->buf_len;
	size_t total = e->prefix[FT_TX] + len;
	struct iovec iov[2];
	void *desc[2], *d = ft_desc(&e->dom, buf, total);
	struct fi_msg msg = {
		.msg_iov = iov,
		.desc = desc,
		.addr = e->peer,
		.context = buf,
	};

	ft_fill(buf + e->prefix[FT_TX], len, i);
	msg.iov_count = cut(e, FT_TX, buf, len, iov, desc);
	switch (i % 4) {
	case 0:
		FT_POST(&e->ep, fi_send(e->ep.ep, buf, total, d, e->peer, buf));
		return true;
	case 1:
		FT_POST(&e->ep, fi_sendv(e->ep.ep, iov, desc, msg.iov_count,
					 e->peer, buf));
		return true;
	case 2:
		FT_POST(&e->ep, fi_sendmsg(e->ep.ep, &msg, FI_COMPLETION));
		return true;
	default:
		if (total > e->dom.info->tx_attr->inject_size)
			return post_send(e, i + 1, len);
		FT_POST(&e->ep, fi_inject(e->ep.ep, buf, total, e->peer));
		memset(buf, 0x77, total);
		return false;
	}
}

static void exchange(struct end *from, struct end *to, unsigned i, size_t len)
{
	struct ft_comp comp;
	char *rx = to->rx + i % SLOTS * to->buf_len;
	bool completes;
	unsigned seed;

	ft_stage("datagram %u, %zu bytes", i, len);
	post_recv(to, i, len);
	completes = post_send(from, i, len);
	/* post_send() may have used the next way, and the next seed */
	seed = i % 4 == 3 && completes ? i + 1 : i;
	ft_wait(&to->ep, FT_RX, &comp);
	FT_CHECK(comp.ctx == rx, "context %p, not %p", comp.ctx, (void *) rx);
	FT_CHECK(comp.len == len || comp.len == len + to->prefix[FT_RX],
		 "%zu bytes of %zu", comp.len, len);
	FT_CHECK_BUF(rx + to->prefix[FT_RX], len, seed, "datagram");
	if (completes)
		ft_wait_ctx(&from->ep, FT_TX,
			    from->tx + seed % SLOTS * from->buf_len, FI_SEND);
	ft_release(&from->dom);
	ft_release(&to->dom);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct end a, b;
	unsigned i;

	ft_init(argc, argv);
	attr.caps = FI_MSG;
	attr.type = FI_EP_DGRAM;
	end_open(&a, &attr);
	end_open(&b, &attr);
	ft_log("prefixes %zu and %zu, payload up to %zu", a.prefix[FT_TX],
	       a.prefix[FT_RX], a.max);
	introduce(&a, &b);
	introduce(&b, &a);
	for (i = 0; i < ft_iters(2000); i++)
		exchange(i % 2 ? &a : &b, i % 2 ? &b : &a, i,
			 i % 5 ? 1 + ft_rand() % a.max : a.max);
	ft_expect_none(&a.ep, 10);
	if (ft_stats(&a.dom, &st))
		FT_CHECK(st.lookups && st.posts, "nothing went through the "
						 "cache");
	if (ft_caches(&a.dom))
		FT_CHECK(st.hits > st.misses * 10,
			 "%" PRIu64 " hits, %" PRIu64 " misses", st.hits,
			 st.misses);
	end_close(&a);
	end_close(&b);
	return ft_done();
}
