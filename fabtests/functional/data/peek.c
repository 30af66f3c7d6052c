/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_peek: tests which messages FI_PEEK sees, FI_CLAIM keeps for the
 * claiming receive, and FI_DISCARD removes; claimed messages are received with
 * null descriptors, and their buffers are held until the messages complete.
 */
#include "ft_mrrc.h"

#include <sys/wait.h>

#define LONG (300 * 1000)
#define KEPT 6

static const size_t sizes[] = { 0, 100, 5000, LONG };
static struct ft_pair pair;
static char *out, *in;

static ssize_t trecvmsg(uint64_t tag, char *p, size_t len, void *ctx,
			uint64_t flags)
{
	struct iovec iov = { p, len };
	void *desc = p ? ft_desc(&pair.dom[0], p, len) : NULL;
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = p ? 1 : 0,
		.addr = FT_ANY,
		.tag = tag,
		.context = ctx,
	};

	/* the buffers are ignored, and so need not exist; net reads them */
	if ((flags & FI_DISCARD) && ft_rxm()) {
		msg.msg_iov = NULL;
		msg.iov_count = 1000;
	}
	return fi_trecvmsg(pair.s.ep, &msg, flags);
}

/*
 * Sends a message; the send may complete only when the receiver takes the
 * message.
 */
static void send_one(uint64_t tag, size_t len, uint64_t seed)
{
	char *p = out + (tag % KEPT) * LONG;
	void *desc;

	ft_fill(p, len, seed);
	desc = ft_desc(&pair.dom[1], p, len);
	FT_POST(&pair.c, fi_tsend(pair.c.ep, p, len, desc, pair.c.to, tag, p));
}

static void sent(uint64_t tag)
{
	ft_wait_ctx(&pair.c, FT_TX, out + (tag % KEPT) * LONG, FI_SEND);
}

/* Peeks once; returns true if there is a message. */
static bool peek(uint64_t tag, void *ctx, uint64_t flags, struct ft_comp *comp)
{
	FT_POST(&pair.s, trecvmsg(tag, NULL, 0, ctx, FI_PEEK | flags));
	ft_wait_any(&pair.s, FT_RX, comp);
	FT_CHECK(comp->ctx == ctx, "context %p, not %p", comp->ctx, ctx);
	FT_CHECK(!comp->err || comp->err == FI_ENOMSG, "error %d", comp->err);
	return !comp->err;
}

static void peek_found(uint64_t tag, void *ctx, uint64_t flags, size_t len)
{
	uint64_t end = ft_deadline();
	struct ft_comp comp;

	while (!peek(tag, ctx, flags, &comp))
		FT_CHECK(ft_limit_us() < end, "the message never arrives");
	FT_CHECK(comp.tag == tag, "tag 0x%" PRIx64, comp.tag);
	/* the core need not report the length of a discarded message */
	if (!(flags & FI_DISCARD))
		FT_CHECK(comp.len == len, "%zu bytes of %zu", comp.len, len);
}

static void peek_nothing(uint64_t tag, void *ctx, uint64_t flags)
{
	struct ft_comp comp;

	FT_CHECK(!peek(tag, ctx, flags, &comp), "a message that is not there");
}

static void received(void *ctx, const char *p, size_t len, uint64_t seed)
{
	struct ft_comp comp;

	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.ctx == ctx, "context %p, not %p", comp.ctx, ctx);
	FT_CHECK(comp.len == len, "%zu bytes of %zu", comp.len, len);
	FT_CHECK_BUF(p, len, seed, "received after a peek");
}

static void release(void)
{
	ft_release_pair(&pair);
	ft_check_idle(&pair.dom[0], "nothing to do");
	ft_check_idle(&pair.dom[1], "nothing to do");
}

/* Peeks leave a message in place. */
static void look(size_t len)
{
	struct fi_context ctx;

	ft_stage("a look at %zu bytes", len);
	peek_nothing(1, &ctx, 0);
	send_one(1, len, len);
	peek_found(1, &ctx, 0, len);
	peek_nothing(2, &ctx, 0);
	peek_found(1, &ctx, 0, len);
	memset(in, 0, len);
	FT_POST(&pair.s, trecvmsg(1, in, len, in, FI_COMPLETION));
	received(in, in, len, len);
	sent(1);
	peek_nothing(1, &ctx, 0);
	release();
}

