/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_wait: tests waiting for conditional writes. The writer sleeps, in
 * fi_cq_sread() or on a wait descriptor, with a write that waits for its tag;
 * another thread exposes the buffer. The sleeping writer has to be woken by a
 * tag, send the write, and get its completion; the target sleeps in the same
 * way until its data have arrived. The test is repeated with many more
 * endpoints in the same domains. cw_auto.c tests applications that do not wait.
 */
#undef _FORTIFY_SOURCE /* otherwise poll() would be defined already */
#include "cw/cw_wait.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* number of endpoints: in more groups than one call could poll */
#define CROWD	(34 * 16)
#define SIGNALS 20000U
#define LONG_US 350000 /* a sleep that no event ends takes half a second */

#define EXPORTED __attribute__((visibility("default")))

struct ft_pair pair;
char *out, *in;

static atomic_uint rounds;
/* descriptors of the writer and the target */
static int wait_fd[2] = { -1, -1 };

/*
 * Sleeps until ctx completes: on the descriptor fd, or in fi_cq_sread() if -1
 */
static bool sleep_for(struct ft_ep *ep, enum ft_dir dir, int fd, void *ctx)
{
	struct fid *fid = &ep->cq[dir]->fid;
	struct fi_cq_data_entry entry = { 0 };
	uint64_t end = ft_deadline();
	struct pollfd pfd = { fd, POLLIN, 0 };
	ssize_t ret;

	do {
		FT_CHECK(ft_limit_us() < end, "the sleeper is not woken");
		if (fd < 0) {
			ret = fi_cq_sread(ep->cq[dir], &entry, 1, NULL, 3000);
			continue;
		}
		ret = fi_cq_read(ep->cq[dir], &entry, 1);
		if (ret != -FI_EAGAIN)
			continue;
		if (!fi_trywait(ep->dom->fabric, &fid, 1))
			FT_CHECK(poll(&pfd, 1, 30000) > 0,
				 "the descriptor does not wake");
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret == 1, "completion: %zd", ret);
	FT_CHECK(entry.op_context == ctx, "another's completion");
	return true;
}

static void *target_main(void *arg)
{
	unsigned i;

	for (i = 0; i < rounds; i++) {
		/* sometimes the write is posted first */
		if (i % 2)
			usleep(ft_rand() % 3000);
		FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, i, in));
		sleep_for(&pair.s, FT_RX, wait_fd[1], in);
		FT_CHECK_BUF(in, LEN, i, "conditional write");
	}
	return NULL;
}

/* Returns the number of writes that took long. */
static unsigned both_sleep(const char *what)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	unsigned i, slow = 0;
	pthread_t target;
	uint64_t begin;

	ft_stage("%s", what);
	rounds = ft_iters(200);
	FT_CHECK(!pthread_create(&target, NULL, target_main, NULL), "thread");
	for (i = 0; i < rounds; i++) {
		begin = ft_now_us();
		ft_fill(out, LEN, i);
		if (!(i % 2))
			usleep(ft_rand() % 3000);
		FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, i,
				  out));
		sleep_for(&pair.c, FT_TX, wait_fd[0], out);
		slow += ft_now_us() - begin > LONG_US;
	}
	pthread_join(target, NULL);
	FT_CALL(fi_cw_stats_read(pair.c.cw, &st));
	ft_log("%s: %" PRIu64 " at once, %" PRIu64 " held", what, st.immediate,
	       st.held);
	return slow;
}

static void *signal_main(void *arg)
{
	usleep(100000);
	FT_CALL(fi_cq_signal(arg));
	return NULL;
}

static atomic_uint sreads; /* calls of fi_cq_sread() */
static atomic_uint sent;   /* signals */
static atomic_uint lost;   /* number of sleeps that a signal did not end */
static _Thread_local bool reads;

/*
 * Replaces libc's poll(), for the provider, too. Counts a sleep as lost if the
 * sleep ends by its timeout although a signal was sent, and no descriptor has
 * an event afterwards.
 */
EXPORTED int poll(struct pollfd *fds, nfds_t cnt, int timeout)
{
	const struct timespec time = { timeout / 1000,
				       timeout % 1000 * 1000000 };
	const struct timespec none = { 0 };
	const int ret = ppoll(fds, cnt, timeout < 0 ? NULL : &time, NULL);

	if (reads && !ret && timeout > 1 &&
	    atomic_load(&sent) == atomic_load(&sreads) &&
	    !ppoll(fds, cnt, &none, NULL))
		atomic_fetch_add(&lost, 1);
	return ret;
}

