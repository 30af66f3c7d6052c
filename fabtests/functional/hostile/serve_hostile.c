/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve_hostile PORT WHAT [OTHER]: a client that violates the rules of
 * fi_mrrc_serve, for test_serve.sh. Prints a line when the server waits for the
 * client. The client ends with status 0 if the server has disconnected it. Over
 * reliable datagrams the client may also send messages that belong to no
 * client: then the status is 0 if these messages were sent. OTHER is the port
 * of another client; for WHAT "slow" the server's process id; for "many" the
 * number of connections.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/wire/net.h"
#include "serve/wire/wire.h"

#define LIMIT_S 60
#define RXS	4

static struct net net;
static struct fid_cq *cq;
static struct net_kind kind;
static struct net_link to;
static uint8_t name[SERVE_NAMED_MAX];
static size_t name_len;
static uint8_t rx[RXS][SERVE_MSG_MAX];
static bool gone;
static unsigned received;

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

/* Prints a line for the test script, once. */
static void say(const char *what)
{
	static const char *said;

	if (said == what)
		return;
	puts(what);
	fflush(stdout);
	said = what;
}

/*
 * Reads the next event; returns 0 if there is none. An error ends the program.
 */
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
	const char *type = getenv("SERVE_ENDPOINT");
	struct addrinfo *addr;
	unsigned i;

	if (type && net_endpoints(type, &kind.rdm))
		exit(2);
	if (net_resolve(host ? host : "127.0.0.1", port, &addr))
		exit(EXIT_FAILURE);
	call("net_open", net_open(addr, false, &kind, &net));
	freeaddrinfo(addr);
	call("fi_cq_open", fi_cq_open(net.domain, &attr, &cq, NULL));
	call("endpoint", net_endpoint(&net, net.info, cq, NULL, &to));
	for (i = 0; i < RXS; i++)
		call("fi_recv", fi_recv(to.rx, rx[i], SERVE_MSG_MAX, NULL,
					FI_ADDR_UNSPEC, rx[i]));
	if (kind.rdm) {
		call("net_address", net_address(&net, &to, name, &name_len));
		return;
	}
	call("fi_connect", fi_connect(to.ep, net.info->dest_addr, NULL, 0));
	while (event() != FI_CONNECTED) {
		if (gone)
			fail("connecting", -FI_ECONNREFUSED);
		usleep(1000);
	}
}

/* Handles an answer of the server: only the first answer matters. */
static void handle(uint8_t *buf, size_t len)
{
	struct serve_msg msg;
	uint64_t session;

	if (!kind.rdm || serve_unseal(buf, &len, &session) ||
	    serve_decode(buf, len, &msg))
		return;
	gone |= msg.type == SERVE_BYE;
	if (msg.type == SERVE_WELCOME && !to.session) {
		to.session = session;
		/* a server that refuses the client sends no name */
		if (msg.name_len)
			call("net_meet", net_meet(&net, &msg, NULL, &to));
	}
}

static void poll_cq(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == 1) {
		received += entry.op_context != NULL;
		if (entry.op_context)
			handle(entry.op_context, entry.len);
	}
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(cq, &err, 0);
		gone = true;
	}
}

/*
 * Sends bytes; waits until there is room for them, or the connection is gone.
 */
static void send_bytes(const void *buf, size_t len)
{
	const time_t end = time(NULL) + LIMIT_S;
	ssize_t ret;

	do {
		ret = fi_inject(to.ep, buf, len, to.addr);
		if (ret == -FI_EAGAIN)
			poll_cq();
	} while (ret == -FI_EAGAIN && !gone && time(NULL) < end);
}

/*
 * Sends a message too long to be injected, so that the message's buffer stays
 * in use. Prints a line if there is no room for more messages.
 */
static void send_msg(const struct serve_msg *msg)
{
	static uint8_t buf[64][SERVE_MSG_MAX];
	static unsigned at;
	uint8_t *out = buf[at++ % 64];
	const time_t end = time(NULL) + LIMIT_S;
	ssize_t ret;

	do {
		ret = net_send(&to, out, serve_encode(msg, out), NULL);
		if (ret == -FI_EAGAIN) {
			say("full");
			poll_cq();
		}
	} while (ret == -FI_EAGAIN && !gone && time(NULL) < end);
}

static void hello(void)
{
	const struct serve_msg msg = {
		.type = SERVE_HELLO,
		.id = 1,
		.part = 65536,
		.pipes = 4,
		.name = name,
		.name_len = name_len,
	};
	const time_t end = time(NULL) + LIMIT_S;

	send_msg(&msg);
	while (kind.rdm && !to.session && !gone && time(NULL) < end)
		poll_cq();
}

