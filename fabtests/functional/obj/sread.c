/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_sread: tests fi_cq_sread() on a queue that other threads read as
 * well. While one thread waits, another thread floods the same queue with
 * operations that ask for no completion, or closes an endpoint. The waiting
 * thread gets complete entries in order, and later calls wait for their full
 * timeout.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define LEN	 2000
#define WINDOW	 64
#define BURST	 4
#define SILENT	 1000
#define WAIT_MS	 200
#define LIMIT_US 1000000 /* us that in_order() takes */
#define OUT_LEN	 ((1 + WINDOW) * LEN)

static struct ft_pair pair;
static char *out, *in;	  /* memory of the client, and of the server */
static struct fid_mr *mr; /* registration of in */
static void *out_desc;
static atomic_uint messages, taken;
static atomic_bool flooded;

/* Posts a write of the client. */
static ssize_t post_write(void *ctx, uint64_t flags)
{
	struct iovec iov = { out, LEN };
	struct fi_rma_iov rma = { ft_raddr(&pair.dom[0], in), LEN,
				  fi_mr_key(mr) };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &out_desc,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = ctx,
	};

	return fi_writemsg(pair.c.ep, &msg, flags);
}

/* Posts a write; only the server makes progress when there is no room. */
static void post_unread(void *ctx, uint64_t flags)
{
	uint64_t end = ft_deadline();
	ssize_t ret;

	while ((ret = post_write(ctx, flags)) == -FI_EAGAIN) {
		ft_poll(&pair.s);
		FT_CHECK(ft_limit_us() < end, "still -FI_EAGAIN");
	}
	FT_CHECK(!ret, "fi_writemsg: %zd", ret);
}

/*
 * Posts a receive, perhaps repeatedly: a core may free an entry for a new
 * receive a moment after a completion was read.
 */
static void post_recv(uintptr_t slot)
{
	char *p = out + (1 + slot) * LEN;
	uint64_t end = ft_deadline();
	ssize_t ret;

	while ((ret = fi_recv(pair.c.ep, p, LEN, out_desc, FT_ANY,
			      (void *) (1 + slot))) == -FI_EAGAIN) {
		sched_yield();
		FT_CHECK(ft_limit_us() < end, "fi_recv: still -FI_EAGAIN");
	}
	FT_CHECK(!ret, "fi_recv: %zd", ret);
}

/* fi_cq_sread() waits its full time on a queue where nothing completes. */
static void expect_wait(void)
{
	struct fi_cq_data_entry entry = { 0 };
	uint64_t begin = ft_now_us(), took;
	ssize_t ret;

	ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, WAIT_MS);
	took = ft_now_us() - begin;
	FT_CHECK(ret == -FI_EAGAIN, "fi_cq_sread: %zd, context %p", ret,
		 entry.op_context);
	FT_CHECK(took >= WAIT_MS * 800, "back after %" PRIu64 " us", took);
}

/* Runs the server's side of in_order(): numbered messages, and progress. */
static void *server_main(void *arg)
{
	uint64_t end = ft_now_us() + LIMIT_US;
	unsigned next = 0, ahead;
	ssize_t ret;

	while (next < atomic_load(&messages) || !atomic_load(&flooded)) {
		/*
		 * sometimes so few messages are sent ahead that the reader
		 * sleeps for each message
		 */
		ahead = next / 256 % 2 ? WINDOW : 1 + next % BURST;
		if (next < atomic_load(&messages) &&
		    next - atomic_load(&taken) < ahead) {
			ret = fi_senddata(pair.s.ep, in, 8, arg, next,
					  pair.s.to, NULL);
			FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_senddata: %zd",
				 ret);
			next += !ret;
		} else {
			sched_yield();
		}
		/* on a busy machine, the next message is the last */
		if (next + 1 < atomic_load(&messages) && ft_now_us() > end)
			atomic_store(&messages, next + 1);
		ft_poll(&pair.s);
	}
	return NULL;
}

