/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_multi_recv: tests buffers for many messages each. Messages of every
 * protocol of the core, expected and unexpected, lie in a buffer one after the
 * other; FI_MULTI_RECV comes once for each buffer. The buffer is held until the
 * last of its messages has completed, which may not be the last message placed.
 */
#include "ft_mrrc.h"

#include <sys/wait.h>

#define BUFS	3
#define ROOM	(256 * 1024)
#define LEAST	48000 /* FI_OPT_MIN_MULTI_RECV: a buffer with less room ends */
#define SHORT	4000
#define LONG	40000 /* more than ofi_rxm copies */
#define WINDOW	40
#define RX_SIZE 4 /* RX_SIZE in the process of refused() */

struct room {
	char *base;
	size_t used; /* bytes of messages, which lie close */
	bool over;
};

static struct ft_pair pair;
static struct room rooms[BUFS];
static char *out;
static unsigned sent, received, overs;
static size_t lens[1 << 16];

static void set_least(void)
{
	size_t least = LEAST;

	FT_CALL_OR_SKIP(fi_setopt(&pair.s.ep->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &least,
				  sizeof(least)));
}

static void post(struct room *r)
{
	void *desc = ft_desc(&pair.dom[0], r->base, ROOM);
	struct iovec iov = { r->base, ROOM };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = r,
	};

	r->used = 0;
	r->over = false;
	FT_POST(&pair.s, fi_recvmsg(pair.s.ep, &msg, FI_MULTI_RECV));
}

static size_t next_len(bool longer)
{
	size_t len;

	if (longer && ft_rand() % 3 == 0)
		len = LONG + ft_rand() % 1000;
	else
		len = 8 + ft_rand() % SHORT;
	return len;
}

static void send_one(bool longer)
{
	size_t len = next_len(longer);
	char *p = out + (size_t) (sent % WINDOW) * 2 * LONG;
	void *desc = ft_desc(&pair.dom[1], p, len);

	ft_fill(p, len, sent);
	lens[sent] = len;
	FT_POST(&pair.c, fi_send(pair.c.ep, p, len, desc, pair.c.to, p));
	sent++;
}

/* Returns the number of a message, which its first 8 bytes determine. */
static unsigned which(const char *p)
{
	unsigned i;

	for (i = 0; i < sent; i++) {
		if (lens[i] && ft_differs(p, 8, i) < 0)
			return i;
	}
	FT_CHECK(0, "a message that was not sent");
	return 0;
}

/*
 * Takes a completion of a buffer: a message in the buffer, the buffer's end, or
 * both.
 */
static void take(const struct fi_cq_data_entry *entry)
{
	struct room *r = entry->op_context;
	const char *p = entry->buf;
	unsigned i;

	FT_CHECK(r >= rooms && r < rooms + BUFS, "context %p",
		 entry->op_context);
	FT_CHECK(!r->over || entry->len, "a buffer ends twice");
	if (entry->flags & FI_RECV) {
		FT_CHECK(p >= r->base && p + entry->len <= r->base + ROOM,
			 "%zu bytes at %zd", entry->len, p - r->base);
		i = which(p);
		FT_CHECK(entry->len == lens[i], "message %u: %zu bytes of %zu",
			 i, entry->len, lens[i]);
		FT_CHECK_BUF(p, entry->len, i, "in a common buffer");
		lens[i] = 0;
		r->used += entry->len;
		received++;
	}
	if (entry->flags & FI_MULTI_RECV) {
		FT_CHECK(!r->over, "a buffer ends twice");
		r->over = true;
		overs++;
	}
}

/* Has the buffer ended, and have all its messages completed? */
static bool empty(const struct room *r)
{
	return r->over && ROOM - r->used < LEAST;
}

/* Reads all completions, of both sides. */
static void progress(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct ft_comp comp;
	ssize_t ret;

	ft_poll(&pair.c);
	while (ft_take(&pair.c, FT_TX, &comp))
		FT_CHECK(!comp.err, "send: error %d", comp.err);
	while ((ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1)) == 1)
		take(&entry);
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(pair.s.cq[FT_RX], &err, 0);
		FT_CHECK(0, "receive: error %d", err.err);
	}
}

static void repost(void)
{
	unsigned i;

	for (i = 0; i < BUFS; i++) {
		if (!empty(&rooms[i]))
			continue;
		memset(rooms[i].base, 0, ROOM);
		post(&rooms[i]);
	}
}

