/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_again: tests a core that takes an RMA write only at the second
 * attempt, while the connection has no operation in flight whose completion
 * would cause that attempt, as where several connections share the core's
 * queues. The test replaces calls in the core's table, which all its endpoints
 * share. The test also covers full tables of the provider, a core that does not
 * accept a control connection, and one that overwrites posted buffers at once.
 */
#include "ft_mrrc.h"

#include <limits.h>
#include <stdatomic.h>

#define LEN 8192 /* more than a message takes */

static struct ft_pair pair;
static char *out, *in;

/* ---- the core ------------------------------------------------------------ */

static ssize_t (*core_writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg,
				uint64_t flags);
static atomic_int taken; /* number of writes taken first */
static atomic_int full;	 /* number of writes refused then */

static ssize_t full_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     uint64_t flags)
{
	if (atomic_load(&taken) > 0) {
		atomic_fetch_sub(&taken, 1);
	} else if (atomic_load(&full) > 0) {
		atomic_fetch_sub(&full, 1);
		return -FI_EAGAIN;
	}
	return core_writemsg(ep, msg, flags);
}

static int (*core_accept)(struct fid_ep *ep, const void *param, size_t len);
static int (*core_reject)(struct fid_pep *pep, struct fid *handle,
			  const void *param, size_t len);
/* number of the call of fi_accept() that fails; 0: none */
static atomic_int refuse;
static atomic_int rejects;

static int refuse_accept(struct fid_ep *ep, const void *param, size_t len)
{
	if (atomic_load(&refuse) > 0 && atomic_fetch_sub(&refuse, 1) == 1)
		return -FI_ENOMEM;
	return core_accept(ep, param, len);
}

static int count_reject(struct fid_pep *pep, struct fid *handle,
			const void *param, size_t len)
{
	atomic_fetch_add(&rejects, 1);
	return core_reject(pep, handle, param, len);
}

static ssize_t (*core_recv)(struct fid_ep *ep, void *buf, size_t len,
			    void *desc, fi_addr_t from, void *context);

/* Posts a receive, as a core that writes to the receive's buffer at once. */
static ssize_t wipe_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t from, void *context)
{
	memset(buf, 0x5a, len);
	return core_recv(ep, buf, len, desc, from, context);
}

/* ---- writes -------------------------------------------------------------- */

enum how { READ, SREAD, NOTHING };

/*
 * Waits until both sides have ended their operations, with the writer's result
 * @how
 */
static void ended(enum how how)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	uint64_t end = ft_deadline();
	struct fi_cq_data_entry entry;
	struct ft_comp comp;
	bool done = false;
	ssize_t ret;

	while (!done) {
		if (how != NOTHING)
			ft_poll(&pair.s);
		FT_CHECK(ft_limit_us() < end, "not asked again: %d times left",
			 atomic_load(&full));
		if (how == NOTHING) {
			usleep(1000);
			FT_CALL(fi_cw_stats_read(pair.c.cw, &st));
			done = st.writes == st.writes_ended;
			continue;
		}
		ret = how == READ ? fi_cq_read(pair.c.cq[FT_TX], &entry, 1) :
				    fi_cq_sread(pair.c.cq[FT_TX], &entry, 1,
						NULL, 100);
		FT_CHECK(ret == 1 || ret == -FI_EAGAIN, "completion: %zd", ret);
		done = ret == 1;
	}
	if (how == NOTHING)
		ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(!atomic_load(&full), "the core was not full");
}

/* Transfers data in segs parts, of which the core takes some first. */
static void transfer(enum how how, bool tag_first, size_t segs, int first,
		     uint64_t tag)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };
	struct iovec iov[2] = {
		{ in, LEN / segs },
		{ in + LEN / segs, LEN - LEN / segs },
	};
	const struct fi_msg_cw msg = {
		.msg_iov = iov,
		.iov_count = segs,
		.cwtag = tag,
		.context = in,
	};

	ft_fill(out, LEN, tag);
	memset(in, 0, LEN);
	if (!tag_first)
		FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, 0, tag, out));
	atomic_store(&taken, first);
	atomic_store(&full, tag_first ? 5 : 50);
	FT_CALL(fi_cwtagmsg(pair.s.cw, &msg, FI_COMPLETION));
	while (tag_first && !st.known_tags) {
		ft_poll(&pair.s);
		ft_poll(&pair.c);
		FT_CALL(fi_cw_stats_read(pair.c.cw, &st));
	}
	if (tag_first)
		FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, 0, tag, out));
	ended(how);
	FT_CHECK_BUF(in, LEN, tag, "conditional write");
}

