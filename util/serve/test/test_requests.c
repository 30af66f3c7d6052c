/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests how fi_mrrc_serve reacts to results of the provider, which is replaced
 * by functions of this file.
 */
#include "config.h"
#include "test_serve.h"

#include <fcntl.h>

#include "serve/server/server.h"
#include "serve/client/session.h"

static struct {
	ssize_t pages;	 /* returned by the write of a file's pages */
	uint64_t copied; /* reported by a query */
	unsigned own, blocks, sends, removed, told;
	size_t block_len;    /* of the last write of a block */
	const uint8_t *sent; /* the last message */
	size_t sent_len;
} fake;

static ssize_t fake_cwritemsg(struct fid_mrrc_file *file, struct fid_ep *ep,
			      const struct fi_mrrc_file_msg *msg,
			      uint64_t flags)
{
	fake.own += !fake.pages;
	return fake.pages;
}

static int fake_query(struct fid_mrrc_file *file,
		      struct fi_mrrc_file_stats *attr)
{
	attr->copied = fake.copied;
	return 0;
}

static ssize_t fake_cwrite(struct fi_mrrc_cw *cw, const void *buf, size_t len,
			   void *desc, fi_addr_t dest_addr, uint64_t cwtag,
			   void *context)
{
	fake.blocks++;
	fake.block_len = len;
	return 0;
}

static ssize_t fake_send(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest_addr, void *context)
{
	fake.sends++;
	fake.sent = buf;
	fake.sent_len = len;
	return 0;
}

static ssize_t fake_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, void *context)
{
	return 0;
}

static const struct fi_mrrc_ops_cw cw_ops = { .cwrite = fake_cwrite };
static struct fi_mrrc_cw cw = { &cw_ops };

static int fake_close(struct fid *fid)
{
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = fake_close,
};
static ssize_t fake_inject(struct fid_ep *ep, const void *buf, size_t len,
			   fi_addr_t dest_addr)
{
	fake.told++;
	return 0;
}

static int fake_av_insert(struct fid_av *av, const void *addr, size_t count,
			  fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	*fi_addr = 1;
	return (int) count;
}

static int fake_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count,
			  uint64_t flags)
{
	fake.removed++;
	return 0;
}

static struct fi_ops_msg msg_ops = { .send = fake_send,
				     .recv = fake_recv,
				     .inject = fake_inject };
static struct fi_ops_av av_ops = { .insert = fake_av_insert,
				   .remove = fake_av_remove };
static struct fid_av av = { .ops = &av_ops };
static const struct fi_mrrc_ops_file file_ops = {
	.cwritemsg = fake_cwritemsg,
	.query = fake_query,
};

static struct fid_ep ep = { .fid.ops = &fid_ops, .msg = &msg_ops };
static struct fid_mrrc_file pages = { .fid.ops = &fid_ops, .ops = &file_ops };
static struct server server;
static struct conn conn;
static uint8_t answer[SERVE_MSG_MAX];
static char block[16];

/* Makes a request for all of "file", whose job has run. */
static struct req *begin(struct source_file **file)
{
	const struct source source = { .dir = top };
	struct req *req = &conn.req[0];

	memset(&fake, 0, sizeof(fake));
	memset(&server, 0, sizeof(server));
	memset(&conn, 0, sizeof(conn));
	conn.server = &server;
	conn.state = CONN_READY;
	conn.link.ep = conn.link.rx = &ep;
	conn.link.cw = &cw;
	conn.reqs = 1;
	ck_assert_int_eq(source_open(&source, "file", false, file), SERVE_OK);
	(*file)->pages = &pages;
	req->conn = &conn;
	req->write = (struct op){ OP_WRITE, &conn, 0, false };
	req->send = (struct op){ OP_SEND, &conn, 0, false };
	req->msg =
		(struct serve_msg){ .type = SERVE_READ, .id = 16, .len = 10 };
	req->answer = (struct serve_msg){ .type = SERVE_DATA, .id = 16 };
	req->out = answer;
	req->file = *file;
	req->block.buf = block;
	req->block.size = sizeof(block);
	req->state = REQ_POST;
	ck_assert_int_eq(source_read(*file, 0, 10, &req->block,
				     &req->answer.len, &req->answer.hash),
			 SERVE_OK);
	ck_assert_uint_eq(req->answer.len, 10);
	ck_assert(!req->block.filled);
	return req;
}

