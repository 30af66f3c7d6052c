/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes in core: queues by key against a naive model, one side
 * alone, and a side whose peer lies. explore_cw.c tests two sides together.
 */
#include "config.h"
#include "test/case.h"

#include "core/cw/cw.h"

#define N    3000
#define KEYS 97

static const struct mrrc_secret secret = { { 1, 2 } };

struct item {
	struct mrrc_cw_node node;
	uint64_t key;
	long order; /* order among items with the same key; 0: not in the map */
};

static struct item items[N];

static struct item *oldest(uint64_t key)
{
	struct item *found = NULL;
	unsigned i;

	for (i = 0; i < N; i++) {
		if (items[i].order && items[i].key == key &&
		    (!found || items[i].order < found->order))
			found = &items[i];
	}
	return found;
}

TEST_CASE(cw, NULL, NULL);

TEST(map_is_queues_by_key)
{
	struct mrrc_cw_map map;
	struct mrrc_cw_node *node;
	long next = 1000000, before = 999999;
	unsigned i, step;

	memset(items, 0, sizeof(items));
	srand(1);
	mrrc_cw_map_init(&map, &secret);
	for (step = 0; step < 20000; step++) {
		i = rand() % N;
		if (items[i].order) {
			mrrc_cw_map_remove(&map, &items[i].node);
			items[i].order = 0;
		} else if (rand() % 4) {
			items[i].key = rand() % KEYS;
			items[i].order = next++;
			mrrc_cw_map_add(&map, &items[i].node, items[i].key);
		} else {
			items[i].key = rand() % KEYS;
			items[i].order = before--;
			mrrc_cw_map_add_first(&map, &items[i].node,
					      items[i].key);
		}
		if (!(step % 16)) {
			node = mrrc_cw_map_first(&map, step % KEYS);
			ck_assert_ptr_eq(node,
					 oldest(step % KEYS) ?
						 &oldest(step % KEYS)->node :
						 NULL);
			ck_assert(mrrc_cw_map_valid(&map));
		}
	}
	mrrc_cw_map_fini(&map);
}

/* ---- one side ------------------------------------------------------------ */

static unsigned ends;
static int last_err;

static int no_room(void *arg, const struct mrrc_cw_msg *msg)
{
	return -EAGAIN;
}

static int never_issued(void *arg, struct mrrc_cw_wr *wr,
			const struct mrrc_cw_rtag *rtag)
{
	return -EAGAIN;
}

static void wr_end(void *arg, struct mrrc_cw_wr *wr,
		   const struct mrrc_cw_end *end)
{
	ends++;
	last_err = end->err;
}

static void target_end(void *arg, struct mrrc_cw_target *target,
		       const struct mrrc_cw_end *end)
{
	ends++;
	last_err = end->err;
}

static const struct mrrc_cw_ops ops = {
	.send = no_room,
	.issue = never_issued,
	.wr_end = wr_end,
	.target_end = target_end,
};

TEST(table_is_full)
{
	const struct mrrc_cw_attr attr = { .credits = 4, .pending = 2 };
	struct mrrc_cw_target target[3] = { 0 };
	struct mrrc_cw_wr wr[3] = { 0 };
	struct mrrc_cw cw;

	ends = 0;
	mrrc_cw_init(&cw, &attr, &ops, NULL);
	ck_assert_int_eq(mrrc_cw_post_wr(&cw, &wr[0], 1), 0);
	ck_assert_int_eq(mrrc_cw_post_wr(&cw, &wr[1], 1), 0);
	ck_assert_int_eq(mrrc_cw_post_wr(&cw, &wr[2], 1), -EAGAIN);
	ck_assert_int_eq(mrrc_cw_post_target(&cw, &target[0], 1), 0);
	ck_assert_int_eq(mrrc_cw_post_target(&cw, &target[1], 1), 0);
	ck_assert_int_eq(mrrc_cw_post_target(&cw, &target[2], 1), -EAGAIN);
	mrrc_cw_cancel_wr(&cw, &wr[0]);
	ck_assert_uint_eq(ends, 1);
	ck_assert_int_eq(last_err, ECANCELED);
	ck_assert_int_eq(mrrc_cw_post_wr(&cw, &wr[2], 1), 0);
	ck_assert(mrrc_cw_valid(&cw));
	mrrc_cw_down(&cw, ECONNABORTED);
	ck_assert_uint_eq(ends, 5);
	ck_assert_int_eq(last_err, ECONNABORTED);
	ck_assert_int_eq(mrrc_cw_post_wr(&cw, &wr[0], 1), -ENOTCONN);
	ck_assert(mrrc_cw_valid(&cw));
	mrrc_cw_fini(&cw);
}

