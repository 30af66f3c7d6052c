/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_end: tests conditional writes whose connection ends: either side
 * closes, shuts down or is killed with operations pending. Each operation ends
 * once, no object or memory is left, and all tests can be repeated many times.
 */
#include "fakes/clock.h"
#include "ft_mrrc.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPS 16
#define LEN 8192 /* more than a message takes */

struct seen {
	unsigned wr[OPS], tag[OPS];
};

static struct ft_attr attr;
static char *out, *in;

/* Posts writes that wait for tags, and tags that wait for writes. */
static void post(struct ft_ep *ep, uint64_t base)
{
	uintptr_t i;

	for (i = 0; i < OPS; i++) {
		FT_CALL(fi_cwrite(ep->cw, out + i * LEN, LEN, NULL, ep->to,
				  base + i, (void *) (1000 + i)));
		FT_CALL(fi_cwtag(ep->cw, in + i * LEN, LEN, NULL, ep->to,
				 base + 100 + i, (void *) (2000 + i)));
	}
}

static void note(struct seen *seen, const struct ft_comp *comp, int err)
{
	uintptr_t ctx = (uintptr_t) comp->ctx;

	FT_CHECK(comp->err == err, "context %zu: error %d (%s), not %d",
		 (size_t) ctx, comp->err, fi_strerror(comp->err), err);
	if (ctx - 1000 < OPS)
		seen->wr[ctx - 1000]++;
	else if (ctx - 2000 < OPS)
		seen->tag[ctx - 2000]++;
	else
		FT_CHECK(0, "context %zu is of no operation", (size_t) ctx);
}

/*
 * Checks that the endpoint takes no operation any more, or over reliable
 * datagrams, that an operation fails.
 */
static void check_over(struct ft_ep *ep)
{
	struct ft_comp comp;
	ssize_t ret;

	ret = fi_cwrite(ep->cw, out, 1, NULL, ep->to, 1, out);
	if (!ret && ft_rdm()) {
		while (!ft_take(ep, FT_TX, &comp)) {
			ft_poll(ep);
			/* the peer's provider refuses the connection */
			ft_poll(ep->peer);
		}
		FT_CHECK(comp.ctx == out && comp.err == FI_ECONNABORTED,
			 "fi_cwrite after the end: error %d", comp.err);
		return;
	}
	FT_CHECK(ret == -FI_ENOTCONN, "fi_cwrite after the end: %zd", ret);
	ret = fi_cwtag(ep->cw, in, 1, NULL, ep->to, 1, NULL);
	FT_CHECK(ret == -FI_ENOTCONN, "fi_cwtag after the end: %zd", ret);
}

/* Checks that every operation of post() ends once, with the error @err. */
static void check_ends(struct ft_ep *ep, int err, bool only_cqs)
{
	uint64_t end = ft_deadline();
	struct seen seen = { 0 };
	struct ft_comp comp;
	unsigned cnt = 0, i;

	while (cnt < 2 * OPS) {
		ft_poll(ep);
		while (ft_take(ep, FT_TX, &comp) || ft_take(ep, FT_RX, &comp)) {
			note(&seen, &comp, err);
			cnt++;
		}
		FT_CHECK(ft_limit_us() < end, "%u of %u ended", cnt, 2 * OPS);
	}
	for (i = 0; i < OPS; i++)
		FT_CHECK(seen.wr[i] == 1 && seen.tag[i] == 1,
			 "operations %u end %u and %u times", i, seen.wr[i],
			 seen.tag[i]);
	if (only_cqs)
		return;
	check_over(ep);
}

/* Makes progress for a random time, in which tags may arrive. */
static void mingle(struct ft_ep *ep)
{
	unsigned i;

	for (i = ft_rand() % 200; i; i--)
		ft_progress(ep);
}

static void works(struct ft_pair *pair, unsigned seed)
{
	struct ft_comp comp;

	ft_fill(out, LEN, seed);
	FT_CALL(fi_cwrite(pair->c.cw, out, LEN, NULL, pair->c.to, seed, out));
	FT_CALL(fi_cwtag(pair->s.cw, in, LEN, NULL, pair->s.to, seed, in));
	ft_wait(&pair->c, FT_TX, &comp);
	ft_wait(&pair->s, FT_RX, &comp);
	FT_CHECK_BUF(in, LEN, seed, "conditional write");
}