static void begin(void)
{
	sent = received = overs = 0;
	memset(lens, 0, sizeof(lens));
}

/*
 * Does the core itself pass all parts of fi_mrrc_multi_recv? ofi_rxm of 2.1
 * ends messages that it has to fetch with FI_ETRUNC, and goes on using a partly
 * used buffer that was cancelled.
 */
static bool all_works(void)
{
	return !ft_rxm() || FI_MAJOR_VERSION < 2;
}

/* early: number of messages sent before a buffer is posted */
static void stream(unsigned n, bool longer, unsigned early)
{
	uint64_t end = ft_deadline();
	unsigned i;

	ft_stage("%u messages%s, %u early", n,
		 longer ? ", long ones among them" : "", early);
	begin();
	while (sent < early)
		send_one(longer);
	for (i = 0; i < 50; i++)
		progress();
	for (i = 0; i < BUFS; i++)
		post(&rooms[i]);
	while (received < n) {
		if (sent < n && sent - received < WINDOW)
			send_one(longer);
		progress();
		repost();
		FT_CHECK(ft_limit_us() < end, "%u of %u messages", received,
			 sent);
	}
	ft_log("%u messages, %u buffers", received, overs);
	FT_CHECK(overs, "no buffer was used up");
}

/* Cancels all buffers that have not ended. */
static void settle(void)
{
	uint64_t end = ft_deadline();
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err;
	unsigned i;
	ssize_t ret;

	ft_stage("cancelling what is left");
	for (i = 0; i < BUFS; i++) {
		if (rooms[i].over)
			continue;
		FT_CALL(fi_cancel(&pair.s.ep->fid, &rooms[i]));
		do {
			ft_poll(&pair.c);
			ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
			FT_CHECK(ft_limit_us() < end, "not cancelled");
		} while (ret == -FI_EAGAIN);
		FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
		memset(&err, 0, sizeof(err));
		ret = fi_cq_readerr(pair.s.cq[FT_RX], &err, 0);
		FT_CHECK(ret == 1 && err.err == FI_ECANCELED &&
				 err.op_context == &rooms[i],
			 "fi_cq_readerr: %zd, error %d", ret, err.err);
	}
	ft_release_pair(&pair);
}

/* A buffer is held until it is used up, and no longer. */
static void released(bool longer)
{
	uint64_t end = ft_deadline();
	struct fi_mrrc_stats st;

	if (ft_opts.raw)
		return;
	ft_stage("one buffer, used up");
	/* earlier buffers may be held until the endpoint closes */
	ft_reconnect(&pair);
	pair.s.quiet[FT_RX] = true;
	set_least();
	ft_check_idle(&pair.dom[0], "endpoint closed");
	begin();
	memset(rooms[0].base, 0, ROOM);
	post(&rooms[0]);
	while (!rooms[0].over) {
		ft_stats(&pair.dom[0], &st);
		FT_CHECK(st.held_regions == 1 && st.posts == st.completions + 1,
			 "%" PRIu64 " regions held in use", st.held_regions);
		send_one(longer);
		while (received < sent && ft_limit_us() < end)
			progress();
		FT_CHECK(received == sent, "%u of %u messages", received, sent);
	}
	/* the end may come in a separate entry */
	while (!empty(&rooms[0]) && ft_limit_us() < end)
		progress();
	ft_check_idle(&pair.dom[0], "used up");
	ft_check_idle(&pair.dom[1], "used up");
}

/*
 * A message that is larger than a buffer ends the buffer, without
 * FI_MULTI_RECV. Over some cores (net) a message larger than its buffer breaks
 * the connection.
 */
static void cut_off(void)
{
	uint64_t end = ft_deadline();
	size_t len = ROOM + 1000;
	void *desc = ft_desc(&pair.dom[1], out, len);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	if (!ft_rxm())
		return;
	ft_stage("a message that is too large");
	begin();
	post(&rooms[0]);
	FT_POST(&pair.c, fi_send(pair.c.ep, out, len, desc, pair.c.to, out));
	do {
		ft_poll(&pair.c);
		ret = fi_cq_read(pair.s.cq[FT_RX], &entry, 1);
		FT_CHECK(ft_limit_us() < end, "no error");
	} while (ret == -FI_EAGAIN);
	FT_CHECK(ret == -FI_EAVAIL, "fi_cq_read: %zd", ret);
	ret = fi_cq_readerr(pair.s.cq[FT_RX], &err, 0);
	FT_CHECK(ret == 1 && err.err == FI_ETRUNC &&
			 err.op_context == &rooms[0],
		 "error %d, context %p", err.err, err.op_context);
	ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
	ft_release_pair(&pair);
	ft_check_idle(&pair.dom[0], "cut off");
}

