/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_shared_buf: tests many operations at once on one buffer and on
 * overlapping windows of this buffer; from one thread, and from two threads
 * with an endpoint each. Once the whole buffer was used, every window is a hit;
 * until then, the first use of a part of a page makes later uses of that page
 * hits.
 */
#include "ft_mrrc.h"

#include <pthread.h>

#define LEN   (64 * FT_PAGE)
#define BATCH 48

/*
 * Maximum bytes of a message that ofi_rxm copies. The provider looks up the
 * buffers of longer messages; copied messages may overtake longer messages.
 */
static size_t copied;

struct lane {
	pthread_t thread;
	struct ft_dom dom[2]; /* raw mode: own lists of registrations */
	struct ft_ep s, c;
	const char *out; /* shared buffer, filled with seed 1 */
	char *in;	 /* own */
	unsigned rounds;
};

/*
 * Sends BATCH messages at once from windows of one buffer, and compares them.
 */
static void batch(struct ft_ep *from, const char *out, char *in)
{
	size_t off[BATCH], len[BATCH], pos = 0;
	struct ft_ep *to = from->peer;
	void *sd = ft_desc(from->dom, out, LEN);
	void *rd = ft_desc(to->dom, in, LEN);
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		len[i] = copied + 1 + ft_rand() % (LEN / BATCH - copied);
		off[i] = ft_rand() % (LEN - len[i]);
		FT_POST(from, fi_recv(to->ep, in + pos, len[i], rd, FT_ANY,
				      (void *) (uintptr_t) i));
		pos += len[i];
	}
	for (i = 0; i < BATCH; i++)
		FT_POST(from, fi_send(from->ep, out + off[i], len[i], sd,
				      from->to, (void *) (uintptr_t) i));
	for (i = 0, pos = 0; i < BATCH; i++) {
		ft_wait_ctx(to, FT_RX, (void *) (uintptr_t) i, FI_RECV);
		ft_wait_ctx(from, FT_TX, (void *) (uintptr_t) i, FI_SEND);
		FT_CHECK(!memcmp(in + pos, out + off[i], len[i]),
			 "window %u: wrong data", i);
		pos += len[i];
	}
	ft_release(from->dom);
	ft_release(to->dom);
}

/* Sends the same window many times at once. */
static void same(struct ft_ep *from, const char *out, char *in)
{
	void *sd = ft_desc(from->dom, out, LEN);
	void *rd = ft_desc(from->peer->dom, in, LEN);
	size_t len = LEN / BATCH;
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		FT_POST(from, fi_recv(from->peer->ep, in + i * len, len, rd,
				      FT_ANY, NULL));
		FT_POST(from, fi_send(from->ep, out, len, sd, from->to, NULL));
	}
	for (i = 0; i < BATCH; i++) {
		ft_wait_ctx(from->peer, FT_RX, NULL, FI_RECV);
		ft_wait_ctx(from, FT_TX, NULL, FI_SEND);
		FT_CHECK(!memcmp(in + i * len, out, len), "copy %u", i);
	}
	ft_release(from->dom);
	ft_release(from->peer->dom);
}

static void one_thread(struct ft_pair *pair, char *out, char *in)
{
	struct fi_mrrc_stats before[2], after[2];
	unsigned i, d;

	ft_stage("one thread");
	ft_verify_pair(&pair->c, out, in, LEN, 1);
	ft_release_pair(pair);
	for (d = 0; d < 2; d++)
		ft_stats(&pair->dom[d], &before[d]);
	for (i = 0; i < ft_iters(50); i++) {
		batch(&pair->c, out, in);
		same(&pair->c, out, in);
	}
	for (d = 0; d < 2 && ft_caches(&pair->dom[d]); d++) {
		ft_stats(&pair->dom[d], &after[d]);
		FT_CHECK(after[d].misses == before[d].misses &&
				 after[d].registrations ==
					 before[d].registrations,
			 "%" PRIu64 " misses, %" PRIu64 " registrations for "
			 "windows of a registered buffer",
			 after[d].misses - before[d].misses,
			 after[d].registrations - before[d].registrations);
		/* small messages may be injected, without a lookup */
		FT_CHECK(after[d].hits - before[d].hits ==
					 after[d].lookups - before[d].lookups &&
				 after[d].hits - before[d].hits >=
					 1ULL * BATCH * ft_iters(50),
			 "%" PRIu64 " hits", after[d].hits - before[d].hits);
	}
}

static void *lane_main(void *arg)
{
	struct lane *lane = arg;
	unsigned i;

	for (i = 0; i < lane->rounds; i++) {
		batch(&lane->c, lane->out, lane->in);
		same(&lane->c, lane->out, lane->in);
	}
	return NULL;
}