static void closes(struct ft_pair *pair, unsigned round)
{
	struct ft_ep *dead = round % 2 ? &pair->s : &pair->c;
	struct ft_ep *alive = round % 2 ? &pair->c : &pair->s;

	ft_stage("close, round %u", round);
	works(pair, round);
	post(dead, 5000);
	post(alive, 9000);
	if (round % 4 > 1)
		mingle(alive);
	if (round % 8 < 6 || ft_rdm()) {
		FT_CALL(fi_close(&dead->ep->fid));
		dead->ep = NULL;
		check_ends(dead, FI_ECANCELED, true);
	} else {
		FT_CALL(fi_shutdown(dead->ep, 0));
		check_ends(dead, FI_ECONNABORTED, false);
	}
	check_ends(alive, FI_ECONNABORTED, false);
	ft_check_idle(alive->dom, "peer closed");
	ft_check_idle(dead->dom, "closed");
	ft_reconnect(pair);
}

static void reconnects(struct ft_pair *pair)
{
	/* ofi_rxm's endpoints take longer to open */
	unsigned i, n = ft_iters(ft_core("verbs") ? 20 : ft_rxm() ? 50 : 400);
	unsigned fds = 0;
	size_t rss = 0;

	for (i = 0; i < n; i++) {
		closes(pair, i);
		if (i == n / 4) {
			/*
			 * after this transfer, the control endpoints are
			 * connected
			 */
			works(pair, i);
			ft_wait_quiet();
			fds = ft_fd_count();
			rss = ft_rss();
		}
	}
	works(pair, i);
	ft_wait_fds(&pair->c, fds);
	FT_CHECK(!rss || ft_rss() < rss + (4 << 20), "%zu KiB more",
		 (ft_rss() - rss) / 1024);
}

/* Connects and closes without reading anything. */
static void hasty(struct ft_pair *pair)
{
	unsigned i, n = ft_rxm() ? 20 : 50;

	for (i = 0; i < n; i++) {
		ft_stage("hasty, round %u", i);
		if (i % 3)
			FT_CALL(fi_cwtag(pair->c.cw, in, LEN, NULL, pair->c.to,
					 1, in));
		if (i % 2)
			mingle(&pair->c);
		ft_reconnect(pair);
	}
	works(pair, 1);
}

/*
 * ---- writes of which the target was told, or not --------------------------
 */

/* number of writes: more than a peer that reads nothing has room for */
#define MANY 300
#define BITS 4352
#define ROOM (160 * LEN)
_Static_assert(MANY *BITS <= ROOM, "buffers too small");

/* length of a write: small enough to go inside a message, or not, in turn */
static size_t bit = BITS;

struct told {
	struct ft_ep *ep;
	unsigned done, unheard;
	atomic_bool left; /* the writer has left */
};

static void *read_main(void *arg)
{
	uint64_t end = ft_deadline();
	struct told *told = arg;
	struct ft_comp comp;
	unsigned ended = 0;

	while (ended < MANY) {
		ft_poll(told->ep);
		while (ft_take(told->ep, FT_RX, &comp)) {
			ended++;
			if (!comp.err)
				told->done++;
			else if (ft_differs(comp.ctx, bit, 3) < 0)
				told->unheard++;
		}
		FT_CHECK(ft_limit_us() < end, "%u of %u ended", ended, MANY);
	}
	/* the writer, whose clock stands still, waits for an answer */
	while (!atomic_load(&told->left)) {
		ft_poll(told->ep);
		FT_CHECK(ft_limit_us() < end, "the writer does not leave");
	}
	return NULL;
}

static unsigned succeeded(struct ft_ep *ep)
{
	struct ft_comp comp;
	unsigned i, cnt = 0;

	/* writes end a few at a time */
	for (i = 0; i < MANY; i++)
		ft_poll(ep);
	while (ft_take(ep, FT_TX, &comp))
		cnt += !comp.err;
	return cnt;
}

