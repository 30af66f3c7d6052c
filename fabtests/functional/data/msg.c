/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_msg: tests every way to send and to receive, with null descriptors,
 * given descriptors and both in one operation; sizes around every boundary;
 * buffers of every origin; all formats of completion queue.
 */
#include "ft_mrrc.h"

#include <pthread.h>

#define BIG (1024 * 1024 + 3)

enum send_kind {
	SEND,
	SENDV,
	SENDMSG,
	SENDMSG_DATA,
	SENDMSG_INJECT,
	SENDDATA,
	INJECT,
	INJECTDATA,
	SEND_KINDS
};
enum recv_kind { RECV, RECVV, RECVMSG, RECV_KINDS };
/* ways to give no descriptor, and to mix null and given descriptors */
enum desc_kind { DESC_NULL, DESC_ARRAY_OF_NULL, DESC_MIXED, DESC_KINDS };

static const char *const send_names[] = { "send",	    "sendv",
					  "sendmsg",	    "sendmsg+data",
					  "sendmsg+inject", "senddata",
					  "inject",	    "injectdata" };
static const char *const recv_names[] = { "recv", "recvv", "recvmsg" };
static const size_t sizes[] = { 0, 1, 8, 64, 4095, 4096, 4097, 65536, BIG };

struct side {
	struct ft_ep *ep;
	char *buf;
	struct iovec iov[FT_IOV_MAX];
	void *descs[FT_IOV_MAX];
	struct fid_mr *mr[FT_IOV_MAX];
	void **desc;
	size_t count;
};

static char static_buf[2][BIG];

static bool injects(enum send_kind kind)
{
	return kind == INJECT || kind == INJECTDATA || kind == SENDMSG_INJECT;
}

static bool has_data(enum send_kind kind)
{
	return kind == SENDDATA || kind == INJECTDATA || kind == SENDMSG_DATA;
}

/* Cuts [buf, buf + len) into unequal pieces and finds descriptors. */
static void cut(struct side *side, char *buf, size_t len, size_t count,
		enum desc_kind kind)
{
	size_t i, off = 0, part;

	side->count = count;
	side->desc = side->descs;
	for (i = 0; i < count; i++) {
		part = i + 1 == count ? len - off : (len - off) / (i + 2);
		side->iov[i].iov_base = buf + off;
		side->iov[i].iov_len = part;
		side->descs[i] = ft_desc(side->ep->dom, buf + off, part);
		side->mr[i] = NULL;
		if (kind == DESC_MIXED && !ft_opts.raw && i % 2 == 0 && part) {
			side->mr[i] = ft_reg(side->ep->dom, buf + off, part,
					     FI_SEND | FI_RECV);
			side->descs[i] = fi_mr_desc(side->mr[i]);
		}
		off += part;
	}
	if (kind == DESC_NULL && !ft_opts.raw)
		side->desc = NULL;
}

static void uncut(struct side *side)
{
	size_t i;

	for (i = 0; i < side->count; i++) {
		if (side->mr[i])
			FT_CALL(fi_close(&side->mr[i]->fid));
	}
	ft_release(side->ep->dom);
}

static ssize_t post_send(struct side *s, enum send_kind kind, uint64_t data,
			 void *ctx)
{
	void *desc = s->desc ? s->desc[0] : NULL;
	void *buf = s->iov[0].iov_base;
	size_t len = s->iov[0].iov_len;
	struct fid_ep *ep = s->ep->ep;
	struct fi_msg msg = {
		.msg_iov = s->iov,
		.desc = s->desc,
		.iov_count = s->count,
		.addr = s->ep->to,
		.context = ctx,
		.data = data,
	};

	switch (kind) {
	case SEND:
		return fi_send(ep, buf, len, desc, s->ep->to, ctx);
	case SENDV:
		return fi_sendv(ep, s->iov, s->desc, s->count, s->ep->to, ctx);
	case SENDMSG:
		return fi_sendmsg(ep, &msg, FI_COMPLETION);
	case SENDMSG_DATA:
		return fi_sendmsg(ep, &msg,
				  FI_COMPLETION | FI_REMOTE_CQ_DATA |
					  FI_DELIVERY_COMPLETE);
	case SENDMSG_INJECT:
		return fi_sendmsg(ep, &msg, FI_COMPLETION | FI_INJECT);
	case SENDDATA:
		return fi_senddata(ep, buf, len, desc, data, s->ep->to, ctx);
	case INJECT:
		return fi_inject(ep, buf, len, s->ep->to);
	default:
		return fi_injectdata(ep, buf, len, data, s->ep->to);
	}
}

