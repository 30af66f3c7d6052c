/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The clients that are served: networks, and users of this machine. */
#ifndef SERVE_ALLOW_H
#define SERVE_ALLOW_H

#include <stdbool.h>

#include "serve/wire/peer.h"

#define ALLOW_MAX 64

struct allow_rule {
	struct in6_addr net; /* IPv4 addresses are mapped to IPv6 */
	unsigned bits;
	uid_t uid; /* PEER_NO_UID: the rule is for a network */
};

struct allow {
	struct allow_rule rule[ALLOW_MAX];
	unsigned count; /* number of rules; 0: all clients are served */
};

/*
 * Adds a rule for "10.0.0.0/8", "fd00::/8", an address, or a user's name or
 * number. Returns -EINVAL for any other text, -ENOSPC if there are too many
 * rules.
 */
int allow_add(struct allow *allow, const char *text);

bool allow_has(const struct allow *allow, const struct peer *peer);

#endif /* SERVE_ALLOW_H */
