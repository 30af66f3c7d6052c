/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_close: tests endpoints that are closed with operations pending.
 * Completions that the core reports for these operations arrive once, with the
 * application's contexts; then all objects close; parents do not close before
 * their children; the process does not grow when the test is repeated.
 */
#include "ft_mrrc.h"

#define RECVS  12
#define SENDS  12
#define LEN    8192
#define HALVES 4
#define LONG   100000 /* more than ofi_rxm copies */

struct seen {
	bool recv[RECVS], send[SENDS], write[SENDS];
};

static char *buf;

static void post_pending(struct ft_pair *pair, struct fid_mr *mr,
			 bool with_sends)
{
	void *d = ft_desc(&pair->dom[1], buf, 64 * LEN);
	uint64_t addr = ft_raddr(&pair->dom[0], buf);
	struct ft_ep *c = &pair->c;
	uintptr_t i;

	for (i = 0; i < RECVS; i++)
		FT_POST(c, fi_recv(c->ep, buf + i * LEN, LEN, d, FT_ANY,
				   (void *) (1000 + i)));
	if (!with_sends)
		return;
	/* the sends are never received, and the server makes no progress */
	for (i = 0; i < SENDS; i++) {
		FT_CALL(fi_send(c->ep, buf + (20 + i) * LEN, LEN, d, c->to,
				(void *) (2000 + i)));
		FT_CALL(fi_write(c->ep, buf + (20 + i) * LEN, LEN, d, c->to,
				 addr, fi_mr_key(mr), (void *) (3000 + i)));
		FT_CALL(fi_inject_write(c->ep, buf, 16, c->to, addr,
					fi_mr_key(mr)));
	}
}

static void mark(bool *flag, const char *what, const struct ft_comp *comp)
{
	FT_CHECK(!*flag, "%s %p completes twice (error %d)", what, comp->ctx,
		 comp->err);
	*flag = true;
}

/* Checks that each completion belongs to an operation, and comes once. */
static unsigned drain(struct ft_ep *ep, struct seen *seen)
{
	unsigned count = 0, idle = 0;
	struct ft_comp comp;
	uintptr_t ctx;
	int dir;

	while (idle++ < 20) {
		ft_poll(ep);
		for (dir = FT_TX; dir < FT_DIRS; dir++) {
			while (ft_take(ep, dir, &comp)) {
				idle = 0;
				ctx = (uintptr_t) comp.ctx;
				/*
				 * tcp reports completions of injected writes,
				 * without a context
				 */
				if (!ctx && comp.err)
					continue;
				count++;
				if (ctx - 1000 < RECVS)
					mark(&seen->recv[ctx - 1000], "receive",
					     &comp);
				else if (ctx - 2000 < SENDS)
					mark(&seen->send[ctx - 2000], "send",
					     &comp);
				else if (ctx - 3000 < SENDS)
					mark(&seen->write[ctx - 3000], "write",
					     &comp);
				else
					FT_CHECK(0, "context %p is unknown",
						 comp.ctx);
			}
		}
	}
	return count;
}

/*
 * Closes an endpoint with operations pending. An application need not read the
 * entries that are left in the completion queues.
 */
static void close_pending(struct ft_pair *pair, struct fid_mr *mr,
			  bool with_sends, bool read)
{
	struct seen seen = { 0 };
	struct ft_ep *c = &pair->c;

	post_pending(pair, mr, with_sends);
	FT_CALL(fi_close(&c->ep->fid));
	c->ep = NULL;
	if (read)
		ft_log("%u completions after the close", drain(c, &seen));
	ft_check_idle(c->dom, "endpoint closed");
	ft_ep_close(c);
	ft_release(&pair->dom[1]);
	/*
	 * tcp does not see the connection's end behind messages that were not
	 * received
	 */
	if (!with_sends)
		ft_wait_shutdown(&pair->s);
	ft_ep_close(&pair->s);
	ft_check_idle(&pair->dom[0], "endpoint closed");
	ft_connect(pair, &pair->s, &pair->c);
}

/* The peer closes: every pending operation on this side fails, once. */
static void peer_closes(struct ft_pair *pair, struct fid_mr *mr)
{
	struct seen seen = { 0 };
	struct ft_ep *c = &pair->c;

	ft_stage("the peer closes");
	post_pending(pair, mr, true);
	FT_CALL(fi_close(&pair->s.ep->fid));
	pair->s.ep = NULL;
	ft_wait_shutdown(c);
	drain(c, &seen);
	FT_CALL(fi_close(&c->ep->fid));
	c->ep = NULL;
	drain(c, &seen);
	ft_check_idle(c->dom, "peer closed");
	ft_release(&pair->dom[1]);
	ft_ep_close(c);
	ft_ep_close(&pair->s);
	ft_connect(pair, &pair->s, &pair->c);
}

