/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes and reads the marks of conditional writes in the private data of
 * connections: see cw/cw.h. Any thread, no state.
 */
#include "config.h"
#include <arpa/inet.h>

#include "core/cw/cw_wire.h"
#include "fi/cw/mark.h"

#define CW_MARK_MAGIC 0x4d43524d /* "MRCM" */

void mrrc_cw_mark_make(struct cw_mark *mark, enum cw_mark_kind kind, size_t len,
		       uint64_t cookie, uint16_t port)
{
	*mark = (struct cw_mark){
		.magic = htonl(CW_MARK_MAGIC),
		.version = MRRC_CW_VERSION_MAX,
		.kind = kind,
		.len = htons(len),
		.cookie = { htonl(cookie >> 32), htonl(cookie) },
		.port = port,
	};
}

bool mrrc_cw_mark_read(const void *data, size_t len, enum cw_mark_kind kind,
		       struct cw_mark *mark)
{
	if (len < sizeof(*mark))
		return false;
	memcpy(mark, data, sizeof(*mark));
	return mark->magic == htonl(CW_MARK_MAGIC) && mark->version &&
	       mark->kind == kind && ntohs(mark->len) <= len - sizeof(*mark);
}

uint64_t mrrc_cw_mark_cookie(const struct cw_mark *mark)
{
	return (uint64_t) ntohl(mark->cookie[0]) << 32 | ntohl(mark->cookie[1]);
}
