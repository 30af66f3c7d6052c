/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory Resorting and Eviction (ou2009, section 5 and figure 4).
 *
 * The policy has a stack by recency. When the cache is full, the lower part of
 * the stack, the resorting section, is sorted by eviction factor r + 1/s (s:
 * pages of the region; smallest factor at the bottom), and the eviction segment
 * at the bottom is evicted as one batch. r is the factor that the region at the
 * bottom had before.
 *
 * The paper allows two readings: in its text a factor is kept until the region
 * is used again (`mre-text`), in figure 4 the factors of the whole section are
 * computed again each time (`mre-fig4`). The paper gives no sizes of the
 * sections: the sizes are parameters, in percent of the regions.
 *
 * Sorting merges lists, so sorting needs no memory. Divided among the regions
 * that one sort frees, the sort costs O(resort / evict * log n).
 */
#include "config.h"
#include "core/policy/policy.h"

#include <string.h>

enum { MRE_RESORT, MRE_EVICT }; /* param[] */

struct mrrc_mre {
	struct mrrc_policy policy;
	struct mrrc_region_list list; /* bottom of the stack first */
	size_t count;
	size_t segment; /* regions left in the eviction segment */
	double recency; /* r */
	double page;	/* bytes of a page */
	bool renew;	/* as in figure 4: renew factors */
};

static struct mrrc_mre *mre_of(struct mrrc_policy *policy)
{
	return (struct mrrc_mre *) policy;
}

static double mre_factor(const struct mrrc_region *region)
{
	double factor;

	memcpy(&factor, &region->policy[0], sizeof(factor));
	return factor;
}

static void mre_set_factor(struct mrrc_region *region, double factor)
{
	memcpy(&region->policy[0], &factor, sizeof(factor));
}

static int mre_open(struct mrrc_policy *policy,
		    const struct mrrc_policy_attr *attr, bool renew)
{
	struct mrrc_mre *mre = mre_of(policy);

	TAILQ_INIT(&mre->list);
	mre->page = (double) attr->cost->page;
	mre->renew = renew;
	return 0;
}

static int mre_init_text(struct mrrc_policy *policy,
			 const struct mrrc_policy_attr *attr)
{
	return mre_open(policy, attr, false);
}

static int mre_init_fig4(struct mrrc_policy *policy,
			 const struct mrrc_policy_attr *attr)
{
	return mre_open(policy, attr, true);
}

static void mre_fini(struct mrrc_policy *policy)
{
}

static void mre_insert(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_mre *mre = mre_of(policy);

	mre_set_factor(region, 0);
	TAILQ_INSERT_TAIL(&mre->list, region, link);
	mre->count++;
}

static void mre_touch(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_mre *mre = mre_of(policy);

	mre_set_factor(region, 0);
	if (!TAILQ_NEXT(region, link))
		return;
	TAILQ_REMOVE(&mre->list, region, link);
	TAILQ_INSERT_TAIL(&mre->list, region, link);
}

static void mre_remove(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_mre *mre = mre_of(policy);

	TAILQ_REMOVE(&mre->list, region, link);
	mre->count--;
}

/* Merges two sorted lists; of equal regions, the regions of @a come first. */
static void mre_merge(struct mrrc_region_list *a, struct mrrc_region_list *b)
{
	struct mrrc_region_list out = TAILQ_HEAD_INITIALIZER(out);
	struct mrrc_region_list *from;
	struct mrrc_region *region;

	while (!TAILQ_EMPTY(a) && !TAILQ_EMPTY(b)) {
		from = mre_factor(TAILQ_FIRST(b)) < mre_factor(TAILQ_FIRST(a)) ?
			       b :
			       a;
		region = TAILQ_FIRST(from);
		TAILQ_REMOVE(from, region, link);
		TAILQ_INSERT_TAIL(&out, region, link);
	}
	TAILQ_CONCAT(&out, a, link);
	TAILQ_CONCAT(&out, b, link);
	TAILQ_CONCAT(a, &out, link);
}

/*
 * Sorts by merging: a run of 1, 2, 4, ... regions waits until another run of
 * the same length exists.
 */
