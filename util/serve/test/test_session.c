/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests how the client's session checks the provider's completions, which these
 * tests make up.
 */
#include "config.h"
#include "test_serve.h"

#include "serve/client/session.h"

#define SESSION 77

static struct session session;
static volatile sig_atomic_t stop;

/* The next completion or error, and the number of posted receives. */
static struct {
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err;
	bool full;
	unsigned posted;
} fake;

static ssize_t fake_sread(struct fid_cq *cq, void *buf, size_t count,
			  const void *cond, int timeout)
{
	if (!fake.full)
		return -FI_EAGAIN;
	if (fake.err.err)
		return -FI_EAVAIL;
	fake.full = false;
	memcpy(buf, &fake.entry, sizeof(fake.entry));
	return 1;
}

static ssize_t fake_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf,
			    uint64_t flags)
{
	fake.full = false;
	*buf = fake.err;
	return 1;
}

static ssize_t fake_eq_read(struct fid_eq *eq, uint32_t *event, void *buf,
			    size_t len, uint64_t flags)
{
	/* no more completions come */
	stop = 1;
	return -FI_EAGAIN;
}

static ssize_t fake_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, void *context)
{
	fake.posted++;
	return 0;
}

static ssize_t fake_send(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest_addr, void *context)
{
	return 0;
}

static struct fi_ops_cq cq_ops = { .sread = fake_sread,
				   .readerr = fake_readerr };
static struct fi_ops_eq eq_ops = { .read = fake_eq_read };
static struct fi_ops_msg msg_ops = { .send = fake_send, .recv = fake_recv };
static struct fid_cq cq = { .ops = &cq_ops };
static struct fid_eq eq = { .ops = &eq_ops };
static struct fid_ep ep = { .msg = &msg_ops };

/* A session that waits for an answer, whose buffer is the last mapped memory. */
static struct session_pipe *begin(bool rdm)
{
	const size_t len = (size_t) SESSION_RX_MAX;
	struct session_pipe *pipe = &session.pipe[0];

	memset(&fake, 0, sizeof(fake));
	memset(&session, 0, sizeof(session));
	stop = 0;
	session.cq = &cq;
	session.net.eq = &eq;
	session.link = (struct net_link){
		.ep = &ep, .rx = &ep, .rdm = rdm, .session = rdm ? SESSION : 0
	};
	session.stop = &stop;
	session.timeout = 60;
	session.rx_buf = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(session.rx_buf, MAP_FAILED);
	ck_assert_int_eq(mprotect(session.rx_buf + len, len, PROT_NONE), 0);
	session.rx[0].kind = PIPE_RX;
	pipe->taken = true;
	pipe->id = 16;
	pipe->want = SERVE_DATA;
	fake.full = true;
	fake.entry.op_context = &session.rx[0];
	return pipe;
}

static const size_t lengths[] = { SERVE_ANSWER_MAX + 1, SESSION_RX_MAX + 8,
				  1 << 20, SIZE_MAX };

TEST_CASE(session, NULL, NULL);

/* The provider passes on the length that a peer claims. */
EACH_TEST(longer_than_posted, lengths)
{
	struct session_pipe *pipe = begin(false);

	fake.entry.len = lengths[_i];
	ck_assert_int_eq(session_wait(&session, pipe), -EPROTO);
	ck_assert(strstr(session.err, "invalid messages"));
}

/* Anyone may send a datagram: it does not end the session. */
EACH_TEST(longer_than_posted_rdm, lengths)
{
	struct session_pipe *pipe = begin(true);

	fake.entry.len = lengths[_i];
	ck_assert_int_eq(session_wait(&session, pipe), -EINTR);
	ck_assert_uint_eq(fake.posted, 1);
	ck_assert(!pipe->answered);
}

/*
 * An answer claims more bytes than it has: the client does not read the bytes that
 * an earlier, longer answer left in the buffer.
 */
TEST(old_answer_rdm)
{
	const struct serve_msg old = { .type = SERVE_DATA, .id = 32 };
	struct serve_msg list = { .type = SERVE_LIST };
	static uint8_t sent[SERVE_MSG_MAX];
	struct session_pipe *pipe = begin(true);
	size_t len;

	pipe->id = 32;
	len = serve_seal(session.rx_buf, serve_encode(&old, session.rx_buf),
			 SESSION);
	fake.entry.len = len;
	ck_assert_int_eq(session_wait(&session, pipe), 0);
	session_release(pipe);
	pipe->out = sent;
	ck_assert_int_eq(session_request(&session, pipe, &list), 0);
	fake.full = true;
	ck_assert_int_eq(session_wait(&session, pipe), -EINTR);
	ck_assert_uint_eq(fake.posted, 2);
}

/* A message that is too long, over a provider that checks the length. */
LOOP_TEST(truncated, 0, 2)
{
	const bool rdm = _i;
	struct session_pipe *pipe = begin(rdm);

	fake.err.err = FI_ETRUNC;
	fake.err.op_context = &session.rx[0];
	ck_assert_int_eq(session_wait(&session, pipe),
			 rdm ? -EINTR : -FI_ETRUNC);
	ck_assert_uint_eq(fake.posted, rdm);
}

/* More bytes than were exposed, of a range that the answer has */
TEST(writes_more)
{
	const struct serve_msg msg = {
		.type = SERVE_DATA, .id = 16, .len = 4096, .ident.size = 4096
	};
	struct session_pipe *pipe = begin(false);

	pipe->len = 4096;
	pipe->writes = pipe->exposed = true;
	pipe->tag = (struct session_op){ PIPE_TAG, 0 };
	pipe->answer = msg;
	pipe->answered = true;
	fake.entry.op_context = &pipe->tag;
	fake.entry.len = 4097;
	ck_assert_int_eq(session_wait(&session, pipe), -EPROTO);
}