/*
 * Fills the target, which reads no completions: the target has the bytes of
 * many writes, and was not told of these writes yet. Returns how many of the
 * client's writes have ended.
 */
static unsigned fill_up(struct ft_pair *pair)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	uint64_t end = ft_deadline();
	unsigned i, cnt = 0, idle = 0;

	bit = bit == BITS ? 64 : BITS;
	memset(in, 0, MANY * bit);
	ft_fill(out, bit, 3);
	for (i = 0; i < MANY; i++)
		FT_CALL(fi_cwtag(pair->s.cw, in + i * bit, bit, NULL,
				 pair->s.to, i, in + i * bit));
	while (st.known_tags < MANY) {
		ft_progress(&pair->c);
		FT_CALL(fi_cw_stats_read(pair->c.cw, &st));
		FT_CHECK(ft_limit_us() < end, "no tags");
	}
	for (i = 0; i < MANY; i++)
		FT_CALL(fi_cwrite(pair->c.cw, out, bit, NULL, pair->c.to, i,
				  NULL));
	/* go on until the target's room is full */
	while (!cnt || idle < 10) {
		i = succeeded(&pair->c);
		idle = i ? 0 : idle + 1;
		cnt += i;
		FT_CHECK(ft_limit_us() < end, "no write is over");
	}
	FT_CHECK(cnt < MANY, "%u of %u writes are over", cnt, MANY);
	return cnt;
}

static void leave(struct ft_ep *ep, bool close)
{
	if (!close) {
		FT_CALL(fi_shutdown(ep->ep, 0));
		return;
	}
	FT_CALL(fi_close(&ep->ep->fid));
	ep->ep = NULL;
}

/* Returns how many writes stay unreported if the writer leaves at once. */
static unsigned unheard(struct ft_pair *pair, bool close)
{
	struct told told = { .ep = &pair->s };
	pthread_t reader;
	unsigned cnt;

	cnt = fill_up(pair);
	clock_stop(true);
	FT_CHECK(!pthread_create(&reader, NULL, read_main, &told), "thread");
	leave(&pair->c, close);
	atomic_store(&told.left, true);
	clock_stop(false);
	pthread_join(reader, NULL);
	cnt += succeeded(&pair->c);
	FT_CHECK(told.unheard || told.done == cnt, "%u writes, %u tags succeed",
		 cnt, told.done);
	return told.unheard;
}

/*
 * The target reads only after the writer has left, so the writer waits in vain
 * for the target to read.
 */
static void in_vain(struct ft_pair *pair, bool close)
{
	struct told told = { .ep = &pair->s, .left = true };

	fill_up(pair);
	clock_step(1000);
	clock_stop(true);
	leave(&pair->c, close);
	clock_stop(false);
	clock_step(0);
	read_main(&told);
	succeeded(&pair->c);
}

/*
 * send() and sendmsg() of this file replace libc's in the core provider. While
 * @full is set, most calls send nothing, and every 16th call sends all but the
 * last byte. The core keeps the bytes that were not sent, and reports the message
 * as sent.
 */
#define EXPORTED __attribute__((visibility("default")))

static atomic_bool full;
static atomic_uint sends;

/* Returns how many of @len bytes a socket takes. */
static size_t room(size_t len)
{
	if (!atomic_load(&full))
		return len;
	if (atomic_fetch_add(&sends, 1) % 16)
		return 0;
	return len > 1 ? len - 1 : len;
}

EXPORTED ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	const size_t take = room(len);

	if (take || !len)
		return syscall(SYS_sendto, fd, buf, take, flags, NULL, 0);
	errno = EAGAIN;
	return -1;
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (!atomic_load(&full) || !msg->msg_iovlen)
		return syscall(SYS_sendmsg, fd, msg, flags);
	return send(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags);
}

