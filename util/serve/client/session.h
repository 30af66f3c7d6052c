/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The client's side of a connection, with requests in pipes. A pipe carries one
 * request at a time, and has a buffer for the request's range, which is exposed
 * under the request's id. Only one thread may use a session.
 */
#ifndef SERVE_SESSION_H
#define SERVE_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include "serve/wire/net.h"
#include "serve/wire/secret.h"
#include "serve/wire/wire.h"

#define SESSION_ERR_MAX 256
#define SESSION_RX_MAX	((SERVE_ANSWER_MAX + 4095U) & ~4095U)

enum pipe_op { PIPE_RX, PIPE_SEND, PIPE_TAG, PIPE_LIFE };

struct session_op {
	enum pipe_op kind;
	unsigned index;
};

struct session_pipe {
	/* the pipe is in use, from session_request() to session_release() */
	bool taken;
	bool answered, sending, exposed;
	struct session_op send, tag;
	uint64_t id;
	enum serve_type want; /* the answer's type */
	uint8_t *out;	      /* the request, SERVE_MSG_MAX */
	/* the receive that holds the answer, until the next request */
	struct session_op *rx;
	struct serve_msg answer;
	bool writes; /* the server writes to the pipe's data */
	/* the file's bytes may follow the answer in the message */
	bool opens;
	uint32_t len; /* requested bytes */
	/*
	 * room for session->part bytes: the range's bytes, unless these bytes
	 * follow the answer in its message
	 */
	uint8_t *data;
	size_t written; /* bytes written by the server */
};

struct session {
	struct net net;
	struct fid_cq *cq;
	struct net_link link;
	/*
	 * over reliable datagrams: an operation that ends when the server does
	 */
	struct session_op life;
	uint8_t name[SERVE_NAMED_MAX]; /* name of link.ep over datagrams */
	size_t name_len;
	uint32_t part, pipes;
	unsigned timeout; /* seconds */
	struct session_pipe pipe[SERVE_PIPES_MAX];
	struct session_op rx[SERVE_PIPES_MAX + 1];
	/* number of receives: one more than the pipes requested */
	unsigned rxs;
	uint8_t *
		/*
		 * memory with SESSION_RX_MAX bytes for each receive, followed
		 * by the pipes' requests
		 */
		rx_buf;
	uint8_t *data;
	uint64_t sequence;
	uint64_t moved; /* time of the last completion, ms */
	volatile sig_atomic_t *stop;
	bool served; /* the server has sent something, perhaps a refusal */
	char err[SESSION_ERR_MAX]; /* the reason, as text, after an error */
};

struct session_attr {
	const char *host, *port;
	struct net_kind kind;
	const struct secret *secret; /* the secret to prove, not NULL */
	/* requested values; the server may grant less */
	uint32_t part, pipes;
	unsigned timeout;
	bool probes; /* does not try the other kind of endpoints */
	volatile sig_atomic_t *stop; /* when it is set, calls end with -EINTR */
};

/*
 * Opens a session. Returns 0, or a negative error with the reason in
 * session->err, as all other calls that return int do.
 */
int session_open(const struct session_attr *attr, struct session *session);
void session_close(struct session *session);

/* Finds an idle pipe, or NULL. */
struct session_pipe *session_idle(struct session *session);

/* Sets msg's id and sends msg; a READ exposes the pipe's data. */
int session_request(struct session *session, struct session_pipe *pipe,
		    struct serve_msg *msg);

/*
 * Waits until the pipe's answer, and the data that it announces, have arrived
 * and are checked.
 */
int session_wait(struct session *session, struct session_pipe *pipe);
/* Called after session_wait(): the bytes to which the answer applies */
const uint8_t *session_bytes(const struct session_pipe *pipe);
void session_release(struct session_pipe *pipe);

#endif /* SERVE_SESSION_H */