static void *flood_main(void *arg)
{
	ssize_t ret;

	while (atomic_load(&taken) < atomic_load(&messages)) {
		ret = post_write(NULL, 0);
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_writemsg: %zd", ret);
		if (ret)
			sched_yield();
	}
	return NULL;
}

/* Checks the entries of one call; returns the number of the next message. */
static unsigned check_entries(const struct fi_cq_data_entry *entry, ssize_t n,
			      unsigned next)
{
	ssize_t i;

	for (i = 0; i < n; i++, next++) {
		FT_CHECK(entry[i].flags & FI_RECV,
			 "completion of a silent "
			 "operation: context %p",
			 entry[i].op_context);
		FT_CHECK(entry[i].data == next,
			 "message %" PRIu64 " where %u is due", entry[i].data,
			 next);
		FT_CHECK(entry[i].op_context ==
				 (void *) (uintptr_t) (1 + next % WINDOW),
			 "message %u in the receive of context %p", next,
			 entry[i].op_context);
	}
	return next;
}

/*
 * The flooding thread finds completions of receives among completions of its
 * own operations: the receives' completions still belong to the waiting thread.
 */
static void in_order(unsigned n)
{
	struct fi_cq_data_entry entry[4];
	pthread_t server, flood;
	unsigned i, next = 0;
	ssize_t ret;

	ft_stage("%u messages beside a flood", n);
	atomic_store(&messages, n);
	atomic_store(&taken, 0);
	atomic_store(&flooded, false);
	for (i = 0; i < WINDOW; i++)
		post_recv(i);
	FT_CHECK(!pthread_create(&server, NULL, server_main,
				 ft_desc(&pair.dom[0], in, LEN)),
		 "pthread_create");
	FT_CHECK(!pthread_create(&flood, NULL, flood_main, NULL),
		 "pthread_create");
	while (next < atomic_load(&messages)) {
		ret = fi_cq_sread(pair.c.cq[FT_TX], entry, 4, NULL, -1);
		FT_CHECK(ret > 0, "fi_cq_sread without end: %zd (%s)", ret,
			 fi_strerror((int) -ret));
		i = next;
		next = check_entries(entry, ret, next);
		for (; i < next; i++)
			post_recv(i % WINDOW);
		atomic_store(&taken, next);
	}
	ft_log("%u messages", next);
	pthread_join(flood, NULL);
	atomic_store(&flooded, true);
	pthread_join(server, NULL);
	ft_release(&pair.dom[0]);
	ft_expect_none(&pair.c, 5);
}

/* Reads the only signalled entry of a flood that no thread read. */
static void read_wanted(void *ctx)
{
	uint64_t end = ft_deadline();
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(pair.c.cq[FT_TX], &entry, 1)) == -FI_EAGAIN) {
		ft_poll(&pair.s);
		FT_CHECK(ft_limit_us() < end, "no completion");
	}
	FT_CHECK(ret == 1 && entry.op_context == ctx,
		 "fi_cq_read: %zd, context %p", ret, entry.op_context);
}

/*
 * Posts may retire silent operations. No later fi_cq_sread() returns early
 * because of these operations.
 */
static void after_flood(void)
{
	unsigned i;

	ft_stage("waiting after %u silent operations", SILENT);
	post_unread((void *) 42, FI_COMPLETION);
	for (i = 0; i < SILENT; i++) {
		post_unread(NULL, 0);
		ft_poll(&pair.s);
	}
	read_wanted((void *) 42);
	expect_wait();
}

/*
 * Closing an endpoint wakes no waiting thread, once the endpoint's completions
 * are read.
 */
