/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_enable: tests fi_cw_enable(): in several threads at once, for
 * endpoints that share a completion queue that another thread reads, for one
 * endpoint, and while the queue's wait descriptor is taken; calls that come too
 * late; and the results of fi_mrrc_feature() and of other calls before and
 * after fi_cw_enable().
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <stdatomic.h>

#define EPS 4

static struct ft_dom dom;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_ep *ep[EPS];
/* conditional writes of the endpoint opened last */
static struct fi_mrrc_cw *cw;
static pthread_barrier_t barrier;
static atomic_bool stop;

static void open_dom(void)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct ft_attr attr = FT_ATTR;

	dom.info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(dom.info->fabric_attr, &dom.fabric, NULL));
	FT_CALL(fi_eq_open(dom.fabric, &eq_attr, &eq, NULL));
	FT_CALL(fi_domain(dom.fabric, dom.info, &dom.domain, NULL));
}

static void close_dom(void)
{
	FT_CALL(fi_close(&dom.domain->fid));
	FT_CALL(fi_close(&eq->fid));
	FT_CALL(fi_close(&dom.fabric->fid));
	fi_freeinfo(dom.info);
}

static void open_cq(enum fi_wait_obj obj)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = obj,
	};

	FT_CALL(fi_cq_open(dom.domain, &attr, &cq, NULL));
}

static void open_ep(unsigned i)
{
	FT_CALL(fi_endpoint(dom.domain, dom.info, &ep[i], NULL));
	FT_CALL(fi_cw_open(ep[i], &cw));
	FT_CALL(fi_ep_bind(ep[i], &eq->fid, 0));
	FT_CALL(fi_ep_bind(ep[i], &cq->fid, FI_TRANSMIT | FI_RECV));
}

static void *enable_main(void *arg)
{
	pthread_barrier_wait(&barrier);
	FT_CALL(fi_cw_enable(arg, 0));
	return NULL;
}

/*
 * Returns the queue's table of calls, which fi_cq_read() would use, by a load
 * that race detectors know
 */
static struct fi_ops_cq *cq_ops(void)
{
	return __atomic_load_n(&cq->ops, __ATOMIC_ACQUIRE);
}

static void *read_main(void *arg)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	pthread_barrier_wait(&barrier);
	do {
		ret = cq_ops()->read(cq, &entry, 1);
		FT_CHECK(ret == -FI_EAGAIN, "a completion of nothing: %zd",
			 ret);
	} while (!atomic_load(&stop));
	return NULL;
}

/*
 * Threads enable endpoints that share a queue: the first endpoint changes the
 * queue's table of calls, while another thread reads the queue.
 */
static void at_once(enum fi_wait_obj obj)
{
	struct fi_cq_data_entry entry;
	pthread_t thread[EPS], reader;
	unsigned i;
	int fd;

	open_cq(obj);
	for (i = 0; i < EPS; i++)
		open_ep(i);
	atomic_store(&stop, false);
	FT_CHECK(!pthread_create(&reader, NULL, read_main, NULL), "thread");
	for (i = 0; i < EPS; i++)
		FT_CHECK(!pthread_create(&thread[i], NULL, enable_main,
					 &ep[i]->fid),
			 "thread");
	for (i = 0; i < EPS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&stop, true);
	pthread_join(reader, NULL);
	FT_CHECK(fi_cq_read(cq, &entry, 1) == -FI_EAGAIN, "fi_cq_read");
	if (obj == FI_WAIT_FD)
		FT_CALL(fi_control(&cq->fid, FI_GETWAIT, &fd));
	for (i = 0; i < EPS; i++)
		FT_CALL(fi_close(&ep[i]->fid));
	FT_CALL(fi_close(&cq->fid));
}

static void threads(void)
{
	unsigned i, n = ft_iters(500);

	pthread_barrier_init(&barrier, NULL, EPS + 1);
	for (i = 0; i < n; i++) {
		ft_stage("threads, round %u", i);
		at_once(i % 2 ? FI_WAIT_FD : FI_WAIT_NONE);
	}
	pthread_barrier_destroy(&barrier);
}

