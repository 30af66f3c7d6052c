/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cwrite: tests conditional writes, with write or tag posted first:
 * data, lengths, remote CQ data, several buffers on each side, truncation,
 * cancels on each side, selective completions, thousands of pending operations
 * with tags in random order. See cw_end.c for ends of connections, cw_wait.c
 * for waiting.
 */
#include "ft_mrrc.h"

#define MAX  (1 << 20)
#define SEGS 8 /* maximum buffers of a tag, see fi_cwrite(3) */
#define DATA UINT64_C(0x123456789abcdef0)

static struct fi_mrrc_cw_attr most = { .size = sizeof(most) };
static struct ft_pair pair;
static char *out, *in;

static void stats(struct ft_ep *ep, struct fi_mrrc_cw_stats *st)
{
	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	FT_CALL(fi_cw_stats_read(ep->cw, st));
	FT_CHECK(st->size == sizeof(*st), "stats: %zu bytes", st->size);
}

/* Checks that all operations that were posted have ended. */
static void check_none(struct ft_ep *ep)
{
	struct fi_mrrc_cw_stats st;

	stats(ep, &st);
	FT_CHECK(st.writes == st.writes_ended && !st.pending_writes,
		 "%" PRIu64 " writes, %" PRIu64 " ended", st.writes,
		 st.writes_ended);
	FT_CHECK(st.tags == st.tags_ended && !st.pending_tags,
		 "%" PRIu64 " tags, %" PRIu64 " ended", st.tags, st.tags_ended);
}

static void write_to(struct ft_ep *ep, const void *buf, size_t len,
		     uint64_t tag, void *ctx)
{
	FT_POST(ep, fi_cwrite(ep->cw, buf, len,
			      len ? ft_desc(ep->dom, buf, len) : NULL, ep->to,
			      tag, ctx));
}

static void expose(struct ft_ep *ep, void *buf, size_t len, uint64_t tag,
		   void *ctx)
{
	FT_POST(ep, fi_cwtag(ep->cw, buf, len, NULL, ep->to, tag, ctx));
}

/* Waits until the peer's tag has arrived. */
static void wait_known(struct ft_ep *ep, uint64_t cnt)
{
	uint64_t end = ft_deadline();
	struct fi_mrrc_cw_stats st;

	do {
		ft_progress(ep);
		stats(ep, &st);
		FT_CHECK(ft_limit_us() < end, "%" PRIu64 " tags known",
			 st.known_tags);
	} while (st.known_tags != cnt);
}

static void check_write(struct ft_ep *ep, void *ctx, int err)
{
	struct ft_comp comp;

	ft_wait_any(ep, FT_TX, &comp);
	FT_CHECK(comp.ctx == ctx && comp.err == err,
		 "write %p: context %p, error %d, not %d", ctx, comp.ctx,
		 comp.err, err);
	FT_CHECK(comp.flags == (FI_MRRC_CW | FI_RMA | FI_WRITE),
		 "write: flags %#" PRIx64, comp.flags);
}

static void check_tag(struct ft_ep *ep, void *ctx, size_t len, uint64_t tag,
		      bool data, int err)
{
	struct ft_comp comp;

	ft_wait_any(ep, FT_RX, &comp);
	FT_CHECK(comp.ctx == ctx && comp.err == err,
		 "tag %p: context %p, error %d, not %d", ctx, comp.ctx,
		 comp.err, err);
	FT_CHECK(comp.flags == (FI_MRRC_CW | FI_RMA | FI_REMOTE_WRITE |
				(data ? FI_REMOTE_CQ_DATA : 0)),
		 "tag: flags %#" PRIx64, comp.flags);
	FT_CHECK(comp.tag == tag || (!err && ep->format != FI_CQ_FORMAT_TAGGED),
		 "tag %#" PRIx64, comp.tag);
	FT_CHECK(err || comp.len == len, "%zu bytes, not %zu", comp.len, len);
	FT_CHECK(!data || comp.data == DATA, "data %#" PRIx64, comp.data);
}

