/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Marks in the private data of connections, and marked names (cw/cw.h).
 */
#ifndef MRRC_CW_MARK_H
#define MRRC_CW_MARK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fi_ext_mrrc.h>

enum cw_mark_kind {
	CW_MARK_CONNECT = 1,
	CW_MARK_ACCEPT,
	CW_MARK_CONTROL,
	/* reliable datagrams: the sender's name follows */
	CW_MARK_PEER,
	CW_MARK_ASK, /* does this nonce belong to you? */
	CW_MARK_YES,
};

/* In network byte order */
struct cw_mark {
	uint32_t magic;
	uint8_t version, kind;
	uint16_t len; /* length of the application's data */
	uint32_t cookie[2];
	union {
		struct {
			uint16_t port, zero;
		};
		/* PEER, ASK: the endpoint's number, as in its name */
		uint32_t number;
	};
};

_Static_assert(sizeof(struct cw_mark) == 20, "as documented");

/* A name as other processes have it: marked; zero after the address */
struct mrrc_cw_name {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

struct cw_addr_text {
	char text[INET6_ADDRSTRLEN + sizeof(" port 65535")];
};

struct cw_peer_mark {
	struct cw_mark mark;
	struct mrrc_cw_name name;
};

/* cw/cm_data.c */
void mrrc_cw_mark_make(struct cw_mark *mark, enum cw_mark_kind kind, size_t len,
		       uint64_t cookie, uint16_t port);
/*
 * Is there a mark of this kind at data? Later versions begin in the same way.
 */
bool mrrc_cw_mark_read(const void *data, size_t len, enum cw_mark_kind kind,
		       struct cw_mark *mark);
uint64_t mrrc_cw_mark_cookie(const struct cw_mark *mark);

/* cw/name.c. Pointers to the port and the number inside the name. */
uint16_t *mrrc_cw_addr_port(void *addr); /* NULL: no such address */
/* For log messages; addr may be NULL */
struct cw_addr_text mrrc_cw_addr_text(const void *addr);
size_t mrrc_cw_addr_len(const struct sockaddr *addr);
uint32_t mrrc_cw_addr_format(const struct sockaddr *addr);
/* Does the address have a host other than "any"? */
bool mrrc_cw_addr_known(const void *addr);
bool mrrc_cw_addr_same_host(const void *addr, const void *other);
/* Is this a marked name? Copies it, unless name is NULL */
bool mrrc_cw_name_read(const void *addr, struct mrrc_cw_name *name);
void mrrc_cw_name_strip(void *addr);
/* false: such an address cannot be marked */
bool mrrc_cw_name_make(const void *addr, uint16_t port, uint32_t number,
		       struct mrrc_cw_name *name);
uint32_t mrrc_cw_name_number(const struct mrrc_cw_name *name);
/* The address where the endpoint listens for control connections */
void mrrc_cw_name_dest(const struct mrrc_cw_name *name,
		       struct sockaddr_storage *dest);
/* A key for maps; different names may have the same key. */
uint64_t mrrc_cw_name_key(const struct mrrc_cw_name *name);

static inline bool mrrc_cw_name_same(const struct mrrc_cw_name *name,
				     const struct mrrc_cw_name *other)
{
	return !memcmp(name, other, sizeof(*name));
}

#endif /* MRRC_CW_MARK_H */
