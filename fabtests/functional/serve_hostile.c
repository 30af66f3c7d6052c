/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve_hostile: a client that does to fi_mrrc_serve what it must not.
 * Ends with status 0 if the server has then disconnected it, test_serve.sh.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve/net.h"
#include "serve/wire.h"

#define LIMIT_S 60
#define RXS	4

static struct net net;
static struct fid_cq *cq;
static struct fid_ep *ep;
static uint8_t rx[RXS][SERVE_MSG_MAX];
static bool gone;

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

/* The next event, or 0: there is none. An error is the end. */
static uint32_t event(void)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t got = 0;
	ssize_t ret;

	ret = fi_eq_read(net.eq, &got, &entry, sizeof(entry), 0);
	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(net.eq, &err, 0);
		gone = true;
	}
	if (ret > 0 && got == FI_SHUTDOWN)
		gone = true;
	return ret > 0 ? got : 0;
}

static void open_connection(const char *port)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA, .size = 4096 };
	const char *host = getenv("SERVE_ADDRESS");
	struct addrinfo *addr;
	unsigned i;

	if (net_resolve(host ? host : "127.0.0.1", port, &addr))
		exit(EXIT_FAILURE);
	call("net_open", net_open(addr, false, NULL, &net));
	freeaddrinfo(addr);
	call("fi_cq_open", fi_cq_open(net.domain, &attr, &cq, NULL));
	call("endpoint", net_endpoint(&net, net.info, cq, NULL, &ep));
	for (i = 0; i < RXS; i++)
		call("fi_recv",
		     fi_recv(ep, rx[i], SERVE_MSG_MAX, NULL, 0, NULL));
	call("fi_connect", fi_connect(ep, net.info->dest_addr, NULL, 0));
	while (event() != FI_CONNECTED) {
		if (gone)
			fail("connecting", -FI_ECONNREFUSED);
		usleep(1000);
	}
}

static void poll_cq(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_read(cq, &entry, 1);
	} while (ret == 1);
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(cq, &err, 0);
		gone = true;
	}
}

/* Whether there was a place for it, or the connection was gone. */
static void send_bytes(const void *buf, size_t len)
{
	const time_t end = time(NULL) + LIMIT_S;
	ssize_t ret;

	do {
		ret = fi_inject(ep, buf, len, 0);
		if (ret == -FI_EAGAIN)
			poll_cq();
	} while (ret == -FI_EAGAIN && !gone && time(NULL) < end);
}

/* Longer than what is injected: the buffer stays. */
static void send_msg(const struct serve_msg *msg)
{
	static uint8_t buf[64][SERVE_MSG_MAX];
	static unsigned at;
	uint8_t *out = buf[at++ % 64];
	const size_t len = serve_encode(msg, out);
	ssize_t ret;

	do {
		ret = fi_send(ep, out, len, NULL, 0, NULL);
		if (ret == -FI_EAGAIN)
			poll_cq();
	} while (ret == -FI_EAGAIN && !gone);
}

static void hello(void)
{
	const struct serve_msg msg = {
		.type = SERVE_HELLO,
		.id = 1,
		.part = 65536,
		.pipes = 4,
	};

	send_msg(&msg);
}

static void garbage(void)
{
	uint8_t buf[64];
	unsigned i, k;

	for (i = 0; i < 100 && !gone; i++) {
		for (k = 0; k < sizeof(buf); k++)
			buf[k] = (uint8_t) rand();
		send_bytes(buf, 1 + (size_t) rand() % sizeof(buf));
	}
}

static void request(enum serve_type type, uint32_t len, const char *path)
{
	static uint64_t id = 1;
	const struct serve_msg msg = {
		.type = type,
		.id = ++id,
		.len = len,
		.path = path,
		.path_len = path ? strlen(path) : 0,
	};

	send_msg(&msg);
}

static void flood(void)
{
	unsigned i;

	/* answers are not received: RXS buffers, and no more */
	for (i = 0; i < 4000 && !gone; i++)
		request(SERVE_LIST, 0, "");
	/* nor are completions, until the test has seen the server's end of it */
	while (getchar() != EOF)
		;
	/* behind what it has sent is the end of the connection */
	for (i = 0; i < 4000 && !gone; i++) {
		if (fi_recv(ep, rx[0], SERVE_MSG_MAX, NULL, 0, NULL))
			poll_cq();
	}
}

static void act(const char *what)
{
	if (!strcmp(what, "silent"))
		return;
	if (strcmp(what, "early") && strcmp(what, "garbage"))
		hello();
	if (!strcmp(what, "garbage"))
		garbage();
	else if (!strcmp(what, "early") || !strcmp(what, "idle"))
		request(SERVE_LIST, 0, "");
	else if (!strcmp(what, "twice"))
		hello();
	else if (!strcmp(what, "late-garbage"))
		garbage();
	else if (!strcmp(what, "answer"))
		request(SERVE_DATA, 0, NULL);
	else if (!strcmp(what, "unopened"))
		request(SERVE_READ, 4096, NULL);
	else if (!strcmp(what, "oversize"))
		request(SERVE_OPEN, 65537, "file");
	else if (!strcmp(what, "dots"))
		request(SERVE_OPEN, 4096, "../secret");
	else if (!strcmp(what, "untagged"))
		request(SERVE_OPEN, 4096, "file");
	else if (!strcmp(what, "flood"))
		flood();
	else
		exit(2);
}

int main(int argc, char **argv)
{
	time_t end;

	if (argc != 3)
		return 2;
	srand((unsigned) getpid());
	open_connection(argv[1]);
	act(argv[2]);
	end = time(NULL) + LIMIT_S;
	while (!gone && time(NULL) < end) {
		event();
		poll_cq();
		usleep(1000);
	}
	printf("%s: %s\n", argv[2], gone ? "disconnected" : "still connected");
	return gone ? EXIT_SUCCESS : EXIT_FAILURE;
}