static void one(struct ft_ep *w, struct ft_ep *t, size_t len, size_t room,
		bool tag_first, uint64_t tag)
{
	struct fi_mrrc_cw_stats before, after;

	ft_stage("%zu bytes into %zu, %s first", len, room,
		 tag_first ? "tag" : "write");
	stats(w, &before);
	ft_fill(out, len, tag);
	memset(in, 0, room + 1);
	if (tag_first) {
		expose(t, in, room, tag, in);
		wait_known(w, before.known_tags + 1);
	}
	write_to(w, out, len, tag, out);
	if (!tag_first) {
		ft_expect_none(w, 2);
		expose(t, in, room, tag, in);
	}
	check_write(w, out, 0);
	check_tag(t, in, len, tag, false, 0);
	FT_CHECK_BUF(in, len, tag, "conditional write");
	FT_CHECK(!in[len], "more was written");
	stats(w, &after);
	FT_CHECK(after.last_issued > before.last_issued, "last_issued");
	FT_CHECK(after.immediate - before.immediate == tag_first &&
			 after.held - before.held == !tag_first,
		 "immediate %" PRIu64 ", held %" PRIu64,
		 after.immediate - before.immediate, after.held - before.held);
}

static void lengths(void)
{
	const size_t len[] = { 0, 1, 100, 4096, 65537, MAX };
	uint64_t tag = 7;
	unsigned i;

	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		one(&pair.c, &pair.s, len[i], len[i], false, tag++);
		one(&pair.c, &pair.s, len[i], len[i], true, tag++);
		one(&pair.s, &pair.c, len[i], len[i] + 100, i % 2, tag++);
	}
	check_none(&pair.c);
	check_none(&pair.s);
}

/* Several buffers on both sides, with different boundaries. */
static void vectors(unsigned parts, bool keep, bool data, bool msgs)
{
	struct iovec src[FT_IOV_MAX], dst[SEGS];
	void *desc[FT_IOV_MAX];
	struct fi_msg_cw msg = { 0 };
	size_t i, srcs = ft_iov_limit(&pair.c), len = 0, off;
	uint64_t tag = 1000 + parts;

	if (srcs > FT_IOV_MAX)
		srcs = FT_IOV_MAX;
	ft_stage("%zu buffers into %u, %s, %s", srcs, parts,
		 keep ? "kept" : "revoked", data ? "with data" : "without");
	memset(in, 0, MAX);
	for (i = 0; i < parts; i++)
		dst[i] = (struct iovec){ in + i * 5000, 1000 + 100 * i };
	for (i = 0; i < srcs; i++) {
		src[i] = (struct iovec){ out + i * 9000, 200 * parts };
		ft_fill(src[i].iov_base, src[i].iov_len, 50 + i);
		desc[i] =
			ft_desc(&pair.dom[1], src[i].iov_base, src[i].iov_len);
		len += src[i].iov_len;
	}
	msg.msg_iov = dst;
	msg.iov_count = parts;
	msg.addr = pair.s.to;
	msg.cwtag = tag;
	msg.context = dst;
	FT_POST(&pair.s,
		fi_cwtagmsg(pair.s.cw, &msg,
			    FI_COMPLETION | (keep ? FI_MRRC_CW_KEEP : 0)));
	msg.msg_iov = src;
	msg.desc = desc;
	msg.iov_count = srcs;
	msg.addr = pair.c.to;
	msg.context = src;
	msg.data = DATA;
	if (msgs)
		FT_POST(&pair.c,
			fi_cwritemsg(pair.c.cw, &msg,
				     FI_COMPLETION | FI_INJECT_COMPLETE |
					     (data ? FI_REMOTE_CQ_DATA : 0)));
	else
		FT_POST(&pair.c, fi_cwritev(pair.c.cw, src, desc, srcs,
					    pair.c.to, tag, src));
	check_write(&pair.c, src, 0);
	check_tag(&pair.s, dst, len, tag, data, 0);
	/* compare the buffers of each side as one sequence of bytes */
	for (i = 0, off = 0; i < parts && off < len; i++) {
		size_t k, n = dst[i].iov_len, each = 200 * parts;

		for (k = 0; k < n && off < len; k++, off++)
			FT_CHECK(((char *) dst[i].iov_base)[k] ==
					 ((char *) src[off / each]
						  .iov_base)[off % each],
				 "byte %zu differs", off);
	}
}

/*
 * Writes len bytes to a tag of three buffers, of which some may get no data.
 * A message carries the data if len is at most the limit of inline writes.
 */