static void garbage(void)
{
	uint8_t buf[64 + SERVE_TAIL];
	unsigned i, k;
	size_t len;

	for (i = 0; i < 100 && !gone; i++) {
		for (k = 0; k < 64; k++)
			buf[k] = (uint8_t) rand();
		len = 1 + (size_t) rand() % 64;
		if (kind.rdm && rand() % 4)
			len = serve_seal(buf, len, to.session);
		send_bytes(buf, len);
	}
}

static void request(enum serve_type type, uint32_t len, const char *path)
{
	static uint64_t id = 16;
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

	/* answers are not received, except the first RXS */
	for (i = 0; i < 4000 && !gone; i++)
		request(SERVE_LIST, 0, "");
	say("full");
	/*
	 * read no completions, either, until the test has seen the server end
	 * the connection
	 */
	while (getchar() != EOF)
		;
	/* the end of the connection comes after all data sent before */
	for (i = 0; i < 4000 && !gone; i++) {
		if (fi_recv(to.rx, rx[0], SERVE_MSG_MAX, NULL, FI_ADDR_UNSPEC,
			    rx[0]))
			poll_cq();
	}
}

/*
 * Waits for the answer to a request, which is the first message after WELCOME.
 */
static void wait_answer(void)
{
	const time_t end = time(NULL) + LIMIT_S;

	while (received < 2 && !gone && time(NULL) < end)
		poll_cq();
}

static void idle(void)
{
	request(SERVE_LIST, 0, "");
	wait_answer();
	say("answered");
}

/* Requests a range of a file, and exposes no buffer for it. */
static void untagged(void)
{
	request(SERVE_OPEN, 0, "file");
	wait_answer();
	request(SERVE_READ, 4096, NULL);
	say("requested");
}

/* Returns whether all data to the server have been sent and acknowledged. */
static bool all_sent(void)
{
	int fd, left, sum = 0, protocol;
	socklen_t len = sizeof(protocol);

	for (fd = 0; fd < 1024; fd++) {
		if (!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
		    protocol == IPPROTO_TCP && !ioctl(fd, SIOCOUTQ, &left))
			sum += left;
	}
	return !sum;
}

/*
 * Do all threads of the server's process sleep? If all sleep, the server has
 * handled all data that were sent to the server.
 */
