/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Determines the hosts and users of clients (serve/wire/peer.h).
 *
 * The kernel lists the sockets of this network namespace with their users. A
 * connected socket belongs to its user's process. After a connection has ended
 * the kernel shows root as its user, so only connected sockets count.
 */
#include "config.h"
#include "serve/wire/peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_ESTABLISHED 1
#define STATE_LISTEN	  10

struct row {
	struct peer from, to;
	unsigned state;
	uid_t uid;
};

bool peer_host(const void *addr, size_t len, struct peer *peer)
{
	struct sockaddr_in6 copy = { 0 };
	const struct sockaddr_in *in = (const void *) &copy;

	memset(peer, 0, sizeof(*peer));
	peer->uid = PEER_NO_UID;
	if (!addr)
		return false;
	memcpy(&copy, addr, len < sizeof(copy) ? len : sizeof(copy));
	peer->port = copy.sin6_port;
	if (copy.sin6_family == AF_INET6 && len >= sizeof(copy)) {
		peer->host = copy.sin6_addr;
		return true;
	}
	if (copy.sin6_family != AF_INET || len < sizeof(*in))
		return false;
	peer->host.s6_addr[10] = peer->host.s6_addr[11] = 0xff;
	memcpy(&peer->host.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
	return true;
}

static bool is_any(const struct in6_addr *host)
{
	return IN6_IS_ADDR_UNSPECIFIED(host) ||
	       (IN6_IS_ADDR_V4MAPPED(host) && !host->s6_addr32[3]);
}

static bool is_loopback(const struct in6_addr *host)
{
	return IN6_IS_ADDR_LOOPBACK(host) ||
	       (IN6_IS_ADDR_V4MAPPED(host) && host->s6_addr[12] == 127);
}

static bool is_same(const struct peer *a, const struct peer *b)
{
	return a->port == b->port && IN6_ARE_ADDR_EQUAL(&a->host, &b->host);
}

/*
 * Reads an address as the kernel prints it: words in memory order, 8 digits
 * each.
 */
static void read_host(const char *text, unsigned port, struct peer *peer)
{
	const size_t words = strlen(text) / 8;
	char digits[9] = "";
	uint32_t word;
	size_t i;

	memset(peer, 0, sizeof(*peer));
	peer->port = htons((uint16_t) port);
	if (words == 1)
		peer->host.s6_addr[10] = peer->host.s6_addr[11] = 0xff;
	for (i = 0; i < words && i < 4; i++) {
		memcpy(digits, text + 8 * i, 8);
		word = (uint32_t) strtoul(digits, NULL, 16);
		peer->host.s6_addr32[words == 1 ? 3 : i] = word;
	}
}

static bool read_row(FILE *file, struct row *row)
{
	char line[512], from[33], to[33];
	unsigned from_port, to_port;

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line,
			   " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x "
			   "%*s %*s %*s %u",
			   from, &from_port, to, &to_port, &row->state,
			   &row->uid) != 6)
			continue;
		read_host(from, from_port, &row->from);
		read_host(to, to_port, &row->to);
		return true;
	}
	return false;
}

/* Is this row a client's end of a connection to the server? */
static bool connects(const struct row *row, const struct peer *peer,
		     const struct peer *at)
{
	return row->state == STATE_ESTABLISHED && is_same(&row->from, peer) &&
	       (is_any(&at->host) ? row->to.port == at->port :
				    is_same(&row->to, at));
}

/*
 * Is this row the client's own listener? A listener at the unspecified address
 * counts only if the client's address is surely this machine's.
 */
static bool listens_at(const struct row *row, const struct peer *peer,
		       const struct peer *at)
{
	return row->state == STATE_LISTEN && row->from.port == peer->port &&
	       (IN6_ARE_ADDR_EQUAL(&row->from.host, &peer->host) ||
		(is_any(&row->from.host) &&
		 (is_loopback(&peer->host) ||
		  IN6_ARE_ADDR_EQUAL(&at->host, &peer->host))));
}

/* Finds the user of all sockets in the table that may be the client's. */
static void find_uid(const char *table, const struct peer *at, bool listens,
		     struct peer *peer, unsigned *users)
{
	FILE *file = fopen(table, "re");
	struct row row;

	while (file && read_row(file, &row)) {
		if (!(listens ? listens_at(&row, peer, at) :
				connects(&row, peer, at)) ||
		    (*users && row.uid == peer->uid))
			continue;
		peer->uid = row.uid;
		++*users;
	}
	if (file)
		fclose(file);
}

void peer_of(const void *addr, size_t len, const void *at, bool listens,
	     struct peer *peer)
{
	const struct sockaddr *own = at;
	unsigned users = 0;
	struct peer here;

	if (!peer_host(addr, len, peer) ||
	    !peer_host(at,
		       own->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						   sizeof(struct sockaddr_in6),
		       &here))
		return;
	/* addresses of other families are not of this machine */
	if (!is_loopback(&peer->host) && !is_any(&here.host) &&
	    !IN6_ARE_ADDR_EQUAL(&here.host, &peer->host))
		return;
	find_uid("/proc/net/tcp", &here, listens, peer, &users);
	find_uid("/proc/net/tcp6", &here, listens, peer, &users);
	if (users != 1)
		peer->uid = PEER_NO_UID;
}

bool peer_any(const void *addr, size_t len)
{
	struct peer peer;

	return !peer_host(addr, len, &peer) || is_any(&peer.host);
}

bool peer_shares(const struct peer *a, const struct peer *b)
{
	const size_t len = IN6_IS_ADDR_V4MAPPED(&a->host) ? sizeof(a->host) : 8;

	return a->uid == b->uid && !memcmp(&a->host, &b->host, len);
}