TEST_CASE(requests, make_files, remove_files);

static const struct {
	int ret;
	enum serve_status status;
} failures[] = {
	{ -FI_ENODATA, SERVE_CHANGED }, /* the file was truncated */
	{ -FI_EIO, SERVE_IO },
	{ -FI_ENOMEM, SERVE_NO_RESOURCE },
};

/* An error of the file is the answer, and ends no connection. */
EACH_TEST(pages_fail, failures)
{
	struct source_file *file;
	struct req *req = begin(&file);

	fake.pages = failures[_i].ret;
	ck_assert_int_eq(req_post(req), 0);
	ck_assert_int_eq(req->answer.status, failures[_i].status);
	ck_assert_uint_eq(req->answer.len, 0);
	ck_assert_uint_eq(fake.blocks, 1);
	ck_assert_uint_eq(fake.block_len, 0);
	ck_assert_uint_eq(conn.own, 0);
}

/* A full queue is no error of the file. */
TEST(pages_again)
{
	struct source_file *file;
	struct req *req = begin(&file);

	fake.pages = -FI_EAGAIN;
	ck_assert_int_eq(req_post(req), -FI_EAGAIN);
	fake.pages = 0;
	ck_assert_int_eq(req_post(req), 0);
	ck_assert_uint_eq(fake.own, 1);
	ck_assert_int_eq(req->answer.status, SERVE_OK);
}

/* The server itself reads files whose pages the provider copies. */
TEST(pages_copied)
{
	struct source_file *file;
	struct req *req = begin(&file);
	uint64_t hash;
	uint32_t len;

	fake.copied = 1;
	ck_assert_int_eq(req_post(req), 0);
	ck_assert_uint_eq(conn.own, 0);
	ck_assert_int_eq(source_read(file, 0, 10, &req->block, &len, &hash),
			 SERVE_OK);
	ck_assert(req->block.filled);
	ck_assert(!memcmp(block, "0123456789", 10));
	ck_assert_uint_eq(hash, req->answer.hash);
}

/* A writer took the file: the client finds a wrong hash, and asks again. */
LOOP_TEST(pages_lost, 0, 2)
{
	struct source_file *file;
	struct req *req = begin(&file);

	ck_assert_int_eq(jobs_open(&server.closers, 0), 0);
	ck_assert_int_eq(req_post(req), 0);
	req->own = _i == 0;
	conn_complete(&req->write, 0, FI_EIO);
	ck_assert_int_eq(conn.state, _i == 0 ? CONN_READY : CONN_CLOSING);
	if (_i == 0) {
		conn_complete(&req->send, 0, 0);
		ck_assert_int_eq(req->state, REQ_FREE);
		ck_assert_ptr_null(req->file);
	}
	jobs_close(&server.closers);
}

/* Like begin(), by OPEN with a path, until the request is answered. */
static struct req *begin_open(uint32_t want, bool rdm, struct serve_msg *got)
{
	static uint8_t large[SERVE_INLINE_MAX];
	const struct serve_msg msg = {
		.type = SERVE_OPEN,
		.id = 16,
		.len = want,
		.path = "file",
		.path_len = 4,
	};
	struct req *req = &conn.req[0];
	struct job *job;
	size_t len;

