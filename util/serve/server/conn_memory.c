/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of a connection, in registered memory (serve/server/server.h).
 */
#include "config.h"
#include "serve/server/server.h"

int conn_alloc(struct conn *conn, uint8_t **buf)
{
	struct fid_mr *mr;
	void *made;
	int ret;

	if (*buf)
		return 0;
	ret = fi_mr_alloc(conn->server->net.domain, SERVE_MSG_MAX, 0, 0, &made,
			  &mr);
	if (!ret)
		*buf = made;
	return ret;
}

void conn_release(struct conn *conn, uint8_t **buf)
{
	if (*buf)
		fi_mr_free(conn->server->net.domain, *buf);
	*buf = NULL;
}

size_t conn_memory(const struct conn *conn)
{
	size_t bytes = 0;
	unsigned i;

	for (i = 0; i < CONN_RX_MAX; i++)
		bytes += conn->rx[i].buf ? SERVE_MSG_MAX : 0;
	for (i = 0; i < SERVE_PIPES_MAX; i++) {
		bytes += conn->req[i].out ? SERVE_MSG_MAX : 0;
		bytes += conn->req[i].held;
	}
	return bytes;
}

size_t conn_memory_max(const struct serve_options *options)
{
	return options->memory +
	       (CONN_RX_MAX + SERVE_PIPES_MAX) * SERVE_MSG_MAX;
}
