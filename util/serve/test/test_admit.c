/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is served: hosts, users of this machine, and their shares of the places.
 */
#include "config.h"
#include "test_serve.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "serve/server/server.h"

#define PLACES 10

static struct conn conns[PLACES];
static struct server server;

static struct peer host(const char *text)
{
	struct peer peer = { .uid = PEER_NO_UID };

	ck_assert_int_eq(inet_pton(AF_INET6, text, &peer.host), 1);
	return peer;
}

static void begin_places(void)
{
	memset(&server, 0, sizeof(server));
	memset(conns, 0, sizeof(conns));
	server.conn = conns;
	server.conns = PLACES;
	server.options.max_clients = PLACES;
}

/* Takes places until one is refused; returns their number. */
static unsigned take(struct peer peer, enum serve_status *status)
{
	unsigned i, count = 0;

	while ((*status = admit(&server, &peer)) == SERVE_OK) {
		for (i = 0; conns[i].state != CONN_FREE; i++)
			;
		conns[i].state = CONN_READY;
		conns[i].from = peer;
		count++;
	}
	return count;
}

TEST_CASE(admit, NULL, NULL);

/* Whatever others take, a host without a place finds one. */
TEST(shares)
{
	enum serve_status status;
	struct peer peer;

	begin_places();
	ck_assert_uint_eq(take(host("::ffff:10.0.0.1"), &status), 8);
	ck_assert_int_eq(status, SERVE_SHARE);
	/* addresses of one IPv6 network count as one host */
	ck_assert_uint_eq(take(host("fd00::1:0:0:0:1"), &status), 1);
	ck_assert_uint_eq(take(host("fd00::1:0:0:0:2"), &status), 0);
	ck_assert_int_eq(status, SERVE_SHARE);
	/* another user of a host counts as another host */
	peer = host("::ffff:10.0.0.1");
	peer.uid = 1000;
	ck_assert_uint_eq(take(peer, &status), 1);
	ck_assert_int_eq(status, SERVE_FULL);
	/* a stuck connection takes no place */
	conns[0].state = CONN_STUCK;
	peer.uid = 1001;
	ck_assert_int_eq(admit(&server, &peer), SERVE_OK);
}

/* ---- who is served ------------------------------------------------------- */

static const struct {
	const char *rule;
	int ret;
	const char *host;
	bool served;
} rules[] = {
	{ "10.1.0.0/16", 0, "::ffff:10.1.2.3", true },
	{ "10.1.0.0/16", 0, "::ffff:10.2.2.3", false },
	{ "10.1.0.0/15", 0, "::ffff:10.0.2.3", true },
	{ "10.1.0.0/15", 0, "::ffff:10.2.2.3", false },
	{ "10.1.2.3", 0, "::ffff:10.1.2.3", true },
	{ "10.1.2.3", 0, "::ffff:10.1.2.4", false },
	{ "0.0.0.0/0", 0, "::ffff:10.1.2.4", true },
	/* an IPv4 network contains no IPv6 address */
	{ "0.0.0.0/0", 0, "fd00::1", false },
	{ "fd00::/8", 0, "fd12::1", true },
	{ "fd00::/8", 0, "fe80::1", false },
	{ "::/0", 0, "fe80::1", true },
	{ "::1", 0, "::1", true },
	{ "10.1.0.0/33", -EINVAL, "::1", true },
	{ "10.1.0.0/", -EINVAL, "::1", true },
	{ "10.1.0.0/-1", -EINVAL, "::1", true },
	{ "10.1.0.0/8x", -EINVAL, "::1", true },
	{ "fd00::/129", -EINVAL, "::1", true },
	{ "localhost", -EINVAL, "::1", true },
	{ "", -EINVAL, "::1", true },
	/* a rule for a user matches no client of another machine */
	{ "0", 0, "::1", false },
	{ "root", 0, "::1", false },
};