/* ---- a peer that lies ---------------------------------------------------- */

static unsigned said_tags;

static unsigned said_bytes; /* length of the write in the last message */
static char placed[100];

static int room(void *arg, const struct mrrc_cw_msg *msg)
{
	said_tags += msg->type == MRRC_CW_TAG;
	said_bytes = msg->type == MRRC_CW_DONE && msg->done.bytes ? msg->len :
								    0;
	return 0;
}

static void place(void *arg, struct mrrc_cw_target *target, const void *bytes,
		  size_t len)
{
	memcpy(placed, bytes, len);
}

static const struct mrrc_cw_ops open_ops = {
	.send = room,
	.issue = never_issued,
	.place = place,
	.wr_end = wr_end,
	.target_end = target_end,
};

/* Exposes two buffers of 100 bytes; the peer has asked for one of them. */
static void lied_to(struct mrrc_cw *cw, struct mrrc_cw_target *target)
{
	static const struct mrrc_cw_attr attr = {
		.credits = 4,
		.pending = 2,
		.inline_max = 8,
		.cookie = 5,
	};
	unsigned i;

	ends = said_tags = 0;
	memset(target, 0, 2 * sizeof(*target));
	mrrc_cw_init(cw, &attr, &open_ops, NULL);
	mrrc_cw_hello(cw);
	for (i = 0; i < 2; i++) {
		target[i].len = 100;
		ck_assert_int_eq(mrrc_cw_post_target(cw, &target[i], 1), 0);
	}
}

#define SAID_HELLO(said)                          \
	{                                         \
		.type = MRRC_CW_HELLO, .hello = { \
			.min = 1,                 \
			.max = 1,                 \
			.credits = 4,             \
			.tags = 1,                \
			.cookie = (said)          \
		}                                 \
	}

static const struct lie {
	struct mrrc_cw_msg said[6]; /* the last message is the lie */
} lies[] = {
	{ { SAID_HELLO(6) } },
	{ { SAID_HELLO(5), SAID_HELLO(5) } },
	{ { { .type = MRRC_CW_CREDIT } } },
	/* The peer returns more credits than it got. */
	{ { SAID_HELLO(5), { .type = MRRC_CW_CREDIT, .credits = 2 } } },
	/* A write is longer than the buffer; a truncated one is not. */
	{ { SAID_HELLO(5), { .type = MRRC_CW_DONE, .id = 1, .len = 101 } } },
	{ { SAID_HELLO(5), { .type = MRRC_CW_TRUNC, .id = 1, .len = 100 } } },
	/* The peer ends a target twice, or an unknown one, or one unasked. */
	{ { SAID_HELLO(5),
	    { .type = MRRC_CW_DONE, .id = 1, .len = 1 },
	    { .type = MRRC_CW_DONE, .id = 1, .len = 1 } } },
	{ { SAID_HELLO(5), { .type = MRRC_CW_DONE, .id = 9, .len = 1 } } },
	{ { SAID_HELLO(5), { .type = MRRC_CW_DONE, .id = 2, .len = 1 } } },
	{ { SAID_HELLO(5), { .type = MRRC_CW_REVOKED, .id = 1 } } },
	/* A message holds more bytes of a write than this side takes. */
	{ { SAID_HELLO(5),
	    { .type = MRRC_CW_DONE,
	      .id = 1,
	      .len = 9,
	      .done.bytes = "123456789" } } },
	/* A tag comes twice; and more tags come than there is room for. */
	{ { SAID_HELLO(5),
	    { .type = MRRC_CW_TAG, .id = 1 },
	    { .type = MRRC_CW_TAG, .id = 1 } } },
	{ { SAID_HELLO(5),
	    { .type = MRRC_CW_TAG, .id = 1 },
	    { .type = MRRC_CW_TAG, .id = 2 },
	    { .type = MRRC_CW_TAG, .id = 3 } } },
};

EACH_TEST(lies_are_found, lies)
{
	const struct mrrc_cw_msg *said = lies[_i].said;
	struct mrrc_cw_target target[2];
	struct mrrc_cw cw;

	lied_to(&cw, target);
	for (; said[1].type; said++) {
		mrrc_cw_receive(&cw, said);
		ck_assert_int_eq(cw.err, 0);
	}
	mrrc_cw_receive(&cw, said);
	ck_assert_int_eq(cw.err, -EPROTO);
	mrrc_cw_down(&cw, ECONNABORTED);
	ck_assert_uint_eq(ends, 2);
	ck_assert(mrrc_cw_valid(&cw));
	mrrc_cw_fini(&cw);
}

