/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The client's side of a connection (serve/client/session.h).
 */
#include "config.h"
#include "serve/client/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#define CONNECT_MS 10000
#define POLL_MS	   200
#define BYE_MS	   1000
/*
 * a client tries the other kind of endpoints after this number of seconds
 * without an answer
 */
#define SILENT_S 1
#define PROBE_S	 2 /* seconds for an answer by the other kind of endpoints */
/* poll time in ms: ofi_rxm wakes no thread that waits for a connection */
#define CONNECTING_MS 1

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

static int fail(struct session *session, int ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct session *session, int ret, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(session->err, sizeof(session->err), fmt, args);
	va_end(args);
	return ret;
}

/*
 * Reports a failed transfer: either a call or a completion is the first to tell
 * that a connection is lost.
 */
static int fail_transfer(struct session *session, const char *what, int err)
{
	switch (err) {
	case FI_ECANCELED:
	case FI_ECONNABORTED:
	case FI_ECONNRESET:
	case FI_ENOTCONN:
	case FI_EIO:
		return fail(session, -FI_ECONNRESET,
			    "the connection to the server is lost");
	default:
		return fail(session, err ? -err : -FI_EOTHER, "%s: %s", what,
			    fi_strerror(err));
	}
}

/* ---- connecting ---------------------------------------------------------- */

/* Gets the reason of a rejection, such as that the server has no free place. */
static const char *rejected(struct session *session,
			    const struct fi_eq_err_entry *err)
{
	struct serve_msg msg;

	if (!err->err_data ||
	    serve_decode(err->err_data, err->err_data_size, &msg) ||
	    msg.type != SERVE_WELCOME || msg.status == SERVE_OK)
		return fi_strerror(err->err);
	session->served = true;
	return serve_status_text(msg.status);
}

static int read_event(struct session *session, bool *connected)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;
	ssize_t ret;

	ret = fi_eq_read(session->net.eq, &event, &entry, sizeof(entry), 0);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(session->net.eq, &err, 0);
		return fail(session, err.err ? -err.err : -FI_EOTHER, "%s",
			    rejected(session, &err));
	}
	if (ret < 0)
		return fail(session, (int) ret, "%s", fi_strerror((int) -ret));
	if (event == FI_SHUTDOWN)
		return fail(session, -FI_ECONNRESET,
			    "the server has closed the connection");
	*connected |= event == FI_CONNECTED;
	session->served |= *connected;
	return 0;
}

static int wait_connected(struct session *session)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const uint64_t end = now_ms() + CONNECT_MS;
	bool connected = false;
	int ret = 0;

	while (!ret && !connected) {
		ret = read_event(session, &connected);
		if (*session->stop)
			ret = fail(session, -EINTR, "interrupted");
		else if (!ret && now_ms() > end)
			ret = fail(session, -FI_ETIMEDOUT,
				   "no connection within %d s",
				   CONNECT_MS / 1000);
		if (!ret && !connected)
			nanosleep(&pause, NULL);
	}
	return ret;
}

static uint8_t *rx_at(struct session *session, const struct session_op *rx)
{
	return session->rx_buf + (size_t) rx->index * SESSION_RX_MAX;
}

/*
 * Returns the length of receives; no datagram answer is longer than a message.
 */
static size_t rx_len(const struct session *session)
{
	return session->link.rdm ? SERVE_MSG_MAX : SERVE_ANSWER_MAX;
}

static int post_rx(struct session *session, struct session_op *rx)
{
	const size_t len = rx_len(session);
	ssize_t ret;

	/*
	 * any process may send a message that claims more bytes than it has:
	 * bytes of an earlier answer must not be read as the missing bytes
	 */
	if (session->link.rdm)
		memset(rx_at(session, rx), 0, len);
	ret = fi_recv(session->link.rx, rx_at(session, rx), len, NULL,
		      FI_ADDR_UNSPEC, rx);
	return ret ? fail_transfer(session, "fi_recv", (int) -ret) : 0;
}

/*
 * Finds the server's address for reliable datagrams; the core connects when the
 * first message is sent. The numbers of requests begin at random, so that only
 * a process that received a request can answer the request.
 */
static int address(struct session *session)
{
	int ret;

	ret = net_address(&session->net, &session->link, session->name,
			  &session->name_len);
	if (!ret && getrandom(&session->sequence, sizeof(session->sequence),
			      0) != sizeof(session->sequence))
		ret = -FI_EIO;
	session->sequence >>= 8;
	return ret ? fail(session, ret, "%s", fi_strerror(-ret)) : 0;
}

