/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_lengths: tests a peer that sends a message longer than the posted
 * buffer, where the core reports the length that the peer claims. The
 * application never sees a length beyond the buffer, but gets FI_ETRUNC, at the
 * same place in the order, for every call that posts the receive and every call
 * that reads the queue. The test changes the core's table of calls, which all
 * its queues share, to claim lengths.
 */
#include "ft_mrrc.h"

#define LEN	100
#define POSTED	200
#define CLAIMED 24576

static struct ft_pair pair;
static char *out, *in;
static unsigned refused; /* number of errors in the server's domain */
static bool checked;	 /* receives with descriptors have records, too */

/* ---- the core ------------------------------------------------------------ */

static struct fi_ops_cq core;
static int claims; /* number of the receive that claims; 0: none */
static size_t stride;
static enum fi_cq_format format;
static _Thread_local int depth; /* > 0: a call of the table calls another */

static ssize_t claim(char *buf, ssize_t n)
{
	struct fi_cq_msg_entry *entry;
	ssize_t i;

	for (i = 0; !depth && claims && i < n; i++) {
		entry = (struct fi_cq_msg_entry *) (buf + i * stride);
		if ((entry->flags & FI_RECV) && !--claims)
			entry->len = CLAIMED;
	}
	return n;
}

#define CLAIMING(call)                              \
	({                                          \
		ssize_t ret_;                       \
                                                    \
		depth++;                            \
		ret_ = (call);                      \
		depth--;                            \
		ret_ > 0 ? claim(buf, ret_) : ret_; \
	})

static ssize_t claim_read(struct fid_cq *cq, void *buf, size_t count)
{
	return CLAIMING(core.read(cq, buf, count));
}

static ssize_t claim_readfrom(struct fid_cq *cq, void *buf, size_t count,
			      fi_addr_t *src)
{
	return CLAIMING(core.readfrom(cq, buf, count, src));
}

static ssize_t claim_sread(struct fid_cq *cq, void *buf, size_t count,
			   const void *cond, int timeout)
{
	return CLAIMING(core.sread(cq, buf, count, cond, timeout));
}

static bool in_error; /* an error entry claims a length, too */

static ssize_t claim_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry,
			     uint64_t flags)
{
	ssize_t ret = core.readerr(cq, entry, flags);

	if (ret > 0 && in_error)
		entry->len = CLAIMED;
	return ret;
}

static void replace(struct fi_ops_cq *cq)
{
	core = *cq;
	cq->read = claim_read;
	cq->readfrom = claim_readfrom;
	cq->sread = claim_sread;
	cq->readerr = claim_readerr;
}

/* ---- receives ------------------------------------------------------------ */

enum how { NULL_DESC, ALLOCATED, VECTOR, MESSAGE, TAGGED, FOUND, HOWS };
static const char *const how_names[] = { "plain",   "allocated", "in parts",
					 "message", "tagged",	 "peeked at" };
enum by { READ, READFROM, SREAD, BYS };

static bool peek(void *ctx)
{
	struct fi_msg_tagged msg = { .addr = FT_ANY, .tag = 7, .context = ctx };
	struct ft_comp comp;

	FT_POST(&pair.s, fi_trecvmsg(pair.s.ep, &msg, FI_PEEK | FI_CLAIM));
	ft_wait_any(&pair.s, FT_RX, &comp);
	return !comp.err;
}

/* Posts a receive of POSTED bytes, in one buffer or in two. */
static void post(enum how how, char *buf, void *ctx)
{
	struct iovec iov[2] = { { buf, POSTED / 2 },
				{ buf + POSTED / 2, POSTED / 2 } };
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = 2, .addr = FT_ANY, .context = ctx
	};
	struct fi_msg_tagged tmsg = { .msg_iov = iov,
				      .iov_count = 2,
				      .addr = FT_ANY,
				      .tag = 7,
				      .context = ctx };
	struct fid_ep *ep = pair.s.ep;

	if (how == VECTOR)
		FT_POST(&pair.s, fi_recvv(ep, iov, NULL, 2, FT_ANY, ctx));
	else if (how == MESSAGE)
		FT_POST(&pair.s, fi_recvmsg(ep, &msg, FI_COMPLETION));
	else if (how == TAGGED)
		FT_POST(&pair.s,
			fi_trecv(ep, buf, POSTED, NULL, FT_ANY, 7, 0, ctx));
	else if (how == FOUND)
		FT_POST(&pair.s, fi_trecvmsg(ep, &tmsg, FI_CLAIM));
	else
		FT_POST(&pair.s, fi_recv(ep, buf, POSTED, NULL, FT_ANY, ctx));
}

