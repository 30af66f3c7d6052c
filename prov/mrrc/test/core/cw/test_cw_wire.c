/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of conditional writes: encoded and decoded, several in a row,
 * versions, and bytes that are no message.
 */
#include "config.h"
#include "test/case.h"

#include "core/cw/cw_wire.h"

static void there_and_back(const struct mrrc_cw_msg *msg)
{
	uint8_t buf[MRRC_CW_MSG_MAX + 1];
	struct mrrc_cw_msg back;
	size_t len = mrrc_cw_encode(msg, buf), i;

	ck_assert_uint_le(len, MRRC_CW_MSG_MAX);
	ck_assert_int_eq(mrrc_cw_decode(buf, len, &back), 0);
	ck_assert_int_eq(back.type, msg->type);
	ck_assert_uint_eq(back.id, msg->id);
	ck_assert_uint_eq(back.len, msg->len);
	ck_assert_uint_eq(back.credits, msg->credits);
	for (i = 0; i < len; i++)
		ck_assert_int_ne(mrrc_cw_decode(buf, i, &back), 0);
	if (msg->type != MRRC_CW_HELLO)
		ck_assert_int_ne(mrrc_cw_decode(buf, len + 1, &back), 0);
}

TEST_CASE(cw_wire, NULL, NULL);

/* Several messages follow each other; the length in each message is checked. */
TEST(messages_in_a_row)
{
	struct mrrc_cw_msg msg = { .type = MRRC_CW_REVOKE, .id = 5 }, back;
	uint8_t buf[2 * MRRC_CW_MSG_MAX];
	size_t first = mrrc_cw_encode(&msg, buf), second, len, i;

	msg.type = MRRC_CW_TRUNC;
	second = mrrc_cw_encode(&msg, buf + first);
	len = first + second;
	ck_assert_uint_eq(mrrc_cw_first(buf, len), first);
	ck_assert_uint_eq(mrrc_cw_first(buf + first, second), second);
	ck_assert_int_eq(mrrc_cw_decode(buf + first, second, &back), 0);
	ck_assert_int_eq(back.type, MRRC_CW_TRUNC);
	for (i = 1; i < first; i++) {
		ck_assert_uint_eq(mrrc_cw_first(buf, i), i);
		ck_assert_int_ne(mrrc_cw_decode(buf, i, &back), 0);
	}
	for (i = 0; i < 65536; i++) {
		buf[2] = i;
		buf[3] = i >> 8;
		ck_assert_uint_eq(mrrc_cw_first(buf, len),
				  i && i < len ? i : len);
	}
}

TEST(messages_there_and_back)
{
	static const char bytes[MRRC_CW_INLINE];
	struct mrrc_cw_msg msg = { .credits = 7, .id = 1ULL << 40 };
	unsigned i;

	for (i = 0; i <= MRRC_CW_SEGS; i++) {
		msg.type = MRRC_CW_TAG;
		msg.tag.cwtag = ~0ULL;
		msg.tag.count = i;
		msg.len = i * 10;
		if (i)
			msg.tag.seg[i - 1] =
				(struct mrrc_cw_seg){ ~0ULL - 9, 5, 10 };
		there_and_back(&msg);
	}
	memset(&msg, 0, sizeof(msg));
	msg.id = 9;
	msg.type = MRRC_CW_REVOKE;
	there_and_back(&msg);
	msg.type = MRRC_CW_REVOKED;
	there_and_back(&msg);
	msg.type = MRRC_CW_TRUNC;
	msg.len = 1ULL << 63;
	there_and_back(&msg);
	msg.type = MRRC_CW_DONE;
	msg.done.has_data = true;
	msg.done.data = ~0ULL;
	there_and_back(&msg);
	msg.len = MRRC_CW_INLINE;
	msg.done.bytes = bytes;
	there_and_back(&msg);
	memset(&msg, 0, sizeof(msg));
	msg.type = MRRC_CW_CREDIT;
	msg.credits = 65535;
	there_and_back(&msg);
	memset(&msg, 0, sizeof(msg));
	msg.type = MRRC_CW_HELLO;
	msg.hello.min = msg.hello.max = 1;
	msg.hello.credits = 4;
	msg.hello.tags = 1;
	msg.hello.inline_max = MRRC_CW_INLINE;
	msg.hello.cookie = ~0ULL;
	there_and_back(&msg);
}