EACH_TEST(allowed, rules)
{
	struct peer peer = host(rules[_i].host);
	struct allow allow = { .count = 0 };

	ck_assert_int_eq(allow_add(&allow, rules[_i].rule), rules[_i].ret);
	ck_assert_int_eq(allow_has(&allow, &peer), rules[_i].served);
}

TEST(allowed_users)
{
	struct peer peer = host("::1");
	enum serve_status status;
	unsigned i;

	begin_places();
	ck_assert_int_eq(allow_add(&server.options.allow, "root"), 0);
	ck_assert_int_eq(allow_add(&server.options.allow, "10.0.0.0/8"), 0);
	peer.uid = 1;
	ck_assert_uint_eq(take(peer, &status), 0);
	ck_assert_int_eq(status, SERVE_DENIED);
	ck_assert_uint_eq(take(host("::ffff:11.0.0.1"), &status), 0);
	peer.uid = 0;
	ck_assert_int_eq(admit(&server, &peer), SERVE_OK);
	ck_assert_uint_gt(take(host("::ffff:10.0.0.1"), &status), 0);
	for (i = 2; i < ALLOW_MAX; i++)
		ck_assert_int_eq(allow_add(&server.options.allow, "::1"), 0);
	ck_assert_int_eq(allow_add(&server.options.allow, "::1"), -ENOSPC);
}

/* ---- users --------------------------------------------------------------- */

static int listener(int family, struct sockaddr_in6 *at)
{
	socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) :
					    sizeof(*at);
	struct sockaddr_in *in = (struct sockaddr_in *) at;
	int fd = socket(family, SOCK_STREAM, 0);

	memset(at, 0, sizeof(*at));
	at->sin6_family = (sa_family_t) family;
	if (family == AF_INET)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		at->sin6_addr = in6addr_loopback;
	if (fd < 0 || bind(fd, (struct sockaddr *) at, len) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *) at, &len)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The user of a local socket is found while it is connected, or listens. */
LOOP_TEST(users, 0, 2)
{
	const int family = _i ? AF_INET6 : AF_INET;
	struct sockaddr_in6 at, from;
	socklen_t len = sizeof(from);
	int fd, client, accepted;
	struct peer peer;

	fd = listener(family, &at);
	if (fd < 0)
		return; /* no IPv6 here */
	client = socket(family, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *) &at, sizeof(at)),
			 0);
	accepted = accept(fd, (struct sockaddr *) &from, &len);
	ck_assert_int_ge(accepted, 0);
	peer_of(&from, sizeof(from), &at, false, &peer);
	ck_assert_uint_eq(peer.uid, getuid());
	/* the socket is not connected to this address */
	peer_of(&from, sizeof(from), &from, false, &peer);
	ck_assert_uint_eq(peer.uid, PEER_NO_UID);
	peer_of(&at, sizeof(at), &at, true, &peer);
	ck_assert_uint_eq(peer.uid, getuid());
	/* the kernel shows root for a socket without a process */
	close(client);
	peer_of(&from, sizeof(from), &at, false, &peer);
	ck_assert_uint_eq(peer.uid, PEER_NO_UID);
	close(accepted);
	close(fd);
	peer_of(&at, sizeof(at), &at, true, &peer);
	ck_assert_uint_eq(peer.uid, PEER_NO_UID);
}

/* A listener at any address of this machine is no client at another machine. */
TEST(users_elsewhere)
{
	struct sockaddr_in at = { .sin_family = AF_INET }, from;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	struct peer peer;

	ck_assert_int_eq(bind(fd, (struct sockaddr *) &at, len), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *) &at, &len), 0);
	from = at;
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	peer_of(&from, sizeof(from), &at, true, &peer);
	ck_assert_uint_eq(peer.uid, getuid());
	from.sin_addr.s_addr = htonl(0xc6336401);
	peer_of(&from, sizeof(from), &at, true, &peer);
	ck_assert_uint_eq(peer.uid, PEER_NO_UID);
	close(fd);
}
