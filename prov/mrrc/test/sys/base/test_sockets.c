/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/base/sockets, with real connections, some of which have sent data; also
 * if no descriptor is left.
 */
#include "config.h"
#include "test/case.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "sys/base/sockets.h"

#define PAIRS	4
#define LONG_MS 600000
#define FDS	256 /* limit of descriptors */

static int listener, spare, from[PAIRS], to[PAIRS];
static struct sockaddr_in where;

#define AT ((struct sockaddr *) &where)

static void setup(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int i;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *) &at, len), 0);
	ck_assert_int_eq(listen(listener, PAIRS), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &at, &len),
			 0);
	where = at;
	for (i = 0; i < PAIRS; i++) {
		from[i] = socket(AF_INET, SOCK_STREAM, 0);
		ck_assert_int_eq(connect(from[i], (struct sockaddr *) &at, len),
				 0);
		to[i] = accept(listener, NULL, NULL);
		ck_assert_int_ge(to[i], 0);
	}
	spare = dup(2);
}

static void teardown(void)
{
	int i;

	for (i = 0; i < PAIRS; i++) {
		close(from[i]);
		close(to[i]);
	}
	close(listener);
	close(spare);
}

/* The connection ends for the side that connected, after a moment. */
static void ends(int i)
{
	struct pollfd end = { .fd = from[i], .events = POLLIN };

	ck_assert_int_eq(poll(&end, 1, 60000), 1);
	ck_assert_int_eq(recv(from[i], &(char){ 0 }, 1, MSG_DONTWAIT), 0);
}

/* The connection has not ended, as far as is known. */
static void goes_on(int i)
{
	ck_assert_int_eq(recv(from[i], &(char){ 0 }, 1, MSG_DONTWAIT), -1);
}

static void say(int i)
{
	ck_assert_int_eq(send(from[i], "x", 1, 0), 1);
	/* The byte has arrived. */
	ck_assert_int_eq(recv(to[i], &(char){ 0 }, 1, MSG_PEEK), 1);
}

TEST_CASE(sockets, setup, teardown);

TEST(test_cloexec)
{
	mrrc_sockets_cloexec(AT);
	ck_assert_int_eq(fcntl(listener, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(to[0], F_GETFD), 0);
	ck_assert_int_eq(fcntl(from[0], F_GETFD), 0);
}

/* A read of a connection without data ends. */
TEST(test_impatient)
{
	mrrc_sockets_impatient(AT);
	close(from[0]);
	close(to[0]);
	from[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(from[0], AT, sizeof(where)), 0);
	to[0] = accept(listener, NULL, NULL);
	ck_assert_int_eq(recv(to[0], &(char){ 0 }, 1, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

TEST(test_silent)
{
	say(1);
	ck_assert_uint_eq(mrrc_sockets_end_silent(AT, LONG_MS, PAIRS, spare),
			  PAIRS - 1);
	goes_on(0);
	ck_assert_uint_eq(mrrc_sockets_end_silent(AT, 0, PAIRS, spare), 0);
	ends(0);
	ends(2);
	ends(3);
	goes_on(1);
}

/* Sockets of others may have the same port. */
TEST(test_elsewhere)
{
	int i;

	where.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	mrrc_sockets_cloexec(AT);
	ck_assert_int_eq(fcntl(listener, F_GETFD), 0);
	ck_assert_uint_eq(mrrc_sockets_unread(AT), 0);
	ck_assert_uint_eq(mrrc_sockets_end_silent(AT, 0, 0, spare), 0);
	for (i = 0; i < PAIRS; i++)
		goes_on(i);
	where.sin_addr.s_addr = htonl(INADDR_ANY);
	ck_assert_uint_eq(mrrc_sockets_unread(AT), PAIRS);
}

TEST(test_oldest_of_many)
{
	int i;

	usleep(50000);
	close(from[0]);
	close(to[0]);
	from[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(from[0], AT, sizeof(where)), 0);
	to[0] = accept(listener, NULL, NULL);
	/* The other connections are older. */
	ck_assert_uint_le(mrrc_sockets_end_silent(AT, LONG_MS, 1, spare), 1);
	for (i = 1; i < PAIRS; i++)
		ends(i);
}

TEST(test_unread)
{
	char byte;

	/* No byte was read of any connection. */
	ck_assert_uint_eq(mrrc_sockets_unread(AT), PAIRS);
	say(0);
	ck_assert_uint_eq(mrrc_sockets_unread(AT), PAIRS);
	ck_assert_int_eq(read(to[0], &byte, 1), 1);
	ck_assert_uint_eq(mrrc_sockets_unread(AT), PAIRS - 1);
	shutdown(from[0], SHUT_WR);
	shutdown(from[1], SHUT_WR);
	ck_assert_int_eq(recv(to[1], &byte, 1, MSG_PEEK), 0);
	ck_assert_uint_eq(mrrc_sockets_unread(AT), PAIRS - 1);
}

TEST(test_no_descriptors)
{
	struct rlimit limit, low;
	unsigned i, left, cnt = 0;
	int more[FDS];

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = FDS;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	while ((more[cnt] = dup(2)) >= 0)
		cnt++;
	left = mrrc_sockets_end_silent(AT, 0, PAIRS, spare);
	for (i = 0; i < cnt; i++)
		close(more[i]);
	setrlimit(RLIMIT_NOFILE, &limit);
	ck_assert_uint_eq(left, 0);
	for (i = 0; i < PAIRS; i++)
		ends(i);
}
