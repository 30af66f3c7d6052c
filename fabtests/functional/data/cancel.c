/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cancel: tests that a cancelled receive comes back once, with
 * FI_ECANCELED and the application's context, and that unknown contexts do no
 * harm; also tests cancelling a receive while it completes. Of several receives
 * under one context the oldest is cancelled.
 */
#include "ft_mrrc.h"

#define COUNT 32
#define LEN   2000
#define LONG  100000	   /* more than ofi_rxm copies */
#define BIG   (64UL << 20) /* twice as much as a connection buffers, or more */

static struct ft_pair pair;
static char *in, *out;
static size_t len = LEN; /* length of messages */

static void post_recv(uintptr_t ctx, size_t slot)
{
	char *p = in + slot * LEN;

	FT_POST(&pair.s,
		fi_recv(pair.s.ep, p, len, ft_desc(&pair.dom[0], p, len),
			FT_ANY, (void *) ctx));
}

static void send_one(uint64_t seed)
{
	ft_fill(out, len, seed);
	FT_POST(&pair.c,
		fi_send(pair.c.ep, out, len, ft_desc(&pair.dom[1], out, len),
			pair.c.to, out));
}

static void skip_unless_supported(void)
{
	struct ft_comp comp;
	ssize_t ret;

	post_recv(1, 0);
	ret = fi_cancel(&pair.s.ep->fid, (void *) 1);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
		ft_skip("fi_cancel: %s", fi_strerror((int) -ret));
	FT_CHECK(!ret, "fi_cancel: %zd", ret);
	ft_wait_any(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.err == FI_ECANCELED && comp.ctx == (void *) 1,
		 "error %d, context %p", comp.err, comp.ctx);
}

/* Cancels all receives in a random order; each receive comes back once. */
static void all(void)
{
	bool seen[COUNT] = { false };
	struct ft_comp comp;
	uintptr_t i, k;

	ft_stage("all receives");
	for (i = 0; i < COUNT; i++)
		post_recv(i, i); /* one of the contexts is NULL */
	for (i = 0; i < COUNT; i++) {
		k = (i * 7 + 3) % COUNT;
		FT_CALL(fi_cancel(&pair.s.ep->fid, (void *) k));
	}
	for (i = 0; i < COUNT; i++) {
		ft_wait_any(&pair.s, FT_RX, &comp);
		k = (uintptr_t) comp.ctx;
		FT_CHECK(comp.err == FI_ECANCELED, "error %d", comp.err);
		FT_CHECK(comp.flags & FI_RECV, "flags 0x%" PRIx64, comp.flags);
		FT_CHECK(k < COUNT && !seen[k], "context %p %s", comp.ctx,
			 k < COUNT ? "twice" : "is of no operation");
		seen[k] = true;
	}
	ft_expect_none(&pair.s, 10);
	ft_release(&pair.dom[0]);
	ft_check_idle(&pair.dom[0], "all cancelled");
}

/* Receives that were not cancelled get the messages, in order. */
static void every_other(void)
{
	struct ft_comp comp;
	uintptr_t i;

	ft_stage("every other receive");
	for (i = 0; i < COUNT; i++)
		post_recv(100 + i, i);
	for (i = 0; i < COUNT; i += 2) {
		FT_CALL(fi_cancel(&pair.s.ep->fid, (void *) (100 + i)));
		ft_wait_any(&pair.s, FT_RX, &comp);
		FT_CHECK(comp.err == FI_ECANCELED &&
				 comp.ctx == (void *) (100 + i),
			 "error %d, context %p", comp.err, comp.ctx);
	}
	for (i = 1; i < COUNT; i += 2) {
		send_one(i);
		ft_wait_ctx(&pair.s, FT_RX, (void *) (100 + i), FI_RECV);
		ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
		FT_CHECK_BUF(in + i * LEN, LEN, i, "a receive that stayed");
	}
	ft_release_pair(&pair);
}

/*
 * Cancels some of the receives that share one context, the oldest receive
 * first; the other receives get messages.
 */
static void oldest(void)
{
	void *ctx = (void *) (ft_rand() % 2 ? 55UL : 0UL);
	unsigned i, k = 1 + ft_rand() % (COUNT - 1);
	struct ft_comp comp;

	ft_stage("%u of %u receives under one context", k, COUNT);
	memset(in, 0, COUNT * LEN);
	for (i = 0; i < COUNT; i++)
		post_recv((uintptr_t) ctx, i);
	for (i = 0; i < k; i++) {
		FT_CALL(fi_cancel(&pair.s.ep->fid, ctx));
		ft_wait_any(&pair.s, FT_RX, &comp);
		FT_CHECK(comp.err == FI_ECANCELED && comp.ctx == ctx,
			 "error %d, context %p", comp.err, comp.ctx);
	}
	for (; i < COUNT; i++) {
		send_one(i);
		ft_wait_ctx(&pair.s, FT_RX, ctx, FI_RECV);
		ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
		FT_CHECK_BUF(in + i * LEN, LEN, i, "not the oldest receive");
	}
	ft_expect_none(&pair.s, 2);
	ft_release_pair(&pair);
}