/* Threads enable one endpoint: all but the first thread find it enabled. */
static void same(void)
{
	unsigned i, k, n = ft_iters(2000), fds = 0;
	pthread_t thread[EPS];

	pthread_barrier_init(&barrier, NULL, EPS);
	for (i = 0; i < n; i++) {
		ft_stage("one endpoint, round %u", i);
		open_cq(FI_WAIT_FD);
		open_ep(0);
		for (k = 0; k < EPS; k++)
			FT_CHECK(!pthread_create(&thread[k], NULL, enable_main,
						 &ep[0]->fid),
				 "thread");
		for (k = 0; k < EPS; k++)
			pthread_join(thread[k], NULL);
		FT_CALL(fi_close(&ep[0]->fid));
		FT_CALL(fi_close(&cq->fid));
		/*
		 * if links were not closed, each round would leave more
		 * descriptors open
		 */
		if (!i)
			fds = ft_fd_count();
	}
	ft_wait_fds(NULL, fds);
	pthread_barrier_destroy(&barrier);
}

static int taken;

static void *getwait_main(void *arg)
{
	pthread_barrier_wait(&barrier);
	FT_CALL(fi_control(&cq->fid, FI_GETWAIT, &taken));
	return NULL;
}

/*
 * One thread takes the wait descriptor while another thread enables the
 * endpoint: the descriptor wakes for conditional writes, or enabling is
 * refused.
 */
static void getwait(void)
{
	unsigned i, n = ft_iters(2000), first = 0;
	pthread_t thread;
	int ret, fd;

	pthread_barrier_init(&barrier, NULL, 2);
	for (i = 0; i < n; i++) {
		ft_stage("descriptor taken meanwhile, round %u", i);
		open_cq(FI_WAIT_FD);
		open_ep(0);
		FT_CHECK(!pthread_create(&thread, NULL, getwait_main, NULL),
			 "thread");
		pthread_barrier_wait(&barrier);
		ret = fi_cw_enable(&ep[0]->fid, 0);
		pthread_join(thread, NULL);
		FT_CHECK(!ret || ret == -FI_EBUSY, "fi_cw_enable: %d", ret);
		FT_CALL(fi_control(&cq->fid, FI_GETWAIT, &fd));
		FT_CHECK(fd == taken, "enabled: %d; descriptor %d, then %d",
			 ret, taken, fd);
		first += !ret;
		FT_CALL(fi_close(&ep[0]->fid));
		FT_CALL(fi_close(&cq->fid));
	}
	ft_log("enabled first %u times of %u", first, n);
	pthread_barrier_destroy(&barrier);
}

static void *sleep_main(void *arg)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	ret = cq_ops()->sread(cq, &entry, 1, NULL, -1);
	FT_CHECK(ret == -FI_EAGAIN, "fi_cq_sread after fi_cq_signal: %zd", ret);
	return NULL;
}

/* A thread that slept before enabling is woken by later events, too. */
static void asleep(enum fi_wait_obj obj)
{
	pthread_t thread;

	ft_stage("asleep before");
	open_cq(obj);
	open_ep(0);
	FT_CHECK(!pthread_create(&thread, NULL, sleep_main, NULL), "thread");
	ft_wait_quiet();
	FT_CALL(fi_cw_enable(&ep[0]->fid, 0));
	ft_wait_quiet();
	FT_CALL(fi_cq_signal(cq));
	pthread_join(thread, NULL);
	FT_CALL(fi_close(&ep[0]->fid));
	FT_CALL(fi_close(&cq->fid));
}

/*
 * fi_cw_enable() fails after the application took the wait descriptor, which
 * would not wake for conditional writes.
 */
static void too_late(void)
{
	int ret, fd;

	ft_stage("descriptor taken before");
	open_cq(FI_WAIT_FD);
	open_ep(0);
	FT_CALL(fi_control(&cq->fid, FI_GETWAIT, &fd));
	ret = fi_cw_enable(&ep[0]->fid, 0);
	FT_CHECK(ret == -FI_EBUSY, "enabled after FI_GETWAIT: %d", ret);
	ret = fi_cwrite(cw, &fd, 1, NULL, 0, 1, NULL);
	FT_CHECK(ret == -FI_EOPNOTSUPP, "not enabled: %d", ret);
	FT_CALL(fi_close(&ep[0]->fid));
	FT_CALL(fi_close(&cq->fid));
}

/*
 * fi_cq_sread() of a queue with FI_WAIT_NONE is the core's call, also after
 * fi_cw_enable().
 */