static bool sleeps(const char *pid)
{
	char path[300], text[512], *state;
	struct dirent *entry;
	bool all = true;
	FILE *file;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	while (dir && all && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/task/%.16s/stat", pid,
			 entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		state = fgets(text, sizeof(text), file) ? strrchr(text, ')') :
							  NULL;
		all = !state || state[2] == 'S';
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return all;
}

/*
 * Sends one request after the other, and takes no answer: when the server has
 * no room for more answers, the client has more requests than allowed.
 */
static void slow(const char *pid)
{
	const int least = 1;
	unsigned i;
	int fd;

	/* make sure that all connections exist */
	request(SERVE_LIST, 0, "");
	wait_answer();
	/* make the client's sockets hold little */
	for (fd = 0; fd < 1024; fd++)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	for (i = 0; i < 2000 && !gone; i++) {
		request(SERVE_LIST, 0, "");
		do {
			usleep(1000);
		} while (!all_sent() || !sleeps(pid));
	}
	pause();
}

/* Sends a HELLO with the name of another client. */
static void pretend(const char *host, const char *port)
{
	struct serve_msg msg = {
		.type = SERVE_HELLO,
		.id = 1,
		.part = 65536,
		.pipes = 4,
		.name_len = name_len,
	};
	static uint8_t other[SERVE_NAMED_MAX];
	struct addrinfo *addr;

	if (net_resolve(host, port, &addr))
		exit(EXIT_FAILURE);
	memcpy(other, name, name_len);
	if (!serve_named_move(other, addr->ai_addr)) {
		msg.name = other;
		send_msg(&msg);
	}
	freeaddrinfo(addr);
}

/*
 * Over reliable datagrams: sends messages in other clients' names, and data
 * that are no message.
 */
static void strange(const char *port, const char *other)
{
	static uint8_t large[1 << 20];
	const char *host = getenv("SERVE_ADDRESS");
	const uint64_t session = to.session;
	unsigned i;

	if (!host)
		host = "127.0.0.1";
	request(SERVE_LIST, 0, "");
	to.session = 0;
	pretend(host, other);
	pretend(host, port);
	pretend(host, "1");
	pretend("255.255.255.255", "9");
	for (i = 0; i < 64; i++) {
		to.session = session ^ 1UL << i;
		request(SERVE_LIST, 0, "");
	}
	to.session = session;
	call("fi_send",
	     fi_send(to.ep, large, sizeof(large), NULL, to.addr, NULL));
	call("fi_send", fi_send(to.ep, large, 100000, NULL, to.addr, NULL));
	for (i = 0; i < 1000; i++) {
		poll_cq();
		usleep(1000);
	}
}

static void act(const char *what, const char *port, const char *other)
{
	if (!strcmp(what, "silent") && kind.rdm)
		hello();
	if (!strcmp(what, "silent")) {
		say("connected");
		return;
	}
	if (strcmp(what, "early") && strcmp(what, "garbage"))
		hello();
	if (!strcmp(what, "garbage"))
		garbage();
	else if (!strcmp(what, "early"))
		request(SERVE_LIST, 0, "");
	else if (!strcmp(what, "idle"))
		idle();
	else if (!strcmp(what, "twice"))
		hello();
	else if (!strcmp(what, "late-garbage"))
		garbage();
	else if (!strcmp(what, "answer"))
		request(SERVE_DATA, 0, NULL);
	else if (!strcmp(what, "unopened"))
		request(SERVE_READ, 4096, NULL);
	else if (!strcmp(what, "oversize"))
		request(SERVE_READ, 65537, NULL);
	else if (!strcmp(what, "open-long"))
		request(SERVE_OPEN, SERVE_INLINE_MAX + 1, "file");
	else if (!strcmp(what, "dots"))
		request(SERVE_OPEN, 4096, "../secret");
	else if (!strcmp(what, "untagged"))
		untagged();
	else if (!strcmp(what, "flood"))
		flood();
	else if (!strcmp(what, "slow") && other)
		slow(other);
	else if (!strcmp(what, "strange") && other)
		strange(port, other);
	else
		exit(2);
}

/*
 * Sends to libfabric's tcp without libfabric: half of a connection request like
 * that of a client with conditional writes, or a whole request and then the
 * header of a tagged message.
 */
static int raw(const char *port, const char *what)
{
	static const uint8_t request[52] = {
		[0] = 3,    [3] = 20,	[24] = 1, [32] = 'M', [33] = 'C',
		[34] = 'R', [35] = 'M', [36] = 1, [37] = 1,
	};
	static const uint8_t header[24] = { 3, 1, [6] = 24, [8] = 24 };
	const ssize_t len = strcmp(what, "half") ? sizeof(request) : 32;
	const char *host = getenv("SERVE_ADDRESS");
	struct addrinfo *addr;
	char answer[256];
	int fd;

	if (net_resolve(host ? host : "127.0.0.1", port, &addr))
		return EXIT_FAILURE;
	fd = socket(addr->ai_family, SOCK_STREAM, 0);
	if (connect(fd, addr->ai_addr, addr->ai_addrlen) ||
	    write(fd, request, (size_t) len) != len)
		fail(what, -errno);
	freeaddrinfo(addr);
	if (!strcmp(what, "tagged") &&
	    (read(fd, answer, sizeof(answer)) <= 0 ||
	     write(fd, header, sizeof(header)) != sizeof(header)))
		fail(what, -errno);
	say("sent");
	/* the loop ends when the server or the test ends the connection */
	while (!strcmp(what, "half") && getchar() != EOF)
		;
	while (strcmp(what, "half") && read(fd, answer, sizeof(answer)) > 0)
		;
	close(fd);
	return EXIT_SUCCESS;
}

/* Opens connections that send nothing. */
static int many(const char *port, int count)
{
	const char *host = getenv("SERVE_ADDRESS");
	struct addrinfo *addr;
	int fd;

	if (net_resolve(host ? host : "127.0.0.1", port, &addr))
		return EXIT_FAILURE;
	while (count--) {
		fd = socket(addr->ai_family, SOCK_STREAM, 0);
		if (connect(fd, addr->ai_addr, addr->ai_addrlen))
			fail("many", -errno);
	}
	freeaddrinfo(addr);
	say("sent");
	while (getchar() != EOF)
		;
	return EXIT_SUCCESS;
}

static int finish(bool passed)
{
	net_endpoint_close(&to);
	fi_close(&cq->fid);
	net_close(&net);
	return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	time_t end;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[2], "many") && argc > 3)
		return many(argv[1], atoi(argv[3]));
	if (!strcmp(argv[2], "tagged") || !strcmp(argv[2], "half"))
		return raw(argv[1], argv[2]);
	srand((unsigned) getpid());
	open_connection(argv[1]);
	act(argv[2], argv[1], argv[3]);
	if (kind.rdm &&
	    (!strcmp(argv[2], "garbage") || !strcmp(argv[2], "early") ||
	     !strcmp(argv[2], "strange")))
		return finish(!gone);
	end = time(NULL) + LIMIT_S;
	while (!gone && time(NULL) < end) {
		event();
		poll_cq();
		usleep(1000);
	}
	printf("%s: %s\n", argv[2], gone ? "disconnected" : "still connected");
	return finish(gone);
}
