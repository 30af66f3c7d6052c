/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who gets a place (serve/server.h): whom --allow names, if it is there. A host, or a user of this one, has a share
 * of them: four fifths of its own and the free ones. So whatever one has taken,
 * another one gets a place.
 */
#include "config.h"
#include "serve/server.h"

#include <string.h>

#define SHARE	   4 /* of 5 */
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
