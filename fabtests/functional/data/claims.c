/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_claims: tests that each operation ends once, whichever thread reads
 * its completion. A core completes an operation twice; threads read a queue, or
 * close its endpoint, at the same time; an endpoint is closed after a thread
 * has read one of its completions and before the thread reports the completion;
 * and some operations must not end. The test replaces calls in the core's
 * table, which all its queues share.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <stdatomic.h>

#define SMALL 1000 /* this length is copied */
#define BIG   (1UL << 20)
#define COST  "reg_page=1000:reg=19000:dereg_page=0:dereg=1000:copy_page=4000"

static struct ft_pair pair;
static char *out, *in;

/* ---- the core ------------------------------------------------------------ */

static struct fi_ops_cq core;
static struct fid_cq *queue; /* queue to which the completions below belong */

/* Returns the last completion a second time. */
static struct fi_cq_data_entry last;
static bool twice, again;

static ssize_t twice_read(struct fid_cq *cq, void *buf, size_t count)
{
	ssize_t ret;

	if (again && cq == queue) {
		memcpy(buf, &last, sizeof(last));
		again = false;
		return 1;
	}
	ret = core.read(cq, buf, count);
	if (ret > 0 && twice) {
		memcpy(&last, buf, sizeof(last));
		queue = cq;
		twice = false;
		again = true;
	}
	return ret;
}

/* Makes each read slow; tcp's own read calls another function of the table. */
static atomic_bool begun, reading, together;
static _Thread_local int depth;

static void read_begins(void)
{
	int i;

	if (depth++)
		return;
	if (atomic_exchange(&reading, true))
		atomic_store(&together, true);
	atomic_store(&begun, true);
	for (i = 0; i < 100 && !atomic_load(&together); i++)
		usleep(1000);
}

static ssize_t read_ends(ssize_t ret)
{
	if (!--depth)
		atomic_store(&reading, false);
	return ret;
}

static ssize_t slow_read(struct fid_cq *cq, void *buf, size_t count)
{
	read_begins();
	return read_ends(core.read(cq, buf, count));
}

static ssize_t slow_readfrom(struct fid_cq *cq, void *buf, size_t count,
			     fi_addr_t *src)
{
	read_begins();
	return read_ends(core.readfrom(cq, buf, count, src));
}

/*
 * Stops a thread that has read a completion, before it returns the completion.
 */
static atomic_bool waits, has, may_return;

static ssize_t held_sread(struct fid_cq *cq, void *buf, size_t count,
			  const void *cond, int timeout)
{
	ssize_t ret;

	read_begins();
	atomic_store(&waits, true);
	ret = read_ends(core.sread(cq, buf, count, cond, timeout));
	if (ret <= 0)
		return ret;
	atomic_store(&has, true);
	while (!atomic_load(&may_return))
		usleep(1000);
	return ret;
}

/* A core that takes no operation. */
static ssize_t full_send(struct fid_ep *ep, const void *from, size_t len,
			 void *desc, fi_addr_t addr, void *context)
{
	return -FI_EAGAIN;
}

static ssize_t full_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    uint64_t flags)
{
	return -FI_EAGAIN;
}

/* ---- operations ---------------------------------------------------------- */

static void post_recv(struct ft_ep *ep, char *buf, size_t len)
{
	FT_CALL(fi_recv(ep->ep, buf, len, NULL, 0, buf));
}

static void check_posted(struct ft_dom *dom, uint64_t want, const char *when)
{
	struct fi_mrrc_stats st;

	ft_stats(dom, &st);
	FT_CHECK(st.posts - st.completions == want,
		 "%s: %" PRIu64 " operations under way, not %" PRIu64, when,
		 st.posts - st.completions, want);
}

static void until(atomic_bool *flag, const char *what)
{
	uint64_t end = ft_deadline();

	while (!atomic_load(flag)) {
		ft_poll(&pair.c);
		FT_CHECK(ft_limit_us() < end, "%s", what);
	}
}

