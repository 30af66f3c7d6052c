/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_selective: tests FI_SELECTIVE_COMPLETION. Operations that ask for no
 * completion have no completion, other operations have exactly one completion;
 * floods of silent operations use a small queue that is not read until the end.
 */
#include "ft_mrrc.h"

#define SLOTS  64
#define MAXLEN 4096

struct bufs {
	char *out, *in; /* SLOTS buffers of MAXLEN each */
	void *out_desc, *in_desc;
	struct fid_mr *mr; /* registration of in */
};

static ssize_t sendmsg_flags(struct ft_ep *ep, void *buf, size_t len,
			     void *desc, void *ctx, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = ep->to,
		.context = ctx,
	};

	return fi_sendmsg(ep->ep, &msg, flags);
}

static ssize_t writemsg_flags(struct ft_ep *ep, struct bufs *b, size_t slot,
			      size_t len, void *ctx, uint64_t flags)
{
	struct iovec iov = { b->out + slot * MAXLEN, len };
	struct fi_rma_iov rma = {
		.addr = ft_raddr(ep->peer->dom, b->in) + slot * MAXLEN,
		.len = len,
		.key = fi_mr_key(b->mr),
	};
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &b->out_desc,
		.iov_count = 1,
		.addr = ep->to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = ctx,
	};

	return fi_writemsg(ep->ep, &msg, flags);
}

static void bufs_open(struct ft_pair *pair, struct bufs *b)
{
	size_t len = SLOTS * MAXLEN;

	b->out = ft_map(NULL, len);
	b->in = ft_map(NULL, len);
	b->out_desc = ft_desc(&pair->dom[1], b->out, len);
	b->in_desc = ft_desc(&pair->dom[0], b->in, len);
	b->mr = ft_reg(&pair->dom[0], b->in, len, FI_REMOTE_WRITE);
}

static void bufs_close(struct ft_pair *pair, struct bufs *b)
{
	FT_CALL(fi_close(&b->mr->fid));
	ft_release_pair(pair);
	ft_unmap(b->out, SLOTS * MAXLEN);
	ft_unmap(b->in, SLOTS * MAXLEN);
}

/* Only transmits are selective: receives complete without FI_COMPLETION. */
static void mixture(struct ft_pair *pair, struct bufs *b)
{
	unsigned i, asked = 0, n = 2000;
	struct ft_comp comp;
	bool write, signalled;
	size_t slot;
	void *ctx;

	for (i = 0; i < n; i++) {
		ft_stage("mixture: operation %u", i);
		slot = i % SLOTS;
		write = ft_rand() % 2;
		signalled = ft_rand() % 3 == 0;
		ctx = (void *) (uintptr_t) (i * 2 + 1);
		ft_fill(b->out + slot * MAXLEN, MAXLEN, i);
		if (!write) {
			FT_POST(&pair->c,
				fi_recv(pair->s.ep, b->in + slot * MAXLEN,
					MAXLEN, b->in_desc, FT_ANY, ctx));
			FT_POST(&pair->c,
				sendmsg_flags(&pair->c, b->out + slot * MAXLEN,
					      MAXLEN, b->out_desc, ctx,
					      signalled ? FI_COMPLETION : 0));
		} else {
			FT_POST(&pair->c,
				writemsg_flags(&pair->c, b, slot, MAXLEN, ctx,
					       signalled ? FI_COMPLETION : 0));
		}
		asked += signalled;
		if (!write)
			ft_wait_ctx(&pair->s, FT_RX, ctx, FI_RECV);
		ft_wait_buf(&pair->c, b->in + slot * MAXLEN, MAXLEN, i);
		if (!signalled)
			continue;
		ft_wait(&pair->c, FT_TX, &comp);
		FT_CHECK(comp.ctx == ctx, "completion of %p, not of %p",
			 comp.ctx, ctx);
		asked--;
	}
	FT_CHECK(!asked, "%u completions missing", asked);
	ft_expect_none(&pair->c, 20);
}

/*
 * Calls without flags ask for no completion, unless the endpoint's default
 * flags do.
 */
