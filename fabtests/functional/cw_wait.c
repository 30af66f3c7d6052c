/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_wait: who waits for conditional writes. The writer sleeps, in
 * fi_cq_sread() or on a wait descriptor, with a write that is held; another
 * thread exposes the buffer. So the sleeper has to be woken by a tag, send
 * the write, and get its completion; and the target sleeps likewise.
 */
#include "ft_mrrc.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define LEN 4096

static struct ft_pair pair;
static char *out, *in;
static unsigned rounds;
static int wait_fd[2] = { -1, -1 };	/* writer's, target's */

/* A completion of cq, asleep until there is one; -1: interrupted */
static bool sleep_for(struct ft_ep *ep, enum ft_dir dir, int fd, void *ctx)
{
	struct fid *fid = &ep->cq[dir]->fid;
	struct fi_cq_data_entry entry = { 0 };
	uint64_t end = ft_now_us() + 10000000;
	struct pollfd pfd = { fd, POLLIN, 0 };
	ssize_t ret;

	do {
		FT_CHECK(ft_now_us() < end, "nobody wakes the sleeper");
		if (fd < 0) {
			ret = fi_cq_sread(ep->cq[dir], &entry, 1, NULL, 3000);
			continue;
		}
		ret = fi_cq_read(ep->cq[dir], &entry, 1);
		if (ret != -FI_EAGAIN)
			continue;
		if (!fi_trywait(ep->dom->fabric, &fid, 1))
			FT_CHECK(poll(&pfd, 1, 5000) > 0,
				 "the descriptor does not wake");
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret == 1, "completion: %zd", ret);
	FT_CHECK(entry.op_context == ctx, "another's completion");
	return true;
}

static void *target_main(void *arg)
{
	unsigned i;

	(void) arg;
	for (i = 0; i < rounds; i++) {
		/* sometimes the write is there first */
		if (i % 2)
			usleep(ft_rand() % 3000);
		FT_CALL(fi_cwtag(pair.s.ep, in, LEN, NULL, 0, i, in));
		sleep_for(&pair.s, FT_RX, wait_fd[1], in);
		FT_CHECK_BUF(in, LEN, i, "conditional write");
	}
	return NULL;
}

static void both_sleep(const char *what)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	pthread_t target;
	unsigned i;

	ft_stage("%s", what);
	rounds = ft_iters(200);
	FT_CHECK(!pthread_create(&target, NULL, target_main, NULL), "thread");
	for (i = 0; i < rounds; i++) {
		ft_fill(out, LEN, i);
		if (!(i % 2))
			usleep(ft_rand() % 3000);
		FT_CALL(fi_cwrite(pair.c.ep, out, LEN, NULL, 0, i, out));
		sleep_for(&pair.c, FT_TX, wait_fd[0], out);
	}
	pthread_join(target, NULL);
	FT_CALL(fi_cw_stats(pair.c.ep, &st));
	ft_log("%s: %" PRIu64 " at once, %" PRIu64 " held", what, st.immediate,
	       st.held);
}

static void *signal_main(void *arg)
{
	usleep(100000);
	FT_CALL(fi_cq_signal(arg));
	return NULL;
}

/* Neither too long nor too short, and fi_cq_signal() ends it. */
static void times(void)
{
	struct fi_cq_data_entry entry;
	uint64_t begin = ft_now_us(), took;
	pthread_t thread;
	ssize_t ret;

	ft_stage("waiting for nothing");
	ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 200);
	took = ft_now_us() - begin;
	FT_CHECK(ret == -FI_EAGAIN && took > 190000 && took < 2000000,
		 "%zd after %" PRIu64 " us", ret, took);
	FT_CHECK(!pthread_create(&thread, NULL, signal_main,
				 pair.c.cq[FT_TX]), "thread");
	begin = ft_now_us();
	ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 10000);
	took = ft_now_us() - begin;
	FT_CHECK(ret == -FI_EAGAIN && took > 50000 && took < 5000000,
		 "signal: %zd after %" PRIu64 " us", ret, took);
	pthread_join(thread, NULL);
}

