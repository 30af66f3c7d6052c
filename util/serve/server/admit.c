/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides which client gets one of the server's places. --allow names the
 * clients that may have a place. A host, or a local user, takes at most four
 * fifths of the places that are free or its own, so that the next host finds a
 * place.
 */
#include "config.h"
#include "serve/server/server.h"

#include <string.h>

#define SHARE	   4 /* fifths */
#define REFUSAL_MS 1000

static bool has_place(const struct conn *conn)
{
	return conn->state != CONN_FREE && conn->state != CONN_STUCK;
}

enum serve_status admit(const struct server *server, const struct peer *peer)
{
	const unsigned max = server->options.max_clients;
	unsigned i, used = 0, own = 0;

	if (!allow_has(&server->options.allow, peer))
		return SERVE_DENIED;
	for (i = 0; i < server->conns; i++) {
		if (!has_place(&server->conn[i]))
			continue;
		used++;
		own += peer_shares(&server->conn[i].from, peer);
	}
	if (used >= max)
		return SERVE_FULL;
	return own && 5 * (own + 1) > SHARE * (own + max - used) ? SERVE_SHARE :
								   SERVE_OK;
}

void admit_refuse(struct server *server, const char *who,
		  enum serve_status status)
{
	struct server_refusals *refusals = &server->refusals;
	const uint64_t now = server_now();

	server->total.refused++;
	if (refusals->said && now - refusals->said < REFUSAL_MS) {
		refusals->unsaid++;
		return;
	}
	server_complain("%s: refused: %s; %u more since the last such line",
			who, serve_status_text(status), refusals->unsaid);
	refusals->said = now;
	refusals->unsaid = 0;
}

void admit_reject(struct server *server, struct fi_info *info,
		  enum serve_status status)
{
	const struct serve_msg msg = { .type = SERVE_WELCOME,
				       .status = status };
	uint8_t buf[SERVE_MSG_MAX];

	fi_reject(server->pep, info->handle, buf, serve_encode(&msg, buf));
}

static struct conn *free_conn(struct server *server)
{
	unsigned i;

	for (i = 0; i < server->conns; i++) {
		if (server->conn[i].state == CONN_FREE)
			return &server->conn[i];
	}
	return NULL;
}

static void conn_init(struct conn *conn, struct server *server)
{
	unsigned i;

	memset(conn, 0, sizeof(*conn));
	conn->server = server;
	conn->moved = server_now();
	conn->reqs = 1;
	conn->rxs = CONN_RX_MORE;
	for (i = 0; i < CONN_RX_MAX; i++)
		conn->rx[i].op = (struct op){ OP_RX, conn, i, false };
	for (i = 0; i < SERVE_PIPES_MAX; i++) {
		conn->req[i].conn = conn;
		conn->req[i].send = (struct op){ OP_SEND, conn, i, false };
		conn->req[i].write = (struct op){ OP_WRITE, conn, i, false };
	}
	conn->life = (struct op){ OP_LIFE, conn, 0, false };
}

struct conn *conn_new(struct server *server, const void *addr, size_t len,
		      enum serve_status *status)
{
	struct conn *conn = free_conn(server);
	char text[NET_ADDR_TEXT];
	struct peer peer;

	net_addr_text(addr, len, text);
	peer_of(addr, len, &server->listen.at, server->options.kind.rdm, &peer);
	*status = server->ending ? SERVE_ENDING :
		  conn		 ? admit(server, &peer) :
				   SERVE_FULL;
	if (*status != SERVE_OK) {
		admit_refuse(server, text, *status);
		return NULL;
	}
	conn_init(conn, server);
	conn->from = peer;
	memcpy(conn->peer, text, sizeof(text));
	return conn;
}