/* The provider calls __poll_chk() in place of poll() under FORTIFY */
int __poll_chk(struct pollfd *fds, nfds_t cnt, int timeout, size_t len);
EXPORTED int __poll_chk(struct pollfd *fds, nfds_t cnt, int timeout, size_t len)
{
	FT_CHECK(cnt * sizeof(*fds) <= len, "%zu descriptors", (size_t) cnt);
	return poll(fds, cnt, timeout);
}

static void *signals_main(void *arg)
{
	unsigned i, round, now;

	for (round = 1;; round++) {
		while ((now = atomic_load(&sreads)) < round)
			;
		if (now == UINT_MAX)
			return NULL;
		/*
		 * signal at a random time while the other thread begins to wait
		 */
		for (i = ft_rand() % 20000; i; i--)
			atomic_load(&sreads);
		FT_CALL(fi_cq_signal(arg));
		atomic_store(&sent, round);
	}
}

/* Signals end a wait at once, whenever the signals come. */
static void signals(void)
{
	struct fi_cq_data_entry entry;
	const uint64_t start = ft_now_us();
	pthread_t thread;
	unsigned round;
	ssize_t ret;

	ft_stage("signals");
	atomic_store(&sreads, 0);
	atomic_store(&sent, 0);
	FT_CHECK(!pthread_create(&thread, NULL, signals_main, pair.c.cq[FT_TX]),
		 "thread");
	reads = true;
	for (round = 0; ft_round(round, ft_races(SIGNALS), start); round++) {
		atomic_store(&sreads, round + 1);
		ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 60000);
		FT_CHECK(ret == -FI_EAGAIN, "signal: %zd", ret);
	}
	reads = false;
	atomic_store(&sreads, UINT_MAX);
	pthread_join(thread, NULL);
	FT_CHECK(!atomic_load(&lost), "%u of %u signals lost",
		 atomic_load(&lost), round);
}

/* A wait is neither too long nor too short, and fi_cq_signal() ends a wait. */
static void times(void)
{
	struct fi_cq_data_entry entry;
	uint64_t begin = ft_now_us(), took;
	pthread_t thread;
	ssize_t ret;

	ft_stage("waiting for nothing");
	ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 200);
	took = ft_now_us() - begin;
	FT_CHECK(ret == -FI_EAGAIN && took > 190000 && took < 30000000,
		 "%zd after %" PRIu64 " us", ret, took);
	begin = ft_now_us();
	FT_CHECK(!pthread_create(&thread, NULL, signal_main, pair.c.cq[FT_TX]),
		 "thread");
	ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 60000);
	took = ft_now_us() - begin;
	FT_CHECK(ret == -FI_EAGAIN && took > 90000 && took < 30000000,
		 "signal: %zd after %" PRIu64 " us", ret, took);
	pthread_join(thread, NULL);
}

/*
 * Operations of the core wake a sleeping thread as without conditional writes.
 */
static void others(void)
{
	struct ft_comp comp;
	void *d = ft_desc(&pair.dom[0], in, LEN);

	ft_stage("a message wakes, too");
	FT_CALL(fi_recv(pair.s.ep, in, LEN, d, FT_ANY, in));
	FT_CALL(fi_send(pair.c.ep, out, LEN, NULL, pair.c.to, out));
	sleep_for(&pair.s, FT_RX, wait_fd[1], in);
	ft_wait(&pair.c, FT_TX, &comp);
}

static pthread_barrier_t both;

/* In each thread, waits for one completion of the target */
static void *share_main(void *arg)
{
	struct fid *fid = &pair.s.cq[FT_RX]->fid;
	struct pollfd pfd = { wait_fd[1], POLLIN, 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	for (;;) {
		pthread_barrier_wait(&both);
		if (!rounds)
			return NULL;
		while ((ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1)) ==
		       -FI_EAGAIN) {
			if (!fi_trywait(pair.s.dom->fabric, &fid, 1))
				FT_CHECK(poll(&pfd, 1, 30000) > 0,
					 "asleep beside a completion");
		}
		FT_CHECK(ret == 1, "completion: %zd", ret);
		pthread_barrier_wait(&both);
	}
}

/* Two threads wait for one queue: neither misses its wake-up. */
static void shared(void)
{
	const struct iovec iov = { out, LEN };
	struct fi_msg_cw msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = pair.c.to,
	};
	const uint64_t begin = ft_now_us();
	struct ft_comp comp;
	pthread_t thread[2];
	unsigned i, k;

	ft_stage("two threads asleep");
	rounds = 1;
	pair.s.quiet[FT_RX] = true;
	pthread_barrier_init(&both, NULL, 3);
	for (i = 0; i < 2; i++)
		FT_CHECK(!pthread_create(&thread[i], NULL, share_main, NULL),
			 "thread");
	for (i = 0; ft_round(i, ft_races(10000), begin); i++) {
		for (k = 0; k < 2; k++)
			FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, k,
					 in));
		pthread_barrier_wait(&both);
		for (k = ft_rand() % 20000; k; k--)
			__asm__ volatile("");
		for (msg.cwtag = 0; msg.cwtag < 2; msg.cwtag++)
			FT_CALL(fi_cwritemsg(pair.c.cw, &msg,
					     msg.cwtag ? 0 : FI_MORE));
		for (k = 0; k < 2; k++)
			ft_wait(&pair.c, FT_TX, &comp);
		pthread_barrier_wait(&both);
	}
	rounds = 0;
	pthread_barrier_wait(&both);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&both);
	pair.s.quiet[FT_RX] = false;
}