	server.source.dir = top;
	conn.part = sizeof(large);
	conn.link.rdm = rdm;
	memset(req, 0, sizeof(*req));
	req->conn = &conn;
	req->send = (struct op){ OP_SEND, &conn, 0, false };
	req->out = answer;
	req->block.buf = large;
	ck_assert_int_eq(jobs_open(&server.jobs, 1), 0);
	req_start(req, &msg);
	while (req->state == REQ_WORK) {
		job = jobs_take(&server.jobs);
		if (job)
			conn_job_done(job);
	}
	if (req->state == REQ_POST)
		ck_assert_int_eq(req_post(req), 0);
	jobs_close(&server.jobs);
	ck_assert_uint_eq(fake.sends, 1);
	ck_assert_uint_eq(fake.blocks + fake.own, 0);
	len = fake.sent_len - (rdm ? SERVE_TAIL : 0);
	ck_assert_int_eq(serve_decode(fake.sent, len, got), 0);
	return req;
}

#define SMALL (SERVE_MSG_MAX - SERVE_DATA_HEAD - SERVE_TAIL)
#define LARGE (SERVE_INLINE_MAX - SERVE_DATA_HEAD - SERVE_TAIL)

static const struct {
	uint32_t size, want, len;
	bool rdm;
} inlines[] = {
	{ 10, 100, 10, false },
	{ 10, 9, 0, false }, /* the client wants fewer bytes */
	{ 10, 0, 0, false },
	{ 0, 10, 0, false },
	{ SMALL, SMALL, SMALL, true },
	{ SMALL + 1, SERVE_INLINE_MAX, SMALL + 1, false },
	{ SMALL + 1, SERVE_INLINE_MAX, 0, true }, /* might be stuck */
	{ LARGE, SERVE_INLINE_MAX, LARGE, false },
	{ LARGE + 1, SERVE_INLINE_MAX, 0, false }, /* longer than a block */
};

/*
 * Either all bytes of a small file follow the answer to OPEN, or none of its
 * bytes, and no write is posted.
 */
EACH_TEST(whole, inlines)
{
	static uint8_t zeros[SERVE_INLINE_MAX];
	const uint32_t len = inlines[_i].len;
	struct source_file *file;
	struct serve_msg got;
	struct req *req;
	int fd;

	begin(&file);
	source_put(file);
	fd = openat(top, "file", O_WRONLY | O_TRUNC);
	ck_assert_int_eq(ftruncate(fd, inlines[_i].size), 0);
	ck_assert_int_eq(pwrite(fd, "0123456789", 10 * !!len, 0), 10 * !!len);
	close(fd);
	req = begin_open(inlines[_i].want, inlines[_i].rdm, &got);
	ck_assert_int_eq(got.status, SERVE_OK);
	ck_assert_uint_eq(got.len, len);
	ck_assert_uint_eq(got.data_len, len);
	ck_assert(!len || !memcmp(got.data, "0123456789", 10));
	ck_assert(len <= 10 || !memcmp(got.data + 10, zeros, len - 10));
	ck_assert_uint_eq(got.ident.size, inlines[_i].size);
	ck_assert_uint_eq(conn.bytes, len);
	ck_assert_uint_eq(conn.ranges, !!len);
	ck_assert_uint_eq(conn.files, 1);
	ck_assert_ptr_eq(conn.slot[0], req->file);
	req_end(req);
	source_put(conn.slot[0]);
}

/* Bytes may follow only if requested, and as many as the answer says. */
LOOP_TEST(taken, 0, 6)
{
	static const struct {
		bool opens;
		uint32_t len;
		size_t data_len;
		int ret;
	} answers[] = {
		{ true, 10, 10, 0 },	    { true, 0, 0, 0 },
		{ true, 10, 0, -EPROTO },   { true, 11, 11, -EPROTO },
		{ false, 10, 10, -EPROTO }, { false, 10, 0, 0 },
	};
	static struct session session;
	struct session_pipe *pipe = &session.pipe[0];

	pipe->taken = pipe->answered = true;
	pipe->opens = answers[_i].opens;
	pipe->len = 10;
	pipe->answer = (struct serve_msg){ .type = SERVE_DATA,
					   .len = answers[_i].len,
					   .data_len = answers[_i].data_len };
	ck_assert_int_eq(session_wait(&session, pipe), answers[_i].ret);
}