static int connect_to(struct session *session, const struct addrinfo *addr,
		      const struct session_attr *attr)
{
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_UNSPEC,
		.size = 4 * SERVE_PIPES_MAX,
	};
	const char *hint;
	unsigned i;
	int ret;

	ret = net_open(addr, false, &attr->kind, &session->net);
	if (!ret)
		ret = fi_cq_open(session->net.domain, &cq, &session->cq, NULL);
	if (!ret)
		ret = net_endpoint(&session->net, session->net.info,
				   session->cq, session, &session->link);
	if (ret) {
		hint = net_hint(ret);
		return fail(session, ret, "%s%s%s", fi_strerror(-ret),
			    hint ? "; " : "", hint ? hint : "");
	}
	for (i = 0; i < session->rxs && !ret; i++) {
		session->rx[i] = (struct session_op){ PIPE_RX, i };
		ret = post_rx(session, &session->rx[i]);
	}
	if (ret)
		return ret;
	if (attr->kind.rdm)
		return address(session);
	ret = fi_connect(session->link.ep, session->net.info->dest_addr, NULL,
			 0);
	return ret ? fail(session, ret, "%s", fi_strerror(-ret)) :
		     wait_connected(session);
}

static void disconnect(struct session *session)
{
	net_endpoint_close(&session->link);
	if (session->cq)
		fi_close(&session->cq->fid);
	session->cq = NULL;
	net_close(&session->net);
}

static void *map(size_t len)
{
	void *buf = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return buf == MAP_FAILED ? NULL : buf;
}

static size_t messages_len(const struct session *session)
{
	return (size_t) session->rxs * SESSION_RX_MAX +
	       (size_t) SERVE_PIPES_MAX * SERVE_MSG_MAX;
}

/* Maps memory for receive buffers, and for the requests of all pipes. */
static int map_messages(struct session *session)
{
	uint8_t *out;
	unsigned i;

	session->rx_buf = map(messages_len(session));
	if (!session->rx_buf)
		return fail(session, -ENOMEM, "no memory");
	out = session->rx_buf + (size_t) session->rxs * SESSION_RX_MAX;
	for (i = 0; i < SERVE_PIPES_MAX; i++) {
		session->pipe[i].send = (struct session_op){ PIPE_SEND, i };
		session->pipe[i].tag = (struct session_op){ PIPE_TAG, i };
		session->pipe[i].out = out + (size_t) i * SERVE_MSG_MAX;
	}
	return 0;
}

static int meet(struct session *session, const struct serve_msg *welcome)
{
	int ret;

	if (!session->link.rdm != !welcome->name_len)
		return fail(session, -EPROTO, "an invalid welcome");
	if (!session->link.rdm)
		return 0;
	session->life.kind = PIPE_LIFE;
	ret = net_meet(&session->net, welcome, &session->life, &session->link);
	return ret ? fail_transfer(session, "the server's name", -ret) : 0;
}

/*
 * Proves to the server, which has the secret, that the client has the secret,
 * too.
 */
static int prove(struct session *session, const struct secret *secret,
		 const struct secret_about *about)
{
	struct session_pipe *pipe = &session->pipe[0];
	uint8_t proof[SERVE_PROOF];
	struct serve_msg msg = { .type = SERVE_PROVE, .proof = proof };
	int ret;

	if (!secret->set)
		return 0;
	secret_prove(secret, about, SECRET_CLIENT, proof);
	ret = session_request(session, pipe, &msg);
	if (!ret)
		ret = session_wait(session, pipe);
	session_release(pipe);
	if (!ret && pipe->answer.status != SERVE_OK)
		ret = fail(session, -EPROTO, "%s",
			   serve_status_text(pipe->answer.status));
	return ret;
}

/* Checks WELCOME, the server's answer to HELLO, before its fields are used. */
static int welcome(struct session *session, const struct session_attr *attr,
		   const struct serve_msg *said)
{
	const struct serve_msg answer = session->pipe[0].answer;
	const struct secret_about about = {
		.hello = said,
		.welcome = &answer,
		.at = session->net.info->dest_addr,
		.at_len = session->net.info->dest_addrlen,
		.session = session->link.session,
		.rdm = session->link.rdm,
	};
	const char *why;
	int ret;

	if (answer.status != SERVE_OK)
		return fail(session, -EPROTO, "%s",
			    serve_status_text(answer.status));
	why = secret_check(attr->secret, &about);
	if (!why && (answer.part > attr->part || answer.pipes > attr->pipes))
		why = "an invalid welcome";
	if (why)
		return fail(session, -EPROTO, "%s", why);
	session->part = answer.part;
	session->pipes = answer.pipes;
	ret = meet(session, &answer);
	return ret ? ret : prove(session, attr->secret, &about);
}