static void mre_sort(struct mrrc_region_list *list)
{
	struct mrrc_region_list run[8 * sizeof(size_t)];
	struct mrrc_region_list one;
	struct mrrc_region *region;
	size_t top = 0;
	size_t i;

	while ((region = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, region, link);
		TAILQ_INIT(&one);
		TAILQ_INSERT_TAIL(&one, region, link);
		for (i = 0; i < top && !TAILQ_EMPTY(&run[i]); i++) {
			mre_merge(&run[i], &one);
			TAILQ_CONCAT(&one, &run[i], link);
		}
		if (i == top) {
			TAILQ_INIT(&run[top]);
			top++;
		}
		TAILQ_CONCAT(&run[i], &one, link);
	}
	for (i = 0; i < top; i++) {
		mre_merge(&run[i], list);
		TAILQ_CONCAT(list, &run[i], link);
	}
}

/* @percent of @count regions, at least one region. */
static size_t mre_part(size_t count, size_t percent)
{
	const size_t part = count / 100 * percent + count % 100 * percent / 100;

	return part ? part : 1;
}

/* Resorts when the cache is full, and marks out the eviction segment. */
static void mre_resort(struct mrrc_mre *mre)
{
	struct mrrc_region_list section = TAILQ_HEAD_INITIALIZER(section);
	size_t left = mre_part(mre->count, mre->policy.param[MRE_RESORT]);
	struct mrrc_region *region;

	mre->recency = mre_factor(TAILQ_FIRST(&mre->list));
	for (; left; left--) {
		region = TAILQ_FIRST(&mre->list);
		TAILQ_REMOVE(&mre->list, region, link);
		TAILQ_INSERT_TAIL(&section, region, link);
		if (mre->renew || mre_factor(region) == 0)
			mre_set_factor(region,
				       mre->recency +
					       mre->page /
						       (double) region->len);
	}
	mre_sort(&section);
	TAILQ_CONCAT(&section, &mre->list, link);
	TAILQ_CONCAT(&mre->list, &section, link);
	mre->segment = mre_part(mre->count, mre->policy.param[MRE_EVICT]);
}

static struct mrrc_region *mre_victim(struct mrrc_policy *policy)
{
	struct mrrc_mre *mre = mre_of(policy);
	struct mrrc_region *region;
	size_t left;

	if (!mre->count)
		return NULL;
	if (!mre->segment)
		mre_resort(mre);
	for (left = mre->count; left; left--) {
		region = TAILQ_FIRST(&mre->list);
		if (!mrrc_region_held(region)) {
			mre->segment--;
			return region;
		}
		/* a region in use counts as used now */
		mre_touch(policy, region);
	}
	return NULL;
}

static bool mre_more(struct mrrc_policy *policy, size_t gone)
{
	return mre_of(policy)->segment;
}

static bool mre_valid(const struct mrrc_policy *policy, size_t count)
{
	const struct mrrc_mre *mre = (const struct mrrc_mre *) policy;
	struct mrrc_region *region;
	size_t seen = 0;

	TAILQ_FOREACH(region, &mre->list, link) {
		if (region->state != MRRC_REGION_INDEXED ||
		    !(mre_factor(region) >= 0))
			return false;
		seen++;
	}
	return seen == count && mre->count == count;
}

#define MRRC_MRE_OPS \
	.pieces = MRRC_PIECES_MAX,				\
	.batch = 1,						\
	.size = sizeof(struct mrrc_mre),			\
	.param = {						\
		{ "resort", "percent of the stack that is resorted",	\
		  50, 1, 100 },					\
		{ "evict", "percent of the stack that goes at once",	\
		  5, 1, 100 },					\
	},							\
	.fini = mre_fini,					\
	.insert = mre_insert,				\
	.touch = mre_touch,				\
	.remove = mre_remove,				\
	.victim = mre_victim,				\
	.more = mre_more,					\
	.valid = mre_valid

const struct mrrc_policy_ops mrrc_policy_mre_text_ops = {
	.name = "mre-text",
	.help = "MRE of ou2009, its text: factors kept until the next use",
	.init = mre_init_text,
	MRRC_MRE_OPS,
};

const struct mrrc_policy_ops mrrc_policy_mre_fig4_ops = {
	.name = "mre-fig4",
	.help = "MRE of ou2009, figure 4: factors renewed whenever full",
	.init = mre_init_fig4,
	MRRC_MRE_OPS,
};
