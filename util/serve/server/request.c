/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handles one request of a client, from its message to the answer
 * (serve/server/server.h).
 */
#include "config.h"
#include "serve/server/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server/list.h"
#include "serve/wire/path.h"

static struct req *req_of(struct job *job)
{
	return (struct req *) ((char *) job - offsetof(struct req, job));
}

/* Does the client expose a buffer for this request? */
static bool has_write(const struct req *req)
{
	return req->msg.len && req->msg.type == SERVE_READ;
}

/* ---- jobs ---------------------------------------------------------------- */

static void read_range(struct req *req)
{
	struct serve_msg *answer = &req->answer;

	answer->ident = req->file->ident;
	if (req->msg.len)
		answer->status =
			source_read(req->file, req->msg.off, req->msg.len,
				    has_write(req) ? &req->block : NULL,
				    &answer->len, &answer->hash);
}

/*
 * Returns room for an answer with @size bytes of a file, or NULL. Over reliable
 * datagrams no answer is larger than a message, since a larger answer could get
 * stuck.
 */
static uint8_t *inline_room(struct req *req, uint64_t size)
{
	size += SERVE_DATA_HEAD + SERVE_TAIL;
	if (size <= SERVE_MSG_MAX)
		return req->out;
	if (req->conn->link.rdm || size > req->block.size ||
	    source_block_need(&req->block))
		return NULL;
	return req->block.buf;
}

/*
 * Reads the whole file into the answer, if the client wants the file's bytes in
 * the answer and the answer has room.
 */
static void read_inline(struct req *req, bool now)
{
	const uint64_t size = req->file->ident.size;
	struct source_block room = { .size = size, .copy = true, .now = now };
	struct serve_msg *answer = &req->answer;
	uint8_t *out;

	answer->ident = req->file->ident;
	out = req->msg.len && size <= req->msg.len ? inline_room(req, size) :
						     NULL;
	if (!out)
		return;
	room.buf = out + SERVE_DATA_HEAD;
	answer->status = source_read(req->file, 0, size, &room, &answer->len,
				     &answer->hash);
	answer->data = room.buf;
	answer->data_len = answer->len;
}

static void open_job(struct job *job)
{
	struct req *req = req_of(job);

	req->answer.status = source_open(&req->conn->server->source, req->path,
					 false, &req->file);
	if (req->answer.status == SERVE_OK)
		read_inline(req, false);
	else if (req->answer.status == SERVE_IS_DIR)
		req->answer.status = source_dir_mode(&req->conn->server->source,
						     req->path,
						     &req->answer.ident.mode);
}

static void read_job(struct job *job)
{
	read_range(req_of(job));
}

static void list_job(struct job *job)
{
	struct req *req = req_of(job);
	struct serve_msg *answer = &req->answer;

	answer->cursor = req->msg.cursor;
	answer->entries = req->out + SERVE_PAGE_HEAD;
	answer->status = list_page(&req->conn->server->source, req->path,
				   &answer->cursor, req->out + SERVE_PAGE_HEAD,
				   &answer->entries_len);
	if (answer->status != SERVE_OK)
		answer->entries_len = answer->cursor = 0;
}

static void answer_now(struct req *req, enum serve_status status)
{
	req->answer.status = status;
	req->state = REQ_POST;
}

static void start_job(struct req *req, void (*run)(struct job *job))
{
	if (!req->path && run != read_job) {
		answer_now(req, SERVE_NO_RESOURCE);
		return;
	}
	req->state = REQ_WORK;
	req->job.run = run;
	req->conn->jobs++;
	jobs_post(&req->conn->server->jobs, &req->job);
}

/* ---- kinds --------------------------------------------------------------- */

/* From now on the client may request files. */
static void grant(struct req *req)
{
	struct conn *conn = req->conn;

	conn->reqs = conn->pipes;
	conn->rxs = conn->pipes + CONN_RX_MORE;
	conn->state = CONN_READY;
	conn->moved = server_now();
	answer_now(req, SERVE_OK);
}