static void writer_sleeps(int ms)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, ms);
	FT_CHECK(ret == -FI_EAGAIN, "fi_cq_sread: %zd", ret);
}

/* Waiting threads, and the provider's own threads, sleep. */
static void idle(void)
{
	struct ft_comp comp;

	ft_stage("idle");
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 500, out));
	ft_expect_none(&pair.c, 20);
	ft_check_sleeps(wait_fd[0] < 0 ? writer_sleeps : NULL);
	FT_CALL(fi_cancel(&pair.c.ep->fid, out));
	ft_wait_any(&pair.c, FT_TX, &comp);
	FT_CHECK(comp.ctx == out && comp.err == FI_ECANCELED, "cancel: %d",
		 comp.err);
}

/* Endpoints in the pair's domains, with conditional writes and no peer */
static struct fid_ep *crowd[2][CROWD];

static void crowd_open(void)
{
	struct rlimit limit;
	struct ft_ep *ep;
	int i, k;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (k = 0; k < 2; k++) {
		ep = k ? &pair.c : &pair.s;
		for (i = 0; i < CROWD; i++) {
			FT_CALL(fi_endpoint(ep->dom->domain, ep->dom->info,
					    &crowd[k][i], NULL));
			FT_CALL(fi_ep_bind(crowd[k][i], &ep->eq->fid, 0));
			FT_CALL(fi_ep_bind(crowd[k][i], &ep->cq[FT_TX]->fid,
					   FI_TRANSMIT));
			FT_CALL(fi_ep_bind(crowd[k][i], &ep->cq[FT_RX]->fid,
					   FI_RECV));
			FT_CALL(fi_cw_enable(&crowd[k][i]->fid, 0));
		}
	}
}

/*
 * With many endpoints a sleeping thread is still woken at once.
 */
static void crowded(enum fi_wait_obj obj, enum fi_progress progress)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_comp comp;
	unsigned slow;
	int i, k;

	ft_stage("many endpoints");
	attr.wait_obj = obj;
	attr.progress = progress;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	wait_fd[0] = wait_fd[1] = -1;
	/*
	 * connect the pair before the other endpoints open, as a connection has
	 * a time limit of seconds
	 */
	FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, 0, in));
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 0, out));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	crowd_open();
	slow = both_sleep("fi_cq_sread, many endpoints");
	/* on a loaded machine some writes are slow */
	FT_CHECK(slow <= rounds * 3 / 4, "%u of %u were slow", slow, rounds);
	if (progress != FI_PROGRESS_MANUAL)
		automatic();
	for (k = 0; k < 2; k++) {
		for (i = 0; i < CROWD; i++)
			FT_CALL(fi_close(&crowd[k][i]->fid));
	}
	ft_pair_close(&pair);
}

static atomic_bool tries, rests;

static void *try_main(void *arg)
{
	struct fid *fid = &pair.s.cq[FT_TX]->fid;
	unsigned i;

	while (rounds) {
		atomic_store(&rests, true);
		while (atomic_load(&tries)) {
			atomic_store(&rests, false);
			fi_trywait(pair.s.dom->fabric, &fid, 1);
			for (i = ft_rand() % 500; i; i--)
				__asm__ volatile("");
		}
	}
	return NULL;
}

/*
 * A thread that is about to wait sends the messages that FI_MORE held back,
 * even if another thread calls fi_trywait() meanwhile.
 */
