/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes in core: queues by key against a naive model, and what a
 * side does alone. What two sides do together is explore_cw.c's.
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
	tcase_add_test(tcase, table_is_full);
	tcase_add_test(tcase, states_have_names);
	suite_add_tcase(suite, tcase);
	return suite;
}