static void expect_busy(struct fid *fid, const char *what)
{
	int ret = fi_close(fid);

	FT_CHECK(ret == -FI_EBUSY, "closing %s first: %d (%s)", what, ret,
		 fi_strerror(-ret));
}

/* Tests closes in the wrong order, which some raw cores do not refuse. */
static void parents(struct ft_pair *pair)
{
	ft_stage("parents before children");
	expect_busy(&pair->dom[1].domain->fid, "a domain with an endpoint");
	expect_busy(&pair->dom[1].fabric->fid, "a fabric with a domain");
	expect_busy(&pair->c.cq[FT_TX]->fid, "a queue in use");
	expect_busy(&pair->c.cq[FT_RX]->fid, "a queue in use");
	/* the refused calls have changed nothing */
	ft_verify_pair(&pair->c, buf, buf + LEN, LEN, 5);
	ft_release_pair(pair);
}

static void bounded(struct ft_pair *pair, struct fid_mr *mr)
{
	unsigned i, n = ft_iters(ft_core("verbs") ? 50 : ft_rxm() ? 30 : 500);
	/*
	 * ofi_rxm allocates another 30 or 40 MiB of buffers once, at any time
	 */
	size_t most = ft_rxm() ? 96 : 8;
	size_t before = 0, after;

	for (i = 0; i < n; i++) {
		ft_stage("close %u", i);
		close_pending(pair, mr, i % 2, i % 3);
		if (i == n / 4) {
			ft_wait_quiet();
			before = ft_rss();
		}
	}
	after = ft_rss();
	ft_log("memory: %zu KiB, then %zu", before / 1024, after / 1024);
	FT_CHECK(after < before + (most << 20), "%zu KiB more after %u closes",
		 (after - before) / 1024, n - n / 4);
}

static void post_half(struct ft_ep *ep, char *p)
{
	void *d = ft_desc(ep->dom, p, 2 * HALVES * LONG);
	uintptr_t i;
	ssize_t ret;

	for (i = 0; i < HALVES; i++) {
		ret = fi_recv(ep->ep, p + i * LONG, LONG, d, FT_ANY,
			      (void *) (1000 + i));
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_recv: %zd", ret);
		ret = fi_send(ep->ep, p + (HALVES + i) * LONG, LONG, d, ep->to,
			      (void *) (2000 + i));
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_send: %zd", ret);
	}
}

static void close_half(struct ft_ep *ep)
{
	struct seen seen = { 0 };
	unsigned count;

	count = drain(ep, &seen);
	FT_CALL(fi_close(&ep->ep->fid));
	ep->ep = NULL;
	ft_log("%u completions, and %u after the close", count,
	       drain(ep, &seen));
	ft_check_idle(ep->dom, "endpoint closed");
}

/* Endpoints close in any step of messages that take several steps. */
static void half_done(void)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	unsigned i, k, n = ft_iters(ft_core("verbs") || ft_rxm() ? 10 : 30);
	char *p;

	attr.caps = FI_MSG;
	attr.abandons = true;
	ft_pair_open(&pair, &attr);
	for (i = 0; i < n; i++) {
		ft_stage("closing what is half done, round %u", i);
		p = ft_map(NULL, 4 * HALVES * LONG);
		post_half(&pair.c, p);
		post_half(&pair.s, p + 2 * HALVES * LONG);
		for (k = ft_rand() % (1 + i % 40); k; k--)
			ft_poll(ft_rand() % 2 ? &pair.s : &pair.c);
		close_half(i % 2 ? &pair.s : &pair.c);
		close_half(i % 2 ? &pair.c : &pair.s);
		ft_release_pair(&pair);
		ft_unmap(p, 4 * HALVES * LONG);
		ft_reconnect(&pair);
	}
	ft_pair_close(&pair);
}

static ssize_t full_send(struct fid_ep *ep, const void *from, size_t len,
			 void *desc, fi_addr_t addr, void *context)
{
	return -FI_EAGAIN;
}

static ssize_t full_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    uint64_t flags)
{
	return -FI_EAGAIN;
}

/*
 * The core refuses every operation, also operations from memory that this
 * thread has used before.
 */
static void refused(void)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_core_ops core;
	struct fi_ops_msg ops;
	struct ft_pair pair;
	unsigned i;
	char *p;

	ft_stage("posts that the core refuses");
	ft_core_ops("tcp", &core);
	ft_pair_open(&pair, &attr);
	p = ft_map(NULL, 2 * LEN);
	for (i = 0; i < 4; i++)
		ft_verify_pair(&pair.c, p, p + LEN, LEN, i);
	ops = *core.msg;
	/* operations whose registration is not kept are posted by sendmsg */
	core.msg->send = full_send;
	core.msg->sendmsg = full_sendmsg;
	for (i = 0; i < 200; i++)
		FT_CHECK(fi_send(pair.c.ep, p, LEN, NULL, pair.c.to, p) ==
				 -FI_EAGAIN,
			 "taken");
	*core.msg = ops;
	ft_check_idle(pair.c.dom, "refused");
	ft_verify_pair(&pair.c, p, p + LEN, LEN, 5);
	ft_unmap(p, 2 * LEN);
	ft_pair_close(&pair);
}

