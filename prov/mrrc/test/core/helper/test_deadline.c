/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core/helper/deadline: the order of deadlines, and the room between them. */
#include "config.h"
#include "test/case.h"

#include "core/helper/deadline.h"
#include "test/seed.h"

#define MANY 200u

static struct mrrc_deadlines queue;
static struct mrrc_deadline item[MANY];

static void setup(void)
{
	memset(&queue, 0xff, sizeof(queue));
	mrrc_deadlines_init(&queue);
}

static void add(unsigned i, uint64_t time, uint64_t cost)
{
	item[i].due = time;
	item[i].cost = cost;
	mrrc_deadlines_add(&queue, &item[i]);
}

TEST_CASE(deadline, setup, NULL);

TEST(test_fit)
{
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 100, 10), 100);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 10, 10), 10);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 9, 10), 0);
	add(0, 100, 10);
	/* The later item has to begin at 90. */
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 99, 10), 90);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 90, 10), 90);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 89, 10), 89);
	/* The new item needs time after the earlier one. */
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 110, 10), 110);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 109, 10), 90);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 100, 10), 90);
	/* The gap between both items is too small for the new item. */
	add(1, 119, 10);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 118, 10), 90);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 118, 9), 109);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 118, 91), 0);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 118, 90), 90);
}

/* There is no room before an item that had to begin before time 0. */
TEST(test_fit_before_the_beginning)
{
	add(0, 5, 10);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 4, 1), 0);
	ck_assert_uint_eq(mrrc_deadlines_fit(&queue, 20, 10), 20);
}

/* Tries one time after the other, downwards. */
static uint64_t model_fit(unsigned count, const bool *in, uint64_t time,
			  uint64_t cost)
{
	unsigned i;

	for (; time >= cost && time; time--) {
		for (i = 0; i < count; i++) {
			if (!in[i])
				continue;
			if (item[i].due > time ?
				    item[i].due - item[i].cost < time :
				    time - cost < item[i].due)
				break;
		}
		if (i == count)
			return time;
	}
	return 0;
}

LOOP_TEST(test_model, 0, 4)
{
	struct seed seed = seed_init("deadline", _i);
	uint64_t time, cost, want, least;
	bool in[MANY] = { false };
	unsigned step, i, k;

	for (step = 0; step < 4000; step++) {
		i = seed_below(&seed, MANY);
		if (in[i]) {
			mrrc_deadlines_remove(&queue, &item[i]);
			in[i] = false;
		} else {
			time = 1 + seed_below(&seed, 3000);
			cost = 1 + seed_below(&seed, 30);
			want = model_fit(MANY, in, time, cost);
			time = mrrc_deadlines_fit(&queue, time, cost);
			ck_assert_uint_eq(time, want);
			if (time) {
				add(i, time, cost);
				in[i] = true;
			}
		}
		least = UINT64_MAX;
		for (k = 0; k < MANY; k++) {
			if (in[k] && item[k].due < least)
				least = item[k].due;
		}
		if (least == UINT64_MAX)
			ck_assert_ptr_null(mrrc_deadlines_first(&queue));
		else
			ck_assert_uint_eq(mrrc_deadlines_first(&queue)->due,
					  least);
	}
}
