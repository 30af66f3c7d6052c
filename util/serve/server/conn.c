/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One client's connection (serve/server/server.h).
 */
#include "config.h"
#include "serve/server/server.h"

#include <stdlib.h>
#include <string.h>

/* ms between tries to reach a client that may not exist */
#define CONN_RETRY_MS 1000

/* ---- receiving ----------------------------------------------------------- */

static int post_rx(struct conn *conn, struct rx *rx)
{
	ssize_t ret;

	rx->len = 0;
	rx->op.busy = conn->link.rdm;
	if (conn->link.rdm)
		return 0;
	/* tcp may report a length of a receive that was not received */
	memset(rx->buf, 0, SERVE_MSG_MAX);
	ret = fi_recv(conn->link.rx, rx->buf, SERVE_MSG_MAX, NULL, 0, &rx->op);
	if (!ret)
		rx->op.busy = true;
	return (int) ret;
}

/*
 * Allocates receive buffers and requests, up to the numbers that the client may
 * have.
 */
static int grow(struct conn *conn)
{
	unsigned i;
	int ret = 0;

	for (i = 0; i < conn->reqs && !ret; i++)
		ret = conn_alloc(conn, &conn->req[i].out);
	for (i = 0; i < conn->rxs && !ret; i++) {
		if (conn->rx[i].buf)
			continue;
		ret = conn_alloc(conn, &conn->rx[i].buf);
		if (!ret)
			ret = post_rx(conn, &conn->rx[i]);
	}
	return ret;
}

static struct req *free_req(struct conn *conn)
{
	unsigned i;

	for (i = 0; i < conn->reqs; i++) {
		if (conn->req[i].state == REQ_FREE)
			return &conn->req[i];
	}
	return NULL;
}

static void say_version(struct req *req, uint64_t id)
{
	req->msg = (struct serve_msg){ .type = SERVE_HELLO };
	req->written = true;
	req->answer = (struct serve_msg){
		.type = SERVE_WELCOME,
		.status = SERVE_VERSION_NO,
		.id = id <= SERVE_ID_MAX ? id : 0,
	};
	req->state = REQ_POST;
}

static bool is_heard(const struct conn *conn)
{
	return conn->state >= CONN_UP && conn->state <= CONN_READY;
}

/*
 * Handles a client's message if a struct req is free; else the message waits in
 * its receive buffer. A client's first message may arrive before the event that
 * the client is connected.
 */
static void handle_rx(struct conn *conn, struct rx *rx)
{
	struct req *req = free_req(conn);
	struct serve_msg msg;
	int ret;

	if (!req || conn->state == CONN_ACCEPTED)
		return;
	ret = serve_decode(rx->buf, rx->len, &msg);
	if (ret == -EPROTONOSUPPORT && conn->state == CONN_UP) {
		say_version(req, msg.id);
	} else if (ret) {
		conn_close(conn, "sends an invalid message");
		return;
	} else {
		req_start(req, &msg);
	}
	if (is_heard(conn)) {
		ret = post_rx(conn, rx);
		if (!ret &&
		    (msg.type == SERVE_HELLO || msg.type == SERVE_PROVE))
			ret = grow(conn);
		if (ret)
			conn_close(conn, fi_strerror(-ret));
	}
}

static void handle_waiting(struct conn *conn)
{
	unsigned i;

	for (i = 0; i < conn->rxs; i++) {
		if (conn->rx[i].len && is_heard(conn))
			handle_rx(conn, &conn->rx[i]);
	}
}

/* ---- sending ------------------------------------------------------------- */

bool conn_live(const struct conn *conn)
{
	return conn->state >= CONN_ACCEPTED && conn->state <= CONN_READY;
}

/*
 * Notes when to post a refused operation again: soon, but later over reliable
 * datagrams to a client that may not exist, since each post to such a client
 * tries to connect.
 */
static void stall(struct conn *conn)
{
	conn->stalled = true;
	if (conn->proven)
		conn->server->stalled = true;
	else
		conn->tried = server_now();
}

/* Ends a lost connection. err is positive. */
static void lose(struct conn *conn, int err)
{
	conn->lost = true;
	conn_close(conn, err == FI_ECANCELED || conn->leaves ?
				 NULL :
				 fi_strerror(err));
}

/*
 * Closes a client that said BYE: the client has all answers, though the server
 * may not have read the completions of the answers yet.
 */
static void leave(struct conn *conn)
{
	if (conn->leaves && !conn_busy(conn))
		conn_close(conn, NULL);
}

static void post_all(struct conn *conn)
{
	unsigned i;
	int ret;

	conn->stalled = false;
	for (i = 0; i < SERVE_PIPES_MAX && conn_live(conn); i++) {
		if (conn->req[i].state != REQ_POST)
			continue;
		ret = req_post(&conn->req[i]);
		if (ret == -FI_EAGAIN)
			stall(conn);
		else if (ret)
			lose(conn, -ret);
	}
}