/* Sends the server's proof in its WELCOME, and awaits the client's proof. */
static void want_proof(struct req *req)
{
	struct conn *conn = req->conn;
	const struct secret_about about = {
		.hello = &req->msg,
		.welcome = &req->answer,
		.at = &conn->server->listen.at,
		.at_len = sizeof(conn->server->listen.at),
		.session = conn->link.session,
		.rdm = conn->link.rdm,
	};
	const struct secret *secret = &conn->server->options.secret;

	if (secret_nonce(conn->nonce)) {
		conn_close(conn, "no random numbers");
		return;
	}
	req->answer.nonce = conn->nonce;
	secret_prove(secret, &about, SECRET_SERVER, conn->proof);
	secret_prove(secret, &about, SECRET_CLIENT, conn->expect);
	req->answer.proof = conn->proof;
	conn->state = CONN_PROVES;
	answer_now(req, SERVE_OK);
}

static void start_prove(struct req *req)
{
	if (secret_same(req->msg.proof, req->conn->expect))
		grant(req);
	else
		conn_close(req->conn, "does not prove the secret");
}

static void start_hello(struct req *req)
{
	struct conn *conn = req->conn;
	const size_t memory = conn->server->options.memory;
	uint32_t pipes = req->msg.pipes;

	if (conn->server->options.secret.set && !req->msg.nonce) {
		admit_refuse(conn->server, conn->peer, SERVE_SECRET);
		answer_now(req, SERVE_SECRET);
		return;
	}
	conn->part = req->msg.part < memory ? req->msg.part : memory;
	if (pipes > memory / conn->part)
		pipes = memory / conn->part;
	req->answer.part = conn->part;
	req->answer.pipes = pipes;
	req->answer.name = conn->server->rdm.name;
	req->answer.name_len = conn->server->rdm.name_len;
	conn->pipes = pipes;
	if (conn->server->options.secret.set)
		want_proof(req);
	else
		grant(req);
}

/* From now on keeps the file of an OPEN in its slot. */
static void keep_file(struct req *req)
{
	struct source_file **slot = &req->conn->slot[req->msg.slot];

	if (*slot)
		source_put(*slot);
	*slot = NULL;
	if (req->answer.status != SERVE_OK)
		return;
	*slot = req->file;
	source_get(req->file);
	req->conn->files++;
}

/* Logs the client and the file that it opened, or the reason of a refusal. */
static void log_file(const struct req *req)
{
	const struct conn *conn = req->conn;
	const struct serve_msg *answer = &req->answer;
	char user[32] = "", *path;

	if (!conn->server->options.log || req->msg.type != SERVE_OPEN)
		return;
	if (conn->from.uid != PEER_NO_UID)
		snprintf(user, sizeof(user), " user %u", conn->from.uid);
	path = path_shown(req->path, strlen(req->path));
	if (answer->status == SERVE_OK)
		server_say("%s%s: file %s, %" PRIu64 " bytes", conn->peer, user,
			   path ? path : "", answer->ident.size);
	else
		server_say("%s%s: file %s refused: %s", conn->peer, user,
			   path ? path : "", serve_status_text(answer->status));
	free(path);
}

/* Called when the request has its data, or an error. */
static void found(struct req *req)
{
	log_file(req);
	if (req->msg.type == SERVE_OPEN && req->conn->state == CONN_READY)
		keep_file(req);
	req->held = req->block.buf ? req->block.size : 0;
	req->state = REQ_POST;
}

/*
 * Opens a file that the kernel has in memory at once, without a job: two
 * changes of thread would take longer than the rest of the request. No call of
 * this function waits; after any error a job opens the file again.
 */
static bool open_now(struct req *req)
{
	if (req->msg.type != SERVE_OPEN || !req->path ||
	    source_open(&req->conn->server->source, req->path, true,
			&req->file) != SERVE_OK)
		return false;
	read_inline(req, true);
	if (req->answer.status == SERVE_OK)
		return true;
	source_put(req->file);
	req->file = NULL;
	req->answer.status = SERVE_OK;
	return false;
}

