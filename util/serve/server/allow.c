/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Networks and users (serve/server/allow.h).
 */
#include "config.h"
#include "serve/server/allow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server/user.h"

#define MAPPED_BITS 96 /* in front of an address of IPv4 */

/*
 * Reads the number of network bits after the slash; without a slash, all bits.
 */
static int read_bits(const char *slash, unsigned max, unsigned *bits)
{
	unsigned long value = max;
	char *end = NULL;

	if (slash)
		value = strtoul(slash + 1, &end, 10);
	if (slash && (slash[1] < '0' || slash[1] > '9' || *end || value > max))
		return -EINVAL;
	*bits = (unsigned) value;
	return 0;
}

static int read_net(const char *text, struct allow_rule *rule)
{
	const char *slash = strchr(text, '/');
	const size_t len = slash ? (size_t) (slash - text) : strlen(text);
	char host[INET6_ADDRSTRLEN];
	struct in_addr in;
	int ret;

	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = 0;
	rule->uid = PEER_NO_UID;
	if (inet_pton(AF_INET6, host, &rule->net) == 1)
		return read_bits(slash, 8 * sizeof(rule->net), &rule->bits);
	if (inet_pton(AF_INET, host, &in) != 1)
		return -EINVAL;
	ret = read_bits(slash, 8 * sizeof(in), &rule->bits);
	rule->bits += MAPPED_BITS;
	memset(&rule->net, 0, sizeof(rule->net));
	rule->net.s6_addr[10] = rule->net.s6_addr[11] = 0xff;
	memcpy(&rule->net.s6_addr[12], &in, sizeof(in));
	return ret;
}

int allow_add(struct allow *allow, const char *text)
{
	struct allow_rule *rule = &allow->rule[allow->count];
	struct user user;
	int ret;

	if (allow->count == ALLOW_MAX)
		return -ENOSPC;
	ret = read_net(text, rule);
	if (ret && !user_find(text, &user)) {
		rule->uid = user.uid;
		ret = 0;
	}
	allow->count += !ret;
	return ret;
}

static bool in_net(const struct allow_rule *rule, const struct in6_addr *host)
{
	const unsigned bytes = rule->bits / 8, rest = rule->bits % 8;

	return !memcmp(&rule->net, host, bytes) &&
	       (!rest || !((rule->net.s6_addr[bytes] ^ host->s6_addr[bytes]) >>
			   (8 - rest)));
}

bool allow_has(const struct allow *allow, const struct peer *peer)
{
	const struct allow_rule *rule = allow->rule;
	unsigned i;

	for (i = 0; i < allow->count; i++, rule++) {
		if (rule->uid == PEER_NO_UID ? in_net(rule, &peer->host) :
					       rule->uid == peer->uid)
			return true;
	}
	return !allow->count;
}