/*
 * Did a writer open the file before its pages were sent? Then the answer's hash
 * may not match the sent bytes.
 */
static bool lost_pages(const struct op *op, int err)
{
	return err == FI_EIO && op->kind == OP_WRITE &&
	       op->conn->req[op->index].own;
}

/* Handles the client's end, or a write that belongs to no request. */
static void end_life(struct conn *conn, int err)
{
	if (!err)
		conn_close(conn, "exposes what it may not");
	else
		lose(conn, conn_busy(conn) ? err : FI_ECANCELED);
}

static void copy_message(struct conn *conn, const uint8_t *buf, size_t len)
{
	unsigned i;

	for (i = 0; i < conn->rxs && !conn->rx[i].op.busy; i++)
		;
	if (i == conn->rxs) {
		conn_close(conn, "sends more requests than it may");
		return;
	}
	memcpy(conn->rx[i].buf, buf, len);
	conn_complete(&conn->rx[i].op, len, 0);
}

void conn_hello(struct conn *conn, const uint8_t *buf, size_t len)
{
	int ret;

	conn->state = CONN_ACCEPTED;
	ret = grow(conn);
	if (ret) {
		conn_close(conn, fi_strerror(-ret));
		return;
	}
	conn_connected(conn);
	copy_message(conn, buf, len);
}

void conn_message(struct conn *conn, const uint8_t *buf, size_t len)
{
	struct serve_msg msg;
	int ret;

	if (!conn->proven) {
		ret = rdm_watch(conn);
		if (ret) {
			conn_close(conn, fi_strerror(-ret));
			return;
		}
		conn->proven = true;
	}
	if (!serve_decode(buf, len, &msg) && msg.type == SERVE_BYE) {
		conn->leaves = true;
		leave(conn);
	} else {
		copy_message(conn, buf, len);
	}
}

/* Lets a stuck connection be reaped, as one of its operations has ended. */
static void unstick(struct conn *conn)
{
	if (conn->state != CONN_STUCK)
		return;
	conn->state = CONN_CLOSED;
	conn->server->closed++;
}

void conn_complete(struct op *op, size_t len, int err)
{
	struct conn *conn = op->conn;
	struct req *req;

	op->busy = false;
	unstick(conn);
	if (!conn_live(conn))
		return;
	if (op->kind == OP_LIFE) {
		end_life(conn, err);
		return;
	}
	if (err && !lost_pages(op, err)) {
		lose(conn, err);
		return;
	}
	/*
	 * a client that may not request files yet gets no more time for its
	 * proof
	 */
	if (conn->state == CONN_READY)
		conn->moved = server_now();
	if (op->kind == OP_RX) {
		conn->rx[op->index].len = len;
		if (!len)
			conn_close(conn, "sends an empty message");
		else
			handle_rx(conn, &conn->rx[op->index]);
	} else {
		req = &conn->req[op->index];
		if (req->state == REQ_SENT && !req->send.busy &&
		    !req->write.busy) {
			req_end(req);
			handle_waiting(conn);
		}
	}
	if (conn_live(conn))
		post_all(conn);
	leave(conn);
}

/* ---- a client's life ----------------------------------------------------- */

void conn_accept(struct server *server, struct fi_info *info)
{
	enum serve_status status;
	struct conn *conn;
	int ret;

	conn = conn_new(server, info->dest_addr, info->dest_addrlen, &status);
	if (!conn) {
		admit_reject(server, info, status);
		return;
	}
	conn->proven = true;
	ret = net_endpoint(&server->net, info, server->cq, conn, &conn->link);
	if (ret) {
		admit_refuse(server, conn->peer, SERVE_NO_RESOURCE);
		admit_reject(server, info, SERVE_NO_RESOURCE);
		return;
	}
	conn->state = CONN_ACCEPTED;
	ret = grow(conn);
	if (!ret)
		ret = fi_accept(conn->link.ep, NULL, 0);
	if (ret)
		conn_close(conn, fi_strerror(-ret));
}

struct conn *conn_find(struct server *server, const struct fid *fid)
{
	unsigned i;

	for (i = 0; i < server->conns; i++) {
		if (conn_live(&server->conn[i]) &&
		    &server->conn[i].link.ep->fid == fid)
			return &server->conn[i];
	}
	return NULL;
}

void conn_connected(struct conn *conn)
{
	if (conn->state != CONN_ACCEPTED)
		return;
	conn->state = CONN_UP;
	conn->moved = server_now();
	conn->server->total.clients++;
	if (conn->server->options.verbose)
		server_say("%s: connected", conn->peer);
	handle_waiting(conn);
	if (conn_live(conn))
		post_all(conn);
}