static void more(void)
{
	const struct iovec iov = { in, LEN };
	struct fi_msg_cw msg = { .msg_iov = &iov, .iov_count = 1 };
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct pollfd pfd = { .events = POLLIN };
	struct ft_comp comp;
	pthread_t thread;
	struct fid *fid;
	uint64_t begin, end;
	unsigned i, round;

	ft_stage("asleep after FI_MORE");
	attr.wait_obj = FI_WAIT_FD;
	attr.progress = FI_PROGRESS_MANUAL;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	fid = &pair.s.cq[FT_RX]->fid;
	FT_CALL(fi_control(fid, FI_GETWAIT, &pfd.fd));
	msg.addr = pair.s.to;
	rounds = 1;
	atomic_store(&tries, false);
	FT_CHECK(!pthread_create(&thread, NULL, try_main, NULL), "thread");
	begin = ft_now_us();
	for (round = 0; ft_round(round, ft_races(2000), begin); round++) {
		atomic_store(&tries, true);
		for (i = ft_rand() % 20000; i; i--)
			__asm__ volatile("");
		FT_CALL(fi_cwtagmsg(pair.s.cw, &msg, FI_MORE));
		while (fi_trywait(pair.s.dom->fabric, &fid, 1))
			;
		atomic_store(&tries, false);
		atomic_store(&rests, false);
		while (!atomic_load(&rests))
			sched_yield();
		/*
		 * the target sleeps, so messages that the target holds back
		 * stay unsent
		 */
		end = ft_deadline();
		do {
			if (poll(&pfd, 1, 0) > 0)
				ft_poll(&pair.s);
			ft_poll(&pair.c);
			FT_CALL(fi_cw_stats_read(pair.c.cw, &st));
			FT_CHECK(ft_limit_us() < end, "asleep, with a tag that "
						      "the peer does not know");
		} while (!st.known_tags);
		FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 0,
				  out));
		ft_wait(&pair.c, FT_TX, &comp);
		ft_wait(&pair.s, FT_RX, &comp);
	}
	rounds = 0;
	pthread_join(thread, NULL);
	ft_pair_close(&pair);
}

static void run(enum fi_wait_obj obj, bool fds, const char *what)
{
	struct ft_attr attr = FT_ATTR;

	attr.format = FI_CQ_FORMAT_DATA;
	attr.wait_obj = obj;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	wait_fd[0] = wait_fd[1] = -1;
	if (fds) {
		FT_CALL(fi_control(&pair.c.cq[FT_TX]->fid, FI_GETWAIT,
				   &wait_fd[0]));
		FT_CALL(fi_control(&pair.s.cq[FT_RX]->fid, FI_GETWAIT,
				   &wait_fd[1]));
	} else {
		times();
		signals();
	}
	both_sleep(what);
	others();
	if (fds)
		shared();
	automatic();
	automatic_error();
	automatic_posts();
	idle();
	ft_check_idle(&pair.dom[1], what);
	ft_pair_close(&pair);
}

/*
 * Closes the last endpoint, and leaves the event of its connection's end
 * unread: the event does not wake threads permanently.
 */
static void left(void)
{
	struct ft_attr attr = FT_ATTR;
	struct pollfd pfd = { .events = POLLIN };
	struct fi_cq_data_entry entry;
	struct ft_comp comp;
	struct fid *fid;
	ssize_t ret;
	unsigned i;

	ft_stage("asleep after the last endpoint");
	attr.wait_obj = FI_WAIT_FD;
	attr.progress = FI_PROGRESS_MANUAL;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	fid = &pair.c.cq[FT_TX]->fid;
	FT_CALL(fi_control(fid, FI_GETWAIT, &pfd.fd));
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 0, out));
	FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, 0, in));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CALL(fi_close(&pair.s.ep->fid));
	pair.s.ep = NULL;
	usleep(20000);
	for (i = 0; i < 3; i++)
		ft_poll(&pair.c);
	FT_CALL(fi_close(&pair.c.ep->fid));
	pair.c.ep = NULL;
	for (i = 0; i < 1000; i++) {
		if (!fi_trywait(pair.c.dom->fabric, &fid, 1) &&
		    !poll(&pfd, 1, 100))
			break;
		ret = fi_cq_read(pair.c.cq[FT_TX], &entry, 1);
		FT_CHECK(ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
	}
	FT_CHECK(i < 1000, "woken again and again, for nothing");
	ft_pair_close(&pair);
}

/* Enables conditional writes on an endpoint that is connected. */
static void too_late(void)
{
	struct ft_attr attr = FT_ATTR;
	int ret;

	ft_stage("enabled when connected");
	ft_pair_open(&pair, &attr);
	ret = fi_cw_enable(&pair.c.ep->fid, 0);
	FT_CHECK(ret == -FI_EBUSY, "enabled when connected: %d", ret);
	ret = fi_cwrite(pair.c.cw, out, 1, NULL, pair.c.to, 1, NULL);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "not enabled: %d", ret);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	too_late();
	run(FI_WAIT_UNSPEC, false, "fi_cq_sread, FI_WAIT_UNSPEC");
	run(FI_WAIT_FD, false, "fi_cq_sread, FI_WAIT_FD");
	run(FI_WAIT_FD, true, "wait descriptors");
	more();
	if (!ft_rdm())
		left();
	if (ft_core("tcp") && !ft_rdm()) {
		crowded(FI_WAIT_UNSPEC, FI_PROGRESS_MANUAL);
		crowded(FI_WAIT_FD, FI_PROGRESS_UNSPEC);
	}
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	return ft_done();
}