static void completed_twice(struct fi_ops_cq *ops)
{
	struct ft_comp comp;

	ft_stage("completed twice");
	ops->read = twice_read;
	post_recv(&pair.s, in, BIG);
	ft_fill(out, BIG, 1);
	FT_CALL(fi_send(pair.c.ep, out, BIG, NULL, 0, out));
	ft_wait(&pair.c, FT_TX, &comp);
	twice = true;
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.ctx == in, "context %p", comp.ctx);
	ft_expect_none(&pair.s, 2);
	FT_CHECK(!twice && !again, "it was not completed twice");
	*ops = core;
	ft_check_idle(&pair.dom[0], "completed twice");
	ft_verify_pair(&pair.c, out, in, BIG, 2);
	ft_verify_pair(&pair.s, out, in, BIG, 3);
}

/* ---- several threads ----------------------------------------------------- */

static void *read_main(void *arg)
{
	ssize_t ret = fi_cq_read(pair.s.cq[FT_RX], arg, 1);

	FT_CHECK(ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
	return NULL;
}

static void read_once(void)
{
	struct fi_cq_data_entry entry;

	read_main(&entry);
}

static void read_source(void)
{
	struct fi_cq_data_entry entry;
	fi_addr_t src;
	ssize_t ret;

	ret = fi_cq_readfrom(pair.s.cq[FT_RX], &entry, 1, &src);
	FT_CHECK(ret == -FI_EAGAIN, "fi_cq_readfrom: %zd", ret);
}

static void close_ep(void)
{
	FT_CALL(fi_close(&pair.s.ep->fid));
	pair.s.ep = NULL;
}

/* Reads of the core, and claims of its completions, exclude each other. */
static void one_by_one(struct fi_ops_cq *ops, void (*other)(void),
		       const char *what)
{
	struct fi_cq_data_entry entry;
	pthread_t thread;

	ft_stage("%s, beside a read", what);
	ops->read = slow_read;
	ops->readfrom = slow_readfrom;
	atomic_store(&begun, false);
	atomic_store(&together, false);
	FT_CHECK(!pthread_create(&thread, NULL, read_main, &entry), "thread");
	while (!atomic_load(&begun))
		usleep(100);
	other();
	pthread_join(thread, NULL);
	*ops = core;
	FT_CHECK(!atomic_load(&together), "two threads read the core");
	if (!pair.s.ep)
		ft_reconnect(&pair);
}

static struct fid_cq *slept_on;

static void *sread_main(void *arg)
{
	struct fi_cq_data_entry entry = { 0 };
	struct fi_cq_err_entry err = { 0 };
	void **context = arg;
	ssize_t ret;

	ret = fi_cq_sread(slept_on, &entry, 1, NULL, -1);
	*context = ret == 1 ? entry.op_context : NULL;
	if (ret == 1 || ret == -FI_EAGAIN)
		return NULL;
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_sread: %zd", ret);
	/* closed_meanwhile()'s other receive */
	ret = fi_cq_readerr(slept_on, &err, 0);
	FT_CHECK(ret == 1 && err.err == FI_ECANCELED &&
			 err.op_context == in + BIG,
		 "fi_cq_readerr: %zd, error %d, context %p", ret, err.err,
		 err.op_context);
	return NULL;
}

static void sleep_on(struct fid_cq *cq, pthread_t *thread, void *context)
{
	slept_on = cq;
	atomic_store(&waits, false);
	atomic_store(&has, false);
	atomic_store(&may_return, false);
	FT_CHECK(!pthread_create(thread, NULL, sread_main, context), "thread");
	while (!atomic_load(&waits))
		usleep(1000);
}

static void wake(pthread_t thread)
{
	while (pthread_tryjoin_np(thread, NULL)) {
		FT_CALL(fi_cq_signal(slept_on));
		usleep(1000);
	}
}

/* A core that sleeps until it is signalled, without reading a completion. */
static atomic_bool signalled;

static ssize_t deaf_sread(struct fid_cq *cq, void *buf, size_t count,
			  const void *cond, int timeout)
{
	const uint64_t end = ft_limit_us() + 10000000;

	atomic_store(&waits, true);
	while (!atomic_exchange(&signalled, false)) {
		FT_CHECK(ft_limit_us() < end, "no thread is woken");
		usleep(1000);
	}
	return -FI_EAGAIN;
}

static int count_signal(struct fid_cq *cq)
{
	atomic_store(&signalled, true);
	return 0;
}

/* Reads two completions, of which the first claims too many bytes. */
static ssize_t faulty_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct fi_cq_data_entry *entry = buf;
	const uint64_t end = ft_deadline();
	size_t got = 0;
	ssize_t ret;

	while (got < 2) {
		ret = core.read(cq, entry + got, 1);
		FT_CHECK(ret == 1 || ret == -FI_EAGAIN, "core: %zd", ret);
		FT_CHECK(ft_limit_us() < end, "%zu messages came", got);
		got += ret == 1;
	}
	entry->len = BIG;
	return got;
}