static void close_job(struct job *job)
{
	struct conn *conn =
		(struct conn *) ((char *) job - offsetof(struct conn, close));

	/* closing may wait for the peer, at most 200 ms: see fi_cwrite(3) */
	net_endpoint_close(&conn->link);
}

void conn_close(struct conn *conn, const char *why)
{
	struct server *server = conn->server;
	unsigned i;

	if (!conn_live(conn))
		return;
	if (why) {
		server->total.failed++;
		server_complain("%s: disconnected: %s", conn->peer, why);
	} else if (server->options.verbose) {
		server_say("%s: %lu files, %lu ranges, %lu bytes, %lu without "
			   "a copy",
			   conn->peer, conn->files, conn->ranges, conn->bytes,
			   conn->own);
	}
	if (conn->state == CONN_PROVES)
		admit_refuse(server, conn->peer, SERVE_SECRET);
	server->total.files += conn->files;
	server->total.ranges += conn->ranges;
	server->total.bytes += conn->bytes;
	server->total.own += conn->own;
	server->total.cut += conn_busy(conn) && !conn->leaves;
	for (i = 0; i < SERVE_PIPES_MAX; i++)
		req_cancel(&conn->req[i]);
	if (conn->link.rdm) {
		rdm_leave(conn);
		conn->state = CONN_CLOSED;
		server->closed++;
		return;
	}
	conn->state = CONN_CLOSING;
	conn->close.run = close_job;
	conn->jobs++;
	jobs_post(&server->closers, &conn->close);
}

void conn_job_done(struct job *job)
{
	struct conn *conn;
	struct req *req;

	if (job->run == close_job) {
		conn = (struct conn *) ((char *) job -
					offsetof(struct conn, close));
		conn->jobs--;
		conn->state = CONN_CLOSED;
		conn->server->closed++;
		return;
	}
	req = (struct req *) ((char *) job - offsetof(struct req, job));
	conn = req->conn;
	req_job_done(req);
	unstick(conn);
	if (conn_live(conn))
		post_all(conn);
}

bool conn_busy(const struct conn *conn)
{
	unsigned i;

	for (i = 0; i < SERVE_PIPES_MAX; i++) {
		if (conn->req[i].state != REQ_FREE)
			return true;
	}
	return false;
}

static bool waits_for_client(const struct conn *conn)
{
	unsigned i;

	for (i = 0; i < SERVE_PIPES_MAX; i++) {
		if (conn->req[i].state == REQ_POST ||
		    conn->req[i].state == REQ_SENT)
			return true;
	}
	return conn->state != CONN_READY || !conn->proven;
}

void conn_tick(struct conn *conn, uint64_t now)
{
	const struct serve_options *options;
	const uint64_t still = now - conn->moved;

	if (!conn_live(conn))
		return;
	options = &conn->server->options;
	if (conn->stalled && now - conn->tried >= CONN_RETRY_MS)
		post_all(conn);
	if (waits_for_client(conn)) {
		if (still > 1000UL * options->timeout)
			conn_close(conn,
				   conn->state == CONN_READY && conn->proven ?
					   "does not take its data" :
					   "says nothing");
	} else if (!conn_busy(conn) && still > 1000UL * options->idle) {
		conn_close(conn, "requests nothing");
	}
}

/*
 * Does the client have pending conditional writes? Over connections no write is
 * pending once the endpoint is closed.
 */
static bool has_writes(const struct conn *conn)
{
	bool busy = conn->life.busy;
	unsigned i;

	for (i = 0; i < SERVE_PIPES_MAX; i++)
		busy |= conn->req[i].write.busy;
	return conn->link.rdm && busy;
}

/* Frees a request. False: its job runs. */
static bool reap_req(struct conn *conn, struct req *req)
{
	if (req->state == REQ_WORK)
		return false;
	source_block_free(&req->block);
	req_end(req);
	/* on a closed connection no send is under way */
	if (conn->link.rdm && req->send.busy)
		return false;
	conn_release(conn, &req->out);
	return true;
}

void conn_reap(struct conn *conn)
{
	bool stuck = false;
	unsigned i;

	if (conn->state != CONN_CLOSED || has_writes(conn))
		return;
	for (i = 0; i < CONN_RX_MAX; i++)
		conn_release(conn, &conn->rx[i].buf);
	for (i = 0; i < SERVE_PIPES_MAX; i++)
		stuck |= !reap_req(conn, &conn->req[i]);
	for (i = 0; i < SERVE_SLOTS; i++) {
		if (conn->slot[i])
			source_put(conn->slot[i]);
		conn->slot[i] = NULL;
	}
	conn->state = stuck ? CONN_STUCK : CONN_FREE;
	conn->server->closed--;
}
