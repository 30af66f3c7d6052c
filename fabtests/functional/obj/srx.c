/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_srx: tests that receives posted to a shared context serve several
 * connections; receives that are still posted when the context closes end
 * without a completion. With FI_SELECTIVE_COMPLETION every receive ends,
 * whether it has a completion or not.
 */
#include "ft_mrrc.h"

#include <pthread.h>

#define CONNS 3
#define SLOTS 24
#define LEN   5000

static struct ft_pair pair;
static struct ft_ep s[CONNS], c[CONNS];
static char *in, *out;

static void post(uintptr_t slot)
{
	char *p = in + slot * LEN;

	memset(p, 0, LEN);
	FT_POST(&c[0], fi_recv(pair.srx, p, LEN, ft_desc(&pair.dom[0], p, LEN),
			       FT_ANY, (void *) slot));
}

/* A message of any connection takes the oldest receive. */
static void rounds(void)
{
	unsigned i, k, n = ft_iters(2000);
	struct ft_comp comp;
	uintptr_t slot;

	for (slot = 0; slot < SLOTS; slot++)
		post(slot);
	for (i = 0; i < n; i++) {
		ft_stage("message %u", i);
		k = ft_rand() % CONNS;
		ft_fill(out, LEN, i);
		FT_POST(&c[k], fi_send(c[k].ep, out, LEN,
				       ft_desc(&pair.dom[1], out, LEN), c[k].to,
				       NULL));
		ft_wait_ctx(&c[k], FT_TX, NULL, FI_SEND);
		ft_wait(&s[0], FT_RX, &comp);
		slot = (uintptr_t) comp.ctx;
		FT_CHECK(slot < SLOTS, "context %p", comp.ctx);
		FT_CHECK(comp.len == LEN, "%zu bytes", comp.len);
		FT_CHECK_BUF(in + slot * LEN, LEN, i, "from a shared receive");
		post(slot);
		if (i % 200 == 0)
			ft_release(&pair.dom[1]);
	}
}

static void cancel(void)
{
	struct ft_comp comp;
	ssize_t ret;

	ft_stage("cancel");
	FT_POST(&c[0],
		fi_recv(pair.srx, in, LEN, ft_desc(&pair.dom[0], in, LEN),
			FT_ANY, (void *) 12345));
	ret = fi_cancel(&pair.srx->fid, (void *) 12345);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP) {
		printf("note: fi_cancel on a shared context: %s\n",
		       fi_strerror((int) -ret));
		return;
	}
	FT_CHECK(!ret, "fi_cancel: %zd", ret);
	ft_wait_any(&s[0], FT_RX, &comp);
	FT_CHECK(comp.err == FI_ECANCELED && comp.ctx == (void *) 12345,
		 "error %d, context %p", comp.err, comp.ctx);
}

static void post_flags(uintptr_t slot, uint64_t flags)
{
	char *p = in + slot * LEN;
	void *desc = ft_desc(&pair.dom[0], p, LEN);
	struct iovec iov = { p, LEN };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.context = (void *) slot,
	};

	memset(p, 0, LEN);
	if (flags)
		FT_POST(&pair.c, fi_recvmsg(pair.srx, &msg, flags));
	else
		FT_POST(&pair.c,
			fi_recv(pair.srx, p, LEN, desc, FT_ANY, (void *) slot));
}

/*
 * Takes completions of receives with FI_SELECTIVE_COMPLETION. tcp has no
 * completion at all for silent receives, verbs has a completion for each: the
 * provider reports the requested completions, and more only where the core
 * does.
 */
static unsigned take_flagged(bool *seen, const bool *flagged)
{
	struct ft_comp comp;
	unsigned asked = 0;
	uintptr_t slot;

	while (ft_take(&pair.s, FT_RX, &comp)) {
		slot = (uintptr_t) comp.ctx;
		FT_CHECK(!comp.err, "error %d", comp.err);
		FT_CHECK(slot < SLOTS && !seen[slot], "context %p %s", comp.ctx,
			 slot < SLOTS ? "twice" : "is of no operation");
		FT_CHECK(flagged[slot] || ft_core("verbs"),
			 "receive %p asked for no completion", comp.ctx);
		FT_CHECK(comp.len == LEN, "%zu bytes", comp.len);
		seen[slot] = true;
		asked += flagged[slot];
	}
	return asked;
}

/* Waits until every record has ended and no completion is outstanding. */
static void wait_idle(void)
{
	uint64_t end = ft_deadline();
	struct fi_mrrc_stats st;

	do {
		ft_progress(&pair.c);
	} while (ft_stats(&pair.dom[0], &st) && st.posts != st.completions &&
		 ft_limit_us() < end);
	ft_check_idle(&pair.dom[0], "selective receives done");
}

static void selective_round(unsigned round)
{
	bool flagged[SLOTS], seen[SLOTS] = { false };
	uint64_t end = ft_deadline();
	unsigned asked = 0, got = 0;
	uintptr_t i;

	ft_stage("selective completions, round %u", round);
	for (i = 0; i < SLOTS; i++) {
		flagged[i] = round && ft_rand() % 3 == 0;
		asked += flagged[i];
		post_flags(i, flagged[i] ? FI_COMPLETION : 0);
	}
	for (i = 0; i < SLOTS; i++) {
		ft_fill(out, LEN, i);
		FT_POST(&pair.c, fi_send(pair.c.ep, out, LEN,
					 ft_desc(&pair.dom[1], out, LEN),
					 pair.c.to, NULL));
		ft_wait_ctx(&pair.c, FT_TX, NULL, FI_SEND);
		ft_wait_buf(&pair.c, in + i * LEN, LEN, i);
		got += take_flagged(seen, flagged);
	}
	while (got < asked && !ft_opts.raw) {
		ft_progress(&pair.c);
		got += take_flagged(seen, flagged);
		FT_CHECK(ft_limit_us() < end, "%u completions of %u", got,
			 asked);
	}
	wait_idle();
	got += take_flagged(seen, flagged);
	ft_log("%u completions of %u", got, asked);
	ft_release_pair(&pair);
}