/* A claimed message goes to no receive but the claiming one. */
static void claim(size_t len)
{
	struct fi_context ctx;

	ft_stage("a claim of %zu bytes", len);
	peek_nothing(3, &ctx, FI_CLAIM);
	send_one(3, len, 10 + len);
	peek_found(3, &ctx, FI_CLAIM, len);
	peek_nothing(3, in, 0);
	FT_POST(&pair.s, trecvmsg(3, in + LONG, 100, in + LONG, FI_COMPLETION));
	ft_expect_none(&pair.s, 2);
	memset(in, 0, len);
	FT_POST(&pair.s, trecvmsg(3, in, len, &ctx, FI_CLAIM | FI_COMPLETION));
	received(&ctx, in, len, 10 + len);
	sent(3);
	send_one(3, 100, 20);
	received(in + LONG, in + LONG, 100, 20);
	sent(3);
	release();
}

/* The buffer of a claiming receive is held from the call to its completion. */
static void held(void)
{
	struct fi_mrrc_stats st;
	struct fi_context ctx;

	/* over cores other than ofi_rxm the message completes at once */
	if (!ft_rxm() || ft_opts.raw)
		return;
	ft_stage("a claimed buffer is held");
	send_one(9, LONG, 9);
	peek_found(9, &ctx, FI_CLAIM, LONG);
	ft_stats(&pair.dom[0], &st);
	FT_CHECK(!st.held_regions && st.posts == st.completions + 1,
		 "%" PRIu64 " regions held before", st.held_regions);
	FT_POST(&pair.s, trecvmsg(9, in, LONG, &ctx, FI_CLAIM | FI_COMPLETION));
	ft_stats(&pair.dom[0], &st);
	FT_CHECK(st.held_regions == 1 && st.posts == st.completions + 1,
		 "%" PRIu64 " regions held, %" PRIu64 " posts, %" PRIu64
		 " completions",
		 st.held_regions, st.posts, st.completions);
	received(&ctx, in, LONG, 9);
	sent(9);
	release();
}

/* Several messages are kept at once, and retrieved in another order. */
static void several(void)
{
	struct fi_context ctx[KEPT];
	unsigned i, k;

	/* net (1.17) sees the first message only */
	if (!ft_rxm())
		return;

	ft_stage("%d claims at once", KEPT);
	for (i = 0; i < KEPT; i++)
		send_one(100 + i, 100 + i, i);
	for (i = 0; i < KEPT; i++)
		peek_found(100 + i, &ctx[i], FI_CLAIM, 100 + i);
	memset(in, 0, KEPT * LONG);
	for (i = 0; i < KEPT; i++) {
		k = (i * 5 + 2) % KEPT;
		FT_POST(&pair.s, trecvmsg(100 + k, in + k * LONG, 100 + k,
					  &ctx[k], FI_CLAIM | FI_COMPLETION));
		received(&ctx[k], in + k * LONG, 100 + k, k);
	}
	for (i = 0; i < KEPT; i++)
		sent(100 + i);
	release();
}

static void discard(size_t len)
{
	struct fi_context ctx;
	struct ft_comp comp;

	/*
	 * ofi_rxm forgets the sender of a message that it would have to fetch
	 */
	if (ft_rxm() && len == LONG)
		return;
	ft_stage("%zu bytes thrown away", len);
	send_one(4, len, 1);
	peek_found(4, &ctx, FI_DISCARD, len);
	peek_nothing(4, &ctx, 0);
	sent(4);
	send_one(5, len, 2);
	peek_found(5, &ctx, FI_CLAIM, len);
	FT_POST(&pair.s, trecvmsg(5, NULL, 0, &ctx,
				  FI_CLAIM | FI_DISCARD | FI_COMPLETION));
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.ctx == &ctx, "context %p", comp.ctx);
	peek_nothing(5, &ctx, 0);
	sent(5);
	release();
}

/* Claims a message with a descriptor that the application gives. */
static void given(void)
{
	struct fid_mr *mr = ft_reg(&pair.dom[0], in, LONG, FI_RECV | FI_SEND);
	void *desc = fi_mr_desc(mr);
	struct iovec iov = { in, LONG };
	struct fi_context ctx;
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FT_ANY,
		.tag = 6,
		.context = &ctx,
	};

	ft_stage("a claim with a descriptor");
	send_one(6, LONG, 6);
	peek_found(6, &ctx, FI_CLAIM, LONG);
	memset(in, 0, LONG);
	FT_POST(&pair.s,
		fi_trecvmsg(pair.s.ep, &msg, FI_CLAIM | FI_COMPLETION));
	received(&ctx, in, LONG, 6);
	sent(6);
	FT_CALL(fi_close(&mr->fid));
	release();
}

/*
 * A claiming receive fails if no peek has found its message, or if the message
 * was received already.
 */