/*
 * Does a server with the other kind of endpoints answer? Then session->err says
 * which kind the server has.
 */
static bool is_other(struct session *session, const struct session_attr *attr)
{
	static const struct secret none;
	struct session *probe = calloc(1, sizeof(*probe));
	struct session_attr other = *attr;
	char provider[256];
	bool served;

	if (!probe)
		return false;
	net_other(&attr->kind, provider, sizeof(provider), &other.kind);
	other.secret = &none;
	other.pipes = 1;
	other.timeout = PROBE_S;
	other.probes = true;
	if (!session_open(&other, probe))
		session_close(probe);
	served = probe->served;
	free(probe);
	if (served)
		fail(session, 0, "the server has %s",
		     other.kind.rdm ? "reliable datagrams: use -e rdm" :
				      "connected endpoints: use -e msg");
	return served;
}

/* Sends HELLO if it is not sent yet, and waits for the answer. */
static int ask(struct session *session, struct session_pipe *pipe,
	       struct serve_msg *msg, unsigned timeout, bool *sent)
{
	int ret = 0;

	session->timeout = timeout;
	session->moved = now_ms();
	if (!*sent)
		ret = session_request(session, pipe, msg);
	*sent |= !ret;
	return ret ? ret : session_wait(session, pipe);
}

/*
 * Sends HELLO over reliable datagrams, with a time limit: no event tells that
 * the server does not exist, has no place for the client, or does not
 * understand the client.
 */
static int ask_datagram(struct session *session,
			const struct session_attr *attr,
			struct session_pipe *pipe, struct serve_msg *msg)
{
	const unsigned limit = attr->timeout < CONNECT_MS / 1000 ?
				       attr->timeout :
				       CONNECT_MS / 1000;
	bool sent = false;
	int ret;

	if (attr->probes)
		return ask(session, pipe, msg, limit, &sent);
	ret = ask(session, pipe, msg, SILENT_S, &sent);
	if (ret != -FI_ETIMEDOUT || is_other(session, attr))
		return ret;
	*session->err = 0;
	return ask(session, pipe, msg, limit, &sent);
}

static int hello(struct session *session, const struct session_attr *attr)
{
	struct session_pipe *pipe = &session->pipe[0];
	uint8_t nonce[SERVE_NONCE];
	struct serve_msg msg = {
		.type = SERVE_HELLO,
		.part = attr->part,
		.pipes = attr->pipes,
		.name = session->name,
		.name_len = session->name_len,
		.nonce = attr->secret->set ? nonce : NULL,
	};
	bool sent = false;
	unsigned i;
	int ret;

	if (msg.nonce && secret_nonce(nonce))
		return fail(session, -EIO, "no random numbers");
	ret = attr->kind.rdm ? ask_datagram(session, attr, pipe, &msg) :
			       ask(session, pipe, &msg, attr->timeout, &sent);
	session->timeout = attr->timeout;
	if (!ret)
		ret = welcome(session, attr, &msg);
	session_release(pipe);
	if (ret)
		return ret;
	session->data = map((size_t) session->part * session->pipes);
	if (!session->data)
		return fail(session, -ENOMEM, "no memory");
	for (i = 0; i < session->pipes; i++)
		session->pipe[i].data =
			session->data + (size_t) i * session->part;
	return 0;
}

static int wait_once(struct session *session, int ms);

/*
 * Sends BYE over reliable datagrams, and waits for the server's BYE, for which
 * wait_once() returns an error.
 */
static void say_bye(struct session *session)
{
	const struct serve_msg msg = { .type = SERVE_BYE };
	const uint64_t end = now_ms() + BYE_MS;
	uint8_t buf[SERVE_HEAD + SERVE_TAIL];
	const size_t len =
		serve_seal(buf, serve_encode(&msg, buf), session->link.session);

	if (fi_inject(session->link.ep, buf, len, session->link.addr))
		return;
	while (!wait_once(session, POLL_MS) && now_ms() < end)
		;
}