/* A message with an inverted bit is refused, or decodes with that bit. */
static void bit_is_heeded(const uint8_t *msg, size_t len, unsigned bit)
{
	uint8_t buf[MRRC_CW_MSG_MAX], again[MRRC_CW_MSG_MAX];
	struct mrrc_cw_msg back;

	memcpy(buf, msg, len);
	buf[bit / 8] ^= 1 << bit % 8;
	if (mrrc_cw_decode(buf, len, &back))
		return;
	ck_assert_uint_eq(mrrc_cw_encode(&back, again), len);
	ck_assert_mem_eq(buf, again, len);
}

LOOP_TEST(no_bit_is_ignored, MRRC_CW_TAG, MRRC_CW_TYPES)
{
	struct mrrc_cw_msg msg = {
		.type = _i,
		.credits = 7,
		.id = 1ULL << 40,
		.len = 10,
	};
	uint8_t buf[MRRC_CW_MSG_MAX];
	unsigned bit;
	size_t len;

	if (_i == MRRC_CW_TAG) {
		msg.tag.count = 1;
		msg.tag.seg[0] = (struct mrrc_cw_seg){ 4096, 5, 10 };
	} else if (_i == MRRC_CW_DONE) {
		msg.done.has_data = true;
		msg.done.data = 1;
		msg.done.bytes = "0123456789";
	}
	len = mrrc_cw_encode(&msg, buf);
	for (bit = 0; bit < 8 * len; bit++)
		bit_is_heeded(buf, len, bit);
}

/* The last segment of the message is wrong in each of these ways. */
LOOP_TEST(segments_are_checked, 0, 4)
{
	static const struct {
		struct mrrc_cw_seg last;
		uint64_t len;
	} cases[] = {
		{ { 4096, 1, 0 }, 10 },	      /* empty segment */
		{ { ~0ULL - 8, 1, 10 }, 20 }, /* beyond the address space */
		{ { 0, 1, ~0ULL }, 9 },	      /* sum of lengths overflows */
		{ { 4096, 1, 10 }, 19 },
	};
	struct mrrc_cw_msg msg = {
		.type = MRRC_CW_TAG, .len = cases[_i].len,
		.tag = { .count = 2, .seg = { { 0, 1, 10 } } },
	}, back;
	uint8_t buf[MRRC_CW_MSG_MAX];
	size_t len;

	msg.tag.seg[1] = cases[_i].last;
	len = mrrc_cw_encode(&msg, buf);
	ck_assert_int_eq(mrrc_cw_decode(buf, len, &back), -EPROTO);
}

/* A message has one segment more than fits. */
TEST(too_many_segments)
{
	struct mrrc_cw_msg msg = {
		.type = MRRC_CW_TAG,
		.len = (MRRC_CW_SEGS + 1) * 10,
		.tag = { .count = MRRC_CW_SEGS },
	};
	struct {
		struct mrrc_cw_msg msg;
		uint64_t behind[3];
	} back;
	uint8_t buf[MRRC_CW_MSG_MAX] = { 0 };
	unsigned i;
	size_t len;

	for (i = 0; i < MRRC_CW_SEGS; i++)
		msg.tag.seg[i] = (struct mrrc_cw_seg){ 0, 1, 10 };
	len = mrrc_cw_encode(&msg, buf) + 24;
	ck_assert_uint_le(len, MRRC_CW_MSG_MAX);
	buf[2] = len;
	buf[3] = len >> 8;
	buf[32] = MRRC_CW_SEGS + 1;
	buf[len - 8] = 10;
	memset(&back, 0x55, sizeof(back));
	ck_assert_int_eq(mrrc_cw_decode(buf, len, &back.msg), -EPROTO);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(back.behind[i], 0x5555555555555555);
}

LOOP_TEST(versions, 0, 3)
{
	static const struct {
		uint8_t min, max;
		int want;
	} cases[] = {
		{ 1, 1, 1 },
		{ 1, 9, 1 },
		{ 2, 9, -EPROTONOSUPPORT },
	};
	struct mrrc_cw_msg hello = { .type = MRRC_CW_HELLO };

	hello.hello.min = cases[_i].min;
	hello.hello.max = cases[_i].max;
	ck_assert_int_eq(mrrc_cw_version(&hello), cases[_i].want);
}

/* A side's limit tells how long its receives are; at least 512 bytes. */
TEST(frames_follow_the_limit)
{
	ck_assert_uint_eq(mrrc_cw_frame(0), 512);
	ck_assert_uint_eq(mrrc_cw_frame(192), 512);
	ck_assert_uint_eq(mrrc_cw_frame(4096), 4416);
}
