/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_rdm: tests conditional writes among many reliable datagram
 * endpoints: connections that both sides begin at once, and endpoints that open
 * and close. cw_peers.c tests unknown peers, and peers that are gone.
 */
#include "cw/cw_nodes.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- both sides begin at once -------------------------------------------- */

static void some_polls(void)
{
	unsigned i;

	for (i = ft_rand() % 40; i; i--)
		ft_poll(&node[ft_rand() % 2].ep);
}

/*
 * Both sides begin a connection at the same time, when the other side may have
 * seen any part of the first attempt
 */
static void simultaneous(void)
{
	/* ofi_rxm's endpoints take longer to open */
	unsigned i, k,
		n = ft_iters(ft_core("verbs") ? 20 :
			     ft_rxm()	      ? 60 :
						200);

	for (i = 0; i < n; i++) {
		ft_stage("both begin, round %u", i);
		open_all(2);
		for (k = 0; k < 2; k++) {
			write_to((i + k) % 2, (i + k + 1) % 2, k);
			if (i % 3)
				some_polls();
		}
		for (k = 0; k < 2; k++)
			expose((i + k + 1) % 2, (i + k) % 2, k);
		for (k = 0; k < 2; k++) {
			wait_err(k, FT_TX, out + (k ^ i % 2) * LEN, 0);
			wait_err(k, FT_RX, in + (k ^ i % 2 ^ 1) * LEN, 0);
		}
		check_none(0);
		check_none(1);
		close_all();
	}
}

static pthread_barrier_t barrier;
static atomic_int busy;

/*
 * Each endpoint uses all peers in a separate thread; all threads run at once
 */
static void *thread_main(void *arg)
{
	struct node *me = arg;
	int self = me - node, i;
	unsigned tx = EPS - 1, rx = EPS - 1;
	uint64_t end = ft_deadline();
	struct ft_comp comp;

	pthread_barrier_wait(&barrier);
	for (i = 0; i < EPS; i++) {
		if (i == self)
			continue;
		write_to(self, i, self * EPS + i);
		expose(self, i, i * EPS + self);
	}
	while (tx || rx) {
		ft_poll(&me->ep);
		while (ft_take(&me->ep, FT_TX, &comp)) {
			FT_CHECK(!comp.err, "write: error %d", comp.err);
			tx--;
		}
		while (ft_take(&me->ep, FT_RX, &comp)) {
			FT_CHECK(!comp.err, "tag: error %d", comp.err);
			rx--;
		}
		FT_CHECK(ft_limit_us() < end, "endpoint %d: %u writes, %u tags",
			 self, tx, rx);
	}
	/* other endpoints may still need this endpoint's progress */
	atomic_fetch_sub(&busy, 1);
	while (atomic_load(&busy))
		ft_poll(&me->ep);
	return NULL;
}

static void all_to_all(bool threads)
{
	pthread_t thread[EPS];
	struct ft_comp comp;
	int i, k;

	ft_stage("all to all%s", threads ? ", in threads" : "");
	memset(in, 0, EPS * EPS * LEN);
	for (i = 0; i < EPS * EPS; i++)
		ft_fill(out + i * LEN, LEN, i);
	open_all(EPS);
	if (threads) {
		pthread_barrier_init(&barrier, NULL, EPS);
		atomic_store(&busy, EPS);
		for (i = 0; i < EPS; i++)
			FT_CHECK(!pthread_create(&thread[i], NULL, thread_main,
						 &node[i]),
				 "thread");
		for (i = 0; i < EPS; i++)
			pthread_join(thread[i], NULL);
		pthread_barrier_destroy(&barrier);
	}
	for (i = 0; !threads && i < EPS * EPS; i++) {
		if (i % EPS == i / EPS)
			continue;
		write_to(i / EPS, i % EPS, i);
		if (i % 3)
			poll_all();
		expose(i % EPS, i / EPS, i);
	}
	for (i = 0; !threads && i < EPS; i++) {
		for (k = 0; k < EPS - 1; k++) {
			wait_comp(i, FT_TX, &comp);
			FT_CHECK(!comp.err, "write: error %d", comp.err);
			wait_comp(i, FT_RX, &comp);
			FT_CHECK(!comp.err, "tag: error %d", comp.err);
		}
	}
	for (i = 0; i < EPS * EPS; i++) {
		if (i % EPS != i / EPS)
			FT_CHECK_BUF(in + i * LEN, LEN, i, "all to all");
	}
	for (i = 0; i < EPS; i++)
		check_none(i);
	close_all();
}

