/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_buffered: tests FI_BUFFERED_RECV. Messages arrive in buffers of the
 * core; the application claims a message into a buffer with a null descriptor,
 * or discards the message. The endpoint that an entry names is the
 * application's. Meanwhile the same endpoint makes
 * conditional writes.
 */
#include "ft_mrrc.h"

#define LONG 300000 /* more than a core copies */
#define MANY 512    /* no endpoint takes so many buffers */

static const size_t sizes[] = { 0, 8, 100, 5000, LONG };
static struct ft_pair pair;
static char *out, *in;

static void send_one(size_t len, uint64_t seed, bool tagged)
{
	void *desc = ft_desc(&pair.dom[1], out, len);

	ft_fill(out, len, seed);
	if (tagged)
		FT_POST(&pair.c, fi_tsend(pair.c.ep, out, len, desc, pair.c.to,
					  seed, out));
	else
		FT_POST(&pair.c,
			fi_send(pair.c.ep, out, len, desc, pair.c.to, out));
}

/*
 * Waits for the first completion of a message, which offers to claim the
 * message.
 */
static struct fi_recv_context *arrived(size_t len)
{
	struct ft_comp comp;
	struct fi_recv_context *rc;

	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.flags & FI_RECV && !(comp.flags & FI_CLAIM),
		 "flags 0x%" PRIx64, comp.flags);
	FT_CHECK(comp.len == len, "%zu bytes of %zu", comp.len, len);
	rc = comp.ctx;
	/* raw mode: the application's endpoint is the core's */
	FT_CHECK(rc->ep == pair.s.ep, "of endpoint %p, not %p", (void *) rc->ep,
		 (void *) pair.s.ep);
	return rc;
}

static ssize_t ask(struct fi_recv_context *rc, size_t len, uint64_t flags,
		   bool tagged)
{
	struct iovec iov = { in, len };
	void *desc = ft_desc(&pair.dom[0], in, len);
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = rc,
	};
	struct fi_msg_tagged tmsg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = rc,
	};

	/* the buffers are ignored, and so need not exist */
	if (flags & FI_DISCARD) {
		msg.msg_iov = tmsg.msg_iov = NULL;
		msg.desc = tmsg.desc = NULL;
		msg.iov_count = tmsg.iov_count = 1000;
	}
	return tagged ? fi_trecvmsg(rc->ep, &tmsg, flags) :
			fi_recvmsg(rc->ep, &msg, flags);
}

/*
 * Tries to claim a message into more buffers than an endpoint allows: the claim
 * is refused, and the message stays.
 */
static void ask_too_many(struct fi_recv_context *rc, bool tagged)
{
	struct iovec iov[MANY];
	struct fi_msg msg = {
		.msg_iov = iov,
		.iov_count = MANY,
		.addr = FT_ANY,
		.context = rc,
	};
	struct fi_msg_tagged tmsg = {
		.msg_iov = iov,
		.iov_count = MANY,
		.addr = FT_ANY,
		.context = rc,
	};
	ssize_t ret;
	unsigned i;

	for (i = 0; i < MANY; i++)
		iov[i] = (struct iovec){ in + i, 1 };
	ret = tagged ? fi_trecvmsg(rc->ep, &tmsg, FI_CLAIM) :
		       fi_recvmsg(rc->ep, &msg, FI_CLAIM);
	FT_CHECK(ret == -FI_EINVAL, "%d buffers: %zd", MANY, ret);
}

static void claim(size_t len, uint64_t seed, bool tagged)
{
	struct fi_recv_context *rc;
	struct fi_mrrc_stats st;
	struct ft_comp comp;

	ft_stage("a claim of %zu bytes%s", len, tagged ? ", tagged" : "");
	send_one(len, seed, tagged);
	rc = arrived(len);
	memset(in, 0, len);
	rc->context = in;
	if (ft_stats(&pair.dom[0], &st))
		ask_too_many(rc, tagged);
	FT_POST(&pair.s, ask(rc, len, FI_CLAIM, tagged));
	if (len == LONG && ft_stats(&pair.dom[0], &st))
		FT_CHECK(st.held_regions == 1, "%" PRIu64 " regions held",
			 st.held_regions);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.ctx == in, "context %p, not %p", comp.ctx, (void *) in);
	FT_CHECK(comp.len == len, "%zu bytes of %zu", comp.len, len);
	FT_CHECK_BUF(in, len, seed, "a buffered message");
	ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
	ft_release_pair(&pair);
	ft_check_idle(&pair.dom[0], "claimed");
}

