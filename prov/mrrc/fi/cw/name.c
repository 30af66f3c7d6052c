/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of reliable datagram endpoints with conditional writes: see cw.h. A
 * name is the core's socket address with a magic number, the port where the
 * provider listens, and the endpoint's own number in its unused fields. A
 * marked name has the length and format of the plain address, so arrays of
 * names, marked or not, have the same stride.
 *
 *   IPv4   sin_zero       magic (2), port (2), number (4)
 *   IPv6   sin6_flowinfo  magic (2), port (2)
 *          sin6_scope_id  number: an address with a scope cannot be marked
 *
 * Any thread, no state.
 */
#include "config.h"
#include <arpa/inet.h>
#include <stdio.h>

#include "fi/cw/mark.h"

#define CW_NAME_MAGIC 0x4d57 /* "MW"; a new layout needs a new number */

struct cw_name_fields {
	uint16_t magic, port;
	uint32_t number;
};

_Static_assert(sizeof(struct cw_name_fields) ==
		       sizeof(((struct sockaddr_in *) 0)->sin_zero),
	       "the idle bytes");

struct cw_addr_text mrrc_cw_addr_text(const void *addr)
{
	const struct sockaddr *sa = addr;
	struct cw_addr_text out = { "an unknown address" };
	const void *host;
	size_t len;

	if (!mrrc_cw_addr_port((void *) addr))
		return out;
	host = sa->sa_family == AF_INET ?
		       (const void *) &((const struct sockaddr_in *) addr)
			       ->sin_addr :
		       &((const struct sockaddr_in6 *) addr)->sin6_addr;
	inet_ntop(sa->sa_family, host, out.text, INET6_ADDRSTRLEN);
	len = strlen(out.text);
	snprintf(out.text + len, sizeof(out.text) - len, " port %u",
		 ntohs(*mrrc_cw_addr_port((void *) addr)));
	return out;
}

uint16_t *mrrc_cw_addr_port(void *addr)
{
	struct sockaddr *sa = addr;

	switch (sa ? sa->sa_family : AF_UNSPEC) {
	case AF_INET:
		return &((struct sockaddr_in *) addr)->sin_port;
	case AF_INET6:
		return &((struct sockaddr_in6 *) addr)->sin6_port;
	default:
		return NULL;
	}
}

size_t mrrc_cw_addr_len(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
					    sizeof(struct sockaddr_in6);
}

/* The address format for an info, from which verbs takes its port space. */
uint32_t mrrc_cw_addr_format(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
}

/* The IP address alone; NULL: any */
static const void *cw_addr_host(const void *addr, size_t *len)
{
	static const struct in6_addr any;
	const struct sockaddr_in6 *in6 = addr;
	const struct sockaddr_in *in = addr;

	if (in->sin_family == AF_INET) {
		*len = sizeof(in->sin_addr);
		return in->sin_addr.s_addr ? &in->sin_addr : NULL;
	}
	*len = sizeof(in6->sin6_addr);
	return memcmp(&in6->sin6_addr, &any, sizeof(any)) ? &in6->sin6_addr :
							    NULL;
}

bool mrrc_cw_addr_known(const void *addr)
{
	size_t len;

	return cw_addr_host(addr, &len);
}

bool mrrc_cw_addr_same_host(const void *addr, const void *other)
{
	const void *host, *other_host;
	size_t len, other_len;

	host = cw_addr_host(addr, &len);
	other_host = cw_addr_host(other, &other_len);
	return host && other_host && len == other_len &&
	       !memcmp(host, other_host, len);
}

static void cw_name_get(const void *addr, struct cw_name_fields *fields)
{
	const struct sockaddr_in6 *in6 = addr;
	const struct sockaddr_in *in = addr;

	if (in->sin_family == AF_INET) {
		memcpy(fields, in->sin_zero, sizeof(*fields));
	} else {
		memcpy(fields, &in6->sin6_flowinfo, 4);
		fields->number = in6->sin6_scope_id;
	}
}

static void cw_name_set(void *addr, const struct cw_name_fields *fields)
{
	struct sockaddr_in6 *in6 = addr;
	struct sockaddr_in *in = addr;

	if (in->sin_family == AF_INET) {
		memcpy(in->sin_zero, fields, sizeof(*fields));
	} else {
		memcpy(&in6->sin6_flowinfo, fields, 4);
		in6->sin6_scope_id = fields->number;
	}
}

bool mrrc_cw_name_read(const void *addr, struct mrrc_cw_name *name)
{
	struct cw_name_fields fields;

	if (!mrrc_cw_addr_port((void *) addr))
		return false;
	cw_name_get(addr, &fields);
	if (fields.magic != htons(CW_NAME_MAGIC) || !fields.port ||
	    !fields.number)
		return false;
	if (name) {
		memset(name, 0, sizeof(*name));
		memcpy(name, addr, mrrc_cw_addr_len(addr));
	}
	return true;
}

void mrrc_cw_name_strip(void *addr)
{
	const struct cw_name_fields none = { 0 };

	if (mrrc_cw_name_read(addr, NULL))
		cw_name_set(addr, &none);
}

bool mrrc_cw_name_make(const void *addr, uint16_t port, uint32_t number,
		       struct mrrc_cw_name *name)
{
	const struct cw_name_fields fields = { htons(CW_NAME_MAGIC), port,
					       number };
	const struct sockaddr_in6 *in6 = addr;

	if (!mrrc_cw_addr_port((void *) addr) ||
	    (in6->sin6_family == AF_INET6 && in6->sin6_scope_id))
		return false;
	memset(name, 0, sizeof(*name));
	memcpy(name, addr, mrrc_cw_addr_len(addr));
	cw_name_set(name, &fields);
	return true;
}

uint32_t mrrc_cw_name_number(const struct mrrc_cw_name *name)
{
	struct cw_name_fields fields;

	cw_name_get(name, &fields);
	return fields.number;
}

void mrrc_cw_name_dest(const struct mrrc_cw_name *name,
		       struct sockaddr_storage *dest)
{
	struct cw_name_fields fields;

	cw_name_get(name, &fields);
	memset(dest, 0, sizeof(*dest));
	memcpy(dest, name, mrrc_cw_addr_len(&name->sa));
	mrrc_cw_name_strip(dest);
	*mrrc_cw_addr_port(dest) = fields.port;
}

uint64_t mrrc_cw_name_key(const struct mrrc_cw_name *name)
{
	struct cw_name_fields fields;

	cw_name_get(name, &fields);
	return (uint64_t) fields.number << 32 | (uint32_t) fields.port << 16 |
	       *mrrc_cw_addr_port((void *) name);
}