/*
 * Of two operations under one context the older one is cancelled, whatever
 * their peers.
 */
static void cancels(void)
{
	ft_stage("cancel");
	open_all(3);
	FT_CALL(fi_cwrite(node[0].ep.cw, out, 1, NULL, node[0].peer[1], 1,
			  out));
	FT_CALL(fi_cwtag(node[0].ep.cw, in, 1, NULL, node[0].peer[2], 1, out));
	FT_CALL(fi_cwrite(node[0].ep.cw, out, 1, NULL, node[0].peer[2], 1,
			  out));
	FT_CALL(fi_cancel(&node[0].ep.ep->fid, out));
	wait_err(0, FT_TX, out, FI_ECANCELED);
	FT_CALL(fi_cancel(&node[0].ep.ep->fid, out));
	wait_err(0, FT_RX, out, FI_ECANCELED);
	FT_CALL(fi_cancel(&node[0].ep.ep->fid, out));
	wait_err(0, FT_TX, out, FI_ECANCELED);
	fi_cancel(&node[0].ep.ep->fid, out);
	check_none(0);
	close_all();
}

/* ---- many times ---------------------------------------------------------- */

/* us; on a busy machine ofi_rxm's endpoints take long to open */
#define REOPENS_US 30000000

static void reopens(void)
{
	const uint64_t end = ft_now_us() + REOPENS_US;
	unsigned i, n, fds = 0;
	size_t rss = 0;

	n = ft_iters(ft_core("verbs") ? 30 : ft_rxm() ? 60 : 150);
	for (i = 0; i < n && (i <= n / 3 || ft_now_us() < end); i++) {
		ft_stage("open and close, round %u", i);
		open_all(2);
		transfer(0, 1, 1);
		write_to(0, 1, 2);
		expose(1, 0, 3);
		if (i % 2)
			poll_all();
		ft_ep_close(&node[i % 2].ep);
		if (i % 2)
			wait_err(0, FT_TX, out + 2 * LEN, FI_ECONNABORTED);
		else
			wait_err(1, FT_RX, in + 3 * LEN, FI_ECONNABORTED);
		close_all();
		if (i == n / 3) {
			ft_wait_quiet();
			fds = ft_fd_count();
			rss = ft_rss();
		}
	}
	ft_wait_fds(NULL, fds);
	FT_CHECK(!rss || ft_rss() < rss + (4 << 20), "%zu KiB more",
		 (ft_rss() - rss) / 1024);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (!ft_rdm())
		ft_skip("of reliable datagrams");
	attr = FT_ATTR;
	attr.cw = true;
	out = ft_map(NULL, 1024 * LEN);
	in = ft_map(NULL, 1024 * LEN);
	if (getenv(VICTIM))
		victim(getenv(VICTIM));
	memset(&pair, 0, sizeof(pair));
	pair.attr = attr;
	ft_rdm_open(&pair, &pair.dom[0]);
	ft_rdm_open(&pair, &pair.dom[1]);
	simultaneous();
	all_to_all(false);
	all_to_all(true);
	cancels();
	peers(argv);
	reopens();
	ft_check_idle(&pair.dom[0], "the end");
	ft_check_idle(&pair.dom[1], "the end");
	ft_pair_close(&pair);
	ft_unmap(out, 1024 * LEN);
	ft_unmap(in, 1024 * LEN);
	return ft_done();
}
