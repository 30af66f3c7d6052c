/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Serves clients over reliable datagrams (serve/server/server.h). All clients
 * send to one endpoint. A message belongs to the client whose session number is
 * at its end.
 *
 * A HELLO may come from any sender, and names its sender. The server's answer,
 * with a random session number, goes to the address that the HELLO names: only
 * a client at this address learns the number, so no other process can send in
 * the client's name. The source that ofi_rxm reports (FI_SOURCE) is not used,
 * since the sender's packets determine this source.
 *
 * No event tells the server that a client has ended. Therefore the server posts
 * a conditional write whose tag the client never exposes: the write ends with
 * an error when the client ends.
 */
#include "config.h"
#include "serve/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define REFUSAL_MS 3000 /* ms to connect to a client and tell it the refusal */
/* bits of a session number for the client's place in server->conn */
#define SLOT_BITS 14

/* ---- messages ------------------------------------------------------------ */

static struct conn *conn_of(struct server *server, uint64_t session)
{
	const uint64_t slot = session % (1 << SLOT_BITS);
	struct conn *conn = slot < server->conns ? &server->conn[slot] : NULL;

	return conn && conn_live(conn) && conn->link.session == session ? conn :
									  NULL;
}

/* Is a client at this address, or the server itself? */
static bool is_taken(const struct server *server, const uint8_t *name)
{
	unsigned i;

	for (i = 0; i < server->conns; i++) {
		if (server->conn[i].state != CONN_FREE &&
		    serve_named_same(server->conn[i].name, name))
			return true;
	}
	return serve_named_same(server->rdm.name, name);
}

static int make_session(struct server *server, struct conn *conn)
{
	const uint64_t slot = (uint64_t) (conn - server->conn);
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -FI_EIO;
	/* the session number of a HELLO must be 0 */
	random |= 1;
	conn->link.session = random << SLOT_BITS | slot;
	return 0;
}

/* ---- clients without a place --------------------------------------------- */

/* Refuses a client that may not exist: the answer needs a connection first. */
static void refuse(struct server *server, const struct serve_msg *msg,
		   enum serve_status status)
{
	struct rdm_refusal *refusal = NULL;
	unsigned i;

	for (i = 0; i < RDM_REFUSALS; i++) {
		if (!server->rdm.refusal[i].until)
			refusal = &server->rdm.refusal[i];
		else if (serve_named_same(server->rdm.refusal[i].name,
					  msg->name))
			return;
	}
	if (!refusal ||
	    net_insert(&server->net, msg->name, msg->name_len, &refusal->addr))
		return;
	memcpy(refusal->name, msg->name, msg->name_len);
	refusal->id = msg->id;
	refusal->status = status;
	refusal->said = false;
	refusal->until = server_now() + REFUSAL_MS;
}

static bool tell(struct server *server, const struct rdm_refusal *refusal)
{
	const struct serve_msg msg = {
		.type = SERVE_WELCOME,
		.status = refusal->status,
		.id = refusal->id,
	};
	uint8_t buf[SERVE_MSG_MAX];
	const size_t len = serve_seal(buf, serve_encode(&msg, buf), 1);

	return !fi_inject(server->rdm.ep, buf, len, refusal->addr);
}

void rdm_tick(struct server *server, uint64_t now)
{
	struct rdm_refusal *refusal = server->rdm.refusal;
	unsigned i;

	for (i = 0; i < RDM_REFUSALS; i++, refusal++) {
		if (!refusal->until)
			continue;
		if (!refusal->said)
			refusal->said = tell(server, refusal);
		if (now < refusal->until)
			continue;
		fi_av_remove(server->net.av, &refusal->addr, 1, 0);
		refusal->until = 0;
	}
}

/* ---- new clients --------------------------------------------------------- */

static void welcome(struct server *server, const struct serve_msg *msg,
		    const uint8_t *buf, size_t len)
{
	enum serve_status status;
	struct conn *conn;
	int ret;

	conn = conn_new(server, msg->name, msg->name_len, &status);
	if (!conn) {
		refuse(server, msg, status);
		return;
	}
	ret = make_session(server, conn);
	if (!ret)
		ret = net_insert(&server->net, msg->name, msg->name_len,
				 &conn->link.addr);
	if (ret) {
		server->total.refused++;
		server_complain("%s: no address: %s", conn->peer,
				fi_strerror(-ret));
		return;
	}
	memcpy(conn->name, msg->name, msg->name_len);
	conn->link.ep = server->rdm.ep;
	conn->link.cw = server->rdm.cw;
	conn->link.rdm = true;
	conn_hello(conn, buf, len);
}