/* The writer waits for the target to read, but only for a while. */
static void lingers(bool close)
{
	const unsigned n = 2 * (ft_iters(10) < 5 ? 5 : ft_iters(10));
	struct ft_attr domain_attr = attr;
	struct ft_pair pair;
	unsigned i, cnt;

	/* no other thread makes progress for either side */
	domain_attr.threading = FI_THREAD_DOMAIN;
	ft_pair_open(&pair, &domain_attr);
	for (i = 0; i < n; i++) {
		ft_stage("a writer that %s, round %u",
			 close ? "closes" : "shuts down", i);
		works(&pair, i);
		atomic_store(&full, true);
		cnt = unheard(&pair, close);
		atomic_store(&full, false);
		FT_CHECK(!cnt, "%u writes arrived, and the target did not know",
			 cnt);
		ft_reconnect(&pair);
	}
	ft_stage("a writer that %s, beside a target that does not read",
		 close ? "closes" : "shuts down");
	in_vain(&pair, close);
	ft_pair_close(&pair);
}

/* more messages than polls until the target looks for the peer's end */
#define WORDS 100

static struct fi_ops_cq core_cq;

static ssize_t read_one(struct fid_cq *cq, void *buf, size_t count)
{
	return core_cq.read(cq, buf, count ? 1 : 0);
}

/*
 * The target reads only after the writer has left, one completion at a time:
 * messages that came before the writer's end still count.
 */
static void last_words(void)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	uint64_t end = ft_deadline();
	struct ft_attr domain_attr = attr;
	struct ft_core_ops core;
	unsigned i, told = 0, over = 0;
	struct ft_comp comp;
	struct ft_pair pair;

	ft_stage("messages before the end");
	/* no other thread makes progress for either side */
	domain_attr.threading = FI_THREAD_DOMAIN;
	ft_pair_open(&pair, &domain_attr);
	works(&pair, 0);
	for (i = 0; i < WORDS; i++)
		FT_CALL(fi_cwtag(pair.s.cw, in + i, 1, NULL, pair.s.to, i,
				 NULL));
	while (st.known_tags < WORDS) {
		ft_progress(&pair.c);
		FT_CALL(fi_cw_stats_read(pair.c.cw, &st));
		FT_CHECK(ft_limit_us() < end, "no tags");
	}
	for (i = 0; i < WORDS; i++) {
		FT_CALL(fi_cwrite(pair.c.cw, out, 1, NULL, pair.c.to, i, NULL));
		/* sends each write in a separate message */
		over += succeeded(&pair.c);
	}
	while (over < WORDS) {
		over += succeeded(&pair.c);
		FT_CHECK(ft_limit_us() < end, "%u writes are over", over);
	}
	leave(&pair.c, true);
	ft_core_ops("tcp", &core);
	core_cq = *core.cq;
	core.cq->read = read_one;
	for (over = 0; over < WORDS;) {
		ft_poll(&pair.s);
		while (ft_take(&pair.s, FT_RX, &comp)) {
			told += !comp.err;
			over++;
		}
		FT_CHECK(ft_limit_us() < end, "%u tags are over", over);
	}
	*core.cq = core_cq;
	FT_CHECK(told == WORDS, "of %d writes the target was told %u", WORDS,
		 told);
	ft_pair_close(&pair);
}

/* ---- kill -9 ------------------------------------------------------------- */

#define VICTIM "FT_CW_VICTIM" /* the listener's name, in hexadecimal */

/* Runs the client, in its own process, until the process is killed. */
static void victim(const char *hex)
{
	struct ft_pair pair;

	ft_client_open(&pair, &attr, hex);
	ft_connect_client(&pair, &pair.c);
	ft_cw_victim(&pair.c, 0, out, 16 * LEN, in, 16 * LEN);
}

/*
 * Makes progress and reads events; the victim may be killed before it has more
 * than the application's connection.
 */
static void poll_events(struct ft_ep *ep)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t event;

	ft_poll(ep);
	if (fi_eq_read(ep->eq, &event, &entry, sizeof(entry), 0) == -FI_EAVAIL)
		fi_eq_readerr(ep->eq, &err, 0);
}

static void survivor(struct ft_pair *pair, pid_t pid)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct ft_ep *ep = &pair->s;

	ft_cw_survivor(ep, 0, out, LEN, in, 16 * LEN, pid, poll_events);
	FT_CALL(fi_cw_stats_read(ep->cw, &st));
	FT_CHECK(!st.pending_tags && !st.pending_writes && !st.known_tags,
		 "something is left");
	ft_check_idle(ep->dom, "peer killed");
}