static void wrong(void)
{
	struct fi_context ctx = { { 0 } };
	struct fi_context wild = { { in, in, in, in } }, copy;
	ssize_t ret;

	if (ft_opts.raw)
		return;
	ft_stage("claims of nothing");
	ret = trecvmsg(7, in, 100, &wild, FI_CLAIM | FI_COMPLETION);
	FT_CHECK(ret == -FI_EINVAL, "never peeked: %zd", ret);
	peek_nothing(7, &ctx, FI_CLAIM);
	ret = trecvmsg(7, in, 100, &ctx, FI_CLAIM | FI_COMPLETION);
	FT_CHECK(ret == -FI_EINVAL, "nothing found: %zd", ret);
	send_one(7, 100, 7);
	peek_found(7, &ctx, FI_CLAIM, 100);
	ret = trecvmsg(7, in, 100, NULL, FI_CLAIM | FI_COMPLETION);
	FT_CHECK(ret == -FI_EINVAL, "no context: %zd", ret);
	copy = ctx;
	ret = trecvmsg(7, in, 100, &copy, FI_CLAIM | FI_COMPLETION);
	FT_CHECK(ret == -FI_EINVAL, "another context: %zd", ret);
	FT_POST(&pair.s, trecvmsg(7, in, 100, &ctx, FI_CLAIM | FI_COMPLETION));
	ret = trecvmsg(7, in, 100, &ctx, FI_CLAIM | FI_COMPLETION);
	FT_CHECK(ret == -FI_EINVAL, "claimed twice: %zd", ret);
	received(&ctx, in, 100, 7);
	sent(7);
	release();
}

static ssize_t full_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			     uint64_t flags)
{
	return -FI_EAGAIN;
}

/* The core refuses a claiming receive: the message stays claimed. */
static void refused(void)
{
	struct fi_ops_tagged ops;
	struct ft_core_ops core;
	struct fi_context ctx;
	ssize_t ret;

	if (ft_opts.raw || !ft_rxm() || !ft_core("tcp"))
		return;
	ft_stage("a claim that the core refuses");
	ft_core_ops("tcp;ofi_rxm", &core);
	send_one(10, 100, 10);
	peek_found(10, &ctx, FI_CLAIM, 100);
	ops = *core.tagged;
	core.tagged->recvmsg = full_trecvmsg;
	ret = trecvmsg(10, in, 100, &ctx, FI_CLAIM | FI_COMPLETION);
	*core.tagged = ops;
	FT_CHECK(ret == -FI_EAGAIN, "taken: %zd", ret);
	FT_POST(&pair.s, trecvmsg(10, in, 100, &ctx, FI_CLAIM | FI_COMPLETION));
	received(&ctx, in, 100, 10);
	sent(10);
	release();
}

/* A claimed message that is never received ends with its endpoint. */
static void forgotten(void)
{
	struct fi_context ctx;

	ft_stage("a claim that is forgotten");
	send_one(8, 100, 8);
	peek_found(8, &ctx, FI_CLAIM, 100);
	sent(8);
	ft_ep_close(&pair.s);
	ft_ep_close(&pair.c);
	release();
	ft_connect(&pair, &pair.s, &pair.c);
	look(100);
}

static void open_pair(bool selective)
{
	struct ft_attr attr = FT_ATTR;

	attr.caps = FI_MSG | FI_TAGGED;
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.rx_selective = selective;
	ft_pair_open(&pair, &attr);
}

/*
 * With FI_OFI_MRRC_HELPER=predict the provider does not read the buffers of a
 * receive with FI_DISCARD. A new process reads this variable again.
 */
static void predicted(int argc, char **argv)
{
	const pid_t pid = fork();
	int status;

	if (!pid) {
		FT_CHECK(!setenv("FI_OFI_MRRC_HELPER", "predict", 1), "setenv");
		ft_init(argc, argv);
		out = ft_map(NULL, KEPT * LONG);
		open_pair(false);
		discard(100);
		ft_pair_close(&pair);
		exit(0);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid &&
			 (!status || WEXITSTATUS(status) == 77),
		 "with a helper: %#x", status);
}

/* Peeks complete whether or not receives complete by default. */
static void session(bool selective)
{
	unsigned i, k;

	open_pair(selective);
	for (k = 0; k < ft_iters(ft_core("verbs") ? 1 : 5); k++) {
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			look(sizes[i]);
			claim(sizes[i]);
			discard(sizes[i]);
		}
		held();
		several();
		given();
		wrong();
		refused();
		forgotten();
	}
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	predicted(argc, argv);
	ft_init(argc, argv);
	out = ft_map(NULL, KEPT * LONG);
	in = ft_map(NULL, KEPT * LONG);
	session(false);
	/* tcp itself wants FI_COMPLETION for a peek that finds a message */
	if (ft_rxm() || !(ft_opts.raw || ft_core("tcp")))
		session(true);
	ft_unmap(out, KEPT * LONG);
	ft_unmap(in, KEPT * LONG);
	return ft_done();
}
