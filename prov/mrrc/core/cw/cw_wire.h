/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages between the two sides of conditional writes. A frame is one
 * transfer of the core, and carries all messages that are due at the moment and
 * fit into the frame. The format of each message, little-endian:
 *
 *   0  type          1  version (0 in HELLO, whose beginning never changes)
 *   2  length        4  credits returned        6  0
 *   8  the type's own fields
 *
 * The decoder takes any bytes; the encoder writes each accepted message as the
 * same bytes. Not thread-safe, no state.
 */
#ifndef MRRC_CW_WIRE_H
#define MRRC_CW_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_CW_VERSION_MIN 1 /* oldest version that this side speaks */
#define MRRC_CW_VERSION_MAX 1
#define MRRC_CW_SEGS	    8	 /* segments of one tag */
#define MRRC_CW_INLINE	    4096 /* most bytes of a write in DONE */
#define MRRC_CW_INLINE_MIN  192	 /* bytes of a write that fit into any frame */
#define MRRC_CW_PLAIN	    256	 /* most bytes of a message without a write */
#define MRRC_CW_MSG_MAX	    (MRRC_CW_PLAIN + MRRC_CW_INLINE)

enum mrrc_cw_msg_type {
	MRRC_CW_HELLO = 1, /* first, once, from both */
	MRRC_CW_TAG,	   /* target: a buffer is exposed */
	MRRC_CW_REVOKE,	   /* target: do not write to the buffer */
	MRRC_CW_REVOKED,   /* writer: will not write */
	MRRC_CW_DONE,	   /* writer: has written, before this message */
	MRRC_CW_TRUNC,	   /* writer: the data is too long, not written */
	MRRC_CW_CREDIT,	   /* nothing but credits */
	MRRC_CW_TYPES
};

struct mrrc_cw_seg {
	uint64_t addr, key, len;
};

struct mrrc_cw_msg {
	enum mrrc_cw_msg_type type;
	uint16_t credits;
	uint64_t id;  /* id of the target's operation */
	uint64_t len; /* TAG: of all segments; DONE, TRUNC: of the write */
	union {
		struct {
			uint8_t min, max; /* versions that the sender speaks */
			/* number of messages that the sender has buffers for */
			uint16_t credits;
			uint32_t tags; /* tags that the sender keeps */
			/*
			 * most bytes of a write that the sender takes in DONE
			 */
			uint16_t inline_max;
			uint64_t cookie;
		} hello;
		struct {
			uint64_t cwtag;
			uint16_t count;
			struct mrrc_cw_seg seg[MRRC_CW_SEGS];
		} tag;
		struct {
			uint64_t data;
			bool has_data;
			/*
			 * the write's bytes, which the receiver has to place;
			 * NULL: the bytes were written before. The decoder
			 * points into its buffer
			 */
			const void *bytes;
		} done;
	};
};

/*
 * Returns the length of each receive of a side whose HELLO says inline_max, and
 * so the longest frame that may be sent to this side.
 */
static inline size_t mrrc_cw_frame(uint16_t inline_max)
{
	if (inline_max < MRRC_CW_INLINE_MIN)
		inline_max = MRRC_CW_INLINE_MIN;
	return inline_max + 320;
}

/* Returns the length of the encoded message. */
size_t mrrc_cw_len(const struct mrrc_cw_msg *msg);

/* Writes mrrc_cw_len() bytes to buf, and returns their number. */
size_t mrrc_cw_encode(const struct mrrc_cw_msg *msg, void *buf);

/*
 * Returns the length of the first of several messages, as its header says: at
 * least 1, at most len. mrrc_cw_decode() tells whether the first message is
 * valid. len is not 0.
 */
size_t mrrc_cw_first(const void *buf, size_t len);

/* Returns 0; -EPROTO: not a message; -EPROTONOSUPPORT: unknown version */
int mrrc_cw_decode(const void *buf, size_t len, struct mrrc_cw_msg *msg);

/* The version that both sides speak, or -EPROTONOSUPPORT */
int mrrc_cw_version(const struct mrrc_cw_msg *hello);

#endif /* MRRC_CW_WIRE_H */