static void short_into_parts(size_t len)
{
	enum { LAST = 5000 };
	const struct iovec dst[] = { { in, 10 },
				     { in + 100, 20 },
				     { in + 200, LAST } };
	struct fi_msg_cw msg = {
		.msg_iov = dst,
		.iov_count = 3,
		.addr = pair.s.to,
		.cwtag = 12,
		.context = in,
	};
	char all[30 + LAST];

	ft_stage("%zu bytes into three buffers", len);
	memset(in, 0, 200 + LAST);
	ft_fill(out, len, len);
	FT_POST(&pair.s, fi_cwtagmsg(pair.s.cw, &msg, FI_COMPLETION));
	write_to(&pair.c, out, len, 12, out);
	check_write(&pair.c, out, 0);
	check_tag(&pair.s, in, len, 12, false, 0);
	memcpy(all, in, 10);
	memcpy(all + 10, in + 100, 20);
	memcpy(all + 30, in + 200, LAST);
	FT_CHECK(!memcmp(all, out, len), "bytes differ");
	while (len < sizeof(all))
		FT_CHECK(!all[len++], "more was written");
	FT_CHECK(!in[10] && !in[120], "the gaps were written");
}

static void truncated(bool tag_first)
{
	ft_stage("truncation, %s first", tag_first ? "tag" : "write");
	memset(in, 0, 4096);
	ft_fill(out, 4096, 3);
	if (tag_first)
		expose(&pair.s, in, 4095, 5, in);
	write_to(&pair.c, out, 4096, 5, out);
	if (!tag_first)
		expose(&pair.s, in, 4095, 5, in);
	check_write(&pair.c, out, FI_ETRUNC);
	check_tag(&pair.s, in, 0, 5, false, FI_ETRUNC);
	FT_CHECK(!in[0] && !memcmp(in, in + 1, 4094),
		 "a truncated write was placed");
}

static void cancels(void)
{
	ft_stage("cancel a held write");
	write_to(&pair.c, out, 100, 9, out);
	FT_CALL(fi_cancel(&pair.c.ep->fid, out));
	check_write(&pair.c, out, FI_ECANCELED);

	ft_stage("cancel a write without a context, and a tag");
	write_to(&pair.c, out, 100, 9, NULL);
	FT_CALL(fi_cancel(&pair.c.ep->fid, NULL));
	check_write(&pair.c, NULL, FI_ECANCELED);
	expose(&pair.s, in, 100, 9, NULL);
	FT_CALL(fi_cancel(&pair.s.ep->fid, NULL));
	check_tag(&pair.s, NULL, 0, 9, false, FI_ECANCELED);

	ft_stage("cancel an exposed buffer");
	expose(&pair.s, in, 100, 9, in);
	wait_known(&pair.c, 1);
	FT_CALL(fi_cancel(&pair.s.ep->fid, in));
	check_tag(&pair.s, in, 0, 9, false, FI_ECANCELED);
	wait_known(&pair.c, 0);

	ft_stage("what is cancelled is gone");
	fi_cancel(&pair.c.ep->fid, out);
	one(&pair.c, &pair.s, 100, 100, false, 9);

	ft_stage("too late");
	write_to(&pair.c, out, 100, 9, out);
	expose(&pair.s, in, 100, 9, in);
	check_write(&pair.c, out, 0);
	fi_cancel(&pair.s.ep->fid, in);
	check_tag(&pair.s, in, 100, 9, false, 0);
}

/*
 * A cancel may succeed or come too late, but has the same result on both sides.
 */
static void cancel_races(void)
{
	struct ft_comp w, t;
	unsigned i, k, done = 0, n = ft_iters(300);
	size_t len;

	ft_stage("cancels that race");
	for (i = 0; i < n; i++) {
		/* some writes are short enough to go inside a message */
		len = i / 2 % 2 ? 64 : 8192;
		write_to(&pair.c, out, len, 11, out);
		expose(&pair.s, in, len, 11, in);
		for (k = ft_rand() % 4; k; k--)
			ft_poll(ft_rand() % 2 ? &pair.c : &pair.s);
		if (i % 2)
			fi_cancel(&pair.s.ep->fid, in);
		else
			fi_cancel(&pair.c.ep->fid, out);
		ft_wait_any(i % 2 ? &pair.s : &pair.c, i % 2 ? FT_RX : FT_TX,
			    i % 2 ? &t : &w);
		/* the other operation waits for a partner, or has had one */
		if (i % 2 && t.err)
			FT_CALL(fi_cancel(&pair.c.ep->fid, out));
		if (!(i % 2) && w.err)
			FT_CALL(fi_cancel(&pair.s.ep->fid, in));
		ft_wait_any(i % 2 ? &pair.c : &pair.s, i % 2 ? FT_TX : FT_RX,
			    i % 2 ? &w : &t);
		FT_CHECK(w.err == t.err && (!w.err || w.err == FI_ECANCELED),
			 "write %d, tag %d", w.err, t.err);
		done += !w.err;
	}
	ft_log("%u of %u were too late", done, n);
	check_none(&pair.c);
	check_none(&pair.s);
}

