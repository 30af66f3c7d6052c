/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi/obj/wait: fi_trywait() while another thread makes completions pending. The
 * core's fi_trywait() is a fake that plays the other thread.
 */
#include "config.h"

#include "fi/data/pending.h"
#include "fi/fid.h"
#include "fi/obj/obj.h"
#include "fi/parts.h"
#include "test/case.h"
#include "test/fi/unused.h"

#define MANY 70 /* more objects than are passed on at once */

struct fi_provider mrrc_prov = { .name = "test_wait" };

UNUSED(void, mrrc_part_asked, const char *ops);

static struct fid core_fid[MANY];
static struct mrrc_wait set[MANY];
static struct mrrc_cq cq;
static struct fid *fids[MANY];
static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.tostr = mrrc_fid_tostr,
};

/* Where a completion becomes pending in the core's call; NULL: nowhere. */
static atomic_size_t *raced;
static int core_ret, core_calls, core_count;

static int core_trywait(struct fid_fabric *fabric, struct fid **core, int count)
{
	core_calls++;
	core_count += count;
	if (raced)
		atomic_store(raced, 1);
	return core_ret;
}

static struct fi_ops_fabric core_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.trywait = core_trywait,
};
static struct fid_fabric core = { .ops = &core_ops };
static struct mrrc_fabric fabric = { .core = &core };

static void reset(void)
{
	size_t i;

	for (i = 0; i < MANY; i++) {
		set[i].wait.fid.fclass = FI_CLASS_WAIT;
		set[i].wait.fid.ops = &fid_ops;
		set[i].core = (struct fid_wait *) &core_fid[i];
		atomic_store(&set[i].pending_cnt, 0);
		fids[i] = &set[i].wait.fid;
	}
	cq.cq.fid.fclass = FI_CLASS_CQ;
	cq.cq.fid.ops = &fid_ops;
	cq.core = (struct fid_cq *) &core_fid[0];
	atomic_store(&cq.pending_cnt, 0);
	fids[0] = &cq.cq.fid;
	raced = NULL;
	core_ret = core_calls = core_count = 0;
}

TEST_CASE(wait, reset, NULL);

static int trywait(int count)
{
	return mrrc_trywait(&fabric.fabric, fids, count);
}

TEST(nothing_is_pending)
{
	ck_assert_int_eq(trywait(MANY), 0);
	ck_assert_int_eq(core_count, MANY);
	core_ret = -FI_EAGAIN;
	ck_assert_int_eq(trywait(1), -FI_EAGAIN);
}

TEST(pending_before)
{
	atomic_store(&cq.pending_cnt, 1);
	ck_assert_int_eq(trywait(1), -FI_EAGAIN);
	ck_assert_int_eq(core_calls, 0);
}

/* The core has cleared the other thread's signal: the caller must not sleep. */
TEST(pending_meanwhile)
{
	raced = &cq.pending_cnt;
	ck_assert_int_eq(trywait(1), -FI_EAGAIN);
	reset();
	raced = &set[1].pending_cnt;
	ck_assert_int_eq(trywait(2), -FI_EAGAIN);
	/* an object of the calls before */
	reset();
	raced = &cq.pending_cnt;
	ck_assert_int_eq(trywait(MANY), -FI_EAGAIN);
	ck_assert_int_gt(core_calls, 1);
}
