/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_wait: tests waiting for completions: fi_cq_sread() with and without a
 * timeout, wait descriptors with fi_trywait(), fi_cq_signal(). Completions that
 * were not requested wake no thread permanently; receives that come back when
 * an endpoint closes wake the thread that waits for them.
 */
#include "ft_mrrc.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define LEN 3000

static struct ft_pair pair;
static char *out, *in;
static struct fid_mr *mr;
static void *out_desc;
static atomic_bool ended;

/* Runs the server's side: makes progress, and keeps enough receives posted. */
static void *server_main(void *arg)
{
	struct ft_comp comp;
	unsigned i;
	void *d = ft_desc(&pair.dom[0], in, 16 * LEN);

	for (i = 0; i < 16; i++)
		FT_CALL(fi_recv(pair.s.ep, in + i * LEN, LEN, d, FT_ANY,
				in + i * LEN));
	while (!atomic_load(&ended)) {
		ft_poll(&pair.s);
		while (ft_take(&pair.s, FT_RX, &comp)) {
			if (comp.err)
				return NULL;
			FT_CALL(fi_recv(pair.s.ep, comp.ctx, LEN, d, FT_ANY,
					comp.ctx));
		}
		usleep(100);
	}
	return NULL;
}

static ssize_t post(size_t len, void *ctx, uint64_t flags)
{
	void *desc = out_desc;
	struct iovec iov = { out, len };
	struct fi_rma_iov rma = { ft_raddr(&pair.dom[0], in) + 16 * LEN, len,
				  fi_mr_key(mr) };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = ctx,
	};

	return fi_writemsg(pair.c.ep, &msg, flags);
}

static void post_retry(void *ctx, uint64_t flags)
{
	uint64_t end = ft_deadline();
	ssize_t ret;

	while ((ret = post(LEN, ctx, flags)) == -FI_EAGAIN) {
		FT_CHECK(ft_limit_us() < end, "still -FI_EAGAIN");
		usleep(50);
	}
	FT_CHECK(!ret, "fi_writemsg: %zd", ret);
}

struct later {
	pthread_t thread;
	unsigned silent, msec;
};

/* Posts silent operations, waits, then posts an operation that completes. */
static void *later_main(void *arg)
{
	struct later *later = arg;
	unsigned i;

	for (i = 0; i < later->silent; i++)
		post_retry((void *) 1, 0);
	usleep(later->msec * 1000);
	post_retry((void *) 42, FI_COMPLETION);
	return NULL;
}

static void start(struct later *later, unsigned silent, unsigned msec)
{
	later->silent = silent;
	later->msec = msec;
	FT_CHECK(!pthread_create(&later->thread, NULL, later_main, later),
		 "pthread_create");
}

static void timeouts(void)
{
	static const int msecs[] = { 0, 1, 50, 200 };
	struct fi_cq_data_entry entry;
	uint64_t begin, took;
	ssize_t ret;
	size_t i;

	for (i = 0; i < sizeof(msecs) / sizeof(*msecs); i++) {
		ft_stage("timeout of %d ms", msecs[i]);
		begin = ft_now_us();
		ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, msecs[i]);
		took = ft_now_us() - begin;
		FT_CHECK(ret == -FI_EAGAIN, "fi_cq_sread: %zd", ret);
		FT_CHECK(took + 2000 >= (uint64_t) msecs[i] * 1000,
			 "back after %" PRIu64 " us", took);
		FT_CHECK(took < (uint64_t) msecs[i] * 1000 + 30000000,
			 "back only after %" PRIu64 " us", took);
	}
}

/* A waiting thread is woken by a completion, and by nothing else. */
static void wakes(unsigned silent, unsigned msec, int timeout)
{
	struct fi_cq_data_entry entry = { 0 };
	uint64_t end = ft_deadline(), begin = ft_now_us();
	struct later later;
	ssize_t ret;

	ft_stage("waiting beside %u silent operations", silent);
	start(&later, silent, msec);
	do {
		ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, timeout);
		FT_CHECK(ft_limit_us() < end, "never woken");
		/* without a timeout only an entry ends the wait */
		if (ret == -FI_EAGAIN && timeout < 0)
			ft_log("woken for nothing");
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret == 1, "fi_cq_sread: %zd", ret);
	FT_CHECK(entry.op_context == (void *) 42,
		 "completion of %p, which asked for none", entry.op_context);
	FT_CHECK(ft_now_us() - begin + 2000 >= msec * 1000UL,
		 "woken before anything was posted");
	pthread_join(later.thread, NULL);
	ft_expect_none(&pair.c, 5);
}