static void *behind_main(void *arg)
{
	struct fid_cq *cq = pair.s.cq[FT_RX];
	struct fi_cq_data_entry entry = { 0 };
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	ret = fi_cq_sread(cq, &entry, 1, NULL, -1);
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_sread: %zd", ret);
	ret = fi_cq_readerr(cq, &err, 0);
	FT_CHECK(ret == 1 && err.err == FI_ETRUNC && err.op_context == in,
		 "fi_cq_readerr: %zd, error %d, context %p", ret, err.err,
		 err.op_context);
	ret = fi_cq_sread(cq, &entry, 1, NULL, -1);
	FT_CHECK(ret == 1 && entry.op_context == in + BIG,
		 "fi_cq_sread: %zd, context %p", ret, entry.op_context);
	return arg;
}

/*
 * A thread reads an error that the provider made of a faulty completion, and
 * the completion behind it: a thread that sleeps on the queue wakes up for them.
 */
static void behind_error(struct fi_ops_cq *ops)
{
	struct fi_cq_data_entry entries[2];
	struct ft_comp comp;
	pthread_t thread;
	ssize_t ret;
	int i;

	ft_stage("a faulty message beside a thread that sleeps");
	pair.s.quiet[FT_RX] = true;
	ops->sread = deaf_sread;
	ops->signal = count_signal;
	atomic_store(&waits, false);
	FT_CHECK(!pthread_create(&thread, NULL, behind_main, NULL), "thread");
	while (!atomic_load(&waits))
		usleep(1000);
	post_recv(&pair.s, in, SMALL);
	post_recv(&pair.s, in + BIG, SMALL);
	for (i = 0; i < 2; i++)
		FT_CALL(fi_send(pair.c.ep, out, SMALL, NULL, 0, out));
	ops->read = faulty_read;
	ret = fi_cq_read(pair.s.cq[FT_RX], entries, 2);
	ops->read = core.read;
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
	FT_CALL(pthread_join(thread, NULL));
	*ops = core;
	for (i = 0; i < 2; i++)
		ft_wait(&pair.c, FT_TX, &comp);
	pair.s.quiet[FT_RX] = false;
	ft_check_idle(&pair.dom[0], "a faulty message");
}

/*
 * Only the waiting thread reads completions that would make room, not a thread
 * that posts.
 */
static void full_meanwhile(struct ft_core_ops *ops)
{
	const struct fi_ops_msg msg = *ops->msg;
	pthread_t thread;
	void *context;
	ssize_t ret;

	ft_stage("no room, beside a thread that waits");
	ops->cq->read = slow_read;
	ops->cq->readfrom = slow_readfrom;
	ops->cq->sread = held_sread;
	atomic_store(&together, false);
	sleep_on(pair.c.cq[FT_TX], &thread, &context);
	ops->msg->send = full_send;
	ops->msg->sendmsg = full_sendmsg;
	ret = fi_send(pair.c.ep, out, BIG, NULL, 0, out);
	*ops->msg = msg;
	*ops->cq = core;
	wake(thread);
	FT_CHECK(ret == -FI_EAGAIN, "fi_send: %zd", ret);
	FT_CHECK(!atomic_load(&together), "two threads read the core");
}

/*
 * The endpoint closes while a thread is about to report a completion. The
 * completion is reported, unless its data would have to be copied to a buffer
 * that is the application's again. The endpoint's other operations end when the
 * reporting thread is done.
 */