/*
 * A send that has no receive yet, and a receive, have the same context: only
 * the receive can be cancelled.
 */
static void beside_send(char *big, bool send_first)
{
	size_t half = BIG / 2;
	void *sdesc = ft_desc(&pair.dom[0], big, half);
	void *rdesc = ft_desc(&pair.dom[1], big + half, half);
	struct ft_comp comp;

	ft_stage("a receive %s a send", send_first ? "after" : "before");
	if (!send_first)
		post_recv(77, 0);
	FT_POST(&pair.s,
		fi_send(pair.s.ep, big, half, sdesc, pair.s.to, (void *) 77));
	if (send_first)
		post_recv(77, 0);
	FT_CALL(fi_cancel(&pair.s.ep->fid, (void *) 77));
	ft_wait_any(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.err == FI_ECANCELED && comp.ctx == (void *) 77,
		 "error %d, context %p", comp.err, comp.ctx);
	ft_expect_none(&pair.s, 2);
	FT_POST(&pair.c,
		fi_recv(pair.c.ep, big + half, half, rdesc, FT_ANY, big));
	ft_wait_ctx(&pair.c, FT_RX, big, FI_RECV);
	ft_wait_ctx(&pair.s, FT_TX, (void *) 77, FI_SEND);
	ft_release_pair(&pair);
}

/* Repeats the tests, since chance decides which record is found first. */
static void one_context(void)
{
	char *big = ft_map(NULL, BIG);
	unsigned i;

	for (i = 0; i < 4; i++) {
		beside_send(big, i % 2);
		oldest();
	}
	ft_unmap(big, BIG);
}

/*
 * Cancels contexts that no operation has, whose operation has completed, or
 * whose operation was cancelled.
 */
static void nobody(void)
{
	static const uintptr_t ctxs[] = { 0, 1, 4242, UINTPTR_MAX };
	size_t i;

	ft_stage("contexts of no operation");
	for (i = 0; i < sizeof(ctxs) / sizeof(*ctxs); i++)
		fi_cancel(&pair.s.ep->fid, (void *) ctxs[i]);
	fi_cancel(&pair.s.ep->fid, in);
	fi_cancel(&pair.c.ep->fid, out);
	ft_expect_none(&pair.s, 10);
	ft_expect_none(&pair.c, 10);
}

/*
 * A message is under way while its receive is cancelled: the receive comes back
 * once in any case; a message that found no receive takes the next receive.
 */
static void race(unsigned n)
{
	unsigned i, cancelled = 0, k;
	struct ft_comp comp;

	for (i = 0; i < n; i++) {
		ft_stage("race %u, %zu bytes", i, len);
		post_recv(1000 + i, 0);
		send_one(i);
		for (k = ft_rand() % 4; k; k--)
			ft_poll(&pair.s);
		FT_CALL(fi_cancel(&pair.s.ep->fid,
				  (void *) (uintptr_t) (1000 + i)));
		ft_wait_any(&pair.s, FT_RX, &comp);
		FT_CHECK(comp.ctx == (void *) (uintptr_t) (1000 + i),
			 "context %p", comp.ctx);
		FT_CHECK(!comp.err || comp.err == FI_ECANCELED, "error %d",
			 comp.err);
		if (comp.err) {
			cancelled++;
			post_recv(7, 0);
			ft_wait_ctx(&pair.s, FT_RX, (void *) 7, FI_RECV);
		}
		FT_CHECK_BUF(in, len, i, "message of a race");
		ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
		ft_release_pair(&pair);
	}
	ft_log("%u of %u races were won by the cancel", cancelled, n);
	ft_expect_none(&pair.s, 10);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, COUNT * LEN + LONG);
	out = ft_map(NULL, LONG);
	skip_unless_supported();
	all();
	every_other();
	one_context();
	nobody();
	race(ft_iters(5000));
	len = LONG;
	race(ft_iters(5000) / 10);
	len = LEN;
	all();
	ft_unmap(in, COUNT * LEN + LONG);
	ft_unmap(out, LONG);
	ft_pair_close(&pair);
	return ft_done();
}
