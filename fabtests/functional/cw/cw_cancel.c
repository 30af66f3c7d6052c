/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_cancel: tests a tag that is cancelled while the peer makes no
 * progress, so that the peer does not confirm the cancel. The peer may confirm
 * until a deadline. After the deadline the connection ends, the buffer's key
 * becomes invalid, and a sleeping thread is woken. The test moves the clock.
 */
#include "fakes/clock.h"
#include "ft_mrrc.h"

#include <poll.h>

#define LEN	8192 /* more than a message takes */
#define LIMIT_S 10
#define MS	UINT64_C(1000)

static struct ft_pair pair;
static char *buf;

static void post_tag(uint64_t tag)
{
	FT_POST(&pair.s,
		fi_cwtag(pair.s.cw, buf, LEN, NULL, pair.s.to, tag, buf));
}

/* Exposes a buffer, and waits until the peer has the tag. */
static void expose(uint64_t tag)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	uint64_t end = ft_deadline(), before;

	FT_CALL(fi_cw_stats_read(pair.c.cw, &st));
	before = st.known_tags;
	post_tag(tag);
	do {
		ft_progress(&pair.s);
		FT_CALL(fi_cw_stats_read(pair.c.cw, &st));
		FT_CHECK(ft_limit_us() < end, "the peer has no tag");
	} while (st.known_tags == before);
}

static void post_write(uint64_t tag)
{
	ft_fill(buf + LEN, LEN, tag);
	FT_POST(&pair.c, fi_cwrite(pair.c.cw, buf + LEN, LEN, NULL, pair.c.to,
				   tag, buf + LEN));
}

static void wait_for(uint64_t tag)
{
	struct ft_comp comp;

	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK_BUF(buf, LEN, tag, "written");
}

static void transfer(uint64_t tag)
{
	post_write(tag);
	post_tag(tag);
	wait_for(tag);
}

static bool ended(int *err)
{
	struct ft_comp comp;

	ft_poll(&pair.s);
	if (!ft_take(&pair.s, FT_RX, &comp))
		return false;
	FT_CHECK(comp.ctx == buf, "another operation");
	*err = comp.err;
	return true;
}

/* The peer confirms a cancel just before the deadline. */
static void confirmed(void)
{
	unsigned i;
	int err;

	ft_stage("confirmed");
	expose(1);
	FT_CALL(fi_cancel(&pair.s.ep->fid, buf));
	for (i = 0; i < 100; i++)
		FT_CHECK(!ended(&err), "before the peer has confirmed");
	clock_advance((LIMIT_S - 1) * 1000 * MS);
	for (i = 0; i < 100; i++)
		FT_CHECK(!ended(&err), "before the deadline");
	while (!ended(&err))
		ft_poll(&pair.c);
	FT_CHECK(err == FI_ECANCELED, "error %d", err);
	/* the deadline was met: nothing happens later */
	clock_advance(2 * LIMIT_S * 1000 * MS);
	transfer(2);
}

/* A core that returns one completion at a time. */
static struct fi_ops_cq core;

static ssize_t read_one(struct fid_cq *cq, void *entries, size_t count)
{
	return core.read(cq, entries, count ? 1 : 0);
}

/* The peer confirms in time, but this side pauses for longer. */
static void paused(void)
{
	struct ft_core_ops table;
	unsigned i;
	int err;

	ft_stage("confirmed during a pause");
	if (ft_core("tcp")) {
		ft_core_ops("tcp", &table);
		core = *table.cq;
		table.cq->read = read_one;
	}
	expose(11);
	FT_CALL(fi_cancel(&pair.s.ep->fid, buf));
	for (i = 0; i < 1000; i++)
		ft_poll(&pair.c);
	/* that this message was sent is read before what has come */
	post_tag(12);
	clock_advance(2 * LIMIT_S * 1000 * MS);
	while (!ended(&err))
		ft_poll(&pair.c);
	FT_CHECK(err == FI_ECANCELED, "error %d", err);
	if (ft_core("tcp"))
		*table.cq = core;
	post_write(12);
	wait_for(12);
}