/* A buffer that was partly used and cancelled is not reported again. */
static void cancelled(void)
{
	uint64_t end = ft_deadline();
	unsigned i;

	begin();
	for (i = 0; i < BUFS; i++)
		rooms[i].over = true;
	for (i = 0; i < 3; i++) {
		ft_stage("a buffer that was cancelled before, round %u", i);
		post(&rooms[0]);
		send_one(false);
		while (received < sent && ft_limit_us() < end)
			progress();
		FT_CHECK(received == sent, "%u of %u messages", received, sent);
		settle();
	}
}

/*
 * Posts buffers to a shared context, which has no FI_OPT_MIN_MULTI_RECV: each
 * buffer is held until it is used up, and no longer.
 */
static void shared(void)
{
	uint64_t end = ft_deadline();
	const enum fi_ep_type type = ft_opts.type;
	struct ft_attr attr = FT_ATTR;
	struct fi_msg msg;
	struct iovec iov;
	void *desc;
	unsigned i;

	/*
	 * this part runs where connected endpoints have shared contexts with
	 * multi-receives
	 */
	if (ft_rxm() || (!ft_core("net") && FI_MAJOR_VERSION < 2))
		return;
	ft_stage("buffers of a shared context");
	ft_opts.type = FI_EP_MSG;
	attr.caps = FI_MSG | FI_MULTI_RECV;
	attr.srx = true;
	ft_pair_open(&pair, &attr);
	pair.s.quiet[FT_RX] = true;
	begin();
	for (i = 0; i < 10; i++) {
		desc = ft_desc(&pair.dom[0], rooms[0].base, ROOM);
		iov = (struct iovec){ rooms[0].base, ROOM };
		msg = (struct fi_msg){
			.msg_iov = &iov,
			.desc = &desc,
			.iov_count = 1,
			.addr = FT_ANY,
			.context = &rooms[0],
		};
		rooms[0].used = 0;
		rooms[0].over = false;
		FT_POST(&pair.s, fi_recvmsg(pair.srx, &msg, FI_MULTI_RECV));
		while (!rooms[0].over) {
			if (sent - received < 1 + i % 3)
				send_one(false);
			progress();
			FT_CHECK(ft_limit_us() < end, "%u of %u messages",
				 received, sent);
		}
		ft_release(&pair.dom[0]);
		if (sent == received)
			ft_check_idle(&pair.dom[0], "used up");
	}
	ft_release(&pair.dom[1]);
	ft_pair_close(&pair);
	ft_opts.type = type;
}

/* ---- a buffer that is used up before the call returns -------------------- */

static struct fi_ops_msg core;
static bool read_early;

/*
 * Calls the core, then reads all completions, as another thread might, before
 * the core reports that the call failed.
 */
static ssize_t read_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    uint64_t flags)
{
	uint64_t end = ft_deadline();
	ssize_t ret = core.recvmsg(ep, msg, flags);

	while (!rooms[0].over && ft_limit_us() < end)
		progress();
	read_early = rooms[0].over;
	return ret ? ret : -FI_ENOMEM;
}

static void used_up(void)
{
	struct iovec iov = { rooms[0].base, ROOM };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = &rooms[0],
	};
	struct ft_core_ops ops;
	ssize_t ret;

	if (ft_opts.raw || !ft_rxm() || !ft_core("tcp") || !all_works())
		return;
	ft_stage("a buffer that is used up, and refused");
	/* earlier buffers may be held until the endpoint closes */
	ft_reconnect(&pair);
	pair.s.quiet[FT_RX] = true;
	set_least();
	begin();
	lens[0] = ROOM - 100;
	ft_fill(out, lens[0], 0);
	FT_POST(&pair.c,
		fi_send(pair.c.ep, out, lens[0], NULL, pair.c.to, out));
	sent++;
	ft_core_ops("tcp;ofi_rxm", &ops);
	core = *ops.msg;
	ops.msg->recvmsg = read_recvmsg;
	rooms[0].over = false;
	ret = fi_recvmsg(pair.s.ep, &msg, FI_MULTI_RECV);
	*ops.msg = core;
	FT_CHECK(ret == -FI_ENOMEM && read_early && received == 1,
		 "%zd, %u messages", ret, received);
	ft_check_idle(&pair.dom[0], "used up early");
}