static void signalled(void)
{
	struct fi_cq_data_entry entry;
	int ret;

	ft_stage("fi_cq_signal");
	ret = fi_cq_signal(pair.c.cq[FT_TX]);
	if (ret == -FI_ENOSYS) {
		printf("note: fi_cq_signal: %s\n", fi_strerror(-ret));
		return;
	}
	FT_CHECK(!ret, "fi_cq_signal: %d", ret);
	FT_CHECK(fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 10000) ==
			 -FI_EAGAIN,
		 "fi_cq_sread after fi_cq_signal");
}

/* Waits as event loops do: fi_trywait(), poll(), fi_cq_read(). */
static void descriptor(unsigned silent)
{
	struct fid *fids[] = { &pair.c.cq[FT_TX]->fid };
	struct fi_cq_data_entry entry = { 0 };
	uint64_t end = ft_deadline();
	struct pollfd pfd = { .events = POLLIN };
	struct later later;
	ssize_t ret;

	ft_stage("wait descriptor beside %u silent operations", silent);
	FT_CALL(fi_control(fids[0], FI_GETWAIT, &pfd.fd));
	start(&later, silent, 50);
	for (;;) {
		ret = fi_cq_read(pair.c.cq[FT_TX], &entry, 1);
		if (ret != -FI_EAGAIN)
			break;
		FT_CHECK(ft_limit_us() < end, "never woken");
		ret = fi_trywait(pair.dom[1].fabric, fids, 1);
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_trywait: %zd", ret);
		/*
		 * a lost wake-up would make poll() last for the whole timeout
		 */
		if (!ret && poll(&pfd, 1, 30000) == 0)
			FT_CHECK(0, "no wake-up within 30 s");
	}
	FT_CHECK(ret == 1 && entry.op_context == (void *) 42,
		 "fi_cq_read: %zd, context %p", ret, entry.op_context);
	pthread_join(later.thread, NULL);
	ft_expect_none(&pair.c, 5);
}

/*
 * A queue gets more completions than the queue has entries: fi_trywait()
 * refuses as long as there are completions to read, and no longer.
 */
