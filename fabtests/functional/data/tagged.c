/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_tagged: tests tagged messages with null descriptors: every call,
 * sizes for every protocol of the core, expected and unexpected messages;
 * matching by tag and mask, and the order of messages that match the same
 * receives.
 */
#include "ft_mrrc.h"

#define BIG   (4 * 1024 * 1024 + 3)
#define SLOTS 32
#define LEN   3000
#define LONG  (200 * 1000) /* more than a core copies */

enum send_kind {
	TSEND,
	TSENDV,
	TSENDMSG,
	TSENDMSG_DATA,
	TSENDDATA,
	TINJECT,
	TINJECTDATA,
	SEND_KINDS
};
enum recv_kind { TRECV, TRECVV, TRECVMSG, RECV_KINDS };

static const char *const send_names[] = { "tsend",	"tsendv",
					  "tsendmsg",	"tsendmsg+data",
					  "tsenddata",	"tinject",
					  "tinjectdata" };
/*
 * sizes around the limits up to which ofi_rxm injects, copies, cuts into
 * segments, and fetches
 */
static const size_t sizes[] = { 0,     1,      100,    4096,	16384, 16385,
				65536, 131072, 131073, 1000000, BIG };

struct buf {
	struct iovec iov[FT_IOV_MAX];
	void *descs[FT_IOV_MAX];
	size_t count;
};

static struct ft_pair pair;

static bool has_data(enum send_kind kind)
{
	return kind == TSENDMSG_DATA || kind == TSENDDATA ||
	       kind == TINJECTDATA;
}

static bool injects(enum send_kind kind)
{
	return kind == TINJECT || kind == TINJECTDATA;
}

static void cut(struct ft_ep *ep, struct buf *b, char *p, size_t len,
		size_t count)
{
	size_t i, off = 0, part;

	b->count = count;
	for (i = 0; i < count; i++) {
		part = i + 1 == count ? len - off : (len - off) / (i + 2);
		b->iov[i].iov_base = p + off;
		b->iov[i].iov_len = part;
		b->descs[i] = ft_desc(ep->dom, p + off, part);
		off += part;
	}
}

static ssize_t post_send(struct ft_ep *ep, struct buf *b, enum send_kind kind,
			 uint64_t tag, uint64_t data, void *ctx)
{
	void *p = b->iov[0].iov_base, *desc = b->descs[0];
	size_t len = b->iov[0].iov_len;
	struct fi_msg_tagged msg = {
		.msg_iov = b->iov,
		.desc = b->descs,
		.iov_count = b->count,
		.addr = ep->to,
		.tag = tag,
		.context = ctx,
		.data = data,
	};

	switch (kind) {
	case TSEND:
		return fi_tsend(ep->ep, p, len, desc, ep->to, tag, ctx);
	case TSENDV:
		return fi_tsendv(ep->ep, b->iov, b->descs, b->count, ep->to,
				 tag, ctx);
	case TSENDMSG:
		return fi_tsendmsg(ep->ep, &msg, FI_COMPLETION);
	case TSENDMSG_DATA:
		return fi_tsendmsg(ep->ep, &msg,
				   FI_COMPLETION | FI_REMOTE_CQ_DATA);
	case TSENDDATA:
		return fi_tsenddata(ep->ep, p, len, desc, data, ep->to, tag,
				    ctx);
	case TINJECT:
		return fi_tinject(ep->ep, p, len, ep->to, tag);
	default:
		return fi_tinjectdata(ep->ep, p, len, data, ep->to, tag);
	}
}

static ssize_t post_recv(struct ft_ep *ep, struct buf *b, enum recv_kind kind,
			 uint64_t tag, uint64_t ignore, void *ctx)
{
	struct fi_msg_tagged msg = {
		.msg_iov = b->iov,
		.desc = b->descs,
		.iov_count = b->count,
		.addr = FT_ANY,
		.tag = tag,
		.ignore = ignore,
		.context = ctx,
	};

	switch (kind) {
	case TRECV:
		return fi_trecv(ep->ep, b->iov[0].iov_base, b->iov[0].iov_len,
				b->descs[0], FT_ANY, tag, ignore, ctx);
	case TRECVV:
		return fi_trecvv(ep->ep, b->iov, b->descs, b->count, FT_ANY,
				 tag, ignore, ctx);
	default:
		return fi_trecvmsg(ep->ep, &msg, FI_COMPLETION);
	}
}