static void send_one(enum how how)
{
	const bool tagged = how == TAGGED || how == FOUND;

	FT_POST(&pair.c, tagged ?
				 fi_tinject(pair.c.ep, out, LEN, pair.c.to, 7) :
				 fi_inject(pair.c.ep, out, LEN, pair.c.to));
}

static ssize_t read_by(enum by by, void *buf, size_t count)
{
	struct fid_cq *cq = pair.s.cq[FT_RX];
	fi_addr_t src[8];

	return by == READFROM ? fi_cq_readfrom(cq, buf, count, src) :
	       by == SREAD    ? fi_cq_sread(cq, buf, count, NULL, 1) :
				fi_cq_read(cq, buf, count);
}

/*
 * Reads the next completion, or checks the next error; returns the operation's
 * context. *len is the number of bytes, 0 for an error.
 */
static void *next(enum by by, size_t *len)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry[8];
	uint64_t end = ft_deadline();
	ssize_t ret;

	while ((ret = read_by(by, entry, 1)) == -FI_EAGAIN) {
		ft_poll(&pair.c);
		FT_CHECK(ft_limit_us() < end, "no completion");
	}
	*len = format == FI_CQ_FORMAT_CONTEXT ? LEN : entry->len;
	if (ret == 1)
		return entry->op_context;
	FT_CHECK(ret == -FI_EAVAIL, "reading: %zd", ret);
	FT_CHECK(fi_cq_readerr(pair.s.cq[FT_RX], &error, 0) == 1, "no error");
	FT_CHECK(error.err == FI_ETRUNC, "%s", fi_strerror(error.err));
	FT_CHECK(error.len == POSTED && error.olen == CLAIMED - POSTED,
		 "%zu bytes, %zu more", error.len, error.olen);
	refused++;
	*len = 0;
	return error.op_context;
}

/* One of three messages claims a length: its receive fails, in order. */
static void claim_one(enum how how, enum by by, unsigned which)
{
	struct fi_context2 ctx[3];
	char *buf = in;
	struct fid_mr *mr = NULL;
	void *block;
	unsigned i;
	size_t len;

	ft_stage("%s, read %u", how_names[how], by);
	if (how == ALLOCATED) {
		FT_CALL(fi_mr_alloc(pair.dom[0].domain, 3 * POSTED, 0, 0,
				    &block, &mr));
		buf = block;
	}
	for (i = 0; i < 3 && how == FOUND; i++) {
		send_one(how);
		while (!peek(&ctx[i]))
			;
	}
	claims = which + 1;
	pair.s.quiet[FT_RX] = true;
	for (i = 0; i < 3; i++)
		post(how, buf + i * POSTED, &ctx[i]);
	for (i = 0; i < 3 && how != FOUND; i++)
		send_one(how);
	for (i = 0; i < 3; i++) {
		FT_CHECK(next(by, &len) == &ctx[i], "another context");
		FT_CHECK(len == (i == which ? 0 : LEN), "%zu bytes", len);
	}
	pair.s.quiet[FT_RX] = false;
	if (mr)
		fi_mr_free(pair.dom[0].domain, buf);
}

/*
 * Reads three completions at once, of which the second claims a length: the
 * third stays after the error.
 */
static void in_order(void)
{
	struct fi_cq_tagged_entry entry[8];
	struct fi_cq_err_entry error = { 0 };
	uint64_t end = ft_deadline();
	struct fi_context2 ctx[3];
	ssize_t ret, n = 0;
	unsigned i;

	ft_stage("in order");
	pair.s.quiet[FT_RX] = true;
	for (i = 0; i < 3; i++) {
		post(NULL_DESC, in + i * POSTED, &ctx[i]);
		send_one(NULL_DESC);
	}
	ft_wait_buf(&pair.s, in + 2 * POSTED, LEN, 1);
	claims = 2;
	while (n < 1) {
		ret = fi_cq_read(pair.s.cq[FT_RX], (char *) entry, 8);
		FT_CHECK(ret >= 0 || ret == -FI_EAGAIN, "reading: %zd", ret);
		n += ret > 0 ? ret : 0;
		FT_CHECK(ft_limit_us() < end, "no completion");
	}
	FT_CHECK(n == 1 && entry->op_context == &ctx[0], "%zd at once", n);
	while (fi_cq_read(pair.s.cq[FT_RX], entry, 8) == -FI_EAGAIN)
		ft_poll(&pair.c);
	FT_CHECK(fi_cq_readerr(pair.s.cq[FT_RX], &error, 0) == 1 &&
			 error.op_context == &ctx[1],
		 "no error of the second");
	refused++;
	while (fi_cq_read(pair.s.cq[FT_RX], entry, 8) == -FI_EAGAIN)
		ft_poll(&pair.c);
	FT_CHECK(entry->op_context == &ctx[2], "not the third");
	pair.s.quiet[FT_RX] = false;
}