/* The first message arrives before the event, and waits for it. */
TEST(early_hello)
{
	const struct serve_msg hello = {
		.type = SERVE_HELLO, .id = 16, .part = 4096, .pipes = 1
	};
	static uint8_t buf[CONN_RX_MORE + 1][SERVE_MSG_MAX];
	unsigned i;
	size_t len;

	memset(&fake, 0, sizeof(fake));
	memset(&server, 0, sizeof(server));
	memset(&conn, 0, sizeof(conn));
	server.options.memory = 4096;
	conn.server = &server;
	conn.state = CONN_ACCEPTED;
	conn.link.ep = conn.link.rx = &ep;
	conn.link.cw = &cw;
	conn.reqs = 1;
	conn.rxs = CONN_RX_MORE;
	conn.req[0].conn = &conn;
	conn.req[0].out = answer;
	for (i = 0; i <= CONN_RX_MORE; i++) {
		conn.rx[i].buf = buf[i];
		conn.rx[i].op = (struct op){ OP_RX, &conn, i, true };
	}
	ck_assert_int_eq(jobs_open(&server.closers, 0), 0);
	len = serve_encode(&hello, buf[0]);
	conn_complete(&conn.rx[0].op, len, 0);
	ck_assert_int_eq(conn.state, CONN_ACCEPTED);
	conn_connected(&conn);
	ck_assert_int_eq(conn.state, CONN_READY);
	ck_assert_uint_eq(fake.sends, 1);
	jobs_close(&server.closers);
}

/* ---- reliable datagrams -------------------------------------------------- */

#define SESSION 0x8000000000004000

static const uint8_t theirs[16] = { AF_INET, 0, 1, 2, 10, 0, 0, 2 };
static const uint8_t ours[16] = { AF_INET, 0, 1, 2, 10, 0, 0, 1 };
static const uint8_t others[16] = { AF_INET, 0, 1, 2, 10, 0, 0, 3 };

/* Begins with a client whose one request is in work */
static void begin_rdm(void)
{
	static uint8_t buf[CONN_RX_MORE + 1][SERVE_MSG_MAX];
	static struct rx rx;
	unsigned i;

	memset(&fake, 0, sizeof(fake));
	memset(&server, 0, sizeof(server));
	memset(&conn, 0, sizeof(conn));
	rx = (struct rx){ { OP_SHARED, NULL, 0, false }, buf[CONN_RX_MORE], 0 };
	server.options.max_clients = 1;
	server.options.timeout = 1;
	server.conn = &conn;
	server.conns = 1;
	server.net.av = &av;
	server.rdm = (struct server_rdm){ .ep = &ep, .cw = &cw, .rx = &rx };
	memcpy(server.rdm.name, ours, sizeof(ours));
	conn.server = &server;
	conn.state = CONN_READY;
	conn.link = (struct net_link){ &ep, &cw, &ep, true, 0, SESSION };
	conn.proven = true;
	memcpy(conn.name, theirs, sizeof(theirs));
	conn.reqs = 1;
	conn.rxs = CONN_RX_MORE;
	conn.req[0].conn = &conn;
	conn.req[0].state = REQ_WORK;
	conn.life = (struct op){ OP_LIFE, &conn, 0, false };
	for (i = 0; i < CONN_RX_MORE; i++) {
		conn.rx[i].buf = buf[i];
		conn.rx[i].op = (struct op){ OP_RX, &conn, i, true };
	}
}

/* Receives a message. */
static void come(const struct serve_msg *msg, uint64_t session)
{
	struct rx *rx = &server.rdm.rx[0];

	rdm_complete(&server, &rx->op,
		     serve_seal(rx->buf, serve_encode(msg, rx->buf), session),
		     0);
}