static void check_recv(const struct ft_comp *comp, size_t len, uint64_t tag)
{
	FT_CHECK((comp->flags & (FI_TAGGED | FI_RECV)) == (FI_TAGGED | FI_RECV),
		 "flags 0x%" PRIx64, comp->flags);
	FT_CHECK(comp->len == len, "%zu bytes of %zu", comp->len, len);
	FT_CHECK(comp->tag == tag, "tag 0x%" PRIx64 ", not 0x%" PRIx64,
		 comp->tag, tag);
}

/*
 * Transfers one message; unexpected: the message is sent before its receive is
 * posted.
 */
static void one(struct ft_ep *from, char *out, char *in, enum send_kind sk,
		enum recv_kind rk, size_t len, bool unexpected)
{
	static uint64_t round;
	uint64_t tag = ++round << 33 | 5, data = round * 2654435761ULL;
	void *sctx = (void *) (uintptr_t) (round * 2);
	void *rctx = (void *) (uintptr_t) (round * 2 + 1);
	struct ft_ep *to = from->peer;
	size_t limit = ft_iov_limit(from);
	struct ft_comp comp;
	struct buf s, r;
	unsigned i;

	cut(from, &s, out, len, sk == TSENDV || sk == TSENDMSG ? limit : 1);
	cut(to, &r, in, len, rk == TRECV ? 1 : (limit + 1) / 2);
	ft_fill(out, len, round);
	memset(in, 0x5a, len);
	if (!unexpected)
		FT_POST(to, post_recv(to, &r, rk, tag, 0, rctx));
	FT_POST(from, post_send(from, &s, sk, tag, data, sctx));
	if (injects(sk))
		memset(out, 0x77, len);
	if (unexpected) {
		for (i = 0; i < 20; i++)
			ft_progress(from);
		FT_POST(to, post_recv(to, &r, rk, tag, 0, rctx));
	}
	ft_wait(to, FT_RX, &comp);
	FT_CHECK(comp.ctx == rctx, "receive's context %p", comp.ctx);
	check_recv(&comp, len, tag);
	FT_CHECK(!(comp.flags & FI_REMOTE_CQ_DATA) == !has_data(sk),
		 "flags 0x%" PRIx64, comp.flags);
	if (has_data(sk))
		FT_CHECK(comp.data == data, "remote data 0x%" PRIx64,
			 comp.data);
	FT_CHECK_BUF(in, len, round, "tagged message");
	if (!injects(sk))
		ft_wait_ctx(from, FT_TX, sctx, FI_TAGGED | FI_SEND);
	ft_release(from->dom);
	ft_release(to->dom);
}

static void all_calls(void)
{
	char *out = malloc(BIG), *in = malloc(BIG);
	size_t inject = pair.c.dom->info->tx_attr->inject_size;
	unsigned sk, rk, i;
	bool late;

	FT_CHECK(out && in, "malloc");
	for (sk = 0; sk < SEND_KINDS; sk++) {
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			if (injects(sk) && sizes[i] > inject)
				continue;
			for (late = false;; late = true) {
				rk = (sk + i + late) % RECV_KINDS;
				ft_stage("%s of %zu bytes, %s", send_names[sk],
					 sizes[i],
					 late ? "unexpected" : "expected");
				one(i % 2 ? &pair.s : &pair.c, out, in, sk, rk,
				    sizes[i], late);
				if (late)
					break;
			}
		}
	}
	free(out);
	free(in);
}

static void tsend(char *p, size_t len, uint64_t tag, void *ctx)
{
	void *desc = ft_desc(&pair.dom[1], p, len);

	FT_POST(&pair.c,
		fi_tsend(pair.c.ep, p, len, desc, pair.c.to, tag, ctx));
}