/* Each cancel of one context is for another operation. */
static void same_context(void)
{
	const unsigned n = 3;
	unsigned i;
	int err;

	ft_stage("one context");
	for (i = 0; i < n; i++)
		expose(13 + i);
	for (i = 0; i < n; i++)
		FT_CALL(fi_cancel(&pair.s.ep->fid, buf));
	for (i = 0; i < n; i++) {
		while (!ended(&err))
			ft_poll(&pair.c);
		FT_CHECK(err == FI_ECANCELED, "error %d", err);
	}
	/* also another operation that is posted between them */
	for (i = 0; i < n; i++) {
		post_tag(16 + i);
		FT_CALL(fi_cancel(&pair.s.ep->fid, buf));
	}
	for (i = 0; i < n; i++) {
		while (!ended(&err))
			ft_poll(&pair.c);
		FT_CHECK(err == FI_ECANCELED, "error %d", err);
	}
	transfer(20);
}

/*
 * Sleeps until an operation completes, while the peer makes no progress.
 * Returns the seconds of the sleep.
 */
static unsigned sleeps_for(void)
{
	struct fid *fid = &pair.s.cq[FT_RX]->fid;
	struct pollfd pfd = { .events = POLLIN };
	struct fi_cq_data_entry entry;
	/* net's descriptor (1.17) is readable until a wait of net's own */
	const bool never = ft_core("net");
	unsigned seconds = 0, wakes = 0;
	ssize_t ret;

	FT_CALL(fi_control(fid, FI_GETWAIT, &pfd.fd));
	while ((ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1)) == -FI_EAGAIN) {
		FT_CHECK(wakes < 100, "woken again and again");
		if (fi_trywait(pair.dom[0].fabric, &fid, 1))
			continue;
		/*
		 * the thread sleeps, and makes no call that would make progress
		 */
		while (never || !poll(&pfd, 1, seconds < LIMIT_S ? 0 : 100)) {
			FT_CHECK(seconds < 60, "it is not woken");
			clock_advance(1000 * MS);
			seconds++;
			if (never)
				break;
		}
		wakes += !never;
	}
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
	return seconds;
}

static void silent(void)
{
	struct fi_cq_err_entry error = { 0 };
	struct ft_comp comp;
	unsigned seconds, i;

	ft_stage("a peer that does not confirm");
	expose(3);
	pair.s.quiet[FT_RX] = true;
	clock_stop(true);
	FT_CALL(fi_cancel(&pair.s.ep->fid, buf));
	seconds = sleeps_for();
	clock_stop(false);
	FT_CHECK(fi_cq_readerr(pair.s.cq[FT_RX], &error, 0) == 1 &&
			 error.op_context == buf &&
			 error.err == FI_ECONNABORTED,
		 "error %d", error.err);
	FT_CHECK(seconds >= LIMIT_S && seconds < LIMIT_S + 2, "after %u s",
		 seconds);
	pair.s.quiet[FT_RX] = false;
	/*
	 * the peer still has the cancelled tag, and its invalid key; cores may
	 * report a write as complete when the write is sent
	 */
	memset(buf, 0, LEN);
	ft_fill(buf + LEN, LEN, 4);
	if (!fi_cwrite(pair.c.cw, buf + LEN, LEN, NULL, pair.c.to, 3,
		       buf + LEN)) {
		fi_cancel(&pair.c.ep->fid, buf + LEN);
		ft_wait_any(&pair.c, FT_TX, &comp);
	}
	if (ft_rdm()) {
		/*
		 * later data would arrive after that write, on a new connection
		 */
		buf += 2 * LEN;
		transfer(5);
		buf -= 2 * LEN;
	}
	for (i = 0; i < LEN; i++)
		FT_CHECK(!buf[i], "a cancelled buffer is written to");
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	attr.cw = attr.cw_pep = true;
	attr.wait_obj = FI_WAIT_FD;
	/* no thread of the provider makes progress for the application */
	attr.threading = FI_THREAD_DOMAIN;
	buf = ft_map(NULL, 4 * LEN);
	ft_pair_open(&pair, &attr);
	transfer(9);
	confirmed();
	paused();
	same_context();
	silent();
	ft_pair_close(&pair);
	ft_unmap(buf, 4 * LEN);
	return ft_done();
}