/* The writer or the target closes while the core takes no write. */
static void closes(bool writer)
{
	struct ft_attr attr = FT_ATTR;
	uint64_t end;

	ft_stage("the %s closes", writer ? "writer" : "target");
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	atomic_store(&full, INT_MAX);
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, 0, 1, out));
	FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, 0, 1, in));
	end = ft_deadline();
	while (atomic_load(&full) > INT_MAX - 10) {
		ft_poll(&pair.c);
		ft_poll(&pair.s);
		FT_CHECK(ft_limit_us() < end, "not asked again");
	}
	ft_ep_close(writer ? &pair.c : &pair.s);
	for (end = ft_now_us() + 20000; ft_now_us() < end;)
		ft_poll(writer ? &pair.s : &pair.c);
	atomic_store(&full, 0);
	ft_pair_close(&pair);
}

static void run(enum how how, enum fi_progress progress, const char *what)
{
	struct ft_attr attr = FT_ATTR;
	int i;

	ft_stage("%s", what);
	attr.wait_obj = FI_WAIT_UNSPEC;
	attr.progress = progress;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	for (i = 0; i < 4; i++)
		transfer(how, i % 2, 1 + i / 2, i / 2, i);
	ft_check_idle(&pair.dom[0], what);
	ft_check_idle(&pair.dom[1], what);
	ft_pair_close(&pair);
}

/*
 * An operation that the provider refuses holds no memory, and exposes no
 * memory.
 */
static void pending(void)
{
	struct iovec iov = { NULL, 0 };
	struct fi_msg_cw msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_mrrc_cw_attr most = { .size = sizeof(most) };
	struct ft_attr attr = FT_ATTR;
	unsigned i;

	ft_stage("as many pending as may be");
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	FT_CALL(fi_cw_query(&pair.c.ep->fid, &most));
	for (i = 0; i < most.max_pending; i++) {
		msg.cwtag = 1;
		FT_CALL(fi_cwritemsg(pair.c.cw, &msg, 0));
		msg.cwtag = 2;
		FT_CALL(fi_cwtagmsg(pair.c.cw, &msg, 0));
	}
	iov = (struct iovec){ out, LEN };
	FT_CHECK(fi_cwritemsg(pair.c.cw, &msg, 0) == -FI_EAGAIN,
		 "one write more");
	FT_CHECK(fi_cwtagmsg(pair.c.cw, &msg, 0) == -FI_EAGAIN, "one tag more");
	ft_ep_close(&pair.c);
	ft_check_idle(&pair.dom[1], "refused");
	ft_pair_close(&pair);
}

/*
 * If a control connection cannot be accepted, the provider has to reject the
 * request; otherwise the core never frees the request's memory.
 */
static void accepts_not(void)
{
	struct ft_attr attr = FT_ATTR;
	uint64_t end = ft_deadline();

	ft_stage("the control connection is not accepted");
	attr.cw = attr.cw_pep = true;
	/* the first call accepts the application's own connection */
	atomic_store(&refuse, 2);
	ft_pair_open(&pair, &attr);
	while (!atomic_load(&rejects)) {
		ft_poll(&pair.c);
		ft_poll(&pair.s);
		FT_CHECK(ft_limit_us() < end, "its request is not rejected");
	}
	FT_CHECK(!atomic_load(&refuse), "it was accepted");
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct ft_core_ops core;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_rdm() || !ft_core("tcp"))
		ft_skip("of tcp it is known what it has");
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	ft_core_ops("tcp", &core);
	core_writemsg = core.rma->writemsg;
	core.rma->writemsg = full_writemsg;
	core_recv = core.msg->recv;
	core.msg->recv = wipe_recv;
	core_accept = core.cm->accept;
	core.cm->accept = refuse_accept;
	core_reject = core.pep_cm->reject;
	core.pep_cm->reject = count_reject;
	run(READ, FI_PROGRESS_MANUAL, "fi_cq_read");
	run(SREAD, FI_PROGRESS_MANUAL, "fi_cq_sread");
	run(NOTHING, FI_PROGRESS_AUTO, "automatic progress");
	closes(true);
	closes(false);
	pending();
	accepts_not();
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	return ft_done();
}