static void plain_calls(struct ft_pair *pair, struct bufs *b)
{
	unsigned i;

	ft_stage("calls without flags");
	for (i = 0; i < 200; i++) {
		ft_fill(b->out, MAXLEN, i);
		FT_POST(&pair->c, fi_recv(pair->s.ep, b->in, MAXLEN, b->in_desc,
					  FT_ANY, NULL));
		FT_POST(&pair->c, fi_send(pair->c.ep, b->out, MAXLEN,
					  b->out_desc, pair->c.to, (void *) 7));
		ft_wait_ctx(&pair->s, FT_RX, NULL, FI_RECV);
		FT_CHECK_BUF(b->in, MAXLEN, i, "plain send");
		ft_fill(b->out, MAXLEN, ~i);
		FT_POST(&pair->c,
			fi_write(pair->c.ep, b->out, MAXLEN, b->out_desc,
				 pair->c.to, ft_raddr(&pair->dom[0], b->in),
				 fi_mr_key(b->mr), (void *) 8));
		ft_wait_buf(&pair->c, b->in, MAXLEN, ~i);
	}
	ft_expect_none(&pair->c, 20);
}

/* Completions that were not requested do not appear in poll sets, either. */
static void unseen(struct ft_pair *pair, struct bufs *b)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	struct fi_poll_attr attr = { .flags = 0 };
	struct fid_domain *domain = pair->dom[1].domain;
	struct fid_cq *cq = pair->c.cq[FT_TX];
	uint64_t end;
	struct fid_poll *set;
	void *found[2];
	unsigned i;
	long ret;

	ft_stage("silent writes, and a poll set");
	/* libfabric 2.x deprecates fi_poll_open() and the like */
	ret = domain->ops->poll_open(domain, &attr, &set);
	if (ret == -FI_ENOSYS)
		return;
	FT_CALL(ret);
	FT_CALL(set->ops->poll_add(set, &cq->fid, 0));
	pair->c.quiet[FT_TX] = true;
	for (i = 0; i < 100; i++) {
		ft_fill(b->out, MAXLEN, i);
		FT_POST(&pair->c,
			writemsg_flags(&pair->c, b, 0, MAXLEN, NULL, 0));
		end = ft_now_us() + 2000;
		do {
			ft_poll(&pair->s);
			ret = i % 2 ? fi_cq_read(cq, NULL, 0) :
				      set->ops->poll(set, found, 2);
			FT_CHECK(ret == (i % 2 ? -FI_EAGAIN : 0),
				 "silent write %u shows: %ld", i, ret);
		} while (ft_now_us() < end);
		ft_wait_buf(&pair->c, b->in, MAXLEN, i);
	}
	pair->c.quiet[FT_TX] = false;
	FT_CALL(set->ops->poll_del(set, &cq->fid, 0));
	/* a queue that is added twice is removed by one call */
	FT_CALL(fi_cq_open(domain, &cq_attr, &cq, NULL));
	FT_CALL(set->ops->poll_add(set, &cq->fid, 0));
	FT_CALL(set->ops->poll_add(set, &cq->fid, 0));
	FT_CALL(set->ops->poll_del(set, &cq->fid, 0));
	FT_CALL(fi_close(&cq->fid));
	ret = set->ops->poll(set, found, 2);
	FT_CHECK(!ret, "a queue that was closed shows: %ld", ret);
	FT_CALL(fi_close(&set->fid));
	ft_expect_none(&pair->c, 20);
}

