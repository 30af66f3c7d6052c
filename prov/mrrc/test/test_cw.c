/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes in core: queues by key against a naive model, messages
 * there and back, versions, and what a side does alone. What two sides do
 * together is explore_cw.c's.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cw.h"

#define N	3000
#define KEYS	97

struct item {
	struct mrrc_cw_node node;
	uint64_t key;
	long order;		/* among its key's; 0: not in the map */
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

START_TEST(map_is_queues_by_key)
{
	struct mrrc_cw_map map;
	struct mrrc_cw_node *node;
	long next = 1000000, before = 999999;
	unsigned i, step;

	memset(items, 0, sizeof(items));
	srand(1);
	mrrc_cw_map_init(&map);
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
			ck_assert_ptr_eq(node, oldest(step % KEYS) ?
					 &oldest(step % KEYS)->node : NULL);
			ck_assert(mrrc_cw_map_valid(&map));
		}
	}
	mrrc_cw_map_fini(&map);
}
END_TEST

START_TEST(map_grows)
{
	static struct mrrc_cw_node nodes[10000];
	struct mrrc_cw_map map;
	unsigned i;

	mrrc_cw_map_init(&map);
	for (i = 0; i < 10000; i++)
		mrrc_cw_map_add(&map, &nodes[i], i * 4096ULL);
	ck_assert_uint_ge(map.mask + 1, 8192);
	ck_assert(mrrc_cw_map_valid(&map));
	for (i = 0; i < 10000; i++)
		ck_assert_ptr_eq(mrrc_cw_map_first(&map, i * 4096ULL),
				 &nodes[i]);
	mrrc_cw_map_fini(&map);
}
END_TEST

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

/* Several, one behind the other; what each says of its length is checked. */
START_TEST(messages_in_a_row)
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
END_TEST

START_TEST(messages_there_and_back)
{
	struct mrrc_cw_msg msg = { .credits = 7, .id = 1ULL << 40 };
	unsigned i;

	for (i = 0; i <= MRRC_CW_SEGS; i++) {
		msg.type = MRRC_CW_TAG;
		msg.tag.cwtag = ~0ULL;
		msg.tag.count = i;
		msg.len = i * 10;
		if (i)
			msg.tag.seg[i - 1] = (struct mrrc_cw_seg) {
				~0ULL - 9, 5, 10
			};
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
	memset(&msg, 0, sizeof(msg));
	msg.type = MRRC_CW_CREDIT;
	msg.credits = 65535;
	there_and_back(&msg);
	memset(&msg, 0, sizeof(msg));
	msg.type = MRRC_CW_BYE;
	msg.err = 71;
	there_and_back(&msg);
	memset(&msg, 0, sizeof(msg));
	msg.type = MRRC_CW_HELLO;
	msg.hello.min = msg.hello.max = 1;
	msg.hello.credits = 4;
	msg.hello.tags = 1;
	msg.hello.cookie = ~0ULL;
	there_and_back(&msg);
}
END_TEST

START_TEST(versions)
{
	static const struct {
		uint8_t min, max;
		int want;
	} cases[] = {
		{ 1, 1, 1 }, { 1, 9, 1 }, { 2, 9, -EPROTONOSUPPORT },
	};
	struct mrrc_cw_msg hello = { .type = MRRC_CW_HELLO };

	hello.hello.min = cases[_i].min;
	hello.hello.max = cases[_i].max;
	ck_assert_int_eq(mrrc_cw_version(&hello), cases[_i].want);
}
END_TEST

/* ---- one side ------------------------------------------------------------ */

static unsigned ends;
static int last_err;

static int no_room(void *arg, const struct mrrc_cw_msg *msg)
{
	(void)arg;
	(void)msg;
	return -EAGAIN;
}

static int never_issued(void *arg, struct mrrc_cw_wr *wr,
			const struct mrrc_cw_rtag *rtag)
{
	(void)arg;
	(void)wr;
	(void)rtag;
	return -EAGAIN;
}

static void wr_end(void *arg, struct mrrc_cw_wr *wr,
		   const struct mrrc_cw_end *end)
{
	(void)arg;
	(void)wr;
	ends++;
	last_err = end->err;
}

static void target_end(void *arg, struct mrrc_cw_target *target,
		       const struct mrrc_cw_end *end)
{
	(void)arg;
	(void)target;
	ends++;
	last_err = end->err;
}

static const struct mrrc_cw_ops ops = {
	.send = no_room,
	.issue = never_issued,
	.wr_end = wr_end,
	.target_end = target_end,
};

START_TEST(table_is_full)
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
END_TEST

START_TEST(states_have_names)
{
	ck_assert_str_eq(mrrc_cw_wr_name(MRRC_CW_WR_HELD), "HELD");
	ck_assert_str_eq(mrrc_cw_target_name(MRRC_CW_TARGET_ENDED), "ENDED");
	ck_assert_str_eq(mrrc_cw_wr_name(MRRC_CW_WR_CNT), "?");
}
END_TEST

Suite *cw_suite(void)
{
	Suite *suite = suite_create("cw");
	TCase *tcase = tcase_create("cw");

	tcase_add_test(tcase, map_is_queues_by_key);
	tcase_add_test(tcase, map_grows);
	tcase_add_test(tcase, messages_in_a_row);
	tcase_add_test(tcase, messages_there_and_back);
	tcase_add_loop_test(tcase, versions, 0, 3);
	tcase_add_test(tcase, table_is_full);
	tcase_add_test(tcase, states_have_names);
	suite_add_tcase(suite, tcase);
	return suite;
}