static int connect_any(struct session *session, const struct session_attr *attr)
{
	struct addrinfo *list, *addr;
	int ret;

	ret = net_resolve(attr->host, attr->port, &list);
	if (ret)
		return fail(session, -EHOSTUNREACH, "%s", gai_strerror(ret));
	ret = -EHOSTUNREACH;
	for (addr = list; addr && ret && !*attr->stop; addr = addr->ai_next) {
		ret = connect_to(session, addr, attr);
		if (ret)
			disconnect(session);
	}
	freeaddrinfo(list);
	return ret;
}

int session_open(const struct session_attr *attr, struct session *session)
{
	int ret;

	memset(session, 0, sizeof(*session));
	session->timeout = attr->timeout;
	session->stop = attr->stop;
	session->rxs = attr->pipes + 1;
	ret = map_messages(session);
	if (!ret)
		ret = connect_any(session, attr);
	/* ofi_rxm refuses connections of other providers */
	if (ret == -FI_ECONNREFUSED && !session->served && !attr->kind.rdm &&
	    !attr->probes)
		is_other(session, attr);
	session->moved = now_ms();
	if (!ret)
		ret = hello(session, attr);
	if (ret)
		session_close(session);
	return ret;
}

void session_close(struct session *session)
{
	if (session->link.session && !*session->err)
		say_bye(session);
	disconnect(session);
	if (session->data)
		munmap(session->data, (size_t) session->part * session->pipes);
	if (session->rx_buf)
		munmap(session->rx_buf, messages_len(session));
	session->data = session->rx_buf = NULL;
}

/* ---- requests ------------------------------------------------------------ */

struct session_pipe *session_idle(struct session *session)
{
	unsigned i;

	for (i = 0; i < session->pipes; i++) {
		if (!session->pipe[i].taken)
			return &session->pipe[i];
	}
	return NULL;
}

/*
 * Exposes a pipe's buffer. The provider may keep the registration: the
 * registration covers only the session's data, all of which the server may
 * write.
 */
static ssize_t expose(struct session *session, struct session_pipe *pipe)
{
	const struct iovec iov = { pipe->data, pipe->len };
	const struct fi_msg_cw cw = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = session->link.addr,
		.cwtag = pipe->id,
		.context = &pipe->tag,
	};

	return fi_cwtagmsg(session->link.cw, &cw,
			   FI_COMPLETION | FI_MRRC_CW_KEEP);
}

/*
 * Sends a request. A connection has room for all requests of a session; a
 * reliable datagram may have to wait for room.
 */
static int send_request(struct session *session, struct session_pipe *pipe,
			size_t len)
{
	ssize_t ret;
	int err = 0;

	do {
		ret = net_send(&session->link, pipe->out, len, &pipe->send);
		if (ret == -FI_EAGAIN && session->link.rdm)
			err = wait_once(session, CONNECTING_MS);
	} while (ret == -FI_EAGAIN && session->link.rdm && !err);
	pipe->sending = !ret;
	if (err || !ret)
		return err;
	return fail_transfer(session, "requesting", (int) -ret);
}

int session_request(struct session *session, struct session_pipe *pipe,
		    struct serve_msg *msg)
{
	const unsigned index = (unsigned) (pipe - session->pipe);
	ssize_t ret;
	int err;

	/* there is one more receive buffer than there are answers */
	err = pipe->rx ? post_rx(session, pipe->rx) : 0;
	if (err)
		return err;
	pipe->rx = NULL;
	msg->id = ++session->sequence * SERVE_PIPES_MAX + index;
	pipe->taken = true;
	pipe->answered = false;
	pipe->id = msg->id;
	pipe->want = msg->type == SERVE_HELLO ? SERVE_WELCOME :
		     msg->type == SERVE_LIST  ? SERVE_PAGE :
						SERVE_DATA;
	pipe->len = msg->len;
	pipe->writes = msg->len && msg->type == SERVE_READ;
	pipe->written = 0;
	pipe->opens = msg->type == SERVE_OPEN;
	err = send_request(session, pipe, serve_encode(msg, pipe->out));
	if (err || !pipe->writes)
		return err;
	/* each pipe exposes one buffer at most */
	ret = expose(session, pipe);
	pipe->exposed = !ret;
	return ret ? fail_transfer(session, "requesting", (int) -ret) : 0;
}

/*
 * Does the message belong to another session? Over reliable datagrams any
 * process may send to the client: the client drops messages of other sessions
 * and, before the client has a session, messages that do not answer its HELLO.
 */