static void trecv(char *p, size_t len, uint64_t tag, uint64_t ignore, void *ctx)
{
	void *desc = ft_desc(&pair.dom[0], p, len);

	FT_POST(&pair.s,
		fi_trecv(pair.s.ep, p, len, desc, FT_ANY, tag, ignore, ctx));
}

static void shuffle(unsigned *order)
{
	unsigned i, k, tmp;

	for (i = 0; i < SLOTS; i++)
		order[i] = i;
	for (i = SLOTS - 1; i; i--) {
		k = ft_rand() % (i + 1);
		tmp = order[i];
		order[i] = order[k];
		order[k] = tmp;
	}
}

/*
 * Receives ignore the lower bits of tags. Messages are sent in another order
 * than their receives are posted; some messages are sent before any receive is
 * posted.
 */
static void matching(char *out, char *in, size_t len)
{
	unsigned order[SLOTS], i, early = ft_rand() % SLOTS;
	bool seen[SLOTS] = { false };
	struct ft_comp comp;
	uintptr_t k;

	shuffle(order);
	memset(in, 0, SLOTS * len);
	for (i = 0; i < SLOTS; i++)
		ft_fill(out + i * len, len, i);
	for (i = 0; i < early; i++)
		tsend(out + order[i] * len, len,
		      (uint64_t) order[i] << 40 | (ft_rand() & 0xffff), NULL);
	for (i = 0; i < SLOTS; i++)
		trecv(in + i * len, len,
		      (uint64_t) i << 40 | (ft_rand() & 0xffff), 0xffff,
		      (void *) (uintptr_t) i);
	for (; i > early; i--) {
		k = order[i - 1];
		tsend(out + k * len, len, k << 40 | (ft_rand() & 0xffff), NULL);
	}
	for (i = 0; i < SLOTS; i++) {
		ft_wait(&pair.s, FT_RX, &comp);
		k = (uintptr_t) comp.ctx;
		FT_CHECK(k < SLOTS && !seen[k], "context %p", comp.ctx);
		seen[k] = true;
		FT_CHECK(comp.tag >> 40 == k, "tag 0x%" PRIx64, comp.tag);
		FT_CHECK_BUF(in + k * len, len, k, "matched by its tag");
		ft_wait(&pair.c, FT_TX, &comp);
	}
	ft_release_pair(&pair);
}

/*
 * Messages that match the same receives take these receives in the messages'
 * order, whatever the messages' sizes.
 */
static void in_order(char *out, char *in)
{
	unsigned i, early = ft_rand() % SLOTS;
	bool seen[SLOTS] = { false };
	size_t len[SLOTS];
	struct ft_comp comp;
	uintptr_t k;

	memset(in, 0, (size_t) SLOTS * LONG);
	for (i = 0; i < SLOTS; i++) {
		len[i] = ft_rand() % 2 ? 1 + ft_rand() % LEN :
					 LONG - ft_rand() % LEN;
		ft_fill(out + (size_t) i * LONG, len[i], i);
	}
	for (i = 0; i < early; i++)
		tsend(out + (size_t) i * LONG, len[i], 77, NULL);
	for (k = 0; k < SLOTS; k++)
		trecv(in + k * LONG, LONG, 70, 15, (void *) k);
	for (; i < SLOTS; i++)
		tsend(out + (size_t) i * LONG, len[i], 77, NULL);
	for (i = 0; i < SLOTS; i++) {
		ft_wait(&pair.s, FT_RX, &comp);
		k = (uintptr_t) comp.ctx;
		FT_CHECK(k < SLOTS && !seen[k], "context %p", comp.ctx);
		seen[k] = true;
		check_recv(&comp, len[k], 77);
		FT_CHECK_BUF(in + k * LONG, len[k], k, "in order");
		ft_wait(&pair.c, FT_TX, &comp);
	}
	ft_release_pair(&pair);
}

/*
 * A receive that is too small ends with FI_ETRUNC; so does a receive of 0 bytes
 * for a message that the core would fetch.
 */
