/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the server's state, at its start and end, and on request
 * (serve/server/server.h).
 */
#include "config.h"
#include "serve/server/server.h"

#include <inttypes.h>

unsigned report_live(const struct server *server, size_t *memory)
{
	unsigned i, count = 0;

	*memory = 0;
	for (i = 0; i < server->conns; i++) {
		if (server->conn[i].state == CONN_FREE ||
		    server->conn[i].state == CONN_STUCK)
			continue;
		count++;
		*memory += conn_memory(&server->conn[i]);
	}
	return count;
}

void report(const struct server *server)
{
	const struct conn *conn;
	size_t memory;
	unsigned i;

	i = report_live(server, &memory);
	server_say(
		"%u of %u clients, %zu KiB for them; since the start %" PRIu64
		" served, %" PRIu64 " refused, %" PRIu64 " disconnected",
		i, server->options.max_clients, memory >> 10,
		server->total.clients, server->total.refused,
		server->total.failed);
	if (server->rdm.ep)
		server_say("%" PRIu64 " messages of no client",
			   server->total.strange);
	for (i = 0; i < server->conns; i++) {
		conn = &server->conn[i];
		if (conn->state == CONN_FREE)
			continue;
		server_say("%s: %" PRIu64 " files, %" PRIu64 " ranges, %" PRIu64
			   " bytes, %zu KiB%s",
			   conn->peer, conn->files, conn->ranges, conn->bytes,
			   conn_memory(conn) >> 10,
			   conn->state == CONN_STUCK ? ", stuck" :
			   conn_busy(conn)	     ? ", busy" :
						       "");
	}
}

void report_begin(const struct server *server)
{
	const struct serve_options *options = &server->options;
	const size_t client = conn_memory_max(options);
	char text[NET_ADDR_TEXT];

	net_addr_text(&server->listen.at, sizeof(server->listen.at), text);
	server_say("serving %s at %s over %s; at most %u clients, %zu KiB each",
		   options->dir, text, server->net.info->fabric_attr->prov_name,
		   options->max_clients, client >> 10);
}

void report_end(const struct server *server)
{
	server_say("ended: %" PRIu64 " clients, %" PRIu64 " files, %" PRIu64
		   " ranges, %" PRIu64 " bytes, %" PRIu64
		   " without a copy; %" PRIu64 " clients disconnected, %" PRIu64
		   " with ranges on their way",
		   server->total.clients, server->total.files,
		   server->total.ranges, server->total.bytes, server->total.own,
		   server->total.failed, server->total.cut);
}