/* The peer sends more messages than its credits, none of which was returned. */
TEST(flood_is_found)
{
	static const struct mrrc_cw_attr attr = { .credits = 4, .pending = 2 };
	const struct mrrc_cw_msg hello = SAID_HELLO(0);
	const struct mrrc_cw_msg credit = { .type = MRRC_CW_CREDIT };
	struct mrrc_cw cw;
	unsigned i;

	mrrc_cw_init(&cw, &attr, &ops, NULL);
	mrrc_cw_receive(&cw, &hello);
	for (i = 0; i < 4; i++)
		mrrc_cw_receive(&cw, &credit);
	ck_assert_int_eq(cw.err, 0);
	mrrc_cw_receive(&cw, &credit);
	ck_assert_int_eq(cw.err, -EPROTO);
	mrrc_cw_down(&cw, ECONNABORTED);
	mrrc_cw_fini(&cw);
}

/* The peer keeps one tag at a time, so the second tag waits. */
TEST(tags_wait_for_the_peer)
{
	const struct mrrc_cw_msg hello = SAID_HELLO(5);
	const struct mrrc_cw_msg done = {
		.type = MRRC_CW_DONE,
		.id = 1,
		.len = 100,
		.credits = 1,
	};
	struct mrrc_cw_target target[2];
	struct mrrc_cw cw;

	lied_to(&cw, target);
	mrrc_cw_receive(&cw, &hello);
	ck_assert_uint_eq(said_tags, 1);
	mrrc_cw_receive(&cw, &done);
	ck_assert_int_eq(cw.err, 0);
	ck_assert_uint_eq(ends, 1);
	ck_assert_uint_eq(said_tags, 2);
	mrrc_cw_down(&cw, ECONNABORTED);
	ck_assert_uint_eq(ends, 2);
	mrrc_cw_fini(&cw);
}

/* Posts a write of @len bytes, which then meets a tag. */
static unsigned bytes_said(uint16_t taken, const char *bytes, size_t len)
{
	static const struct mrrc_cw_attr attr = {
		.credits = 4,
		.pending = 2,
		.inline_max = MRRC_CW_INLINE,
	};
	const struct mrrc_cw_msg tag = {
		.type = MRRC_CW_TAG,
		.id = 1,
		.len = 10000,
		.tag = { 7, 1, { { 4096, 5, 10000 } } },
	};
	struct mrrc_cw_msg hello = SAID_HELLO(0);
	struct mrrc_cw_wr wr = { .len = len, .bytes = bytes };
	struct mrrc_cw cw;

	hello.hello.inline_max = taken;
	ends = 0;
	mrrc_cw_init(&cw, &attr, &open_ops, NULL);
	mrrc_cw_hello(&cw);
	mrrc_cw_receive(&cw, &hello);
	ck_assert_int_eq(mrrc_cw_post_wr(&cw, &wr, 7), 0);
	said_bytes = 0;
	mrrc_cw_receive(&cw, &tag);
	ck_assert_uint_eq(ends, said_bytes != 0);
	ck_assert(mrrc_cw_valid(&cw));
	mrrc_cw_down(&cw, ECONNABORTED);
	mrrc_cw_fini(&cw);
	return said_bytes;
}

/*
 * A short write goes inside a message if the writer allows, the peer accepts
 * and this side's messages have room for as many bytes.
 */
TEST(short_writes_inside_messages)
{
	static const char bytes[MRRC_CW_INLINE + 1];

	ck_assert_uint_eq(bytes_said(50, bytes, 50), 50);
	ck_assert_uint_eq(bytes_said(50, bytes, 51), 0);
	ck_assert_uint_eq(bytes_said(50, NULL, 50), 0);
	ck_assert_uint_eq(bytes_said(0, bytes, 1), 0);
	ck_assert_uint_eq(bytes_said(UINT16_MAX, bytes, MRRC_CW_INLINE),
			  MRRC_CW_INLINE);
	ck_assert_uint_eq(bytes_said(UINT16_MAX, bytes, MRRC_CW_INLINE + 1), 0);
}

TEST(bytes_of_a_message_are_placed)
{
	const struct mrrc_cw_msg hello = SAID_HELLO(5);
	const struct mrrc_cw_msg done = {
		.type = MRRC_CW_DONE,
		.id = 1,
		.len = 8,
		.done.bytes = "12345678",
	};
	struct mrrc_cw_target target[2];
	struct mrrc_cw cw;

	lied_to(&cw, target);
	memset(placed, 0, sizeof(placed));
	mrrc_cw_receive(&cw, &hello);
	mrrc_cw_receive(&cw, &done);
	ck_assert_int_eq(cw.err, 0);
	ck_assert_uint_eq(ends, 1);
	ck_assert_str_eq(placed, "12345678");
	mrrc_cw_down(&cw, ECONNABORTED);
	mrrc_cw_fini(&cw);
}