static void kills(char **argv)
{
	unsigned i, n = ft_iters(ft_core("verbs") ? 8 : 10);
	char hex[FT_HEX_MAX];
	struct ft_pair pair;
	pid_t pid;

	ft_listen(&pair, &attr);
	ft_name_hex(&pair.pep->fid, hex);
	setenv(VICTIM, hex, 1);
	for (i = 0; i < n; i++) {
		ft_stage("kill -9, round %u", i);
		pid = ft_again(argv, STDOUT_FILENO);
		ft_connect_server(&pair, &pair.s);
		survivor(&pair, pid);
		ft_ep_close(&pair.s);
	}
	ft_pair_close(&pair);
}

/*
 * Measures the processor time of closing in a thread that yields to no other
 * thread, while all threads of this program share a processor.
 */
static uint64_t close_first(struct ft_pair *pair)
{
	struct sched_param prio = { .sched_priority = 1 };
	uint64_t begin;

	if (sched_setscheduler(0, SCHED_FIFO, &prio))
		return UINT64_MAX;
	/* the domains' threads may be at work at a random time */
	usleep(ft_rand() % 1500);
	begin = ft_thread_us();
	ft_ep_close(&pair->s);
	ft_ep_close(&pair->c);
	begin = ft_thread_us() - begin;
	prio.sched_priority = 0;
	FT_CHECK(!sched_setscheduler(0, SCHED_OTHER, &prio), "SCHED_OTHER");
	return begin;
}

static void realtime(void)
{
	unsigned i, k, n = ft_iters(ft_rxm() ? 30 : 100), slow = 0;
	struct ft_pair pair;
	cpu_set_t all, one;
	uint64_t took;

	ft_stage("closed in real time");
	FT_CHECK(!sched_getaffinity(0, sizeof(all), &all), "processors");
	CPU_ZERO(&one);
	for (i = 0; !CPU_ISSET(i, &all); i++)
		;
	CPU_SET(i, &one);
	/* the processor is also that of the domains' threads */
	FT_CHECK(!sched_setaffinity(0, sizeof(one), &one), "one processor");
	ft_pair_open(&pair, &attr);
	for (i = 0; i < n; i++) {
		for (k = 0; k < OPS; k++) {
			FT_CALL(fi_cwrite(pair.c.cw, out, 10 * LEN, NULL,
					  pair.c.to, k, out));
			FT_CALL(fi_cwtag(pair.s.cw, in, 10 * LEN, NULL,
					 pair.s.to, k, in));
		}
		took = close_first(&pair);
		if (took == UINT64_MAX) {
			ft_log("SCHED_FIFO is not allowed here");
			break;
		}
		/*
		 * a slow close lasts until the kernel itself lets other threads
		 * run
		 */
		slow += took > 400000;
		ft_connect(&pair, &pair.s, &pair.c);
	}
	FT_CHECK(slow < 2, "%u of %u took long", slow, n);
	ft_pair_close(&pair);
	FT_CHECK(!sched_setaffinity(0, sizeof(all), &all), "processors");
}

int main(int argc, char **argv)
{
	struct ft_pair pair;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	attr = FT_ATTR;
	attr.format = FI_CQ_FORMAT_DATA;
	attr.cw = attr.cw_pep = true;
	out = ft_map(NULL, ROOM);
	in = ft_map(NULL, ROOM);
	if (getenv(VICTIM))
		victim(getenv(VICTIM));
	if (ft_core("tcp")) {
		lingers(true);
		if (!ft_rdm())
			lingers(false);
		last_words();
		realtime();
	}
	if (!ft_rdm()) /* cw_peers.c kills reliable datagram peers */
		kills(argv);
	ft_pair_open(&pair, &attr);
	reconnects(&pair);
	hasty(&pair);
	ft_pair_close(&pair);
	ft_unmap(out, ROOM);
	ft_unmap(in, ROOM);
	return ft_done();
}