/* ---- ofi_rxm's limits ---------------------------------------------------- */

/*
 * ofi_rxm runs out of entries while ofi_rxm places messages that came before
 * their buffer: the call that posts the buffer fails, but some messages
 * complete in the buffer.
 */
static void refused(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	void *desc;
	struct iovec iov;
	struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = FT_ANY,
		.context = &rooms[0],
	};
	uint64_t end;
	unsigned i;
	ssize_t ret;

	ft_stage("a buffer that is refused when messages are in it");
	attr.caps = FI_MSG | FI_MULTI_RECV;
	attr.abandons = true;
	ft_pair_open(&pair, &attr);
	pair.s.quiet[FT_RX] = true;
	rooms[0].base = ft_map(NULL, ROOM);
	out = ft_map(NULL, WINDOW * 2 * LONG);
	iov = (struct iovec){ rooms[0].base, ROOM };
	desc = ft_desc(&pair.dom[0], rooms[0].base, ROOM);
	begin();
	for (i = 0; i < RX_SIZE + 1; i++) {
		do
			send_one(true);
		while (lens[sent - 1] < LONG);
	}
	for (i = 0; i < 1000; i++)
		progress();
	ret = fi_recvmsg(pair.s.ep, &msg, FI_MULTI_RECV);
	ft_log("posting: %zd (%s)", ret, fi_strerror((int) -ret));
	if (ft_stats(&pair.dom[0], &st))
		FT_CHECK(st.held_regions == 1, "%" PRIu64 " regions held",
			 st.held_regions);
	end = ft_deadline();
	for (i = 0; i < 1000 || (ret == -FI_ENOMEM && received < RX_SIZE &&
				 ft_limit_us() < end);
	     i++)
		progress();
	ft_log("%u messages of %u", received, sent);
	FT_CHECK(ret != -FI_ENOMEM || received >= RX_SIZE, "%u messages of %u",
		 received, sent);
	ft_ep_close(&pair.s);
	ft_check_idle(&pair.dom[0], "endpoint closed");
	ft_release_pair(&pair);
	ft_pair_close(&pair);
}

/* Runs refused() in a process, since ofi_rxm reads its variable once. */
static void refused_elsewhere(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int status;
	pid_t pid;

	FT_CHECK(len > 0, "/proc/self/exe: %s", strerror(errno));
	path[len] = '\0';
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		setenv("FI_OFI_RXM_RX_SIZE", "4", 1);
		execl(path, path, "-p", ft_opts.prov, "-s", ft_opts.addr, "-t",
		      "60", "refused", (char *) NULL);
		_exit(5);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
			 !WEXITSTATUS(status),
		 "child: status 0x%x", status);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	char *in;
	unsigned i, n;

	ft_init(argc, argv);
	if (optind < argc && !strcmp(argv[optind], "refused")) {
		refused();
		return ft_done();
	}
	n = ft_iters(ft_core("verbs") ? 400 : 2000);
	attr.caps = FI_MSG | FI_MULTI_RECV;
	ft_pair_open(&pair, &attr);
	pair.s.quiet[FT_RX] = true;
	in = ft_map(NULL, BUFS * ROOM);
	out = ft_map(NULL, WINDOW * 2 * LONG);
	for (i = 0; i < BUFS; i++)
		rooms[i].base = in + (size_t) i * ROOM;
	set_least();
	for (i = 0; i < 4; i++) {
		if (i % 2 && !all_works())
			continue;
		stream(n, i % 2, i / 2 ? 20 : 0);
		settle();
		ft_reconnect(&pair);
		pair.s.quiet[FT_RX] = true;
		set_least();
	}
	ft_check_idle(&pair.dom[0], "endpoint closed");
	released(false);
	if (all_works())
		released(true);
	cut_off();
	if (all_works())
		cancelled();
	used_up();
	ft_pair_close(&pair);
	shared();
	ft_unmap(in, BUFS * ROOM);
	ft_unmap(out, WINDOW * 2 * LONG);
	if (ft_rxm())
		refused_elsewhere();
	return ft_done();
}
