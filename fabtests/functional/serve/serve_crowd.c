/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve_crowd PORT CLIENTS ROUNDS [late]: many clients of fi_mrrc_serve
 * in one process, for test_serve.sh. All clients connect. In each round each
 * client gets a range of "file" and compares the checksum; with ROUNDS 0, the
 * rounds have no end. When the rounds are over the program prints a line, and
 * keeps the connections until its standard input ends. With "late" each client
 * requests one more range before the line is printed, and exposes its buffer
 * only when the input has ended; the server then has to disconnect one client.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "serve/wire/net.h"
#include "serve/wire/wire.h"

#define LIMIT_S 300
#define PART	65536
#define RXS	2
#define FLOCK	32 /* number of clients that connect at once */

struct client {
	struct net_link link;
	uint8_t name[SERVE_NAMED_MAX];
	size_t name_len;
	uint8_t rx[RXS][SERVE_MSG_MAX];
	uint8_t out[SERVE_MSG_MAX];
	unsigned next; /* index of the next buffer of rx */
	uint64_t id;
	struct serve_msg answer;
	bool connected, answered, written;
	uint8_t *part;
};

/* operations, in the low bits of a context */
enum { OP_SEND, OP_RX, OP_TAG, OP_LIFE };

static struct net net;
static struct net_kind type;
static struct fid_cq *cq;
static struct client *clients;
static unsigned count, connecting;
/* all rounds are done: the server may disconnect the client */
static bool served;

static void fail(const char *what, long ret)
{
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int) -ret));
	exit(EXIT_FAILURE);
}

static void call(const char *what, long ret)
{
	if (ret)
		fail(what, ret);
}

static void lost(const char *what, long ret)
{
	if (served)
		exit(EXIT_SUCCESS);
	fail(what, ret);
}

static void *context(struct client *client, unsigned kind)
{
	return (char *) client + kind;
}

static void post_rx(struct client *client, unsigned i)
{
	call("fi_recv", fi_recv(client->link.rx, client->rx[i], SERVE_MSG_MAX,
				NULL, FI_ADDR_UNSPEC, context(client, OP_RX)));
}

static void read_eq(void)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	struct client *client;
	uint32_t event;
	ssize_t ret;

	ret = fi_eq_read(net.eq, &event, &entry, sizeof(entry), 0);
	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(net.eq, &err, 0);
		lost("connecting", -err.err);
	}
	if (ret <= 0)
		return;
	client = entry.fid->context;
	if (event == FI_SHUTDOWN)
		lost("disconnected by the server", -FI_ECONNRESET);
	connecting -= event == FI_CONNECTED && !client->connected;
	client->connected |= event == FI_CONNECTED;
}

static void handle(struct client *client, size_t len)
{
	uint8_t *buf = client->rx[client->next];
	uint64_t session = 0;

	if (type.rdm)
		call("serve_unseal", serve_unseal(buf, &len, &session));
	call("serve_decode", serve_decode(buf, len, &client->answer));
	if (type.rdm && client->answer.type == SERVE_WELCOME) {
		client->link.session = session;
		call("net_meet",
		     net_meet(&net, &client->answer, context(client, OP_LIFE),
			      &client->link));
	}
	post_rx(client, client->next);
	client->next = (client->next + 1) % RXS;
	client->answered = true;
}

static void read_cq(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	struct client *client;
	uintptr_t kind;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == 1) {
		if (!entry.op_context)
			continue;
		kind = (uintptr_t) entry.op_context % 8;
		client = (void *) ((char *) entry.op_context - kind);
		if (kind == OP_TAG)
			client->written = true;
		if (kind != OP_RX)
			continue;
		handle(client, entry.len);
	}
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(cq, &err, 0);
		lost("completion", -err.err);
	}
}

static void progress(time_t end)
{
	read_eq();
	read_cq();
	if (time(NULL) > end)
		fail("it takes too long", -FI_ETIMEDOUT);
}

static void expose(struct client *client)
{
	call("fi_cwtag",
	     fi_cwtag(client->link.cw, client->part, PART, NULL,
		      client->link.addr, client->id, context(client, OP_TAG)));
}