static void after_close(void)
{
	struct fi_cq_err_entry err;
	struct fi_cq_data_entry entry;
	unsigned i, flushed = 0;
	ssize_t ret;

	/* ofi_rxm (1.17) crashes when it waits for a closed endpoint */
	if (ft_rxm())
		return;
	ft_stage("waiting after an endpoint's close");
	for (i = 0; i < WINDOW; i++)
		post_recv(i);
	FT_CALL(fi_close(&pair.c.ep->fid));
	pair.c.ep = NULL;
	while ((ret = fi_cq_read(pair.c.cq[FT_TX], &entry, 1)) != -FI_EAGAIN) {
		FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
		memset(&err, 0, sizeof(err));
		ret = fi_cq_readerr(pair.c.cq[FT_TX], &err, 0);
		FT_CHECK(ret == 1 && err.err, "fi_cq_readerr: %zd", ret);
		flushed++;
	}
	ft_log("%u entries of %u receives", flushed, WINDOW);
	/*
	 * a core's wake-up for the entries that were read may still be pending
	 */
	if (ft_opts.raw)
		fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 1);
	expect_wait();
	ft_release(&pair.dom[1]);
	ft_reconnect(&pair);
}

/* fi_cq_sread() without room for an entry returns, and takes no entry. */
static void no_place(void)
{
	unsigned i;
	ssize_t ret;

	/* other cores may return only when there is an entry */
	if (!ft_core("tcp"))
		return;
	ft_stage("waiting for no entries");
	post_unread((void *) 43, FI_COMPLETION);
	for (i = 0; i < 100; i++) {
		ft_poll(&pair.s);
		ret = fi_cq_sread(pair.c.cq[FT_TX], NULL, 0, NULL, 2);
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_cq_sread: %zd", ret);
	}
	read_wanted((void *) 43);
	ret = fi_cq_sread(pair.c.cq[FT_TX], NULL, 0, NULL, 20);
	FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_cq_sread: %zd", ret);
}

static void session(enum fi_wait_obj obj)
{
	struct ft_attr attr = FT_ATTR;

	attr.wait_obj = obj;
	attr.tx_selective = true;
	attr.one_cq = true;
	attr.threading = FI_THREAD_SAFE;
	ft_pair_open(&pair, &attr);
	pair.c.quiet[FT_RX] = pair.s.quiet[FT_RX] = true;
	mr = ft_reg(&pair.dom[0], in, LEN, FI_REMOTE_WRITE);
	out_desc = ft_desc(&pair.dom[1], out, OUT_LEN);
	after_flood();
	no_place();
	in_order(ft_iters(ft_core("verbs") ? 300 : 10000));
	ft_release(&pair.dom[0]);
	after_close();
	FT_CALL(fi_close(&mr->fid));
	ft_pair_close(&pair);
}

/* sockets waits for queues without a wait object, too. */
static void no_object(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_cq_data_entry entry = { 0 };
	const uint64_t end = ft_deadline();
	ssize_t ret;

	if (!ft_core("sockets"))
		return;
	ft_stage("a queue without a wait object");
	attr.wait_obj = FI_WAIT_NONE;
	ft_pair_open(&pair, &attr);
	mr = ft_reg(&pair.dom[0], in, LEN, FI_REMOTE_WRITE);
	out_desc = ft_desc(&pair.dom[1], out, OUT_LEN);
	post_unread((void *) 44, FI_COMPLETION);
	do {
		ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 10);
		FT_CHECK(ft_limit_us() < end, "no completion");
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret == 1, "fi_cq_sread: %zd", ret);
	FT_CHECK(entry.op_context == (void *) 44, "context %p",
		 entry.op_context);
	ft_release_pair(&pair);
	ft_check_idle(&pair.dom[1], "written");
	FT_CALL(fi_close(&mr->fid));
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	out = ft_map(NULL, OUT_LEN);
	in = ft_map(NULL, LEN);
	no_object();
	session(FI_WAIT_UNSPEC);
	session(FI_WAIT_FD);
	ft_unmap(out, OUT_LEN);
	ft_unmap(in, LEN);
	return ft_done();
}
