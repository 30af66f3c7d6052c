/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Declarations that the server's parts share: its event loop (server.c),
 * listener (listen.c), admission of clients (admit.c), connections (conn.c),
 * which over reliable datagrams share an endpoint (rdm.c), and requests
 * (request.c).
 *
 * One thread runs the whole server except the jobs; a job accesses only its
 * request with the request's file and block, or the endpoint that the job
 * closes. The loop never waits for one client: posts that fail are tried again,
 * blocking calls are jobs, and a client that does not take its data is
 * disconnected.
 *
 * A connection has a fixed number of requests, each with a block for its range,
 * so its memory is bounded. A connection has two more receive buffers than
 * requests: messages wait in these buffers, or at the client. Over reliable
 * datagrams no message waits at the client: messages are taken from a few
 * buffers that all clients share, and a client that sends more than its buffers
 * hold is disconnected.
 */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include <stdint.h>

#include "serve/server/jobs.h"
#include "serve/server/log.h"
#include "serve/wire/net.h"
#include "serve/wire/peer.h"
#include "serve/server/serve_options.h"
#include "serve/server/source.h"
#include "serve/wire/wire.h"

#define CONN_RX_MORE 2
#define CONN_RX_MAX  (SERVE_PIPES_MAX + CONN_RX_MORE)
#define SERVER_RXS   64

struct server;
struct conn;

enum op_kind { OP_RX, OP_SEND, OP_WRITE, OP_LIFE, OP_SHARED };

/* The context of an operation; busy from the post to the completion. */
struct op {
	enum op_kind kind;
	struct conn *conn; /* NULL: an operation for all clients */
	/* index in conn's rx or req, or in the server's rx */
	unsigned index;
	bool busy;
};

/*
 * A receive buffer, which over reliable datagrams is not posted. While op is
 * busy, a message may arrive in the buffer.
 */
struct rx {
	struct op op;
	uint8_t *buf;
	/* length of a message that waits for a free request, or 0 */
	size_t len;
};

enum req_state {
	REQ_FREE,
	REQ_WORK, /* the request's job runs */
	REQ_POST, /* write and answer are posted when there is room */
	REQ_SENT, /* write and answer are posted, and have not completed */
};

struct req {
	enum req_state state;
	struct job job;
	struct conn *conn;
	struct op send, write;
	bool written; /* the write is posted, or not needed */
	bool own;     /* the write sends the file's own pages */
	struct serve_msg msg;
	/* arguments and results of the job */
	char *path; /* path of OPEN and LIST, to be freed */
	/* file of the request, until the request has ended */
	struct source_file *file;
	struct source_block block;
	size_t held; /* bytes of the block's memory, when no job runs */
	struct serve_msg answer;
	uint8_t *out; /* the encoded answer: SERVE_MSG_MAX bytes */
};

enum conn_state {
	CONN_FREE,
	CONN_ACCEPTED, /* not connected yet */
	CONN_UP,       /* no HELLO yet */
	CONN_PROVES,   /* waits for PROVE, if there is a secret */
	CONN_READY,
	CONN_CLOSING, /* the endpoint is being closed */
	CONN_CLOSED,  /* to be freed */
	/*
	 * the client does not take its last answers, or a read for the client
	 * does not end: the client's place is free for others
	 */
	CONN_STUCK,
};

struct conn {
	enum conn_state state;
	struct server *server;
	struct net_link link;
	struct job close; /* closes the endpoint */
	char peer[NET_ADDR_TEXT];
	struct peer from;
	struct op life; /* operation that ends when the client ends */
	bool proven;	/* the client has its session */
	/* an operation on the connection has failed */
	bool lost;
	bool leaves; /* the client has said BYE */
	/* ms: when the client could not be reached */
	uint64_t tried;
	/* client's name, over reliable datagrams */
	uint8_t name[SERVE_NAMED_MAX];
	uint32_t part, pipes; /* granted */
	/* numbers of req and rx; smaller until CONN_READY */
	uint32_t reqs, rxs;
	uint8_t nonce[SERVE_NONCE];
	uint8_t proof[SERVE_PROOF];  /* the server's proof */
	uint8_t expect[SERVE_PROOF]; /* the client's proof */
	struct rx rx[CONN_RX_MAX];
	struct req req[SERVE_PIPES_MAX];
	struct source_file *slot[SERVE_SLOTS];
	unsigned jobs; /* running jobs */
	bool stalled;  /* an operation could not be posted */
	/* ms: when an operation completed or a message arrived */
	uint64_t moved;
	uint64_t files, ranges, bytes;
	uint64_t own; /* bytes sent from files' own pages */
};

/* A client that gets no place, and has to be told why. */
struct rdm_refusal {
	fi_addr_t addr;
	uint8_t name[SERVE_NAMED_MAX];
	uint64_t id; /* id of the client's HELLO */
	enum serve_status status;
	bool said;
	uint64_t until; /* ms; 0: this entry is unused */
};

/* clients told at a time; other clients are told nothing */
#define RDM_REFUSALS 8

/* The one endpoint of all clients, over reliable datagrams. */
struct server_rdm {
	struct rdm_refusal refusal[RDM_REFUSALS];
	struct fid_ep *ep;     /* NULL over connections */
	struct fi_mrrc_cw *cw; /* conditional writes of ep */
	uint8_t name[SERVE_NAMED_MAX];
	size_t name_len;
	struct rx *rx; /* SERVER_RXS */
};

