/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_completions: tests reads of one completion and of several: of
 * operations that hold one region, two, or none (with a given descriptor), and
 * of receives, some of them cancelled. Each completion comes once, in order,
 * with its context, and leaves no region held. The test uses every CQ format,
 * one queue for each direction, and one queue for both directions.
 */
#include "ft_mrrc.h"

#define MOST 8 /* maximum number of operations at once */
/* bytes of an operation; some operations use two buffers of half the length */
#define LEN    3000
#define APART  (2 * FT_PAGE) /* pages that no registration shares */
#define ROUNDS 60
#define KINDS  (FI_SEND | FI_RECV | FI_WRITE)

/* Ways to write: a write holds one region (HIT), no region (GIVEN), or two. */
enum way { HIT, GIVEN, TWO, TWO_PLAIN, WAYS };

/* A completion that is expected. */
struct due {
	void *ctx;
	uint64_t kind; /* FI_SEND, FI_RECV or FI_WRITE */
	int err;
	bool seen;
};

/* Completions that are expected from one queue. */
struct list {
	struct due due[3 * MOST];
	unsigned cnt;
};

static struct ft_pair pair;
static char *in, *out;
static struct fid_mr *mr_in, *mr_out;
static bool cancels = true; /* false if the core cannot cancel */
/* number of reads that returned several completions */
static unsigned several;

/*
 * Adds an expected completion. The contexts are numbers, not addresses; one of
 * the contexts is NULL.
 */
static void *add(struct list *list, uint64_t kind)
{
	static uintptr_t next;
	void *ctx = (void *) (next++ % 1009);

	list->due[list->cnt++] = (struct due){ .ctx = ctx, .kind = kind };
	return ctx;
}

static void take(struct list *list, enum fi_cq_format format, void *ctx,
		 uint64_t flags, size_t len, int err)
{
	struct due *due = list->due, *other;

	while (due < list->due + list->cnt && due->ctx != ctx)
		due++;
	FT_CHECK(due < list->due + list->cnt, "context %p of no operation",
		 ctx);
	FT_CHECK(!due->seen, "context %p twice", ctx);
	FT_CHECK(err == due->err, "context %p: error %d, not %d", ctx, err,
		 due->err);
	due->seen = true;
	/* completions of cancelled receives come at the time of the cancel */
	for (other = list->due; !err && other < due; other++)
		FT_CHECK(other->seen || other->err || other->kind != due->kind,
			 "context %p before %p", ctx, other->ctx);
	if (format == FI_CQ_FORMAT_CONTEXT)
		return;
	FT_CHECK((flags & KINDS) == due->kind,
		 "context %p: flags 0x%" PRIx64 ", not 0x%" PRIx64, ctx, flags,
		 due->kind);
	if (due->kind == FI_RECV && !err)
		FT_CHECK(len == LEN, "context %p: %zu bytes", ctx, len);
}

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

/* Reads a queue once. Returns the number of completions. */
static unsigned read_queue(struct list *list, struct fid_cq *cq,
			   enum fi_cq_format format)
{
	char buf[MOST * sizeof(struct fi_cq_tagged_entry)], *p = buf;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	fi_addr_t src[MOST];
	ssize_t i, ret;

	/* old entries must not look like new entries */
	memset(buf, 0xff, sizeof(buf));
	ret = ft_rand() % 3 ? -FI_ENOSYS : fi_cq_readfrom(cq, buf, MOST, src);
	/* verbs has no call that reports the source */
	if (ret == -FI_ENOSYS)
		ret = fi_cq_read(cq, buf, MOST);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL) {
		FT_CHECK(fi_cq_readerr(cq, &err, 0) == 1, "fi_cq_readerr");
		take(list, format, err.op_context, err.flags, 0, err.err);
		return 1;
	}
	FT_CHECK(ret > 0 && ret <= MOST, "fi_cq_read: %zd", ret);
	several += ret > 1;
	for (i = 0; i < ret; i++, p += entry_size(format)) {
		memset(&entry, 0, sizeof(entry));
		memcpy(&entry, p, entry_size(format));
		take(list, format, entry.op_context, entry.flags, entry.len, 0);
	}
	return (unsigned) ret;
}