static void *sleep_in_sread(void *arg)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	ret = fi_cq_sread(pair.srx_cq, &entry, 1, NULL, -1);
	FT_CHECK(ret <= 0, "%zd completions", ret);
	return arg;
}

/*
 * Closes shared contexts while a thread, which may have read completions,
 * sleeps on the contexts' queue. The contexts' receives are released when the
 * thread wakes up, or is cancelled, without another close.
 */
static void asleep(bool cancel_it)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct fid_ep *srx;
	pthread_t thread;
	uintptr_t i, k;

	if (ft_opts.raw)
		return;
	ft_stage("a thread asleep");
	attr.caps = FI_MSG;
	attr.srx = true;
	attr.wait_obj = FI_WAIT_UNSPEC;
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, SLOTS * LEN);
	FT_CALL(pthread_create(&thread, NULL, sleep_in_sread, NULL));
	ft_wait_quiet();
	for (i = 0; i < 3; i++) {
		FT_CALL(fi_srx_context(pair.dom[0].domain,
				       pair.dom[0].info->rx_attr, &srx, NULL));
		for (k = 0; k < SLOTS; k++)
			FT_CALL(fi_recv(srx, in + k * LEN, LEN, NULL, FT_ANY,
					(void *) k));
		FT_CALL(fi_close(&srx->fid));
	}
	if (cancel_it)
		FT_CALL(pthread_cancel(thread));
	else
		FT_CALL(fi_cq_signal(pair.srx_cq));
	FT_CALL(pthread_join(thread, NULL));
	ft_stats(&pair.dom[0], &st);
	FT_CHECK(!st.held_regions, "%" PRIu64 " regions are still held",
		 st.held_regions);
	ft_unmap(in, SLOTS * LEN);
	ft_pair_close(&pair);
}

static int enable(uint64_t flags)
{
	struct fid_ep *ep;
	int ret;

	FT_CALL(fi_endpoint(pair.dom[0].domain, pair.dom[0].info, &ep, NULL));
	FT_CALL(fi_ep_bind(ep, &pair.srx->fid, 0));
	FT_CALL(fi_ep_bind(ep, &pair.peq->fid, 0));
	FT_CALL(fi_ep_bind(ep, &pair.srx_cq->fid, FI_TRANSMIT));
	FT_CALL(fi_ep_bind(ep, &pair.srx_cq->fid, FI_RECV | flags));
	ret = fi_enable(ep);
	FT_CALL(fi_close(&ep->fid));
	return ret;
}

/*
 * A completion does not tell which endpoint received the message: endpoints
 * with and without selective completions cannot share a queue.
 */
static void unlike(void)
{
	int ret;

	if (ft_opts.raw || ft_rdm() || ft_core("verbs"))
		return;
	ft_stage("endpoints that differ");
	FT_CALL(enable(FI_SELECTIVE_COMPLETION));
	ret = enable(0);
	FT_CHECK(ret == -FI_EINVAL, "fi_enable: %d", ret);
	ft_ep_close(&pair.c);
	ft_ep_close(&pair.s);
	FT_CALL(enable(0));
	FT_CALL(enable(FI_SELECTIVE_COMPLETION));
}

/* Posts receives, of which some ask for a completion. */
static void selective(void)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i;

	attr.caps = FI_MSG;
	attr.srx = true;
	attr.rx_selective = true;
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, SLOTS * LEN);
	out = ft_map(NULL, LEN);
	for (i = 0; i < 20; i++)
		selective_round(i);
	unlike();
	ft_unmap(in, SLOTS * LEN);
	ft_unmap(out, LEN);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	int i;

	ft_init(argc, argv);
	attr.caps = FI_MSG;
	attr.srx = true;
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, SLOTS * LEN);
	out = ft_map(NULL, LEN);
	s[0] = pair.s;
	c[0] = pair.c;
	for (i = 0; i < CONNS; i++) {
		if (i)
			ft_connect(&pair, &s[i], &c[i]);
		/*
		 * all connections share a queue, which only the first endpoint
		 * reads
		 */
		s[i].tail[FT_RX] = &s[i].head[FT_RX];
		s[i].tail[FT_TX] = &s[i].head[FT_TX];
		c[i].tail[FT_RX] = &c[i].head[FT_RX];
		c[i].tail[FT_TX] = &c[i].head[FT_TX];
		c[i].peer = &s[0];
		s[i].peer = &c[i];
		s[i].quiet[FT_RX] = i != 0;
	}
	memset(&pair.s, 0, sizeof(pair.s));
	memset(&pair.c, 0, sizeof(pair.c));
	rounds();
	cancel();
	for (i = 0; i < CONNS; i++) {
		ft_ep_close(&c[i]);
		ft_ep_close(&s[i]);
	}
	if (ft_stats(&pair.dom[0], &st))
		FT_CHECK(st.posts > SLOTS, "%" PRIu64 " operations", st.posts);
	FT_CALL(fi_close(&pair.srx->fid));
	pair.srx = NULL;
	ft_check_idle(&pair.dom[0], "shared context closed");
	ft_unmap(in, SLOTS * LEN);
	ft_unmap(out, LEN);
	ft_pair_close(&pair);
	selective();
	asleep(false);
	asleep(true);
	return ft_done();
}