/*
 * Handles a message, or drops a message that belongs to no client: any process
 * may have sent the message.
 */
static void handle(struct server *server, const uint8_t *buf, size_t len)
{
	struct serve_msg msg;
	struct conn *conn;
	uint64_t session;

	if (!serve_unseal(buf, &len, &session)) {
		conn = conn_of(server, session);
		if (conn) {
			conn_message(conn, buf, len);
			return;
		}
		if (!session && !serve_decode(buf, len, &msg) &&
		    msg.type == SERVE_HELLO && msg.name_len &&
		    !is_taken(server, msg.name)) {
			welcome(server, &msg, buf, len);
			return;
		}
	}
	server->total.strange++;
}

static int post(struct server *server, struct rx *rx)
{
	/*
	 * ofi_rxm completes a receive with the length that the sender claims:
	 * bytes that the message lacks must not come from another client's
	 * message
	 */
	memset(rx->buf, 0, SERVE_MSG_MAX);
	return (int) fi_recv(server->rdm.ep, rx->buf, SERVE_MSG_MAX, NULL,
			     FI_ADDR_UNSPEC, &rx->op);
}

void rdm_complete(struct server *server, struct op *op, size_t len, int err)
{
	struct rx *rx = &server->rdm.rx[op->index];
	int ret;

	if (err == FI_ECANCELED)
		return;
	if (err)
		/* the datagram is longer than any message */
		server->total.strange++;
	else
		handle(server, rx->buf, len);
	ret = post(server, rx);
	if (ret)
		server_complain("receiving: %s", fi_strerror(-ret));
}

/* ---- a client's life ----------------------------------------------------- */

int rdm_watch(struct conn *conn)
{
	ssize_t ret;

	ret = fi_cwrite(conn->link.cw, NULL, 0, NULL, conn->link.addr,
			SERVE_TAG_SERVER, &conn->life);
	conn->life.busy = !ret;
	return (int) ret;
}

void rdm_leave(struct conn *conn)
{
	const struct serve_msg bye = { .type = SERVE_BYE };
	uint8_t buf[SERVE_HEAD + SERVE_TAIL];
	size_t len = serve_encode(&bye, buf);

	/*
	 * Sends BYE. The server does not depend on BYE, which is not sent to a
	 * client that ends, nor to an address without a proven client, where
	 * BYE would need a connection.
	 */
	len = serve_seal(buf, len, conn->link.session);
	if (conn->proven && !conn->lost)
		fi_inject(conn->link.ep, buf, len, conn->link.addr);
	fi_av_remove(conn->server->net.av, &conn->link.addr, 1, 0);
}

/* ---- begin and end ------------------------------------------------------- */

int rdm_open(struct server *server)
{
	struct server_rdm *rdm = &server->rdm;
	struct net_link link = { 0 };
	struct fid_mr *mr;
	unsigned i;
	void *buf;
	int ret;

	rdm->rx = calloc(SERVER_RXS, sizeof(*rdm->rx));
	if (!rdm->rx)
		return -FI_ENOMEM;
	ret = net_endpoint(&server->net, server->net.info, server->cq, server,
			   &link);
	rdm->ep = link.ep;
	rdm->cw = link.cw;
	if (!ret)
		ret = net_name(rdm->ep, rdm->name, &rdm->name_len);
	for (i = 0; i < SERVER_RXS && !ret; i++) {
		ret = fi_mr_alloc(server->net.domain, SERVE_MSG_MAX, 0, 0, &buf,
				  &mr);
		if (ret)
			break;
		rdm->rx[i].buf = buf;
		rdm->rx[i].op = (struct op){ OP_SHARED, NULL, i, false };
		ret = post(server, &rdm->rx[i]);
	}
	return ret;
}

void rdm_close(struct server *server)
{
	struct server_rdm *rdm = &server->rdm;
	unsigned i;

	if (rdm->ep)
		fi_close(&rdm->ep->fid);
	for (i = 0; rdm->rx && i < SERVER_RXS; i++) {
		if (rdm->rx[i].buf)
			fi_mr_free(server->net.domain, rdm->rx[i].buf);
	}
	free(rdm->rx);
}