static unsigned waiting(void)
{
	unsigned i, count = 0;

	for (i = 0; i < CONN_RX_MORE; i++)
		count += conn.rx[i].len != 0;
	return count;
}

/* A sender without the session number cannot act as the client. */
TEST(rdm_sessions)
{
	const struct serve_msg list = { .type = SERVE_LIST, .id = 16 };
	struct serve_msg hello = {
		.type = SERVE_HELLO, .part = 4096, .pipes = 1, .name_len = 16
	};
	unsigned i;

	begin_rdm();
	for (i = 0; i < 64; i++)
		come(&list, SESSION ^ 1UL << i);
	come(&list, 0);
	ck_assert_uint_eq(server.total.strange, 65);
	/* HELLOs of the client, of the server, and of one without a place */
	hello.name = theirs;
	come(&hello, 0);
	hello.name = ours;
	come(&hello, 0);
	ck_assert_uint_eq(server.total.strange, 67);
	hello.name = others;
	come(&hello, 0);
	ck_assert_uint_eq(server.total.refused, 1);
	ck_assert_int_eq(conn.state, CONN_READY);
	ck_assert_uint_eq(waiting(), 0);
	come(&list, SESSION);
	ck_assert_uint_eq(waiting(), 1);
	ck_assert_uint_eq(server.total.strange, 67);
}

/* A client without a place is told so once, and then forgotten. */
TEST(rdm_refused)
{
	const struct serve_msg hello = { .type = SERVE_HELLO,
					 .part = 4096,
					 .pipes = 1,
					 .name = others,
					 .name_len = 16 };

	begin_rdm();
	come(&hello, 0);
	come(&hello, 0);
	rdm_tick(&server, server_now());
	rdm_tick(&server, server_now());
	ck_assert_uint_eq(fake.told, 1);
	ck_assert_uint_eq(fake.removed, 0);
	rdm_tick(&server, UINT64_MAX);
	ck_assert_uint_eq(fake.told, 1);
	ck_assert_uint_eq(fake.removed, 1);
}

/* If a completion claims more bytes than the buffer has, all are dropped. */
TEST(rdm_length)
{
	static uint8_t buf[3 * SERVE_MSG_MAX];
	struct rx *rx;

	begin_rdm();
	rx = &server.rdm.rx[0];
	rx->buf = buf;
	serve_seal(buf, sizeof(buf) - SERVE_TAIL, SESSION);
	server_complete(&server, &rx->op, sizeof(buf), 0);
	ck_assert_uint_eq(server.total.strange, 1);
	ck_assert_int_eq(conn.state, CONN_READY);
	ck_assert_uint_eq(waiting(), 0);
}

/* Bytes that a message did not write are dropped: they are another client's. */
TEST(rdm_old_bytes)
{
	const struct serve_msg list = { .type = SERVE_LIST, .id = 16 };
	struct rx *rx;

	begin_rdm();
	rx = &server.rdm.rx[0];
	come(&list, SESSION);
	ck_assert_uint_eq(waiting(), 1);
	server_complete(&server, &rx->op, SERVE_HEAD + 8 + SERVE_TAIL, 0);
	ck_assert_uint_eq(waiting(), 1);
	ck_assert_uint_eq(server.total.strange, 1);
	/* after a message that was too long, too */
	serve_seal(rx->buf, serve_encode(&list, rx->buf), SESSION);
	server_complete(&server, &rx->op, 0, FI_ETRUNC);
	server_complete(&server, &rx->op, SERVE_HEAD + 8 + SERVE_TAIL, 0);
	ck_assert_uint_eq(waiting(), 1);
	ck_assert_uint_eq(server.total.strange, 3);
}