static void discard(size_t len, uint64_t seed, bool tagged)
{
	/*
	 * ofi_rxm forgets the sender of a message that it would have to fetch
	 */
	if (len == LONG)
		return;
	ft_stage("%zu bytes thrown away", len);
	send_one(len, seed, tagged);
	FT_POST(&pair.s, ask(arrived(len), len, FI_DISCARD, tagged));
	ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
	ft_expect_none(&pair.s, 2);
	ft_release_pair(&pair);
	ft_check_idle(&pair.dom[0], "thrown away");
}

/* Receives that do not claim a message are accepted, and get no message. */
static void post_plain(void)
{
	struct iovec iov = { in, 8 };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = in,
	};
	struct fi_msg_tagged tmsg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = in,
	};
	struct fid_ep *ep = pair.s.ep;
	struct ft_comp comp;
	ssize_t ret;

	ft_stage("receives that claim nothing");
	FT_CALL(fi_recv(ep, in, 8, NULL, FT_ANY, in));
	FT_CALL(fi_recvv(ep, &iov, NULL, 1, FT_ANY, in + 1));
	FT_CALL(fi_trecv(ep, in, 8, NULL, FT_ANY, 1, 0, in + 2));
	FT_CALL(fi_trecvv(ep, &iov, NULL, 1, FT_ANY, 2, 0, in + 3));
	if (!ft_opts.raw) {
		FT_CALL(fi_recvmsg(ep, &msg, 0));
		FT_CALL(fi_trecvmsg(ep, &tmsg, 0));
		ret = fi_trecvmsg(ep, &tmsg, FI_PEEK);
		FT_CHECK(ret == -FI_EINVAL, "FI_PEEK: %zd", ret);
	}
	ft_check_idle(&pair.dom[0], "nothing claimed");
	FT_CALL(fi_cancel(&ep->fid, in + 1));
	ft_wait_any(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.err == FI_ECANCELED && comp.ctx == in + 1,
		 "cancelled: error %d, context %p", comp.err, comp.ctx);
}

/*
 * Reading the queue of buffered messages also makes progress with conditional
 * writes.
 */
static void conditional(uint64_t tag)
{
	struct ft_comp comp;

	if (!pair.attr.cw)
		return;
	ft_stage("conditional write %" PRIu64, tag);
	ft_fill(out, LONG, tag);
	memset(in, 0, LONG);
	pair.s.quiet[FT_TX] = true;
	FT_CALL(fi_cwrite(pair.c.cw, out, LONG, NULL, pair.c.to, tag, out));
	FT_CALL(fi_cwtag(pair.s.cw, in, LONG, NULL, pair.s.to, tag, in));
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.ctx == in && comp.len == LONG, "%zu bytes", comp.len);
	ft_wait(&pair.c, FT_TX, &comp);
	pair.s.quiet[FT_TX] = false;
	FT_CHECK_BUF(in, LONG, tag, "a conditional write");
}

static void run(bool cw)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i, k, n = ft_iters(ft_core("verbs") ? 3 : 20);

	attr.caps = FI_MSG | FI_TAGGED;
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.mode = FI_BUFFERED_RECV;
	attr.cw = cw;
	attr.progress = FI_PROGRESS_MANUAL;
	ft_pair_open(&pair, &attr);
	post_plain();
	for (k = 0; k < n; k++) {
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			claim(sizes[i], k * 10 + i, k % 2);
			discard(sizes[i], k, k % 2);
		}
		conditional(k);
	}
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (!ft_rxm() || FI_BUFFERED_RECV == 0)
		ft_skip("%s has no buffered receives", ft_opts.prov);
	out = ft_map(NULL, LONG);
	in = ft_map(NULL, LONG);
	run(false);
	if (!ft_opts.raw)
		run(true);
	ft_unmap(out, LONG);
	ft_unmap(in, LONG);
	return ft_done();
}