/* Posts writes in order and their tags in random order; n are pending. */
static void pending(unsigned n, bool writes_first)
{
	uint32_t *src = (uint32_t *) out, *dst = (uint32_t *) in;
	unsigned *order = calloc(n, sizeof(*order)), i, k, tmp, w = 0, t = 0;
	bool *seen = calloc(n, sizeof(*seen));
	struct ft_comp comp;
	uint64_t end = ft_limit_us() + 120000000;

	ft_stage("%u pending, %s first", n, writes_first ? "writes" : "tags");
	FT_CHECK(order && seen, "calloc");
	for (i = 0; i < n; i++) {
		order[i] = i;
		src[i] = i * 2654435761u;
		dst[i] = 0;
	}
	for (i = n - 1; i; i--) {
		k = ft_rand() % (i + 1);
		tmp = order[i], order[i] = order[k], order[k] = tmp;
	}
	for (i = 0; i < n; i++) {
		k = writes_first ? i : order[i];
		if (writes_first)
			write_to(&pair.c, &src[k], 4, k, &src[k]);
		else
			expose(&pair.s, &dst[k], 4, k, &dst[k]);
	}
	for (i = 0; i < n; i++) {
		k = writes_first ? order[i] : i;
		if (writes_first)
			expose(&pair.s, &dst[k], 4, k, &dst[k]);
		else
			write_to(&pair.c, &src[k], 4, k, &src[k]);
	}
	while (w < n || t < n) {
		ft_progress(&pair.c);
		while (ft_take(&pair.c, FT_TX, &comp)) {
			FT_CHECK(!comp.err, "write: error %d", comp.err);
			w++;
		}
		while (ft_take(&pair.s, FT_RX, &comp)) {
			k = (uint32_t *) comp.ctx - dst;
			FT_CHECK(!comp.err && comp.len == 4 && !seen[k] &&
					 (comp.tag == k ||
					  pair.s.format != FI_CQ_FORMAT_TAGGED),
				 "tag %u: error %d", k, comp.err);
			FT_CHECK(dst[k] == src[k], "tag %u: other data", k);
			seen[k] = true;
			t++;
		}
		FT_CHECK(ft_limit_us() < end, "%u writes, %u tags ended", w, t);
	}
	check_none(&pair.c);
	check_none(&pair.s);
	free(order);
	free(seen);
}

/* One tag serves many writes: first in, first out. */
static void same_tag(void)
{
	enum { N = 200 };
	char *o = out, *i = in;
	struct ft_comp comp;
	unsigned k;

	ft_stage("one tag, many times");
	for (k = 0; k < N; k++) {
		o[k] = k + 1;
		i[k] = 0;
	}
	for (k = 0; k < N; k++) {
		if (k % 3)
			expose(&pair.s, i + k, 1, 77, i + k);
		write_to(&pair.c, o + k, 1, 77, o + k);
		if (!(k % 3))
			expose(&pair.s, i + k, 1, 77, i + k);
	}
	for (k = 0; k < N; k++) {
		ft_wait(&pair.s, FT_RX, &comp);
		FT_CHECK(comp.ctx == i + k && i[k] == o[k], "out of order");
		ft_wait(&pair.c, FT_TX, &comp);
		FT_CHECK(comp.ctx == o + k, "out of order");
	}
}

/*
 * Calls with FI_MORE announce a next call; with @last the last call does, too.
 */