/* Closes an endpoint that was never enabled, as if fi_enable() had failed. */
static void not_enabled(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct ft_attr attr = FT_ATTR;
	struct fid_cq *cq;
	struct fid_av *av = NULL;
	struct fid_ep *ep;
	struct ft_dom dom;

	ft_stage("closing what was not enabled");
	dom.info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(dom.info->fabric_attr, &dom.fabric, NULL));
	FT_CALL(fi_domain(dom.fabric, dom.info, &dom.domain, NULL));
	FT_CALL(fi_cq_open(dom.domain, &cq_attr, &cq, NULL));
	FT_CALL(fi_endpoint(dom.domain, dom.info, &ep, NULL));
	FT_CALL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	if (ft_rdm()) {
		FT_CALL(fi_av_open(dom.domain, &av_attr, &av, NULL));
		FT_CALL(fi_ep_bind(ep, &av->fid, 0));
	}
	FT_CALL(fi_close(&ep->fid));
	if (av)
		FT_CALL(fi_close(&av->fid));
	FT_CALL(fi_close(&cq->fid));
	FT_CALL(fi_close(&dom.domain->fid));
	FT_CALL(fi_close(&dom.fabric->fid));
	fi_freeinfo(dom.info);
}

/*
 * Two endpoints share a queue; one endpoint closes with an operation pending,
 * before the other endpoint is enabled.
 */
static void one_of_two(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct ft_attr attr = FT_ATTR;
	struct fid_ep *ep[2];
	struct ft_dom dom;
	struct fid_av *av;
	struct fid_cq *cq;
	int i;

	ft_stage("one of two that share a queue");
	dom.info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(dom.info->fabric_attr, &dom.fabric, NULL));
	FT_CALL(fi_domain(dom.fabric, dom.info, &dom.domain, NULL));
	FT_CALL(fi_cq_open(dom.domain, &cq_attr, &cq, NULL));
	FT_CALL(fi_av_open(dom.domain, &av_attr, &av, NULL));
	for (i = 0; i < 2; i++) {
		FT_CALL(fi_endpoint(dom.domain, dom.info, &ep[i], NULL));
		FT_CALL(fi_ep_bind(ep[i], &cq->fid, FI_TRANSMIT | FI_RECV));
		FT_CALL(fi_ep_bind(ep[i], &av->fid, 0));
		if (!i)
			FT_CALL(fi_enable(ep[i]));
	}
	FT_CALL(fi_recv(ep[0], buf, LEN, NULL, FT_ANY, buf));
	FT_CALL(fi_close(&ep[0]->fid));
	FT_CALL(fi_enable(ep[1]));
	FT_CALL(fi_close(&ep[1]->fid));
	ft_check_idle(&dom, "both are closed");
	FT_CALL(fi_close(&av->fid));
	FT_CALL(fi_close(&cq->fid));
	FT_CALL(fi_close(&dom.domain->fid));
	FT_CALL(fi_close(&dom.fabric->fid));
	fi_freeinfo(dom.info);
}

/* Opens and closes all objects, from the fabric on. */
static void whole(void)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	unsigned i, n = ft_core("verbs") ? 10 : ft_rxm() ? 10 : 100;

	for (i = 0; i < n; i++) {
		ft_stage("opening and closing everything, round %u", i);
		ft_pair_open(&pair, &attr);
		ft_verify_pair(&pair.c, buf, buf + LEN, LEN, i);
		ft_pair_close(&pair);
	}
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	struct fid_mr *mr;

	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	buf = ft_map(NULL, 64 * LEN);
	mr = ft_reg(&pair.dom[0], buf, 64 * LEN, FI_REMOTE_WRITE);
	ft_verify_pair(&pair.c, buf, buf + LEN, LEN, 1);
	ft_release_pair(&pair);
	if (!ft_opts.raw)
		parents(&pair);
	bounded(&pair, mr);
	peer_closes(&pair, mr);
	FT_CALL(fi_close(&mr->fid));
	ft_verify_pair(&pair.c, buf, buf + LEN, LEN, 2);
	ft_pair_close(&pair);
	whole();
	if (ft_core("tcp") && !ft_rdm() && !ft_opts.raw)
		refused();
	/* verbs' connected endpoints need an address to be opened */
	if (ft_rdm() || !ft_core("verbs"))
		not_enabled();
	if (ft_rdm())
		one_of_two();
	half_done();
	ft_unmap(buf, 64 * LEN);
	return ft_done();
}