static void no_wait_object(void)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	/* tcp of libfabric 2.1 uses the wait object that is not there */
	if (FI_MAJOR(fi_version()) >= 2)
		return;
	ft_stage("no wait object");
	open_cq(FI_WAIT_NONE);
	open_ep(0);
	FT_CALL(fi_cw_enable(&ep[0]->fid, 0));
	ret = fi_cq_sread(cq, &entry, 1, NULL, 100);
	FT_CHECK(ret < 0, "fi_cq_sread: %zd", ret);
	FT_CALL(fi_close(&ep[0]->fid));
	FT_CALL(fi_close(&cq->fid));
}

/*
 * Without a completion queue the application could not see the end of writes.
 */
static void counter_only(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	int ret;

	ft_stage("a counter for writes, and no queue");
	open_cq(FI_WAIT_NONE);
	FT_CALL(fi_cntr_open(dom.domain, &attr, &cntr, NULL));
	FT_CALL(fi_endpoint(dom.domain, dom.info, &ep[0], NULL));
	FT_CALL(fi_ep_bind(ep[0], &eq->fid, 0));
	FT_CALL(fi_ep_bind(ep[0], &cq->fid, FI_RECV));
	FT_CALL(fi_ep_bind(ep[0], &cntr->fid, FI_SEND | FI_WRITE));
	ret = fi_cw_enable(&ep[0]->fid, 0);
	FT_CHECK(ret == -FI_ENOCQ, "before fi_enable: %d", ret);
	FT_CALL(fi_enable(ep[0]));
	ret = fi_cw_enable(&ep[0]->fid, 0);
	FT_CHECK(ret == -FI_ENOCQ, "after fi_enable: %d", ret);
	FT_CALL(fi_close(&ep[0]->fid));
	FT_CALL(fi_close(&cntr->fid));
	FT_CALL(fi_close(&cq->fid));
}

static int set_op_flags(struct fid *fid, int command, void *arg)
{
	return command == FI_SETOPSFLAG ? 0 : -FI_ENOSYS;
}

/* Changes operation flags after enabling, which only some cores support. */
static void level_later(void)
{
	uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	struct ft_core_ops core;
	struct fi_ops ops;
	ssize_t ret;

	ft_core_ops("tcp", &core);
	ops = *core.ep;
	core.ep->control = set_op_flags;
	FT_CALL(fi_control(&ep[0]->fid, FI_SETOPSFLAG, &flags));
	*core.ep = ops;
	ret = fi_cwrite(cw, &flags, 1, NULL, 0, 1, NULL);
	FT_CHECK(ret == -FI_EBADFLAGS, "fi_cwrite that delivers: %zd", ret);
}

/*
 * fi_cw_enable() refuses a completion level that conditional writes do not
 * give, and accepts weaker levels.
 */
static void levels(void)
{
	uint64_t *const flags = &dom.info->tx_attr->op_flags;
	const uint64_t plain = *flags;
	int i, ret;

	ft_stage("levels of completion");
	open_cq(FI_WAIT_NONE);
	for (i = 0; i < 2; i++) {
		*flags = plain | FI_COMPLETION | FI_INJECT_COMPLETE |
			 FI_TRANSMIT_COMPLETE | (i ? 0 : FI_DELIVERY_COMPLETE);
		open_ep(0);
		ret = fi_cw_enable(&ep[0]->fid, 0);
		FT_CHECK(ret == (i ? 0 : -FI_EOPNOTSUPP),
			 "op_flags %#" PRIx64 ": %d", *flags, ret);
		if (i)
			level_later();
		FT_CALL(fi_close(&ep[0]->fid));
	}
	*flags = plain;
	FT_CALL(fi_close(&cq->fid));
}

/*
 * The domain's threading decides on progress, whatever an endpoint's info says.
 */
static void serial(void)
{
	struct fid_domain *plain = dom.domain;
	struct ft_attr attr = FT_ATTR;
	struct fi_info *info;

	ft_stage("a domain with FI_THREAD_DOMAIN");
	attr.threading = FI_THREAD_DOMAIN;
	info = ft_getinfo(&attr);
	FT_CALL(fi_domain(dom.fabric, info, &dom.domain, NULL));
	open_cq(FI_WAIT_NONE);
	open_ep(0);
	FT_CALL(fi_cw_enable(&ep[0]->fid, 0));
	FT_CHECK(!fi_mrrc_feature(&ep[0]->fid, "cw-auto-progress"),
		 "another thread in a core that may have no locks");
	FT_CALL(fi_close(&ep[0]->fid));
	FT_CALL(fi_close(&cq->fid));
	FT_CALL(fi_close(&dom.domain->fid));
	fi_freeinfo(info);
	dom.domain = plain;
}