static void closed_meanwhile(struct fi_ops_cq *ops, size_t len)
{
	const bool copied = len == SMALL;
	pthread_t thread;
	void *context;
	size_t i;

	ft_stage("closed beside a thread with a completion, %zu bytes", len);
	pair.s.quiet[FT_RX] = true;
	ops->sread = held_sread;
	/* use memory that was not used yet */
	ft_map(in, 2 * BIG);
	memset(in, 0x5a, 2 * BIG);
	post_recv(&pair.s, in, len);
	post_recv(&pair.s, in + BIG, len);
	sleep_on(pair.s.cq[FT_RX], &thread, &context);
	memset(out, 1, len);
	FT_CALL(fi_send(pair.c.ep, out, len, NULL, 0, out));
	until(&has, "nothing comes");
	close_ep();
	check_posted(&pair.dom[0], 2, "closed");
	/* the buffer is the application's again */
	memset(in, 0x5a, copied ? len : 0);
	atomic_store(&may_return, true);
	wake(thread);
	*ops = core;
	FT_CHECK(context == (copied ? NULL : in), "context %p of %p", context,
		 in);
	for (i = 0; copied && i < len; i++)
		FT_CHECK(in[i] == 0x5a, "byte %zu was written", i);
	ft_check_idle(&pair.dom[0], "closed");
	ft_reconnect(&pair);
}

/*
 * ---- operations that a close ends, and others ------------------------------
 */

/*
 * When an endpoint closes, tcp gives the endpoint's receives back at once, with
 * the application's contexts.
 */
static void check_given_back(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
	ret = fi_cq_readerr(pair.s.cq[FT_RX], &err, 0);
	FT_CHECK(ret == 1 && err.err == FI_ECANCELED && err.op_context == in,
		 "fi_cq_readerr: %zd, error %d, context %p", ret, err.err,
		 err.op_context);
	check_posted(&pair.dom[0], 0, "given back");
}

static void closed(void)
{
	ft_stage("given back");
	pair.s.quiet[FT_RX] = true;
	post_recv(&pair.s, in, BIG);
	close_ep();
	check_given_back();
	ft_reconnect(&pair);
}

/*
 * Closing an endpoint does not end operations of other endpoints, and neither
 * does the failed close of a domain.
 */
static void others(void)
{
	struct ft_comp comp;
	struct ft_ep s, c;

	ft_stage("another's operations");
	ft_connect(&pair, &s, &c);
	post_recv(&s, in, BIG);
	FT_CHECK(fi_close(&pair.dom[0].domain->fid) == -FI_EBUSY,
		 "a domain closes over its endpoints");
	check_posted(&pair.dom[0], 1, "the domain is in use");
	ft_ep_close(&pair.s);
	ft_ep_close(&pair.c);
	check_posted(&pair.dom[0], 1, "another endpoint closed");
	ft_fill(out, BIG, 7);
	FT_CALL(fi_send(c.ep, out, BIG, NULL, 0, out));
	ft_wait(&c, FT_TX, &comp);
	ft_wait(&s, FT_RX, &comp);
	FT_CHECK_BUF(in, BIG, 7, "beside a close");
	ft_ep_close(&s);
	ft_ep_close(&c);
	ft_connect(&pair, &pair.s, &pair.c);
}

/*
 * An operation without a completion is not waited for, but an error of such an
 * operation is reported.
 */
static void silent_error(void)
{
	struct iovec iov = { in, BIG };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.context = in,
	};
	struct ft_attr attr = FT_ATTR;

	ft_stage("an error of a silent receive");
	attr.rx_selective = true;
	ft_pair_open(&pair, &attr);
	pair.s.quiet[FT_RX] = true;
	FT_CALL(fi_recvmsg(pair.s.ep, &msg, 0));
	FT_CALL(fi_cancel(&pair.s.ep->fid, in));
	check_given_back();
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_core_ops table;

	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "64K", 1);
	setenv("FI_OFI_MRRC_COST", COST, 1);
	ft_init(argc, argv);
	if (ft_opts.raw || ft_rdm() || !ft_core("tcp"))
		ft_skip("of tcp it is known what it has");
	ft_core_ops("tcp", &table);
	core = *table.cq;
	out = ft_map(NULL, BIG);
	in = ft_map(NULL, 2 * BIG);
	attr.wait_obj = FI_WAIT_UNSPEC;
	attr.threading = FI_THREAD_SAFE;
	ft_pair_open(&pair, &attr);
	completed_twice(table.cq);
	one_by_one(table.cq, read_once, "a read");
	one_by_one(table.cq, read_source, "a read with a source");
	one_by_one(table.cq, close_ep, "a close");
	behind_error(table.cq);
	full_meanwhile(&table);
	closed_meanwhile(table.cq, BIG);
	closed_meanwhile(table.cq, SMALL);
	closed();
	others();
	ft_pair_close(&pair);
	silent_error();
	ft_unmap(out, BIG);
	ft_unmap(in, 2 * BIG);
	return ft_done();
}