/* The core's own operations wake the sleeper as before. */
static void others(void)
{
	struct ft_comp comp;
	void *d = ft_desc(&pair.dom[0], in, LEN);

	ft_stage("a message wakes, too");
	FT_CALL(fi_recv(pair.s.ep, in, LEN, d, FT_ANY, in));
	FT_CALL(fi_send(pair.c.ep, out, LEN, NULL, 0, out));
	sleep_for(&pair.s, FT_RX, wait_fd[1], in);
	ft_wait(&pair.c, FT_TX, &comp);
}

/* Neither side calls anything for what it has posted. */
static void automatic(void)
{
	uint64_t end = ft_now_us() + 10000000;
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct ft_comp comp;

	if (fi_cw_feature(&pair.c.ep->fid, "auto_progress") != 1) {
		ft_log("progress is not automatic here");
		return;
	}
	ft_stage("automatic progress");
	ft_fill(out, LEN, 99);
	FT_CALL(fi_cwrite(pair.c.ep, out, LEN, NULL, 0, 99, out));
	FT_CALL(fi_cwtag(pair.s.ep, in, LEN, NULL, 0, 99, in));
	do {
		usleep(1000);
		FT_CALL(fi_cw_stats(pair.s.ep, &st));
		FT_CHECK(ft_now_us() < end, "nothing happens");
	} while (st.tags != st.tags_ended);
	FT_CHECK_BUF(in, LEN, 99, "conditional write");
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
}

/* Who waits, and the provider's threads, sleep. */
static void idle(void)
{
	struct rusage before, after;
	struct fi_cq_data_entry entry;
	struct ft_comp comp;
	int64_t us;
	ssize_t ret;

	ft_stage("idle");
	FT_CALL(fi_cwrite(pair.c.ep, out, LEN, NULL, 0, 500, out));
	ft_expect_none(&pair.c, 20);
	getrusage(RUSAGE_SELF, &before);
	if (wait_fd[0] < 0) {
		ret = fi_cq_sread(pair.c.cq[FT_TX], &entry, 1, NULL, 1000);
		FT_CHECK(ret == -FI_EAGAIN, "fi_cq_sread: %zd", ret);
	} else {
		usleep(1000000);
	}
	getrusage(RUSAGE_SELF, &after);
	us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec +
	      after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000LL +
	     after.ru_utime.tv_usec - before.ru_utime.tv_usec +
	     after.ru_stime.tv_usec - before.ru_stime.tv_usec;
	FT_CHECK(us < 200000, "%" PRId64 " us of work in a second", us);
	FT_CALL(fi_cw_cancel(pair.c.ep, out));
	ft_wait_any(&pair.c, FT_TX, &comp);
	FT_CHECK(comp.ctx == out && comp.err == FI_ECANCELED, "cancel: %d",
		 comp.err);
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
	}
	both_sleep(what);
	others();
	automatic();
	idle();
	ft_check_idle(&pair.dom[1], what);
	ft_pair_close(&pair);
}

/* The descriptor is given out before: too late. */
static void too_late(void)
{
	struct ft_attr attr = FT_ATTR;
	int ret, fd;

	ft_stage("descriptor taken before");
	attr.wait_obj = FI_WAIT_FD;
	ft_pair_open(&pair, &attr);
	ret = fi_cw_enable(&pair.c.ep->fid, 0);
	FT_CHECK(ret == -FI_EBUSY, "enabled when connected: %d", ret);
	FT_CALL(fi_control(&pair.c.cq[FT_TX]->fid, FI_GETWAIT, &fd));
	ret = fi_cwrite(pair.c.ep, out, 1, NULL, 0, 1, NULL);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "not enabled: %d", ret);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_rdm() || ft_core("verbs"))
		ft_skip("conditional writes need FI_EP_MSG, and not verbs");
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	run(FI_WAIT_UNSPEC, false, "fi_cq_sread, FI_WAIT_UNSPEC");
	run(FI_WAIT_FD, false, "fi_cq_sread, FI_WAIT_FD");
	run(FI_WAIT_FD, true, "wait descriptors");
	too_late();
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	return ft_done();
}