static bool is_strange(struct session *session, const uint8_t *buf, size_t *len)
{
	struct session_pipe *pipe = &session->pipe[0];
	struct serve_msg msg;
	uint64_t from;

	if (!session->link.rdm)
		return false;
	if (serve_unseal(buf, len, &from))
		return true;
	if (session->link.session)
		return from != session->link.session;
	if (serve_decode(buf, *len, &msg) || msg.id != pipe->id ||
	    msg.type != SERVE_WELCOME)
		return true;
	session->link.session = from;
	session->served = true;
	return false;
}

/* Does the answer agree with the request, and with the data that arrived? */
static bool is_consistent(const struct session_pipe *pipe)
{
	const struct serve_msg *answer = &pipe->answer;

	if (answer->status != SERVE_OK)
		return !pipe->written;
	if (answer->type != SERVE_DATA)
		return true;
	return answer->len <= pipe->len &&
	       (!pipe->writes || pipe->written == answer->len) &&
	       answer->data_len == (pipe->opens ? answer->len : 0);
}

static int handle_message(struct session *session, struct session_op *rx,
			  size_t len)
{
	const uint8_t *buf = rx_at(session, rx);
	struct session_pipe *pipe;
	struct serve_msg msg;
	int ret;

	/* ofi_rxm passes on the length that the peer claims */
	if (len > rx_len(session))
		len = 0;
	if (is_strange(session, buf, &len))
		return post_rx(session, rx);
	ret = serve_decode(buf, len, &msg);
	if (ret == -EPROTONOSUPPORT)
		return fail(session, ret, "the server is of another version");
	if (ret)
		return fail(session, ret, "the server sends invalid messages");
	if (msg.type == SERVE_BYE)
		return fail(session, -FI_ECONNRESET,
			    "the server has closed the connection");
	pipe = &session->pipe[msg.id % SERVE_PIPES_MAX];
	if (!pipe->taken || pipe->answered || msg.id != pipe->id ||
	    msg.type != pipe->want)
		return fail(session, -EPROTO,
			    "the server answers what was not asked");
	pipe->answer = msg;
	pipe->answered = true;
	pipe->rx = rx;
	return 0;
}

static int handle(struct session *session, const struct fi_cq_data_entry *entry)
{
	struct session_op *op = entry->op_context;

	if (!op)
		return 0;
	session->moved = now_ms();
	switch (op->kind) {
	case PIPE_RX:
		return handle_message(session, op, entry->len);
	case PIPE_SEND:
		session->pipe[op->index].sending = false;
		break;
	case PIPE_TAG:
		session->pipe[op->index].exposed = false;
		session->pipe[op->index].written = entry->len;
		break;
	case PIPE_LIFE:
		return fail(session, -EPROTO,
			    "the server writes what was not asked");
	}
	return 0;
}

static int handle_error(struct session *session)
{
	struct fi_cq_err_entry err = { 0 };
	struct session_op *op;

	fi_cq_readerr(session->cq, &err, 0);
	op = err.op_context;
	/*
	 * over reliable datagrams any process may send a message that is too
	 * long
	 */
	if (session->link.rdm && err.err == FI_ETRUNC && op &&
	    op->kind == PIPE_RX)
		return post_rx(session, op);
	return fail_transfer(session, "the connection failed", err.err);
}

static int wait_once(struct session *session, int ms)
{
	struct fi_cq_data_entry entry;
	bool connected = true;
	ssize_t ret;

	if (*session->stop)
		return fail(session, -EINTR, "interrupted");
	ret = fi_cq_sread(session->cq, &entry, 1, NULL, ms);
	if (ret == 1)
		return handle(session, &entry);
	if (ret == -FI_EAVAIL)
		return handle_error(session);
	if (ret != -FI_EAGAIN && ret != -FI_EINTR && ret)
		return fail(session, (int) ret, "fi_cq_sread: %s",
			    fi_strerror((int) -ret));
	if (now_ms() - session->moved > 1000UL * session->timeout)
		return fail(session, -FI_ETIMEDOUT,
			    "the server has not answered for %u s",
			    session->timeout);
	return read_event(session, &connected);
}

int session_wait(struct session *session, struct session_pipe *pipe)
{
	int ret = 0;

	session->moved = now_ms();
	while (!ret && (!pipe->answered || pipe->sending || pipe->exposed))
		ret = wait_once(session, POLL_MS);
	if (!ret && !is_consistent(pipe))
		ret = fail(session, -EPROTO,
			   "the server sent other bytes than it says");
	return ret;
}

const uint8_t *session_bytes(const struct session_pipe *pipe)
{
	return pipe->opens ? pipe->answer.data : pipe->data;
}

void session_release(struct session_pipe *pipe)
{
	pipe->taken = false;
}