/* Makes progress without reading a completion. */
static void progress(void)
{
	struct ft_ep *eps[] = { &pair.s, &pair.c };
	unsigned i, dir;

	for (i = 0; i < 2; i++) {
		for (dir = 0; dir < FT_DIRS; dir++)
			fi_cq_read(eps[i]->cq[dir], NULL, 0);
	}
}

static void wait_for(const char *buf, size_t len, uint64_t seed)
{
	uint64_t end = ft_deadline();

	while (ft_differs(buf, len, seed) >= 0) {
		progress();
		FT_CHECK(ft_limit_us() < end, "never written");
		/* the compiler cannot see the peer's writes */
		__asm__ volatile("" : : : "memory");
	}
}

/* Reads all expected completions. */
static void read_all(struct list *list, struct ft_ep *ep, enum ft_dir dir)
{
	uint64_t end = ft_deadline();
	unsigned cnt = 0;

	while (cnt < list->cnt) {
		progress();
		cnt += read_queue(list, ep->cq[dir], ep->format);
		FT_CHECK(ft_limit_us() < end, "%u of %u completions", cnt,
			 list->cnt);
	}
	FT_CHECK(!read_queue(list, ep->cq[dir], ep->format), "one too many");
}

/* ---- writes ---- */

/* Writes from two places, the second APART from @at. */
static void post_write(struct ft_ep *ep, struct list *list, enum way way,
		       char *at, char *given, uint64_t to)
{
	char *more = at + APART;
	void *first = ft_desc(ep->dom, at, LEN);
	void *second = ft_desc(ep->dom, more, LEN);
	struct iovec iov[2] = { { at, LEN / 2 }, { more, LEN / 2 } };
	struct fi_rma_iov rma = { to, LEN, fi_mr_key(mr_in) };
	struct fi_msg_rma msg = {
		.msg_iov = iov,
		.desc = (void *[]){ first, second },
		.iov_count = 2,
		.addr = ep->to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = add(list, FI_WRITE),
	};

	/* join both halves, for the ways that write from one buffer */
	memcpy(at + LEN / 2, more, LEN / 2);
	switch (way) {
	case GIVEN:
		memcpy(given, at, LEN);
		FT_POST(ep, fi_write(ep->ep, given, LEN, fi_mr_desc(mr_out),
				     ep->to, to, rma.key, msg.context));
		break;
	case HIT:
		FT_POST(ep, fi_write(ep->ep, at, LEN, first, ep->to, to,
				     rma.key, msg.context));
		break;
	case TWO:
		FT_POST(ep, fi_writemsg(ep->ep, &msg, FI_COMPLETION));
		break;
	default:
		FT_POST(ep, fi_writev(ep->ep, iov, msg.desc, 2, ep->to, to,
				      rma.key, msg.context));
	}
}

/* way: WAYS chooses any way */
static void writes(unsigned n, enum way way, uint64_t seed)
{
	struct ft_ep *c = &pair.c;
	struct list list = { .cnt = 0 };
	char *own = out + 2 * MOST * APART;
	uint64_t base;
	unsigned i;

	memset(in, 0, MOST * LEN);
	mr_in = ft_reg(&pair.dom[0], in, MOST * LEN, FI_REMOTE_WRITE);
	mr_out = ft_reg(&pair.dom[1], own, MOST * LEN, FI_WRITE);
	base = ft_raddr(&pair.dom[0], in);
	for (i = 0; i < n; i++) {
		char *at = out + i * 2 * APART;

		ft_fill(at, LEN / 2, seed + i);
		ft_fill(at + APART, LEN / 2, ~seed - i);
		post_write(c, &list, way == WAYS ? ft_rand() % WAYS : way, at,
			   own + i * LEN, base + i * LEN);
	}
	for (i = 0; i < n; i++) {
		wait_for(in + i * LEN, LEN / 2, seed + i);
		wait_for(in + i * LEN + LEN / 2, LEN / 2, ~seed - i);
	}
	read_all(&list, c, FT_TX);
	FT_CALL(fi_close(&mr_in->fid));
	FT_CALL(fi_close(&mr_out->fid));
	ft_release_pair(&pair);
	ft_check_idle(&pair.dom[1], "after writes");
}