static void request(struct client *client, struct serve_msg msg, time_t end)
{
	ssize_t ret;

	if (msg.type == SERVE_HELLO) {
		msg.name = client->name;
		msg.name_len = client->name_len;
	}
	client->id += 16;
	msg.id = client->id;
	client->answered = false;
	client->written = !msg.len;
	while ((ret = net_send(&client->link, client->out,
			       serve_encode(&msg, client->out),
			       context(client, OP_SEND))) == -FI_EAGAIN)
		progress(end);
	call("fi_send", ret);
}

static void connect_all(time_t end)
{
	struct client *client;
	unsigned i, k;

	for (i = 0; i < count; i++) {
		client = &clients[i];
		client->part = malloc(PART);
		call("endpoint", client->part ?
					 net_endpoint(&net, net.info, cq,
						      client, &client->link) :
					 -FI_ENOMEM);
		for (k = 0; k < RXS; k++)
			post_rx(client, k);
		if (type.rdm) {
			call("net_address",
			     net_address(&net, &client->link, client->name,
					 &client->name_len));
			continue;
		}
		connecting++;
		call("fi_connect",
		     fi_connect(client->link.ep, net.info->dest_addr, NULL, 0));
		while (connecting >= FLOCK)
			progress(end);
	}
	while (connecting)
		progress(end);
}

/* All clients send the same request at once. */
static void ask(const struct serve_msg *msg, time_t end)
{
	unsigned i;

	for (i = 0; i < count; i++)
		request(&clients[i], *msg, end);
}

static void take(const struct serve_msg *msg, time_t end)
{
	const struct client *client;
	unsigned i;

	for (i = 0; i < count && msg->len; i++)
		expose(&clients[i]);
	for (i = 0; i < count; i++) {
		client = &clients[i];
		while (!client->answered || !client->written)
			progress(end);
		if (client->answer.status != SERVE_OK)
			fail(serve_status_text(client->answer.status), -FI_EIO);
		if (msg->len &&
		    (client->answer.len != PART ||
		     XXH3_64bits(client->part, PART) != client->answer.hash))
			fail("other bytes", -FI_EIO);
	}
}

static void wait_input(time_t end)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	puts("rounds are over");
	fflush(stdout);
	while (!poll(&input, 1, 1))
		progress(end);
}

static void open_net(const char *port)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA };
	const char *host = getenv("SERVE_ADDRESS");
	const char *name = getenv("SERVE_ENDPOINT");
	struct addrinfo *addr;

	if (name && net_endpoints(name, &type.rdm))
		exit(2);
	if (net_resolve(host ? host : "127.0.0.1", port, &addr))
		exit(EXIT_FAILURE);
	call("net_open", net_open(addr, false, &type, &net));
	freeaddrinfo(addr);
	attr.size = 8 * count;
	call("fi_cq_open", fi_cq_open(net.domain, &attr, &cq, NULL));
}

int main(int argc, char **argv)
{
	struct serve_msg msg = { .type = SERVE_HELLO,
				 .part = PART,
				 .pipes = 1 };
	time_t end = time(NULL) + LIMIT_S;
	unsigned i, rounds;

	if (argc < 4)
		return 2;
	count = (unsigned) atoi(argv[2]);
	rounds = (unsigned) atoi(argv[3]);
	clients = calloc(count, sizeof(*clients));
	if (!clients)
		return EXIT_FAILURE;
	open_net(argv[1]);
	connect_all(end);
	ask(&msg, end);
	take(&msg, end);
	msg = (struct serve_msg){ .type = SERVE_OPEN,
				  .path = "file",
				  .path_len = 4 };
	ask(&msg, end);
	take(&msg, end);
	msg = (struct serve_msg){ .type = SERVE_READ, .len = PART };
	for (i = 0; i < rounds || !rounds; i++) {
		if (!rounds)
			end = time(NULL) + LIMIT_S;
		ask(&msg, end);
		take(&msg, end);
		if (rounds)
			msg.off += PART;
	}
	if (argc > 4)
		ask(&msg, end);
	wait_input(end);
	if (argc == 4)
		return EXIT_SUCCESS;
	take(&msg, end);
	served = true;
	for (;;)
		progress(end);
}
