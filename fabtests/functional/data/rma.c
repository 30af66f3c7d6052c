/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_rma: tests every way to read and to write with null local
 * descriptors, to targets that the peer registered explicitly; remote CQ data;
 * delivery flags; and the completions of each operation.
 */
#include "ft_mrrc.h"

#define BIG (1024 * 1024 + 3)

enum kind {
	WRITE,
	WRITEV,
	WRITEMSG,
	WRITEMSG_DELIVERY,
	WRITEMSG_TRANSMIT,
	WRITEMSG_INJECT,
	WRITEDATA,
	WRITEMSG_DATA,
	INJECT_WRITE,
	INJECT_WRITEDATA,
	READ,
	READV,
	READMSG,
	KINDS
};

static const char *const names[] = { "write",
				     "writev",
				     "writemsg",
				     "writemsg+delivery",
				     "writemsg+transmit",
				     "writemsg+inject",
				     "writedata",
				     "writemsg+data",
				     "inject_write",
				     "inject_writedata",
				     "read",
				     "readv",
				     "readmsg" };
static const size_t sizes[] = { 1, 8, 64, 4095, 4096, 4097, 65536, BIG };

struct op {
	struct ft_ep *ep;
	struct iovec iov[FT_IOV_MAX];
	void *descs[FT_IOV_MAX];
	void **desc;
	size_t count;
	struct fi_rma_iov target;
	uint64_t data;
	void *ctx;
};

static bool reads(enum kind kind)
{
	return kind == READ || kind == READV || kind == READMSG;
}

static bool injects(enum kind kind)
{
	return kind == INJECT_WRITE || kind == INJECT_WRITEDATA ||
	       kind == WRITEMSG_INJECT;
}

static bool silent(enum kind kind)
{
	return kind == INJECT_WRITE || kind == INJECT_WRITEDATA;
}

static bool has_data(enum kind kind)
{
	return kind == WRITEDATA || kind == INJECT_WRITEDATA ||
	       kind == WRITEMSG_DATA;
}

static uint64_t msg_flags(enum kind kind)
{
	switch (kind) {
	case WRITEMSG_DELIVERY:
		return FI_COMPLETION | FI_DELIVERY_COMPLETE;
	case WRITEMSG_TRANSMIT:
		return FI_COMPLETION | FI_TRANSMIT_COMPLETE;
	case WRITEMSG_INJECT:
		return FI_COMPLETION | FI_INJECT;
	case WRITEMSG_DATA:
		return FI_COMPLETION | FI_REMOTE_CQ_DATA;
	default:
		return FI_COMPLETION;
	}
}

static ssize_t post(struct op *op, enum kind kind)
{
	void *desc = op->desc ? op->desc[0] : NULL;
	void *buf = op->iov[0].iov_base;
	size_t len = op->iov[0].iov_len;
	struct fid_ep *ep = op->ep->ep;
	fi_addr_t to = op->ep->to;
	uint64_t addr = op->target.addr, key = op->target.key;
	struct fi_msg_rma msg = {
		.msg_iov = op->iov,
		.desc = op->desc,
		.iov_count = op->count,
		.addr = to,
		.rma_iov = &op->target,
		.rma_iov_count = 1,
		.context = op->ctx,
		.data = op->data,
	};

	switch (kind) {
	case WRITE:
		return fi_write(ep, buf, len, desc, to, addr, key, op->ctx);
	case WRITEV:
		return fi_writev(ep, op->iov, op->desc, op->count, to, addr,
				 key, op->ctx);
	case WRITEDATA:
		return fi_writedata(ep, buf, len, desc, op->data, to, addr, key,
				    op->ctx);
	case INJECT_WRITE:
		return fi_inject_write(ep, buf, len, to, addr, key);
	case INJECT_WRITEDATA:
		return fi_inject_writedata(ep, buf, len, op->data, to, addr,
					   key);
	case READ:
		return fi_read(ep, buf, len, desc, to, addr, key, op->ctx);
	case READV:
		return fi_readv(ep, op->iov, op->desc, op->count, to, addr, key,
				op->ctx);
	case READMSG:
		return fi_readmsg(ep, &msg, FI_COMPLETION);
	default:
		return fi_writemsg(ep, &msg, msg_flags(kind));
	}
}

static void cut(struct op *op, char *buf, size_t len, size_t count)
{
	size_t i, off = 0, part;

	if (len < count)
		count = 1;
	op->count = count;
	op->desc = ft_opts.raw || len % 2 ? op->descs : NULL;
	for (i = 0; i < count; i++) {
		part = i + 1 == count ? len - off : (len - off) / (i + 2);
		op->iov[i].iov_base = buf + off;
		op->iov[i].iov_len = part;
		op->descs[i] = ft_desc(op->ep->dom, buf + off, part);
		off += part;
	}
}

/* Checks the target's completion of a write with remote CQ data. */
static void check_data(struct ft_ep *ep, uint64_t data)
{
	struct ft_comp comp;

	ft_wait(ep, FT_RX, &comp);
	FT_CHECK((comp.flags & FI_REMOTE_CQ_DATA) &&
			 (comp.flags & FI_REMOTE_WRITE),
		 "flags 0x%" PRIx64 " for remote data", comp.flags);
	FT_CHECK(comp.data == data, "remote data %" PRIu64 ", not %" PRIu64,
		 comp.data, data);
}