static ssize_t post_recv(struct side *r, enum recv_kind kind, void *ctx)
{
	struct fi_msg msg = {
		.msg_iov = r->iov,
		.desc = r->desc,
		.iov_count = r->count,
		.addr = FT_ANY,
		.context = ctx,
	};

	switch (kind) {
	case RECV:
		return fi_recv(r->ep->ep, r->iov[0].iov_base, r->iov[0].iov_len,
			       r->desc ? r->desc[0] : NULL, FT_ANY, ctx);
	case RECVV:
		return fi_recvv(r->ep->ep, r->iov, r->desc, r->count, FT_ANY,
				ctx);
	default:
		return fi_recvmsg(r->ep->ep, &msg, FI_COMPLETION);
	}
}

static void check_entry(struct ft_ep *ep, const struct ft_comp *comp, void *ctx,
			uint64_t kind, size_t len, bool has, uint64_t data)
{
	uint64_t mask = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_RMA |
			FI_ATOMIC | FI_TAGGED;

	FT_CHECK(comp->ctx == ctx, "context %p, not %p", comp->ctx, ctx);
	if (ep->format == FI_CQ_FORMAT_CONTEXT)
		return;
	FT_CHECK((comp->flags & mask) == kind,
		 "flags 0x%" PRIx64 ", not 0x%" PRIx64, comp->flags, kind);
	if (kind != FI_RECV)
		return;
	FT_CHECK(comp->len == len, "len %zu, not %zu", comp->len, len);
	/* verbs reports no remote data in a format without a data field */
	if (ep->format == FI_CQ_FORMAT_MSG)
		return;
	FT_CHECK(!(comp->flags & FI_REMOTE_CQ_DATA) == !has,
		 "flags 0x%" PRIx64 " and remote data %d", comp->flags, has);
	if (has)
		FT_CHECK(comp->data == data,
			 "remote data %" PRIu64 ", not %" PRIu64, comp->data,
			 data);
}

/*
 * Transfers one message; its contexts are numbers, including NULL, never
 * addresses.
 */
static void one(struct side *s, struct side *r, enum send_kind sk,
		enum recv_kind rk, size_t len)
{
	static uint64_t round;
	uint64_t data = (++round * 2654435761ULL) & 0xffffffff;
	void *sctx = (void *) (uintptr_t) (round % 5 ? round : 0);
	void *rctx = (void *) (uintptr_t) (round % 7 ? ~round : 0);
	struct ft_comp comp;
	char *out = s->buf, *in = r->buf;
	bool quiet = sk == INJECT || sk == INJECTDATA;

	ft_fill(out, len, round);
	memset(in, 0x5a, len);
	FT_POST(r->ep, post_recv(r, rk, rctx));
	FT_POST(s->ep, post_send(s, sk, data, sctx));
	if (injects(sk))
		/* the buffer is the test's again at once */
		memset(out, 0x77, len);
	ft_wait(r->ep, FT_RX, &comp);
	check_entry(r->ep, &comp, rctx, FI_RECV, len, has_data(sk), data);
	FT_CHECK_BUF(in, len, round, "received");
	if (!quiet) {
		ft_wait(s->ep, FT_TX, &comp);
		check_entry(s->ep, &comp, sctx, FI_SEND, 0, false, 0);
	}
}

static void variant(struct ft_ep *from, char *out, char *in, enum send_kind sk,
		    enum recv_kind rk, size_t len, enum desc_kind dk)
{
	size_t limit = ft_iov_limit(from);
	struct side s = { .ep = from, .buf = out };
	struct side r = { .ep = from->peer, .buf = in };
	bool vec = sk == SENDV || sk == SENDMSG || sk == SENDMSG_DATA ||
		   sk == SENDMSG_INJECT;

	if (injects(sk) && len > from->dom->info->tx_attr->inject_size)
		return;
	cut(&s, out, len, vec ? limit : 1, dk);
	cut(&r, in, len, rk == RECV ? 1 : (limit + 1) / 2, dk);
	one(&s, &r, sk, rk, len);
	uncut(&s);
	uncut(&r);
}

static void all_variants(struct ft_pair *pair, char *out, char *in)
{
	unsigned i, sk, rk, dk;
	struct ft_ep *from;

	for (sk = 0; sk < SEND_KINDS; sk++) {
		for (rk = 0; rk < RECV_KINDS; rk++) {
			for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
				dk = (sk + rk + i) % DESC_KINDS;
				from = i % 2 ? &pair->s : &pair->c;
				ft_stage("format %d: %s to %s, %zu bytes, "
					 "descriptors %u",
					 pair->attr.format, send_names[sk],
					 recv_names[rk], sizes[i], dk);
				variant(from, out, in, sk, rk, sizes[i], dk);
				variant(from, out, in, sk, rk, sizes[i],
					(dk + 1) % DESC_KINDS);
			}
		}
	}
}

