/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads completions from the provider's queues into lists, from which a test
 * takes the completions that the test waits for. An endpoint's lists belong to
 * the thread that drives the endpoint.
 */
#include "ft_mrrc.h"

#include <stdatomic.h>

#define BATCH 8

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

static void append(struct ft_ep *ep, enum ft_dir dir,
		   const struct ft_comp *comp)
{
	struct ft_comp *copy = malloc(sizeof(*copy));

	FT_CHECK(copy, "malloc");
	*copy = *comp;
	copy->next = NULL;
	*ep->tail[dir] = copy;
	ep->tail[dir] = &copy->next;
}

/*
 * Appends an entry; each CQ format begins with the fields of the previous
 * format.
 */
static void append_entry(struct ft_ep *ep, enum ft_dir dir, const void *entry,
			 fi_addr_t src)
{
	struct fi_cq_tagged_entry e = { 0 };
	struct ft_comp comp = { 0 };

	memcpy(&e, entry, entry_size(ep->format));
	comp.ctx = e.op_context;
	comp.flags = e.flags;
	comp.len = e.len;
	comp.data = e.data;
	comp.tag = e.tag;
	comp.src = src;
	append(ep, dir, &comp);
}

static void read_error(struct ft_ep *ep, enum ft_dir dir)
{
	struct fi_cq_err_entry err = { 0 };
	struct ft_comp comp = { 0 };
	ssize_t ret;

	ret = fi_cq_readerr(ep->cq[dir], &err, 0);
	if (ret == -FI_EAGAIN)
		return;
	FT_CHECK(ret == 1, "fi_cq_readerr after -FI_EAVAIL: %zd", ret);
	FT_CHECK(err.err, "an error entry without error");
	comp.ctx = err.op_context;
	comp.flags = err.flags;
	comp.len = err.len;
	comp.data = err.data;
	comp.tag = err.tag;
	comp.err = err.err;
	append(ep, dir, &comp);
}

static void poll_cq(struct ft_ep *ep, enum ft_dir dir)
{
	char buf[BATCH * sizeof(struct fi_cq_tagged_entry)];
	size_t size = entry_size(ep->format);
	fi_addr_t src[BATCH];
	ssize_t i, ret;

	ret = ep->source ? fi_cq_readfrom(ep->cq[dir], buf, BATCH, src) :
			   fi_cq_read(ep->cq[dir], buf, BATCH);
	if (ret == -FI_EAGAIN)
		return;
	if (ret == -FI_EAVAIL) {
		read_error(ep, dir);
		return;
	}
	FT_CHECK(ret > 0 && ret <= BATCH, "fi_cq_read: %zd", ret);
	for (i = 0; i < ret; i++)
		append_entry(ep, dir, buf + (size_t) i * size,
			     ep->source ? src[i] : FI_ADDR_NOTAVAIL);
}

void ft_poll(struct ft_ep *ep)
{
	int dir;

	for (dir = FT_TX; dir < FT_DIRS; dir++) {
		if (ep->quiet[dir])
			continue;
		if (ep->cq[dir])
			poll_cq(ep, dir);
		if (ep->cntr[dir])
			fi_cntr_read(ep->cntr[dir]);
	}
}

void ft_progress(struct ft_ep *ep)
{
	ft_poll(ep);
	if (ep->peer && ep->peer->ep)
		ft_poll(ep->peer);
}

bool ft_take(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp)
{
	struct ft_comp *first = ep->head[dir];

	if (!first)
		return false;
	*comp = *first;
	ep->head[dir] = first->next;
	if (!ep->head[dir])
		ep->tail[dir] = &ep->head[dir];
	free(first);
	return true;
}

void ft_wait_any(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp)
{
	uint64_t end = ft_deadline();

	while (!ft_take(ep, dir, comp)) {
		ft_progress(ep);
		FT_CHECK(ft_limit_us() < end, "no %s completion",
			 dir == FT_TX ? "transmit" : "receive");
	}
}

void ft_wait(struct ft_ep *ep, enum ft_dir dir, struct ft_comp *comp)
{
	ft_wait_any(ep, dir, comp);
	FT_CHECK(!comp->err, "%s completion of %p failed: %d (%s)",
		 dir == FT_TX ? "transmit" : "receive", comp->ctx, comp->err,
		 fi_strerror(comp->err));
}