static void one(struct op *op, enum kind kind, char *local, char *remote,
		size_t len, uint64_t seed)
{
	uint64_t mask = FI_RMA | FI_READ | FI_WRITE | FI_SEND | FI_RECV |
			FI_MSG;
	char *from = reads(kind) ? remote : local;
	char *to = reads(kind) ? local : remote;
	struct ft_comp comp;

	ft_fill(from, len, seed);
	memset(to, 0x5a, len);
	/* over verbs remote CQ data takes a receive */
	if (has_data(kind) &&
	    op->ep->peer->dom->info->rx_attr->mode & FI_RX_CQ_DATA)
		FT_POST(op->ep,
			fi_recv(op->ep->peer->ep, NULL, 0, NULL, FT_ANY, NULL));
	FT_POST(op->ep, post(op, kind));
	if (injects(kind))
		memset(local, 0x77, len);
	if (!silent(kind)) {
		ft_wait(op->ep, FT_TX, &comp);
		FT_CHECK(comp.ctx == op->ctx, "context %p, not %p", comp.ctx,
			 op->ctx);
		FT_CHECK((comp.flags & mask) ==
				 (FI_RMA | (reads(kind) ? FI_READ : FI_WRITE)),
			 "flags 0x%" PRIx64, comp.flags);
	}
	if (reads(kind) || kind == WRITEMSG_DELIVERY)
		FT_CHECK_BUF(to, len, seed, "at completion");
	if (has_data(kind))
		check_data(op->ep->peer, op->data);
	ft_wait_buf(op->ep, to, len, seed);
}

static void variant(struct ft_ep *ep, enum kind kind, char *local, size_t len,
		    char *remote, struct fid_mr *mr)
{
	static uint64_t round;
	size_t off = ++round % 3 * 5;
	struct op op = {
		.ep = ep,
		.target = { .addr = ft_raddr(ep->peer->dom, remote) + off,
			    .len = len,
			    .key = fi_mr_key(mr) },
		.data = (round * 2654435761ULL) & 0xffffffff,
		.ctx = (void *) (uintptr_t) (round % 4 ? round : 0),
	};
	size_t count = ft_iov_limit(ep);

	if (injects(kind) && len > ep->dom->info->tx_attr->inject_size)
		return;
	if (kind != WRITEV && kind != READV && kind != WRITEMSG &&
	    kind != READMSG && kind != WRITEMSG_DELIVERY)
		count = 1;
	cut(&op, local, len, count);
	one(&op, kind, local, remote + off, len, round);
	ft_release(ep->dom);
}

static void all_variants(struct ft_ep *ep, char *local, char *remote,
			 struct fid_mr *mr)
{
	unsigned kind, i;

	for (kind = 0; kind < KINDS; kind++) {
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			ft_stage("%s, %zu bytes", names[kind], sizes[i]);
			variant(ep, kind, local, sizes[i], remote, mr);
			/* use the middle of the same memory, too */
			variant(ep, kind, local + sizes[i] / 3,
				(sizes[i] + 1) / 2, remote, mr);
		}
	}
}

/*
 * Many operations at once complete in order, each at its own place in memory.
 */
static void many(struct ft_ep *ep, char *local, char *remote, struct fid_mr *mr,
		 bool read)
{
	const size_t count = 64, len = 5000;
	uint64_t addr = ft_raddr(ep->peer->dom, remote);
	char *from = read ? remote : local, *to = read ? local : remote;
	size_t i;
	void *d;

	ft_stage("%zu %s at once", count, read ? "reads" : "writes");
	memset(to, 0, count * len);
	for (i = 0; i < count; i++)
		ft_fill(from + i * len, len, i);
	d = ft_desc(ep->dom, local, count * len);
	for (i = 0; i < count; i++) {
		if (read)
			FT_POST(ep, fi_read(ep->ep, to + i * len, len, d,
					    ep->to, addr + i * len,
					    fi_mr_key(mr), (void *) i));
		else
			FT_POST(ep, fi_write(ep->ep, from + i * len, len, d,
					     ep->to, addr + i * len,
					     fi_mr_key(mr), (void *) i));
	}
	for (i = 0; i < count; i++)
		ft_wait_ctx(ep, FT_TX, (void *) i, FI_RMA);
	for (i = 0; i < count; i++)
		ft_wait_buf(ep, to + i * len, len, i);
	ft_release(ep->dom);
}

static void direction(struct ft_ep *ep)
{
	size_t len = BIG + FT_PAGE;
	char *local = calloc(1, len), *remote = calloc(1, len);
	struct fid_mr *mr;

	FT_CHECK(local && remote, "calloc");
	mr = ft_reg(ep->peer->dom, remote, len,
		    FI_REMOTE_READ | FI_REMOTE_WRITE);
	all_variants(ep, local, remote, mr);
	many(ep, local, remote, mr, false);
	many(ep, local, remote, mr, true);
	FT_CALL(fi_close(&mr->fid));
	free(local);
	free(remote);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;

	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	direction(&pair.c);
	direction(&pair.s);
	ft_expect_none(&pair.c, 20);
	ft_expect_none(&pair.s, 1);
	if (ft_stats(&pair.dom[1], &st))
		FT_CHECK(st.lookups && st.posts && st.registrations,
			 "nothing went through the cache");
	if (ft_caches(&pair.dom[1]))
		FT_CHECK(st.hits > st.misses,
			 "%" PRIu64 " hits, %" PRIu64 " misses for one buffer",
			 st.hits, st.misses);
	ft_pair_close(&pair);
	return ft_done();
}