static void full(bool cw)
{
	const unsigned size = 4, count = 64;
	struct ft_attr attr = FT_ATTR;
	struct fi_cq_data_entry entry;
	uint64_t end = ft_deadline();
	struct fid *fids[1];
	struct pollfd pfd = { .events = POLLIN };
	struct ft_comp comp;
	unsigned i, got = 0;
	ssize_t ret;
	void *desc;

	if (ft_core("verbs"))
		return; /* over verbs a queue must not be overrun */
	ft_stage("a queue that is full%s", cw ? ", conditional writes" : "");
	attr.cq_size = size;
	attr.cw = cw;
	attr.wait_obj = FI_WAIT_FD;
	ft_pair_open(&pair, &attr);
	pair.s.quiet[FT_RX] = true;
	fids[0] = &pair.s.cq[FT_RX]->fid;
	FT_CALL(fi_control(fids[0], FI_GETWAIT, &pfd.fd));
	desc = ft_desc(&pair.dom[0], in, 16 * LEN);
	for (i = 0; i < count; i++)
		FT_POST(&pair.s,
			fi_recv(pair.s.ep, in, LEN, desc, FT_ANY, in + i));
	desc = ft_desc(&pair.dom[1], out, LEN);
	for (i = 0; i < count; i++) {
		FT_POST(&pair.c,
			fi_send(pair.c.ep, out, LEN, desc, pair.c.to, NULL));
		ft_wait(&pair.c, FT_TX, &comp);
	}
	while (got < count) {
		FT_CHECK(ft_limit_us() < end, "%u of %u", got, count);
		ret = fi_trywait(pair.dom[0].fabric, fids, 1);
		FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_trywait: %zd", ret);
		if (!ret && poll(&pfd, 1, 10000) == 0)
			FT_CHECK(0, "asleep with %u of %u read", got, count);
		ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
		FT_CHECK(ret == 1 || ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
		if (ret == 1)
			FT_CHECK(entry.op_context == in + got++, "receive %u",
				 got);
	}
	do {
		ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
		FT_CHECK(ret == -FI_EAGAIN, "one more: %zd", ret);
		ret = fi_trywait(pair.dom[0].fabric, fids, 1);
		FT_CHECK(ft_limit_us() < end, "fi_trywait: %zd", ret);
	} while (ret);
	ft_release_pair(&pair);
	ft_pair_close(&pair);
}

static void *close_main(void *arg)
{
	usleep(*(unsigned *) arg * 1000);
	FT_CALL(fi_close(&pair.c.ep->fid));
	pair.c.ep = NULL;
	return NULL;
}

/*
 * Another thread closes an endpoint, after fi_trywait() said that it is safe to
 * sleep: the receives that come back wake the sleeping thread.
 */
static void closed_beside(unsigned msec)
{
	struct fid *fids[] = { &pair.c.cq[FT_RX]->fid };
	struct pollfd pfd = { .events = POLLIN };
	struct ft_comp comp;
	pthread_t closer;
	int ret;

	ft_stage("an endpoint closed beside, after %u ms", msec);
	FT_CALL(fi_recv(pair.c.ep, out, LEN, ft_desc(&pair.dom[1], out, LEN),
			FT_ANY, out));
	FT_CALL(fi_control(fids[0], FI_GETWAIT, &pfd.fd));
	do {
		ft_poll(&pair.c);
		ret = fi_trywait(pair.dom[1].fabric, fids, 1);
	} while (ret == -FI_EAGAIN);
	FT_CHECK(!ret, "fi_trywait: %d", ret);
	FT_CHECK(!pthread_create(&closer, NULL, close_main, &msec),
		 "pthread_create");
	if (!msec)
		pthread_join(closer, NULL);
	ret = poll(&pfd, 1, 30000);
	FT_CHECK(ret == 1, "no wake-up within 30 s: %d", ret);
	if (msec)
		pthread_join(closer, NULL);
	ft_wait_any(&pair.c, FT_RX, &comp);
	FT_CHECK(comp.err == FI_ECANCELED && comp.ctx == out,
		 "error %d, context %p", comp.err, comp.ctx);
	ft_expect_none(&pair.c, 2);
	ft_release(&pair.dom[1]);
	ft_reconnect(&pair);
}

/* Tests cores that give receives back when their endpoint is closed. */
static void closing(void)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i;

	if (!ft_core("tcp") || ft_rxm())
		return;
	attr.wait_obj = FI_WAIT_FD;
	attr.threading = FI_THREAD_SAFE;
	ft_pair_open(&pair, &attr);
	for (i = 0; i < 5; i++) {
		closed_beside(0);
		closed_beside(20);
	}
	ft_pair_close(&pair);
}

static void session(enum fi_wait_obj obj)
{
	struct ft_attr attr = FT_ATTR;
	pthread_t server;
	unsigned n = ft_core("verbs") ? 300 : 20000;

	attr.wait_obj = obj;
	attr.tx_selective = true;
	attr.threading = FI_THREAD_SAFE;
	ft_pair_open(&pair, &attr);
	mr = ft_reg(&pair.dom[0], in, 20 * LEN, FI_REMOTE_WRITE);
	out_desc = ft_desc(&pair.dom[1], out, LEN);
	pair.c.peer = NULL; /* the server runs in its own thread */
	atomic_store(&ended, false);
	FT_CHECK(!pthread_create(&server, NULL, server_main, NULL),
		 "pthread_create");
	timeouts();
	wakes(0, 100, 5000);
	wakes(0, 100, -1);
	wakes(ft_iters(n), 0, 20);
	wakes(ft_iters(n), 50, -1);
	signalled();
	if (obj == FI_WAIT_FD) {
		descriptor(0);
		descriptor(ft_iters(n));
	}
	atomic_store(&ended, true);
	pthread_join(server, NULL);
	ft_release_pair(&pair);
	FT_CALL(fi_close(&mr->fid));
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, 20 * LEN);
	session(FI_WAIT_UNSPEC);
	session(FI_WAIT_FD);
	closing();
	full(false);
	if (!ft_opts.raw)
		full(true);
	ft_unmap(out, LEN);
	ft_unmap(in, 20 * LEN);
	return ft_done();
}
