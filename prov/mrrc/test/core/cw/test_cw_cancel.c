/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes are ready while the network accepts no messages, and are
 * cancelled, or their tags withdrawn. Tests which tags the other writes get,
 * and that the cost does not depend on the number of ready writes.
 */
#include "config.h"
#include "test/case.h"

#include <time.h>

#include "core/cw/cw.h"

#define FEW    300
#define MANY   10000
#define FACTOR 8

static unsigned ended;

static int sent(void *arg, const struct mrrc_cw_msg *msg)
{
	return 0;
}

static int full(void *arg, struct mrrc_cw_wr *wr,
		const struct mrrc_cw_rtag *rtag)
{
	return -EAGAIN;
}

static void wr_end(void *arg, struct mrrc_cw_wr *wr,
		   const struct mrrc_cw_end *end)
{
	ended += end->err == ECANCELED;
}

static const struct mrrc_cw_ops ops = {
	.send = sent,
	.issue = full,
	.wr_end = wr_end,
};

/* Opens a side with credits for all messages, received ones being returned. */
static void open_side(struct mrrc_cw *cw)
{
	const struct mrrc_cw_attr attr = {
		.credits = UINT16_MAX,
		.pending = MANY,
	};
	const struct mrrc_cw_msg hello = {
		.type = MRRC_CW_HELLO,
		.hello = { .min = MRRC_CW_VERSION_MIN,
			   .max = MRRC_CW_VERSION_MAX,
			   .credits = UINT16_MAX,
			   .tags = MANY },
	};

	ended = 0;
	mrrc_cw_init(cw, &attr, &ops, NULL);
	mrrc_cw_hello(cw);
	mrrc_cw_receive(cw, &hello);
}

static void close_side(struct mrrc_cw *cw)
{
	ck_assert(!cw->err);
	mrrc_cw_down(cw, ECONNABORTED);
	mrrc_cw_fini(cw);
}

static void give(struct mrrc_cw *cw, uint64_t cwtag, uint64_t id)
{
	const struct mrrc_cw_msg tag = {
		.type = MRRC_CW_TAG,
		.id = id,
		.len = 1,
		.tag = { cwtag, 1, { { 4096, 5, 1 } } },
	};

	mrrc_cw_receive(cw, &tag);
}

/* Makes a ready write with a tag of this identity. */
static void make_ready(struct mrrc_cw *cw, struct mrrc_cw_wr *wr,
		       uint64_t cwtag, uint64_t id)
{
	*wr = (struct mrrc_cw_wr){ .len = 1 };
	give(cw, cwtag, id);
	ck_assert_int_eq(mrrc_cw_post_wr(cw, wr, cwtag), 0);
	ck_assert_int_eq(wr->state, MRRC_CW_WR_READY);
}

static void take_back(struct mrrc_cw *cw, uint64_t id)
{
	const struct mrrc_cw_msg msg = { .type = MRRC_CW_REVOKE, .id = id };

	mrrc_cw_receive(cw, &msg);
}

TEST_CASE(cw_cancel, NULL, NULL);

/* Ready writes older than a cancelled one keep their places and tags. */
TEST(older_keep_theirs)
{
	struct mrrc_cw_wr wr[4];
	struct mrrc_cw cw;

	open_side(&cw);
	make_ready(&cw, &wr[0], 7, 1);
	make_ready(&cw, &wr[1], 8, 2);
	make_ready(&cw, &wr[2], 7, 3);
	make_ready(&cw, &wr[3], 7, 4);
	mrrc_cw_cancel_wr(&cw, &wr[2]);
	ck_assert_uint_eq(ended, 1);
	ck_assert(mrrc_cw_valid(&cw));
	ck_assert_ptr_eq(TAILQ_FIRST(&cw.ready), &wr[0]);
	ck_assert_uint_eq(wr[0].rtag->id, 1);
	ck_assert_uint_eq(wr[1].rtag->id, 2);
	ck_assert_uint_eq(wr[3].rtag->id, 3);
	take_back(&cw, 1);
	ck_assert(mrrc_cw_valid(&cw));
	ck_assert_uint_eq(wr[0].rtag->id, 3);
	ck_assert_uint_eq(wr[3].rtag->id, 4);
	close_side(&cw);
}

/* Writes that became ready after a cancel are found, and in their order. */
TEST(younger_are_found)
{
	struct mrrc_cw_wr wr[4];
	struct mrrc_cw cw;
	unsigned i;

	open_side(&cw);
	make_ready(&cw, &wr[0], 7, 1);
	make_ready(&cw, &wr[1], 7, 2);
	mrrc_cw_cancel_wr(&cw, &wr[1]);
	take_back(&cw, 2);
	make_ready(&cw, &wr[2], 7, 3);
	make_ready(&cw, &wr[3], 7, 4);
	ck_assert(mrrc_cw_valid(&cw));
	take_back(&cw, 1);
	ck_assert(mrrc_cw_valid(&cw));
	ck_assert_uint_eq(wr[0].rtag->id, 3);
	ck_assert_uint_eq(wr[2].rtag->id, 4);
	ck_assert_int_eq(wr[3].state, MRRC_CW_WR_HELD);
	for (i = 0; i < 4; i++) {
		if (i != 1)
			mrrc_cw_cancel_wr(&cw, &wr[i]);
		ck_assert(mrrc_cw_valid(&cw));
	}
	ck_assert_uint_eq(ended, 4);
	close_side(&cw);
}

/* A peer that gives many tags and takes them back leaves little behind. */
TEST(few_are_spare)
{
	struct mrrc_cw cw;
	unsigned i;

	open_side(&cw);
	for (i = 0; i < FEW; i++)
		give(&cw, i, i + 1);
	for (i = 0; i < FEW; i++)
		take_back(&cw, i + 1);
	ck_assert_uint_eq(cw.spare_cnt, MRRC_CW_SPARE);
	ck_assert(mrrc_cw_valid(&cw));
	give(&cw, 7, FEW + 1);
	ck_assert_uint_eq(cw.spare_cnt, MRRC_CW_SPARE - 1);
	close_side(&cw);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

/*
 * Returns the time in us to cancel one write, or to take back one tag, newest
 * first, while @count writes are ready.
 */
static double cost(unsigned count, bool tags)
{
	struct mrrc_cw_wr *wr = calloc(count, sizeof(*wr));
	double least = 1e9, us;
	struct mrrc_cw cw;
	unsigned i, tries;

	ck_assert_ptr_nonnull(wr);
	for (tries = 0; tries < 3; tries++) {
		open_side(&cw);
		for (i = 0; i < count; i++)
			make_ready(&cw, &wr[i], i, i + 1);
		us = now_us();
		for (i = count; i--;) {
			if (tags)
				take_back(&cw, i + 1);
			else
				mrrc_cw_cancel_wr(&cw, &wr[i]);
		}
		us = (now_us() - us) / count;
		if (us < least)
			least = us;
		close_side(&cw);
	}
	free(wr);
	return least;
}

LOOP_TEST(cost_is_constant, 0, 2)
{
	const double few = cost(FEW, _i), many = cost(MANY, _i);

	ck_assert_msg(many < FACTOR * few + 1, "%f us of %u, %f us of %u", few,
		      FEW, many, MANY);
}