/*
 * In a multi-receive buffer the position of a message counts: a message cannot
 * be longer than the rest of the buffer.
 */
static void in_common(void)
{
	struct iovec iov = { in, POSTED };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FT_ANY, .context = in
	};
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	uint64_t end = ft_deadline();
	ssize_t ret;

	ft_stage("multi-receive");
	pair.s.quiet[FT_RX] = true;
	FT_POST(&pair.s, fi_recvmsg(pair.s.ep, &msg, FI_MULTI_RECV));
	claims = 2;
	send_one(NULL_DESC);
	send_one(NULL_DESC);
	do {
		ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
		FT_CHECK(ret != 1 || entry.len <= LEN, "%zu bytes", entry.len);
		/*
		 * libfabric 2 and newer report the buffer's end after one
		 * message: less room is left than the minimum that was read
		 * before
		 */
		if (ret == 1 && entry.flags == FI_MULTI_RECV) {
			pair.s.quiet[FT_RX] = false;
			return;
		}
		ft_poll(&pair.c);
		FT_CHECK(ft_limit_us() < end, "no error");
	} while (ret == 1 || ret == -FI_EAGAIN);
	FT_CHECK(fi_cq_readerr(pair.s.cq[FT_RX], &error, 0) == 1 &&
			 error.err == FI_ETRUNC && error.op_context == in &&
			 error.len == POSTED - LEN,
		 "error %d, %zu bytes", error.err, error.len);
	refused++;
	pair.s.quiet[FT_RX] = false;
}

/*
 * A message is longer than its receive: the error entry does not report more
 * bytes than were posted.
 */
static void too_long(void)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	uint64_t end = ft_deadline();

	ft_stage("too long");
	in_error = true;
	pair.s.quiet[FT_RX] = true;
	FT_POST(&pair.s, fi_recv(pair.s.ep, in, LEN / 2, NULL, FT_ANY, in));
	send_one(NULL_DESC);
	while (fi_cq_read(pair.s.cq[FT_RX], &entry, 1) != -FI_EAVAIL) {
		ft_poll(&pair.c);
		FT_CHECK(ft_limit_us() < end, "no error");
	}
	FT_CHECK(fi_cq_readerr(pair.s.cq[FT_RX], &error, 0) == 1 &&
			 error.err == FI_ETRUNC && error.op_context == in &&
			 error.len <= LEN / 2,
		 "error %d, %zu bytes", error.err, error.len);
	in_error = false;
	pair.s.quiet[FT_RX] = false;
}

/* ---- queues -------------------------------------------------------------- */

static void check_count(void)
{
	const uint64_t count = ft_counter(&pair.dom[0], "claimed_lengths");

	FT_CHECK(count == refused, "%" PRIu64 " counted of %u claims", count,
		 refused);
	claims = 0;
	refused = 0;
}

static void with_format(enum fi_cq_format asked)
{
	struct ft_attr attr = FT_ATTR;
	enum how how;

	attr.format = format = asked;
	attr.wait_obj = FI_WAIT_UNSPEC;
	if (ft_rdm())
		attr.caps |= FI_TAGGED;
	ft_pair_open(&pair, &attr);
	/*
	 * the core's CQ format is wider in domains with multi-receives
	 */
	if (format < FI_CQ_FORMAT_DATA &&
	    !(pair.dom[0].info->caps & FI_MULTI_RECV))
		stride = sizeof(struct fi_cq_msg_entry);
	else if (format == FI_CQ_FORMAT_TAGGED)
		stride = sizeof(struct fi_cq_tagged_entry);
	else
		stride = sizeof(struct fi_cq_data_entry);
	for (how = 0; how < HOWS; how++) {
		if ((how == TAGGED || how == FOUND) && !ft_rdm())
			continue;
		if (how == ALLOCATED && !checked)
			continue;
		claim_one(how, how % BYS, how % 3);
		claim_one(how, (how + 1) % BYS, (how + 1) % 3);
	}
	in_order();
	if (ft_rdm())
		too_long();
	check_count();
	ft_pair_close(&pair);
}