static void start_range(struct req *req)
{
	struct conn *conn = req->conn;

	if (req->msg.len > conn->part) {
		conn_close(conn, "asks for more bytes than it may");
		return;
	}
	if (req->msg.type != SERVE_OPEN) {
		req->file = conn->slot[req->msg.slot];
		if (!req->file) {
			conn_close(conn, "asks for a file that is not open");
			return;
		}
		source_get(req->file);
	}
	req->block.domain = conn->server->net.domain;
	req->block.size = conn->part;
	if (open_now(req))
		found(req);
	else
		start_job(req,
			  req->msg.type == SERVE_OPEN ? open_job : read_job);
}

static bool is_expected(const struct conn *conn, enum serve_type type)
{
	switch (conn->state) {
	case CONN_UP:
		return type == SERVE_HELLO;
	case CONN_PROVES:
		return type == SERVE_PROVE;
	default:
		return type == SERVE_OPEN || type == SERVE_READ ||
		       type == SERVE_SUM || type == SERVE_LIST;
	}
}

void req_start(struct req *req, const struct serve_msg *msg)
{
	struct conn *conn = req->conn;

	if (!is_expected(conn, msg->type) ||
	    (msg->name_len && !conn->link.rdm)) {
		conn_close(conn, "sends a message that is not expected");
		return;
	}
	req->msg = *msg;
	req->path = msg->path ? strndup(msg->path, msg->path_len) : NULL;
	req->written = !has_write(req);
	req->own = false;
	req->answer = (struct serve_msg){
		.type = msg->type == SERVE_HELLO ? SERVE_WELCOME :
			msg->type == SERVE_LIST	 ? SERVE_PAGE :
						   SERVE_DATA,
		.id = msg->id,
		.slot = msg->slot,
		.off = msg->off,
	};
	if (conn->server->ending)
		answer_now(req, SERVE_ENDING);
	else if (msg->type == SERVE_HELLO)
		start_hello(req);
	else if (msg->type == SERVE_PROVE)
		start_prove(req);
	else if (msg->type == SERVE_LIST)
		start_job(req, list_job);
	else
		start_range(req);
}

/* ---- answers ------------------------------------------------------------- */

void req_job_done(struct req *req)
{
	req->conn->jobs--;
	found(req);
}

void req_cancel(struct req *req)
{
	if (req->state != REQ_WORK ||
	    !jobs_cancel(&req->conn->server->jobs, &req->job))
		return;
	req->conn->jobs--;
	req->state = REQ_POST;
}

void req_end(struct req *req)
{
	if (req->file)
		source_put(req->file);
	req->file = NULL;
	free(req->path);
	req->path = NULL;
	req->state = REQ_FREE;
}

static ssize_t send_range(struct req *req)
{
	return source_send(req->file, &req->conn->link, &req->block,
			   req->answer.len, req->msg.id, &req->write,
			   &req->own);
}

static void count_range(struct req *req)
{
	struct conn *conn = req->conn;

	conn->ranges++;
	conn->bytes += req->answer.len;
	conn->own += req->own ? req->answer.len : 0;
}

/*
 * Posts the write of a request. After an error, a write of length 0 ends the
 * client's tag.
 */
static int post_write(struct req *req)
{
	ssize_t ret;

	ret = send_range(req);
	if (ret && ret != -FI_EAGAIN && req->own) {
		/*
		 * an error of the file goes to the client; an error of the
		 * connection comes again from the write of length 0
		 */
		req->answer.status = ret == -FI_ENODATA ?
					     SERVE_CHANGED :
					     source_status((int) ret);
		req->answer.len = 0;
		ret = send_range(req);
	}
	if (ret)
		return (int) ret;
	req->written = true;
	req->write.busy = true;
	count_range(req);
	return 0;
}

int req_post(struct req *req)
{
	const struct serve_msg *answer = &req->answer;
	ssize_t ret;
	uint8_t *out;
	size_t len;

	if (!req->written) {
		ret = post_write(req);
		if (ret)
			return (int) ret;
	}
	out = answer->data_len ? (uint8_t *) answer->data - SERVE_DATA_HEAD :
				 req->out;
	len = serve_encode(answer, out);
	ret = net_send(&req->conn->link, out, len, &req->send);
	if (ret)
		return (int) ret;
	if (answer->data_len)
		count_range(req);
	req->send.busy = true;
	req->state = REQ_SENT;
	return 0;
}