static void features(void)
{
	ft_stage("features");
	open_cq(FI_WAIT_NONE);
	open_ep(0);
	FT_CHECK(!fi_mrrc_feature(&ep[0]->fid, "cw-auto-progress"),
		 "progress of an endpoint that is not enabled");
	FT_CALL(fi_cw_enable(&ep[0]->fid, 0));
	FT_CALL(fi_cw_enable(&ep[0]->fid, 0));
	FT_CHECK(fi_mrrc_feature(&ep[0]->fid, "cw-auto-progress") == 1,
		 "progress of tcp is automatic");
	FT_CALL(fi_close(&ep[0]->fid));
	FT_CALL(fi_close(&cq->fid));
}

static void check_calls(bool enabled)
{
	struct fi_mrrc_cw_attr most = { .size = sizeof(most) };
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	const int no = enabled ? 0 : -FI_EOPNOTSUPP;
	uint64_t tag;
	int ret;

	FT_CALL(fi_cw_query(&ep[0]->fid, &most));
	FT_CHECK(most.size == sizeof(most) && most.max_pending &&
			 most.cq_data_size == sizeof(uint64_t),
		 "%zu bytes of limits", most.size);
	most.size = sizeof(most.size);
	ret = fi_cw_query(&ep[0]->fid, &most);
	FT_CHECK(ret == -FI_EINVAL, "no room for a limit: %d", ret);
	ret = fi_cw_stats_read(cw, &st);
	FT_CHECK(ret == no, "fi_cw_stats_read, enabled %d: %d", enabled, ret);
	ret = fi_cw_tag_alloc(cw, &tag);
	FT_CHECK(ret == no, "fi_cw_tag_alloc, enabled %d: %d", enabled, ret);
	/*
	 * the provider has this feature, whether or not the endpoint is enabled
	 */
	FT_CHECK(fi_mrrc_feature(&ep[0]->fid, "cw") == 1, "no feature cw");
	FT_CHECK(!fi_mrrc_feature(&ep[0]->fid, "no such feature"), "a feature");
	FT_CHECK(enabled || !fi_mrrc_feature(&ep[0]->fid, "cw-auto-progress"),
		 "progress of an endpoint that is not enabled");
	ret = fi_mrrc_feature(&ep[0]->fid, NULL);
	FT_CHECK(ret == -FI_EINVAL, "a feature without a name: %d", ret);
	ret = fi_cw_enable(&ep[0]->fid, 1);
	FT_CHECK(ret == -FI_EBADFLAGS, "fi_cw_enable with flags: %d", ret);
}

/*
 * Checks the results of other calls before and after fi_cw_enable(), and of a
 * second fi_cw_enable().
 */
static void calls(void)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fid_av *av = NULL;
	unsigned i;

	ft_stage("calls before it is enabled");
	open_cq(FI_WAIT_NONE);
	if (ft_rdm()) {
		FT_CALL(fi_endpoint(dom.domain, dom.info, &ep[0], NULL));
		FT_CALL(fi_cw_open(ep[0], &cw));
		FT_CALL(fi_av_open(dom.domain, &av_attr, &av, NULL));
		FT_CALL(fi_ep_bind(ep[0], &av->fid, 0));
		FT_CALL(fi_ep_bind(ep[0], &cq->fid, FI_TRANSMIT | FI_RECV));
	} else {
		open_ep(0);
	}
	check_calls(false);
	for (i = 0; i < 2; i++) {
		FT_CALL(fi_cw_enable(&ep[0]->fid, 0));
		check_calls(true);
	}
	FT_CALL(fi_enable(ep[0]));
	FT_CALL(fi_cw_enable(&ep[0]->fid, 0));
	check_calls(true);
	FT_CALL(fi_close(&ep[0]->fid));
	if (av)
		FT_CALL(fi_close(&av->fid));
	FT_CALL(fi_close(&cq->fid));
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_core("verbs"))
		ft_skip("verbs opens no endpoint at a listener's address");
	open_dom();
	calls();
	if (ft_rdm()) {
		close_dom();
		return ft_done();
	}
	threads();
	same();
	getwait();
	asleep(FI_WAIT_UNSPEC);
	asleep(FI_WAIT_FD);
	too_late();
	no_wait_object();
	counter_only();
	if (ft_core("tcp")) {
		levels();
		features();
		serial();
	}
	close_dom();
	return ft_done();
}
