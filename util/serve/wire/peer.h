/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client's identity, as far as its address tells: its host and, on this
 * machine, its user.
 */
#ifndef SERVE_PEER_H
#define SERVE_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PEER_NO_UID ((uid_t) -1)

struct peer {
	struct in6_addr host; /* IPv4 addresses are mapped to IPv6 */
	in_port_t port;
	uid_t uid; /* user of a process on this machine, else PEER_NO_UID */
};

/*
 * Fills in a client's identity. addr: the client's address, or NULL. at: the
 * address where the server listens. listens: true if the client's socket at
 * addr accepts connections (reliable datagrams), false if the socket is
 * connected to at.
 */
void peer_of(const void *addr, size_t len, const void *at, bool listens,
	     struct peer *peer);

/*
 * Do both clients share one quota? Hosts of one IPv6 network of 64 bits share a
 * quota.
 */
bool peer_shares(const struct peer *a, const struct peer *b);

/*
 * Reads an IPv4 or IPv6 address of len bytes at most; returns false for another
 * family.
 */
bool peer_host(const void *addr, size_t len, struct peer *peer);

/* Is the address the unspecified one, as 0.0.0.0? */
bool peer_any(const void *addr, size_t len);

#endif /* SERVE_PEER_H */