/* Over connections such bytes are of an earlier message of the client. */
TEST(old_bytes)
{
	const struct serve_msg hello = {
		.type = SERVE_HELLO, .id = 16, .part = 4096, .pipes = 1
	};
	struct rx *rx = &conn.rx[0];
	size_t len;

	begin_rdm();
	conn.link.rdm = false;
	conn.state = CONN_UP;
	conn.req[0].state = REQ_FREE;
	conn.req[0].out = answer;
	server.options.memory = 4096;
	conn.rx[CONN_RX_MORE].buf = server.rdm.rx[0].buf;
	ck_assert_int_eq(jobs_open(&server.closers, 0), 0);
	len = serve_encode(&hello, rx->buf);
	conn_complete(&rx->op, len, 0);
	ck_assert_int_eq(conn.state, CONN_READY);
	ck_assert_uint_eq(rx->buf[0] | rx->buf[2], 0);
	jobs_close(&server.closers);
}

/* Over connections, a length beyond the buffer disconnects the sender. */
TEST(length)
{
	struct rx *rx = &conn.rx[0];

	begin_rdm();
	conn.link.rdm = false;
	ck_assert_int_eq(jobs_open(&server.closers, 0), 0);
	server_complete(&server, &rx->op, SERVE_MSG_MAX + 1, 0);
	ck_assert_int_eq(conn.state, CONN_CLOSING);
	ck_assert_uint_eq(rx->len, 0);
	jobs_close(&server.closers);
}

/* A client with more requests than buffers gets no other client's buffers. */
TEST(rdm_flood)
{
	const struct serve_msg list = { .type = SERVE_LIST, .id = 16 };
	unsigned i;

	begin_rdm();
	for (i = 0; i < CONN_RX_MORE; i++)
		come(&list, SESSION);
	ck_assert_int_eq(conn.state, CONN_READY);
	come(&list, SESSION);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	ck_assert_uint_eq(fake.removed, 1);
	ck_assert_uint_eq(fake.told, 1);
	come(&list, SESSION);
	ck_assert_uint_eq(server.total.strange, 1);
}

/* A client's BYE is no disconnection, in any order of completions. */
LOOP_TEST(rdm_bye, 0, 4)
{
	const struct serve_msg bye = { .type = SERVE_BYE };
	struct req *req = &conn.req[0];

	begin_rdm();
	req->state = _i == 0 ? REQ_FREE : REQ_SENT;
	req->send = (struct op){ OP_SEND, &conn, 0, _i != 0 };
	come(&bye, SESSION);
	ck_assert_int_eq(conn.state, _i == 0 ? CONN_CLOSED : CONN_READY);
	if (_i == 1)
		conn_complete(&req->send, 0, 0);
	else if (_i == 2)
		conn_complete(&req->send, 0, FI_ECONNABORTED);
	else if (_i == 3)
		conn_complete(&conn.life, 0, FI_ECONNABORTED);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	ck_assert_uint_eq(server.total.failed, 0);
	ck_assert_uint_eq(server.total.cut, 0);
	ck_assert_uint_eq(fake.told, _i < 2);
}

/* All memory of a client that is gone is freed after its last use. */
TEST(rdm_gone)
{
	unsigned i;

	begin_rdm();
	for (i = 0; i < CONN_RX_MORE; i++)
		conn.rx[i].buf = NULL; /* not the provider's to free */
	conn.req[0].state = REQ_SENT;
	conn.req[0].send = (struct op){ OP_SEND, &conn, 0, true };
	conn.req[0].write = (struct op){ OP_WRITE, &conn, 0, true };
	conn_complete(&conn.life, 0, FI_ECONNABORTED);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	ck_assert_uint_eq(server.closed, 1);
	conn_reap(&conn);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	conn_complete(&conn.req[0].write, 0, FI_ECANCELED);
	conn_reap(&conn);
	ck_assert_int_eq(conn.state, CONN_STUCK);
	ck_assert_uint_eq(server.closed, 0);
	/* the place is free for others, but the address is still in use */
	conn_complete(&conn.req[0].send, 0, FI_ECANCELED);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	conn_reap(&conn);
	ck_assert_int_eq(conn.state, CONN_FREE);
	ck_assert_uint_eq(server.closed, 0);
}