static void more(bool last)
{
	enum { N = 100 };
	uint64_t *o = (uint64_t *) out, *i = (uint64_t *) in;
	struct iovec iov = { NULL, sizeof(*o) };
	struct fi_msg_cw msg = { .msg_iov = &iov, .iov_count = 1 };
	struct ft_comp comp;
	uint64_t flags, k;

	ft_stage("FI_MORE%s", last ? ", on the last call too" : "");
	for (k = 0; k < N; k++) {
		o[k] = ft_rand();
		i[k] = 0;
	}
	for (k = 0; k < 2 * N; k++) {
		flags = k % N < N - 1 || last ? FI_MORE : 0;
		msg.cwtag = k % N;
		if (k < N) {
			iov.iov_base = msg.context = &i[k];
			msg.addr = pair.s.to;
			FT_CALL(fi_cwtagmsg(pair.s.cw, &msg, flags));
		} else {
			iov.iov_base = msg.context = &o[k % N];
			msg.addr = pair.c.to;
			FT_CALL(fi_cwritemsg(pair.c.cw, &msg, flags));
		}
	}
	for (k = 0; k < N; k++) {
		ft_wait(&pair.c, FT_TX, &comp);
		FT_CHECK(!comp.err, "error %d", comp.err);
		ft_wait(&pair.s, FT_RX, &comp);
		FT_CHECK(!comp.err, "error %d", comp.err);
	}
	FT_CHECK(!memcmp(o, i, N * sizeof(*o)), "other data");
}

static void tag_alloc(void)
{
	uint64_t tag[4];

	FT_CALL(fi_cw_tag_alloc(pair.c.cw, &tag[0]));
	FT_CALL(fi_cw_tag_alloc(pair.c.cw, &tag[1]));
	FT_CALL(fi_cw_tag_alloc(pair.s.cw, &tag[2]));
	FT_CALL(fi_cw_tag_alloc(pair.s.cw, &tag[3]));
	FT_CHECK(tag[0] != tag[1] && tag[0] != tag[2] && tag[0] != tag[3] &&
			 tag[1] != tag[2] && tag[1] != tag[3] &&
			 tag[2] != tag[3],
		 "a tag is given twice");
	FT_CHECK(tag[0] & tag[1] & tag[2] & tag[3] & ~most.app_tag_mask,
		 "a tag that the application may choose");
}

static ssize_t post(bool tag, const struct fi_msg_cw *msg)
{
	return tag ? fi_cwtagmsg(pair.c.cw, msg, 0) :
		     fi_cwritemsg(pair.c.cw, msg, 0);
}

/*
 * Invalid buffers are the caller's mistake, and are refused before the peer
 * sees the operation.
 */
static void wrong_buffers(bool tag)
{
	const size_t limit = pair.c.dom->info->ep_attr->max_msg_size;
	struct iovec iov[2] = {
		{ out, SIZE_MAX / 2 + 1 },
		{ out, SIZE_MAX / 2 + 1 },
	};
	struct fi_msg_cw msg = {
		.msg_iov = iov,
		.iov_count = 2,
		.addr = pair.c.to,
	};

	ft_stage("wrong buffers, %s", tag ? "tag" : "write");
	if (tag || ft_iov_limit(&pair.c) >= 2)
		FT_CHECK(post(tag, &msg) == -FI_EINVAL, "a sum of 0");
	msg.iov_count = 1;
	FT_CHECK(post(tag, &msg) == -FI_EINVAL, "half of all bytes");
	iov[0] = (struct iovec){ out, limit + 1 };
	if (!tag && !ft_rdm() && limit < SIZE_MAX / 2)
		FT_CHECK(post(tag, &msg) == -FI_EINVAL, "longer than messages");
	iov[0] = (struct iovec){ (void *) (UINTPTR_MAX - 9), 11 };
	FT_CHECK(post(tag, &msg) == -FI_EFAULT, "beyond all addresses");
	iov[0] = (struct iovec){ NULL, 1 };
	FT_CHECK(post(tag, &msg) == -FI_EFAULT, "NULL");
	one(&pair.c, &pair.s, 100, 100, tag, 9000 + tag);
	one(&pair.s, &pair.c, 100, 100, tag, 9002 + tag);
}

