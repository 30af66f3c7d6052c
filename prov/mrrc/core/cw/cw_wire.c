/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of conditional writes: see cw_wire.h.
 */
#include "core/cw/cw_wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define CW_MAGIC      0x5743524d /* "MRCW" */
#define CW_HEADER     8
#define CW_AT_LEN     2
#define CW_HELLO_LEN  (CW_HEADER + 24)
#define CW_TAG_LEN    (CW_HEADER + 32)
#define CW_SEG_LEN    24
#define CW_DONE_LEN   (CW_HEADER + 32)
#define CW_DONE_DATA  1
#define CW_DONE_BYTES 2

_Static_assert(CW_TAG_LEN + MRRC_CW_SEGS * CW_SEG_LEN <= MRRC_CW_PLAIN &&
		       CW_DONE_LEN <= MRRC_CW_PLAIN,
	       "the longest messages fit");

/*
 * A position in a message; the caller has checked that the message is long
 * enough.
 */
struct cw_cursor {
	uint8_t *at;
};

static inline void cw_put(struct cw_cursor *cur, uint64_t value, unsigned bytes)
{
	value = htole64(value);
	memcpy(cur->at, &value, bytes);
	cur->at += bytes;
}

static inline uint64_t cw_get(struct cw_cursor *cur, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, cur->at, bytes);
	cur->at += bytes;
	return le64toh(value);
}

static void cw_put_hello(struct cw_cursor *cur, const struct mrrc_cw_msg *msg)
{
	cw_put(cur, CW_MAGIC, 4);
	cw_put(cur, msg->hello.min, 1);
	cw_put(cur, msg->hello.max, 1);
	cw_put(cur, msg->hello.credits, 2);
	cw_put(cur, msg->hello.tags, 4);
	cw_put(cur, msg->hello.inline_max, 2);
	cw_put(cur, 0, 2);
	cw_put(cur, msg->hello.cookie, 8);
}

static void cw_put_tag(struct cw_cursor *cur, const struct mrrc_cw_msg *msg)
{
	unsigned i;

	cw_put(cur, msg->id, 8);
	cw_put(cur, msg->tag.cwtag, 8);
	cw_put(cur, msg->len, 8);
	cw_put(cur, msg->tag.count, 2);
	cw_put(cur, 0, 6);
	for (i = 0; i < msg->tag.count; i++) {
		cw_put(cur, msg->tag.seg[i].addr, 8);
		cw_put(cur, msg->tag.seg[i].key, 8);
		cw_put(cur, msg->tag.seg[i].len, 8);
	}
}

static void cw_put_done(struct cw_cursor *cur, const struct mrrc_cw_msg *msg)
{
	cw_put(cur, msg->id, 8);
	cw_put(cur, msg->len, 8);
	cw_put(cur, msg->done.has_data ? msg->done.data : 0, 8);
	cw_put(cur,
	       (msg->done.has_data ? CW_DONE_DATA : 0) |
		       (msg->done.bytes ? CW_DONE_BYTES : 0),
	       8);
	if (msg->done.bytes)
		memcpy(cur->at, msg->done.bytes, msg->len);
}

/* The length of messages of this type, if it does not vary; 0: unknown type */
static size_t cw_fixed_len(enum mrrc_cw_msg_type type)
{
	switch (type) {
	case MRRC_CW_REVOKE:
	case MRRC_CW_REVOKED:
		return CW_HEADER + 8;
	case MRRC_CW_TRUNC:
		return CW_HEADER + 16;
	case MRRC_CW_CREDIT:
		return CW_HEADER;
	default:
		return 0;
	}
}

size_t mrrc_cw_len(const struct mrrc_cw_msg *msg)
{
	switch (msg->type) {
	case MRRC_CW_HELLO:
		return CW_HELLO_LEN;
	case MRRC_CW_TAG:
		return CW_TAG_LEN + msg->tag.count * CW_SEG_LEN;
	case MRRC_CW_DONE:
		return CW_DONE_LEN + (msg->done.bytes ? msg->len : 0);
	default:
		return cw_fixed_len(msg->type);
	}
}

size_t mrrc_cw_encode(const struct mrrc_cw_msg *msg, void *buf)
{
	struct cw_cursor cur = { (uint8_t *) buf + CW_HEADER };
	struct cw_cursor head = { buf };
	const size_t len = mrrc_cw_len(msg);

	switch (msg->type) {
	case MRRC_CW_HELLO:
		cw_put_hello(&cur, msg);
		break;
	case MRRC_CW_TAG:
		cw_put_tag(&cur, msg);
		break;
	case MRRC_CW_DONE:
		cw_put_done(&cur, msg);
		break;
	case MRRC_CW_TRUNC:
		cw_put(&cur, msg->id, 8);
		cw_put(&cur, msg->len, 8);
		break;
	case MRRC_CW_REVOKE:
	case MRRC_CW_REVOKED:
		cw_put(&cur, msg->id, 8);
		break;
	default:
		break;
	}
	cw_put(&head, msg->type, 1);
	cw_put(&head, msg->type == MRRC_CW_HELLO ? 0 : MRRC_CW_VERSION_MAX, 1);
	cw_put(&head, len, 2);
	cw_put(&head, msg->credits, 2);
	cw_put(&head, 0, 2);
	return len;
}