/* Posts an operation without ever reading the sender's queue. */
#define POST_QUIET(ep_, call)                                    \
	do {                                                     \
		uint64_t end_ = ft_deadline();                   \
		ssize_t rc_;                                     \
                                                                 \
		while ((rc_ = (call)) == -FI_EAGAIN) {           \
			ft_poll((ep_)->peer);                    \
			FT_CHECK(ft_limit_us() < end_,           \
				 "%s: still -FI_EAGAIN, unread " \
				 "queue",                        \
				 #call);                         \
		}                                                \
		FT_CHECK(!rc_, "%s: %zd", #call, rc_);           \
	} while (0)

/* Checks that records of silent operations are reused during the flood. */
static void check_bounded(struct ft_pair *pair, unsigned n)
{
	struct fi_mrrc_stats st;

	if (ft_stats(&pair->dom[1], &st))
		FT_CHECK(st.posts - st.completions < n / 2,
			 "%" PRIu64 " of %u silent operations are not retired",
			 st.posts - st.completions, n);
}

static void flood_writes(struct ft_pair *pair, struct bufs *b, unsigned n,
			 size_t len)
{
	struct ft_comp comp;
	unsigned i;

	ft_stage("flood of %u silent writes of %zu", n, len);
	pair->c.quiet[FT_TX] = true;
	for (i = 0; i < n; i++) {
		if (i >= n - SLOTS)
			ft_fill(b->out + i % SLOTS * MAXLEN, len, i);
		POST_QUIET(&pair->c, writemsg_flags(&pair->c, b, i % SLOTS, len,
						    NULL, 0));
		if (i % 16 == 0)
			ft_poll(&pair->s);
	}
	check_bounded(pair, n);
	POST_QUIET(&pair->c, writemsg_flags(&pair->c, b, i % SLOTS, 8,
					    (void *) 99, FI_COMPLETION));
	pair->c.quiet[FT_TX] = false;
	ft_wait(&pair->c, FT_TX, &comp);
	FT_CHECK(comp.ctx == (void *) 99, "completion of %p after a flood",
		 comp.ctx);
	for (i = n - SLOTS; i < n; i++) {
		if (i % SLOTS == n % SLOTS)
			continue; /* the last write went to this slot */
		ft_wait_buf(&pair->c, b->in + i % SLOTS * MAXLEN, len, i);
	}
	ft_expect_none(&pair->c, 20);
}

static void flood_sends(struct ft_pair *pair, struct bufs *b, unsigned n,
			size_t len)
{
	unsigned i, posted, got = 0;
	struct ft_comp comp;

	ft_stage("flood of %u silent sends of %zu", n, len);
	pair->c.quiet[FT_TX] = true;
	for (posted = 0; posted < SLOTS; posted++)
		FT_POST(&pair->s, fi_recv(pair->s.ep, b->in + posted * MAXLEN,
					  MAXLEN, b->in_desc, FT_ANY, NULL));
	ft_fill(b->out, len, len);
	for (i = 0; i < n || got < n;) {
		if (i < n && i - got < SLOTS * 2) {
			POST_QUIET(&pair->c,
				   sendmsg_flags(&pair->c, b->out, len,
						 b->out_desc, NULL, 0));
			i++;
		} else {
			/*
			 * a raw core makes progress only if its queue is read
			 */
			if (ft_opts.raw)
				pair->c.quiet[FT_TX] = false;
			ft_progress(&pair->c);
		}
		ft_poll(&pair->s);
		while (ft_take(&pair->s, FT_RX, &comp)) {
			FT_CHECK(!comp.err && comp.len == len,
				 "receive %u: error %d, %zu bytes", got,
				 comp.err, comp.len);
			FT_CHECK_BUF(b->in + got % SLOTS * MAXLEN, len, len,
				     "flood of sends");
			memset(b->in + got % SLOTS * MAXLEN, 0, len);
			if (posted++ < n)
				FT_POST(&pair->s,
					fi_recv(pair->s.ep,
						b->in + got % SLOTS * MAXLEN,
						MAXLEN, b->in_desc, FT_ANY,
						NULL));
			got++;
		}
	}
	pair->c.quiet[FT_TX] = false;
	ft_expect_none(&pair->c, 20);
}

static void check_stats(struct ft_pair *pair)
{
	struct fi_mrrc_stats st;
	uint64_t end = ft_deadline();

	/* progress retires the last silent operations, without an entry */
	do {
		ft_progress(&pair->c);
		if (!ft_stats(&pair->dom[1], &st))
			return;
	} while (st.posts != st.completions && ft_limit_us() < end);
	ft_check_idle(&pair->dom[1], "after the floods");
	FT_CHECK(st.posts > 2000, "only %" PRIu64 " operations counted",
		 st.posts);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	struct bufs b;
	unsigned n, slow;

	ft_init(argc, argv);
	/* verbs may be on an emulated device */
	slow = ft_core("verbs") ? 20 : 1;
	n = ft_iters(100000) / slow;
	FT_CHECK(n >= SLOTS * 10, "-I: at least %u", SLOTS * 10 * slow);
	attr.tx_selective = true;
	attr.cq_size = 16;
	ft_pair_open(&pair, &attr);
	bufs_open(&pair, &b);
	mixture(&pair, &b);
	plain_calls(&pair, &b);
	unseen(&pair, &b);
	flood_writes(&pair, &b, n, 64);
	flood_writes(&pair, &b, n / 10, MAXLEN);
	flood_sends(&pair, &b, n, 64);
	flood_sends(&pair, &b, n / 10, MAXLEN);
	check_stats(&pair);
	bufs_close(&pair, &b);
	ft_pair_close(&pair);
	/* in this mode ofi_rxm's inject_size is larger than its core's */
	attr.mr_mode = FT_MR_BASIC;
	ft_pair_open(&pair, &attr);
	bufs_open(&pair, &b);
	flood_writes(&pair, &b, SLOTS * 10, MAXLEN);
	bufs_close(&pair, &b);
	ft_pair_close(&pair);
	return ft_done();
}