static void truncated(char *out, char *in, size_t len, size_t room)
{
	struct ft_comp comp;

	/*
	 * tcp of 2.1, and ofi_rxm over verbs, never complete a receive of 0
	 * bytes
	 */
	if (!room && (ft_core("verbs") || (!ft_rxm() && ft_core("tcp"))))
		return;
	ft_stage("%zu bytes for %zu", room, len);
	trecv(in, room, 9, 0, in);
	tsend(out, len, 9, out);
	ft_wait_any(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.err == FI_ETRUNC && comp.ctx == in,
		 "error %d, context %p", comp.err, comp.ctx);
	ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
	ft_release_pair(&pair);
}

/*
 * A receive of 0 bytes gets a message that ofi_rxm would fetch: ofi_rxm (1.17)
 * never ends the receive, but reads a descriptor, which must exist.
 */
static void no_room(char *out, char *in)
{
	uint64_t end = ft_now_us() + 300000;
	struct ft_comp comp;
	unsigned i;

	ft_stage("no room for %d bytes", LONG);
	trecv(in, 0, 9, 0, in);
	tsend(out, LONG, 9, out);
	while (ft_now_us() < end)
		ft_progress(&pair.c);
	while (ft_take(&pair.s, FT_RX, &comp))
		FT_CHECK(comp.err && comp.ctx == in, "context %p", comp.ctx);
	ft_ep_close(&pair.s);
	ft_ep_close(&pair.c);
	for (i = 0; i < 2; i++) {
		ft_release(&pair.dom[i]);
		ft_check_idle(&pair.dom[i], "endpoint closed");
	}
}

static void cancelled(char *in)
{
	struct ft_comp comp;
	uintptr_t i;

	ft_stage("cancel");
	for (i = 1; i <= SLOTS; i++)
		trecv(in, LEN, i, 0, (void *) i);
	for (i = SLOTS; i; i--) {
		FT_CALL(fi_cancel(&pair.s.ep->fid, (void *) i));
		ft_wait_any(&pair.s, FT_RX, &comp);
		FT_CHECK(comp.err == FI_ECANCELED && comp.ctx == (void *) i,
			 "error %d, context %p", comp.err, comp.ctx);
	}
	ft_release(&pair.dom[0]);
}

static void check_stats(void)
{
	struct fi_mrrc_stats st;
	unsigned i;

	for (i = 0; i < 2; i++) {
		ft_check_idle(&pair.dom[i], "all done");
		if (!ft_stats(&pair.dom[i], &st))
			return;
		FT_CHECK(st.posts && st.lookups && st.registrations,
			 "nothing went through the cache");
		if (ft_caches(&pair.dom[i]))
			FT_CHECK(st.hits > st.misses,
				 "%" PRIu64 " hits, %" PRIu64 " misses",
				 st.hits, st.misses);
	}
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	size_t len = (size_t) SLOTS * LONG;
	char *out, *in;
	unsigned i, n;

	ft_init(argc, argv);
	attr.caps = FI_MSG | FI_TAGGED;
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.abandons = true;
	ft_pair_open(&pair, &attr);
	n = ft_iters(ft_core("verbs") ? 3 : 100);
	out = ft_map(NULL, len);
	in = ft_map(NULL, len);
	all_calls();
	for (i = 0; i < n; i++) {
		ft_stage("matching, round %u", i);
		matching(out, in, LEN);
		if (i % 10)
			continue;
		matching(out, in, LONG);
		ft_stage("order, round %u", i);
		in_order(out, in);
	}
	/*
	 * ofi_rxm over tcp (1.17) loses a connection's messages after a receive
	 * that was too small
	 */
	if (!ft_rxm() || !ft_core("tcp")) {
		truncated(out, in, LEN, LEN / 2);
		truncated(out, in, LEN, 0);
		truncated(out, in, LONG, LEN);
	}
	cancelled(in);
	ft_expect_none(&pair.s, 10);
	ft_expect_none(&pair.c, 1);
	check_stats();
	no_room(out, in);
	ft_unmap(out, len);
	ft_unmap(in, len);
	ft_pair_close(&pair);
	return ft_done();
}