static int cw_get_hello(struct cw_cursor *cur, struct mrrc_cw_msg *msg)
{
	if (cw_get(cur, 4) != CW_MAGIC)
		return -EPROTO;
	msg->hello.min = cw_get(cur, 1);
	msg->hello.max = cw_get(cur, 1);
	msg->hello.credits = cw_get(cur, 2);
	msg->hello.tags = cw_get(cur, 4);
	msg->hello.inline_max = cw_get(cur, 2);
	if (cw_get(cur, 2))
		return -EPROTO;
	msg->hello.cookie = cw_get(cur, 8);
	return msg->credits || !msg->hello.min ||
			       msg->hello.max < msg->hello.min ||
			       msg->hello.credits < 4 || !msg->hello.tags ?
		       -EPROTO :
		       0;
}

static int cw_get_tag(struct cw_cursor *cur, size_t len,
		      struct mrrc_cw_msg *msg)
{
	struct mrrc_cw_seg *seg;
	uint64_t sum = 0, end;
	unsigned i;

	msg->id = cw_get(cur, 8);
	msg->tag.cwtag = cw_get(cur, 8);
	msg->len = cw_get(cur, 8);
	msg->tag.count = cw_get(cur, 2);
	if (cw_get(cur, 6) || msg->tag.count > MRRC_CW_SEGS ||
	    len != CW_TAG_LEN + (size_t) msg->tag.count * CW_SEG_LEN)
		return -EPROTO;
	for (i = 0; i < msg->tag.count; i++) {
		seg = &msg->tag.seg[i];
		seg->addr = cw_get(cur, 8);
		seg->key = cw_get(cur, 8);
		seg->len = cw_get(cur, 8);
		/* no segment is empty, or ends beyond the last address */
		if (!seg->len ||
		    __builtin_add_overflow(seg->addr, seg->len - 1, &end) ||
		    __builtin_add_overflow(sum, seg->len, &sum))
			return -EPROTO;
	}
	return sum == msg->len ? 0 : -EPROTO;
}

static int cw_get_done(struct cw_cursor *cur, size_t len,
		       struct mrrc_cw_msg *msg)
{
	uint64_t flags;

	msg->id = cw_get(cur, 8);
	msg->len = cw_get(cur, 8);
	msg->done.data = cw_get(cur, 8);
	flags = cw_get(cur, 8);
	msg->done.has_data = flags & CW_DONE_DATA;
	if ((flags & ~(uint64_t) (CW_DONE_DATA | CW_DONE_BYTES)) ||
	    (!msg->done.has_data && msg->done.data))
		return -EPROTO;
	len -= CW_DONE_LEN;
	if (!(flags & CW_DONE_BYTES))
		return len ? -EPROTO : 0;
	msg->done.bytes = cur->at;
	return len == msg->len ? 0 : -EPROTO;
}

size_t mrrc_cw_first(const void *buf, size_t len)
{
	struct cw_cursor cur = { (uint8_t *) buf + CW_AT_LEN };
	size_t first = len;

	if (len >= CW_HEADER)
		first = cw_get(&cur, 2);
	return first && first < len ? first : len;
}

int mrrc_cw_decode(const void *buf, size_t len, struct mrrc_cw_msg *msg)
{
	struct cw_cursor cur = { (uint8_t *) buf };
	uint8_t version;

	if (len < CW_HEADER || len > MRRC_CW_MSG_MAX)
		return -EPROTO;
	memset(msg, 0, sizeof(*msg));
	msg->type = cw_get(&cur, 1);
	version = cw_get(&cur, 1);
	if (cw_get(&cur, 2) != len)
		return -EPROTO;
	msg->credits = cw_get(&cur, 2);
	if (cw_get(&cur, 2))
		return -EPROTO;

	if (msg->type == MRRC_CW_HELLO) {
		/* later versions may append fields */
		if (version || len < CW_HELLO_LEN)
			return -EPROTO;
		return cw_get_hello(&cur, msg);
	}
	if (version < MRRC_CW_VERSION_MIN || version > MRRC_CW_VERSION_MAX)
		return -EPROTONOSUPPORT;
	if (msg->type == MRRC_CW_TAG)
		return len < CW_TAG_LEN ? -EPROTO : cw_get_tag(&cur, len, msg);
	if (msg->type == MRRC_CW_DONE)
		return len < CW_DONE_LEN ? -EPROTO :
					   cw_get_done(&cur, len, msg);
	if (len != cw_fixed_len(msg->type))
		return -EPROTO;

	switch (msg->type) {
	case MRRC_CW_TRUNC:
		msg->id = cw_get(&cur, 8);
		msg->len = cw_get(&cur, 8);
		return 0;
	case MRRC_CW_REVOKE:
	case MRRC_CW_REVOKED:
		msg->id = cw_get(&cur, 8);
		return 0;
	default:
		return 0;
	}
}

int mrrc_cw_version(const struct mrrc_cw_msg *hello)
{
	uint8_t version = hello->hello.max;

	if (version > MRRC_CW_VERSION_MAX)
		version = MRRC_CW_VERSION_MAX;
	if (version < MRRC_CW_VERSION_MIN || version < hello->hello.min)
		return -EPROTONOSUPPORT;
	return version;
}