static void two_threads(struct ft_pair *pair, char *out, char *in)
{
	struct fi_mrrc_stats before, after;
	struct lane lanes[2] = { 0 };
	unsigned i;

	ft_stage("two threads");
	ft_fill(out, LEN, 1);
	ft_stats(&pair->dom[1], &before);
	for (i = 0; i < 2; i++) {
		ft_connect(pair, &lanes[i].s, &lanes[i].c);
		lanes[i].dom[0] = pair->dom[0];
		lanes[i].dom[1] = pair->dom[1];
		lanes[i].s.dom = &lanes[i].dom[0];
		lanes[i].c.dom = &lanes[i].dom[1];
		lanes[i].out = out;
		lanes[i].in = in + i * LEN;
		lanes[i].rounds = ft_iters(50);
	}
	for (i = 0; i < 2; i++)
		FT_CHECK(!pthread_create(&lanes[i].thread, NULL, lane_main,
					 &lanes[i]),
			 "pthread_create");
	for (i = 0; i < 2; i++) {
		pthread_join(lanes[i].thread, NULL);
		ft_ep_close(&lanes[i].s);
		ft_ep_close(&lanes[i].c);
	}
	if (!ft_caches(&pair->dom[1]))
		return;
	ft_stats(&pair->dom[1], &after);
	FT_CHECK(after.hits - before.hits >=
			 (after.lookups - before.lookups) * 95 / 100,
		 "%" PRIu64 " hits of %" PRIu64 " lookups",
		 after.hits - before.hits, after.lookups - before.lookups);
}

/*
 * Sends windows that overlap each other, so that a window overlaps cached
 * regions in part.
 */
static void growing(struct ft_pair *pair, char *out, char *in)
{
	size_t off, len;
	unsigned i;

	for (i = 0; i < ft_iters(200); i++) {
		ft_stage("growing window %u", i);
		off = ft_rand() % LEN;
		len = 1 + ft_rand() % (LEN - off);
		ft_verify_pair(&pair->c, out + off, in + off, len, i);
		ft_release_pair(pair);
	}
}

/*
 * Uses every other word of four bytes: each page is registered once, and all
 * other uses are hits.
 */
static void sweep(struct ft_pair *pair, char *out, char *in)
{
	unsigned pages = ft_core("verbs") ? 2 : 16, i;
	uint32_t *from = (uint32_t *) out, *to = (uint32_t *) in;
	const unsigned words = pages * FT_PAGE / sizeof(*to);
	struct fid_mr *mr = ft_reg(&pair->dom[0], out, LEN, FI_REMOTE_READ);
	struct fi_mrrc_stats before, after;
	void *d;

	ft_stage("a sweep of tiny reads");
	ft_fill(out, LEN, 5);
	memset(in, 0, LEN);
	d = ft_desc(&pair->dom[1], in, LEN);
	ft_stats(&pair->dom[1], &before);
	for (i = 0; i < words; i += 2) {
		FT_POST(&pair->c,
			fi_read(pair->c.ep, to + i, sizeof(*to), d, pair->c.to,
				ft_raddr(&pair->dom[0], out) + i * sizeof(*to),
				fi_mr_key(mr), to + i));
		ft_wait_ctx(&pair->c, FT_TX, to + i, FI_READ);
	}
	for (i = 0; i < words; i++)
		FT_CHECK(to[i] == (i % 2 ? 0 : from[i]), "word %u", i);
	FT_CALL(fi_close(&mr->fid));
	ft_release(&pair->dom[1]);
	if (!ft_caches(&pair->dom[1]))
		return;
	ft_stats(&pair->dom[1], &after);
	FT_CHECK(after.registrations - before.registrations <= pages,
		 "%" PRIu64 " registrations of %u pages",
		 after.registrations - before.registrations, pages);
	FT_CHECK(after.lookups - before.lookups == words / 2 &&
			 (after.hits - before.hits) * 100 > words / 2 * 99,
		 "%" PRIu64 " hits of %u reads", after.hits - before.hits,
		 words / 2);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	char *out, *in;

	ft_init(argc, argv);
	copied = ft_rxm_copies_little();
	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, 2 * LEN);
	one_thread(&pair, out, in);
	two_threads(&pair, out, in);
	ft_unmap(out, LEN);
	ft_unmap(in, 2 * LEN);
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, 2 * LEN);
	growing(&pair, out, in);
	ft_unmap(out, LEN);
	ft_unmap(in, 2 * LEN);
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	sweep(&pair, out, in);
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	ft_pair_close(&pair);
	return ft_done();
}