void ft_wait_ctx(struct ft_ep *ep, enum ft_dir dir, void *ctx, uint64_t flags)
{
	struct ft_comp comp;

	ft_wait(ep, dir, &comp);
	FT_CHECK(comp.ctx == ctx, "completion with context %p, not %p",
		 comp.ctx, ctx);
	if (ep->format != FI_CQ_FORMAT_CONTEXT)
		FT_CHECK((comp.flags & flags) == flags,
			 "completion with flags 0x%" PRIx64 ", not 0x%" PRIx64,
			 comp.flags, flags);
}

void ft_expect_none(struct ft_ep *ep, int msec)
{
	uint64_t end = ft_now_us() + (uint64_t) msec * 1000;
	struct ft_comp comp;
	int dir;

	do {
		ft_progress(ep);
		for (dir = FT_TX; dir < FT_DIRS; dir++)
			FT_CHECK(!ft_take(ep, dir, &comp),
				 "a completion that was not asked for: context "
				 "%p flags 0x%" PRIx64 " error %d",
				 comp.ctx, comp.flags, comp.err);
	} while (ft_now_us() < end);
}

void ft_wait_buf(struct ft_ep *ep, const void *buf, size_t len, uint64_t seed)
{
	uint64_t end = ft_deadline();

	while (ft_differs(buf, len, seed) >= 0) {
		ft_progress(ep);
		/* the compiler cannot see the peer's writes */
		atomic_signal_fence(memory_order_seq_cst);
		if (ft_limit_us() >= end)
			FT_CHECK_BUF(buf, len, seed, "never written");
	}
}

void ft_wait_cntr(struct ft_ep *ep, enum ft_dir dir, uint64_t value)
{
	uint64_t end = ft_deadline();
	uint64_t now;

	while ((now = fi_cntr_read(ep->cntr[dir])) < value) {
		ft_progress(ep);
		FT_CHECK(!fi_cntr_readerr(ep->cntr[dir]),
			 "the counter counted %" PRIu64 " errors",
			 fi_cntr_readerr(ep->cntr[dir]));
		FT_CHECK(ft_limit_us() < end,
			 "counter stays at %" PRIu64 ", not %" PRIu64, now,
			 value);
	}
	FT_CHECK(now == value, "counter %" PRIu64 ", not %" PRIu64, now, value);
}

void ft_wait_fds(struct ft_ep *ep, unsigned max)
{
	const uint64_t end = ft_deadline();
	unsigned cnt;

	while ((cnt = ft_fd_count()) > max) {
		if (ep)
			ft_progress(ep);
		FT_CHECK(ft_limit_us() < end, "%u descriptors, then %u", max,
			 cnt);
	}
}

size_t ft_iov_limit(struct ft_ep *ep)
{
	struct fi_info *info = ep->dom->info;
	size_t limit = info->tx_attr->iov_limit;

	if (info->rx_attr->iov_limit < limit)
		limit = info->rx_attr->iov_limit;
	return limit < FT_IOV_MAX ? limit : FT_IOV_MAX;
}

void ft_send_recv(struct ft_ep *from, const void *sbuf, void *rbuf, size_t len)
{
	struct ft_ep *to = from->peer;
	struct fid_ep *rx = to->srx ? to->srx : to->ep;
	void *sdesc = ft_desc(from->dom, sbuf, len);
	void *rdesc = ft_desc(to->dom, rbuf, len);
	struct ft_comp comp;

	FT_POST(from, fi_recv(rx, rbuf, len, rdesc, FI_ADDR_UNSPEC, rbuf));
	FT_POST(from,
		fi_send(from->ep, sbuf, len, sdesc, from->to, (void *) sbuf));
	ft_wait(to, FT_RX, &comp);
	FT_CHECK(comp.ctx == rbuf, "receive's context %p, not %p", comp.ctx,
		 rbuf);
	if (to->format != FI_CQ_FORMAT_CONTEXT)
		FT_CHECK(comp.len == len, "received %zu, not %zu", comp.len,
			 len);
	ft_wait(from, FT_TX, &comp);
	FT_CHECK(comp.ctx == sbuf, "send's context %p, not %p", comp.ctx, sbuf);
}

void ft_verify_pair(struct ft_ep *from, void *sbuf, void *rbuf, size_t len,
		    uint64_t seed)
{
	ft_fill(sbuf, len, seed);
	memset(rbuf, 0x5a, len);
	ft_send_recv(from, sbuf, rbuf, len);
	FT_CHECK_BUF(rbuf, len, seed, "received");
}