static void wrong_calls(void)
{
	struct iovec iov[SEGS + 1] = { { out, 1 } };
	struct fi_msg_cw msg = {
		.msg_iov = iov,
		.iov_count = 1,
		.addr = pair.c.to,
	};

	ft_stage("wrong calls");
	FT_CHECK(fi_cwritemsg(pair.c.cw, &msg, FI_FENCE) == -FI_EBADFLAGS,
		 "FI_FENCE");
	FT_CHECK(fi_cwritemsg(pair.c.cw, &msg, FI_DELIVERY_COMPLETE) ==
			 -FI_EBADFLAGS,
		 "FI_DELIVERY_COMPLETE");
	FT_CHECK(fi_cwtagmsg(pair.c.cw, &msg, FI_REMOTE_CQ_DATA) ==
			 -FI_EBADFLAGS,
		 "FI_REMOTE_CQ_DATA of a tag");
	msg.iov_count = SEGS + 1;
	FT_CHECK(fi_cwtagmsg(pair.c.cw, &msg, 0) == -FI_EINVAL, "segments");
	FT_CHECK(fi_cw_enable(&pair.c.ep->fid, 1) == -FI_EBADFLAGS, "flags");
	FT_CHECK(fi_cw_enable(&pair.c.cq[0]->fid, 0) < 0, "a CQ");
	FT_CHECK(fi_mrrc_feature(&pair.c.ep->fid, "cw") == 1, "feature");
	FT_CHECK(!fi_mrrc_feature(&pair.c.ep->fid, "nonsense"), "feature");
	FT_CHECK(fi_cwritev(pair.c.cw, iov, NULL, 100, pair.c.to, 1, NULL) ==
			 -FI_EINVAL,
		 "fi_cwritev of too many");
	if (!ft_rdm())
		return;
	FT_CHECK(fi_cwrite(pair.c.cw, out, 1, NULL, FT_ANY, 1, NULL) ==
			 -FI_EINVAL,
		 "fi_cwrite to any peer");
	FT_CHECK(fi_cwtag(pair.c.cw, in, 1, NULL, FT_ANY, 1, NULL) ==
			 -FI_EINVAL,
		 "fi_cwtag for any peer");
}

static void selective(void)
{
	struct ft_attr attr = FT_ATTR;
	struct iovec iov = { out, 8 };
	struct fi_msg_cw msg = { .msg_iov = &iov, .iov_count = 1, .cwtag = 1 };

	ft_stage("selective completions");
	attr.format = ft_cq_format();
	attr.tx_selective = attr.rx_selective = true;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	msg.addr = pair.c.to;
	FT_POST(&pair.c, fi_cwritemsg(pair.c.cw, &msg, 0));
	expose(&pair.s, in, 8, 1, in);
	FT_POST(&pair.c, fi_cwritemsg(pair.c.cw, &msg, FI_COMPLETION));
	msg.context = in;
	msg.addr = pair.s.to;
	iov.iov_base = in;
	FT_POST(&pair.s, fi_cwtagmsg(pair.s.cw, &msg, FI_COMPLETION));
	check_write(&pair.c, NULL, 0);
	check_tag(&pair.s, in, 8, 1, false, 0);
	ft_expect_none(&pair.c, 20);
	check_none(&pair.c);
	check_none(&pair.s);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	out = ft_map(NULL, MAX + FT_PAGE);
	in = ft_map(NULL, MAX + FT_PAGE);
	attr.format = ft_cq_format();
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	FT_CALL(fi_cw_query(&pair.c.ep->fid, &most));
	FT_CHECK(most.iov_limit == pair.dom[1].info->tx_attr->iov_limit &&
			 most.tag_iov_limit == SEGS,
		 "%zu buffers, and %zu of a tag", most.iov_limit,
		 most.tag_iov_limit);
	lengths();
	for (i = 0; i < SEGS; i++) {
		vectors(1 + i, i % 2, i / 2 % 2, true);
		vectors(1 + i, i % 2, false, false);
	}
	short_into_parts(5);
	short_into_parts(10);
	short_into_parts(25);
	short_into_parts(192);
	short_into_parts(193);
	short_into_parts(4096);
	short_into_parts(4097);
	truncated(true);
	truncated(false);
	cancels();
	cancel_races();
	same_tag();
	more(false);
	more(true);
	tag_alloc();
	wrong_calls();
	wrong_buffers(false);
	wrong_buffers(true);
	pending(ft_iters(10000), true);
	pending(ft_iters(10000), false);
	ft_check_idle(&pair.dom[0], "server");
	ft_check_idle(&pair.dom[1], "client");
	ft_verify_pair(&pair.c, out, in, 4096, 1);
	ft_pair_close(&pair);
	selective();
	ft_unmap(out, MAX + FT_PAGE);
	ft_unmap(in, MAX + FT_PAGE);
	return ft_done();
}