/* The listening socket, and its connections that have sent no request yet. */
struct server_listen {
	struct sockaddr_storage at; /* address at which the server listens */
	int eq_fd;
	bool sockets;  /* connections are TCP sockets of this process */
	bool unseen;   /* accepted connections cause no event */
	bool woken;    /* the event queue has woken the loop */
	unsigned vain; /* number of wakes in a row without an event */
	/* ms: time of the next search; 0: none needed so far */
	uint64_t sweep_at;
	uint64_t muted; /* ms: until then the event queue wakes no thread */
	int spare;	/* a descriptor for mrrc_sockets_end_silent() */
};

/* Log lines about clients that get no place, at most one a second. */
struct server_refusals {
	uint64_t said; /* ms */
	unsigned unsaid;
};

struct server {
	struct serve_options options;
	struct server_rdm rdm;
	struct source source;
	struct net net;
	struct fid_pep *pep;
	struct server_listen listen;
	struct server_refusals refusals;
	struct fid_cq *cq;
	struct jobs jobs;    /* jobs that read files */
	struct jobs closers; /* jobs that close endpoints */
	int epoll, signals;
	bool cq_watched;
	struct conn *conn;
	unsigned conns; /* max_clients, and connections that may be stuck */
	bool ending;
	uint64_t end_by; /* ms */
	/* ms: when the deadlines of all clients were checked */
	uint64_t ticked;
	bool stalled;	 /* an operation of a connection could not be posted */
	unsigned closed; /* closed connections that are to be reaped */
	struct {
		uint64_t clients, refused, failed, files, ranges, bytes, own,
			cut, strange;
	} total;
};

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t server_now(void);

/* admit.c */

/* May the client have a place? SERVE_OK, or the reason why not. */
enum serve_status admit(const struct server *server, const struct peer *peer);
/* who: the client, as text */
void admit_refuse(struct server *server, const char *who,
		  enum serve_status status);

/*
 * Rejects a connection; the client reads the reason in place of an answer to
 * its HELLO.
 */
void admit_reject(struct server *server, struct fi_info *info,
		  enum serve_status status);
/*
 * Makes a new connection. Returns NULL if the client gets no place, and *status
 * says why. addr: the client's address.
 */
struct conn *conn_new(struct server *server, const void *addr, size_t len,
		      enum serve_status *status);

/* conn_memory.c */

/* Allocates SERVE_MSG_MAX bytes, unless *buf is allocated already. */
int conn_alloc(struct conn *conn, uint8_t **buf);
void conn_release(struct conn *conn, uint8_t **buf);
/*
 * The bytes that a connection has allocated, and the maximum for a connection.
 */
size_t conn_memory(const struct conn *conn);
size_t conn_memory_max(const struct serve_options *options);

/* conn.c */

/*
 * Over reliable datagrams: handles a client's HELLO, and the messages of its
 * session.
 */
void conn_hello(struct conn *conn, const uint8_t *buf, size_t len);
void conn_message(struct conn *conn, const uint8_t *buf, size_t len);
bool conn_live(const struct conn *conn);
/* Handles a connection request. */
void conn_accept(struct server *server, struct fi_info *info);
/* Finds the connection of an endpoint, or NULL. */
struct conn *conn_find(struct server *server, const struct fid *fid);
void conn_connected(struct conn *conn);
/* Closes a connection; why: NULL if the client ended it properly. */
void conn_close(struct conn *conn, const char *why);
/* Handles a completion; err: 0, or the positive error. */
void conn_complete(struct op *op, size_t len, int err);
/* Handles the end of a job. */
void conn_job_done(struct job *job);
/* Tries again to post; closes the connection after timeouts. */
void conn_tick(struct conn *conn, uint64_t now);
/* Called after all completions were read. */
void conn_reap(struct conn *conn);
bool conn_busy(const struct conn *conn);

/* report.c */

/* The number of clients that have a place, and their memory in bytes. */
unsigned report_live(const struct server *server, size_t *memory);
/* Prints a line for each client that has a place. */
void report(const struct server *server);
void report_begin(const struct server *server);
void report_end(const struct server *server);

/* listen.c */

/* Begins to listen. 0, or a negative error. */
int listen_open(struct server *server);
void listen_close(struct server *server);
/* Called after the listener's events were read. any: there was an event. */
void listen_tend(struct server *server, bool any);

/* rdm.c */

/* Opens the endpoint. 0, or a negative error. */
int rdm_open(struct server *server);
/* Called when no client is left. */
void rdm_close(struct server *server);
/* Sends refusals to clients without a place. */
void rdm_tick(struct server *server, uint64_t now);
/* Handles a receive of the server's endpoint. */
void rdm_complete(struct server *server, struct op *op, size_t len, int err);
/* The client has its session; watches for the client's end from now on. */
int rdm_watch(struct conn *conn);
/* Ends all operations of a client except sends. */
void rdm_leave(struct conn *conn);

/* request.c */

/* Starts a request on the message, whose buffer is free afterwards. */
void req_start(struct req *req, const struct serve_msg *msg);
/*
 * Posts the write and the answer of a request whose job is done. Returns 0,
 * -FI_EAGAIN if the caller has to call again, or another error.
 */
int req_post(struct req *req);
void req_job_done(struct req *req);
/*
 * Cancels a request whose client is gone: if its job has not begun, the job
 * will not run.
 */
void req_cancel(struct req *req);
/* Ends a request whose operations have completed, or never will. */
void req_end(struct req *req);

/* server.c */

/*
 * Handles each completion. A message longer than its receive buffer is an
 * error: no other function compares these lengths.
 */
void server_complete(struct server *server, struct op *op, size_t len, int err);
/* Runs the server until a signal ends it. Returns the exit status. */
int server_run(const struct serve_options *options);

#endif /* SERVE_SERVER_H */