/* ---- messages in both directions, and receives that are cancelled ---- */

static void post_recv(struct ft_ep *ep, struct list *list, char *at)
{
	void *ctx = add(list, FI_RECV);

	FT_POST(ep, fi_recv(ep->ep, at, LEN, ft_desc(ep->dom, at, LEN), FT_ANY,
			    ctx));
}

/* Cancels the receive that was posted last; false if the core cannot. */
static bool cancel(struct ft_ep *ep, struct list *list)
{
	struct due *due = &list->due[list->cnt - 1];
	ssize_t ret = fi_cancel(&ep->ep->fid, due->ctx);

	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
		return cancels = false;
	FT_CHECK(!ret, "fi_cancel: %zd", ret);
	due->err = FI_ECANCELED;
	return true;
}

static void post_send(struct ft_ep *ep, struct list *list, char *at,
		      uint64_t seed)
{
	void *ctx = add(list, FI_SEND);

	ft_fill(at, LEN, seed);
	FT_POST(ep, fi_send(ep->ep, at, LEN, ft_desc(ep->dom, at, LEN), ep->to,
			    ctx));
}

/* Both sides receive and send; only the server's receives are cancelled. */
static void messages(unsigned n, uint64_t seed)
{
	struct ft_ep *s = &pair.s, *c = &pair.c;
	struct list s_list[FT_DIRS] = { 0 }, c_list[FT_DIRS] = { 0 };
	/* with one queue for both directions all completions are in one list */
	struct list *s_tx = &s_list[s->cq[FT_TX] != s->cq[FT_RX]];
	struct list *c_tx = &c_list[c->cq[FT_TX] != c->cq[FT_RX]];
	char *back = in + MOST * LEN;
	unsigned i, dir;

	memset(in, 0, 2 * MOST * LEN);
	for (i = 0; i < n; i++) {
		post_recv(s, s_list, in + i * LEN);
		if (cancels && ft_rand() % 3 == 0 && cancel(s, s_list))
			post_recv(s, s_list, in + i * LEN);
		post_recv(c, c_list, back + i * LEN);
		post_send(s, s_tx, out + (MOST + i) * APART, ~seed - i);
		post_send(c, c_tx, out + i * APART, seed + i);
	}
	for (i = 0; i < n; i++) {
		wait_for(in + i * LEN, LEN, seed + i);
		wait_for(back + i * LEN, LEN, ~seed - i);
	}
	for (dir = 0; dir < FT_DIRS; dir++) {
		read_all(&s_list[dir], s, dir ? FT_TX : FT_RX);
		read_all(&c_list[dir], c, dir ? FT_TX : FT_RX);
	}
	ft_release_pair(&pair);
	ft_check_idle(&pair.dom[0], "after messages");
	ft_check_idle(&pair.dom[1], "after messages");
}

/* ---- */

static void run(enum fi_cq_format format, bool one_cq)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i, rounds = ft_iters(ft_core("verbs") ? ROUNDS / 10 : ROUNDS);

	attr.format = format;
	attr.one_cq = one_cq;
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, 2 * MOST * LEN);
	out = ft_map(NULL, 2 * MOST * APART + MOST * LEN);
	several = 0;
	for (i = 0; i < rounds; i++) {
		ft_stage("format %d, %s, round %u", format,
			 one_cq ? "one queue" : "two queues", i);
		writes(1 + ft_rand() % MOST, WAYS, i * 2 * MOST);
		messages(1 + ft_rand() % MOST, i * 2 * MOST + MOST);
	}
	/*
	 * no later operation uses the record of the last write: a trace shows
	 * whether that write ended
	 */
	writes(1, HIT, i * 2 * MOST);
	FT_CHECK(several || rounds < 10, "no read returned several");
	ft_unmap(in, 2 * MOST * LEN);
	ft_unmap(out, 2 * MOST * APART + MOST * LEN);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	enum fi_cq_format format, last;

	ft_init(argc, argv);
	last = ft_core("verbs") ? FI_CQ_FORMAT_DATA : FI_CQ_FORMAT_TAGGED;
	for (format = FI_CQ_FORMAT_CONTEXT; format <= last; format++) {
		run(format, false);
		run(format, true);
	}
	return ft_done();
}