static atomic_bool hangs;

static void hang(struct job *job)
{
	while (atomic_load(&hangs))
		usleep(1000);
}

static void wait_running(void)
{
	bool running;

	do {
		usleep(1000);
		pthread_mutex_lock(&server.jobs.lock);
		running = server.jobs.running;
		pthread_mutex_unlock(&server.jobs.lock);
	} while (!running);
}

/*
 * A read hangs, another read waits behind the hanging read, and the client
 * disconnects: the client's place is free, and the memory of both reads is
 * freed when the first read ends.
 */
TEST(hung)
{
	struct job *job;
	unsigned i;

	begin_rdm();
	for (i = 0; i < CONN_RX_MORE; i++)
		conn.rx[i].buf = NULL; /* not the provider's to free */
	atomic_store(&hangs, true);
	ck_assert_int_eq(jobs_open(&server.jobs, 1), 0);
	for (i = 0; i < 2; i++) {
		conn.req[i].conn = &conn;
		conn.req[i].state = REQ_WORK;
		conn.req[i].job.run = hang;
		conn.jobs++;
		jobs_post(&server.jobs, &conn.req[i].job);
	}
	wait_running();
	conn_close(&conn, NULL);
	ck_assert_uint_eq(conn.jobs, 1);
	conn_reap(&conn);
	ck_assert_int_eq(conn.state, CONN_STUCK);
	ck_assert(conn.req[0].state == REQ_WORK);
	ck_assert(conn.req[1].state == REQ_FREE);
	atomic_store(&hangs, false);
	while (!(job = jobs_take(&server.jobs)))
		usleep(1000);
	conn_job_done(job);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	conn_reap(&conn);
	ck_assert_int_eq(conn.state, CONN_FREE);
	ck_assert(jobs_close(&server.jobs));
}

/* The server's end does not wait for a read. */
TEST(hung_at_end)
{
	struct job job = { .run = hang };

	atomic_store(&hangs, true);
	ck_assert_int_eq(jobs_open(&server.jobs, 1), 0);
	jobs_post(&server.jobs, &job);
	wait_running();
	ck_assert(!jobs_close(&server.jobs));
	atomic_store(&hangs, false);
	ck_assert(jobs_close(&server.jobs));
}

/* Limits of time for clients, in different states. */
LOOP_TEST(late, 0, 5)
{
	static const struct {
		enum req_state req;
		bool proven;
		uint64_t limit; /* ms; 0: none */
	} clients[] = {
		{ REQ_FREE, true, 2000 },  /* requests nothing */
		{ REQ_FREE, false, 1000 }, /* perhaps a forged HELLO */
		{ REQ_WORK, true, 0 },	   /* the server's own work */
		{ REQ_POST, true, 1000 },  { REQ_SENT, true, 1000 },
	};
	const uint64_t limit = clients[_i].limit;

	begin_rdm();
	server.options.idle = 2;
	conn.req[0].state = clients[_i].req;
	conn.proven = clients[_i].proven;
	conn_tick(&conn, limit ? limit : 1000000);
	ck_assert_int_eq(conn.state, CONN_READY);
	if (!limit)
		return;
	conn_tick(&conn, limit + 1);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	/* a client that has not proven its address gets no message */
	ck_assert_uint_eq(fake.told, clients[_i].proven);
}

/* A client exposes a buffer to the write that only its end should end. */
TEST(rdm_exposed)
{
	begin_rdm();
	conn_complete(&conn.life, 0, 0);
	ck_assert_int_eq(conn.state, CONN_CLOSED);
	ck_assert_uint_eq(server.total.failed, 1);
}