static void with_multi(void)
{
	struct ft_attr attr = FT_ATTR;
	size_t least = POSTED / 4;

	attr.caps |= FI_MULTI_RECV;
	stride = sizeof(struct fi_cq_data_entry);
	ft_pair_open(&pair, &attr);
	FT_CALL(fi_setopt(&pair.s.ep->fid, FI_OPT_ENDPOINT,
			  FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
	in_common();
	check_count();
	ft_pair_close(&pair);
}

/* ---- buffered messages --------------------------------------------------- */

/* Returns the next offer of a message, which has a true length. */
static struct fi_recv_context *offered(void)
{
	struct ft_comp comp;

	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.len == LEN && !(comp.flags & FI_CLAIM),
		 "an offer of %zu bytes", comp.len);
	return comp.ctx;
}

static void ask(struct fi_recv_context *offer, uint64_t flags)
{
	struct iovec iov = { in, POSTED };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = FT_ANY,
			      .context = offer };

	offer->context = in;
	FT_POST(&pair.s, fi_recvmsg(offer->ep, &msg, flags));
}

/*
 * A message whose claimed length exceeds the core's buffer is not offered, but
 * the next message is offered. If the completion of FI_CLAIM claims a length
 * beyond the posted buffer, the application gets an error in place of the
 * completion.
 */
static void with_buffered(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_recv_context *offer;
	unsigned tagged;
	size_t len;

	ft_stage("buffered");
	attr.caps |= FI_TAGGED;
	attr.format = format = FI_CQ_FORMAT_TAGGED;
	attr.mode = FI_BUFFERED_RECV;
	stride = sizeof(struct fi_cq_tagged_entry);
	ft_pair_open(&pair, &attr);
	for (tagged = 0; tagged < 2; tagged++) {
		claims = 1;
		send_one(tagged ? TAGGED : NULL_DESC);
		send_one(NULL_DESC);
		ask(offered(), FI_DISCARD);
	}
	send_one(NULL_DESC);
	offer = offered();
	claims = 1;
	ask(offer, FI_CLAIM);
	FT_CHECK(next(READ, &len) == in && !len, "%zu bytes claimed", len);
	refused += tagged;
	check_count();
	ft_pair_close(&pair);
}

/*
 * A control endpoint of conditional writes gets a message that claims a wrong
 * length: the connection ends.
 */
static void with_control(void)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_comp comp;

	ft_stage("a control endpoint");
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	stride = sizeof(struct fi_cq_msg_entry);
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 1, out));
	FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, 1, in));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	/* the next message is the second tag */
	FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 2, out));
	claims = 1;
	FT_CALL(fi_cwtag(pair.s.cw, in, LEN, NULL, pair.s.to, 2, in));
	ft_wait_any(&pair.c, FT_TX, &comp);
	FT_CHECK(comp.err && !claims, "a message of %u bytes was read",
		 CLAIMED);
	ft_wait_any(&pair.s, FT_RX, &comp);
	FT_CHECK(comp.err, "the tag did not end");
	ft_pair_close(&pair);
}

static void run(const void *reg)
{
	struct ft_core_ops table;

	setenv("FI_OFI_MRRC_REGISTER", reg, 1);
	ft_core_ops(ft_rdm() ? "tcp;ofi_rxm" : "tcp", &table);
	replace(table.cq);
	out = ft_map(NULL, FT_PAGE);
	in = ft_map(NULL, FT_PAGE);
	ft_fill(out, LEN, 1);
	checked = ft_rdm();
	with_format(FI_CQ_FORMAT_CONTEXT);
	with_format(FI_CQ_FORMAT_MSG);
	with_format(FI_CQ_FORMAT_DATA);
	if (ft_rdm())
		with_format(FI_CQ_FORMAT_TAGGED);
	if (ft_rdm()) {
		with_multi();
		if (FI_BUFFERED_RECV != 0)
			with_buffered();
	} else {
		with_control();
	}
	ft_unmap(out, FT_PAGE);
	ft_unmap(in, FT_PAGE);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw || !ft_core("tcp") || (ft_rdm() && !ft_rxm()))
		ft_skip("of tcp it is known what it has");
	ft_in_child("buffers are registered", run, "always", NULL, 0);
	/*
	 * over tcp alone receives without registration go to the core unchanged
	 */
	if (ft_rdm())
		ft_in_child("buffers pass", run, "never", NULL, 0);
	return ft_done();
}