/* Sends small messages between buffers on the stack of a function. */
static void from_stack(struct ft_pair *pair)
{
	char out[4097], in[4097];
	unsigned sk;

	for (sk = 0; sk < SEND_KINDS; sk++) {
		ft_stage("stack: %s", send_names[sk]);
		variant(&pair->c, out, in, sk, RECV, 100, DESC_NULL);
		variant(&pair->s, out, in, sk, RECVMSG, sizeof(in), DESC_NULL);
	}
}

static void origins(struct ft_pair *pair)
{
	char *heap[2] = { malloc(BIG), malloc(BIG) };
	char *mapped = ft_map(NULL, 2 * (BIG + FT_PAGE));

	FT_CHECK(heap[0] && heap[1], "malloc");
	ft_stage("malloc");
	all_variants(pair, heap[0], heap[1]);
	ft_stage("static data, mmap at odd offsets");
	variant(&pair->c, static_buf[0], static_buf[1], SENDV, RECVV, BIG,
		DESC_ARRAY_OF_NULL);
	variant(&pair->s, mapped + 1, mapped + BIG + 13, SEND, RECV, BIG,
		DESC_NULL);
	variant(&pair->c, static_buf[1], mapped + 7, SENDDATA, RECVMSG, BIG,
		DESC_NULL);
	from_stack(pair);
	ft_unmap(mapped, 2 * (BIG + FT_PAGE));
	free(heap[0]);
	free(heap[1]);
}

/*
 * Injects a message: the core copies the message in the call, and its buffer is
 * neither registered nor cached.
 */
static void injected(struct ft_pair *pair)
{
	char buf[16] = "injected", got[16];
	struct iovec iov = { buf, sizeof(buf) };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = pair->c.to,
		.context = buf,
	};
	struct fi_mrrc_stats before, after;
	struct ft_comp comp;

	ft_stage("FI_INJECT");
	ft_stats(&pair->dom[1], &before);
	FT_POST(&pair->s,
		fi_recv(pair->s.ep, got, sizeof(got),
			ft_desc(&pair->dom[0], got, sizeof(got)), FT_ANY, got));
	FT_POST(&pair->c,
		fi_sendmsg(pair->c.ep, &msg, FI_INJECT | FI_COMPLETION));
	ft_stats(&pair->dom[1], &after);
	memset(buf, 0, sizeof(buf));
	FT_CHECK(after.posts == before.posts && after.lookups == before.lookups,
		 "%" PRIu64 " posts, %" PRIu64 " lookups",
		 after.posts - before.posts, after.lookups - before.lookups);
	ft_wait(&pair->s, FT_RX, &comp);
	ft_wait(&pair->c, FT_TX, &comp);
	FT_CHECK(!strcmp(got, "injected"), "other data");
	ft_release(&pair->dom[0]);
}

/* Receives a message without data into NULL, without descriptors. */
static void into_null(struct ft_pair *pair)
{
	const struct iovec iov = { NULL, 0 };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = pair,
	};
	struct ft_comp comp;
	int i;

	if (ft_opts.raw)
		return; /* raw verbs reads a descriptor */
	ft_stage("into NULL");
	for (i = 0; i < 2; i++) {
		if (i)
			FT_POST(&pair->s,
				fi_recvmsg(pair->s.ep, &msg, FI_COMPLETION));
		else
			FT_POST(&pair->s, fi_recvv(pair->s.ep, &iov, NULL, 1,
						   FT_ANY, pair));
		FT_POST(&pair->c,
			fi_send(pair->c.ep, NULL, 0, NULL, pair->c.to, pair));
		ft_wait(&pair->s, FT_RX, &comp);
		check_entry(&pair->s, &comp, pair, FI_RECV, 0, false, 0);
		ft_wait(&pair->c, FT_TX, &comp);
	}
}

static void run(enum fi_cq_format format)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;

	attr.caps = FI_MSG;
	attr.format = format;
	ft_pair_open(&pair, &attr);
	origins(&pair);
	injected(&pair);
	into_null(&pair);
	ft_expect_none(&pair.c, 20);
	ft_expect_none(&pair.s, 1);
	if (ft_stats(&pair.dom[1], &st)) {
		FT_CHECK(st.lookups && st.posts && st.registrations,
			 "nothing went through the cache");
		if (ft_caches(&pair.dom[1]))
			FT_CHECK(st.hits > st.misses,
				 "%" PRIu64 " hits, %" PRIu64
				 " misses for a few buffers",
				 st.hits, st.misses);
	}
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	run(FI_CQ_FORMAT_CONTEXT);
	run(FI_CQ_FORMAT_MSG);
	run(FI_CQ_FORMAT_DATA);
	if (ft_core("verbs"))
		printf("note: verbs has no FI_CQ_FORMAT_TAGGED\n");
	else
		run(FI_CQ_FORMAT_TAGGED);
	return ft_done();
}
