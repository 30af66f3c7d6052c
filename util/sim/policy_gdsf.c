/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Greedy-Dual-Size-Frequency with the true cost (Cherkasova 1998; Cao, Irani
 * 1997): a region has the value H = L + f * cost / size, the region with the
 * least H is evicted, and L becomes its H. cost is the cost of registering and
 * deregistering; f counts the region's uses, with history=1 also uses before an
 * eviction.
 *
 * f * cost / size is quantised to a quarter of an octave: regions of one
 * class then differ in L alone, which never falls, so a class is a list by
 * time of use, and a victim is the least among the heads of the classes.
 * A step is O(1), a victim O(classes in use): no heap and no sort.
 */
#include "config.h"
#include "sim/policies.h"

#include <string.h>

#include "core/policy/history.h"

enum { GDSF_HISTORY }; /* param[] */

#define STEP_BITS  2	/* 4 classes an octave */
#define OCTAVE_MIN (-8) /* exponent of ns for a page */
#define OCTAVES	   48
#define CLASSES	   (OCTAVES << STEP_BITS)
#define WORDS	   (CLASSES / 64)

struct mrrc_gdsf {
	struct mrrc_policy policy;
	struct mrrc_region_list class[CLASSES]; /* least H first */
	uint64_t used[WORDS];			/* classes with regions */
	const struct mrrc_cost *cost;
	struct mrrc_history history;
	double floor; /* L */
	size_t count;
};

/* The words of a region that the policy uses. */
struct gdsf_node {
	double priority; /* H */
	uint32_t class;
	uint32_t uses; /* f */
};

_Static_assert(sizeof(struct gdsf_node) <=
		       sizeof(((struct mrrc_region *) NULL)->policy),
	       "policy words");

static struct mrrc_gdsf *gdsf_of(struct mrrc_policy *policy)
{
	return (struct mrrc_gdsf *) policy;
}

static struct gdsf_node *gdsf_node(struct mrrc_region *region)
{
	return (struct gdsf_node *) region->policy;
}

/*
 * The class is the exponent and the first bits of the fraction of a double;
 * with the other bits zero, the double is the value of its class.
 */
static uint32_t gdsf_class(double value)
{
	const int64_t base = (int64_t) (1023 + OCTAVE_MIN) << STEP_BITS;
	int64_t class;
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	class = (int64_t) (bits >> (52 - STEP_BITS)) - base;
	if (class < 0)
		return 0;
	return class < CLASSES ? class : CLASSES - 1;
}

static double gdsf_value(uint32_t class)
{
	const uint64_t base = (uint64_t) (1023 + OCTAVE_MIN) << STEP_BITS;
	const uint64_t bits = (base + class) << (52 - STEP_BITS);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static int gdsf_init(struct mrrc_policy *policy,
		     const struct mrrc_policy_attr *attr)
{
	struct mrrc_gdsf *gdsf = gdsf_of(policy);
	size_t ranges = attr->max_bytes / attr->cost->page;
	int i;

	for (i = 0; i < CLASSES; i++)
		TAILQ_INIT(&gdsf->class[i]);
	gdsf->cost = attr->cost;
	if (!policy->param[GDSF_HISTORY])
		return 0;
	if (ranges > attr->max_regions)
		ranges = attr->max_regions;
	return mrrc_history_init(&gdsf->history, ranges);
}

static void gdsf_fini(struct mrrc_policy *policy)
{
	if (policy->param[GDSF_HISTORY])
		mrrc_history_fini(&gdsf_of(policy)->history);
}

/* Appends the region to its class, as used now. */
static void gdsf_enter(struct mrrc_gdsf *gdsf, struct mrrc_region *region)
{
	struct gdsf_node *node = gdsf_node(region);
	const double cost = mrrc_cost_reg(gdsf->cost, region->len) +
			    mrrc_cost_dereg(gdsf->cost, region->len);

	node->class = gdsf_class(node->uses * cost /
				 mrrc_cost_pages(gdsf->cost, region->len));
	node->priority = gdsf->floor + gdsf_value(node->class);
	TAILQ_INSERT_TAIL(&gdsf->class[node->class], region, link);
	gdsf->used[node->class / 64] |= 1ULL << node->class % 64;
}

static void gdsf_leave(struct mrrc_gdsf *gdsf, struct mrrc_region *region)
{
	const uint32_t class = gdsf_node(region)->class;

	TAILQ_REMOVE(&gdsf->class[class], region, link);
	if (TAILQ_EMPTY(&gdsf->class[class]))
		gdsf->used[class / 64] &= ~(1ULL << class % 64);
}

/*
 * Counts a use: takes the count from the history, or adds one to the region's
 * count.
 */
static void gdsf_use(struct mrrc_gdsf *gdsf, struct mrrc_region *region)
{
	struct gdsf_node *node = gdsf_node(region);

	if (node->uses < UINT32_MAX)
		node->uses++;
	if (gdsf->policy.param[GDSF_HISTORY])
		node->uses = mrrc_history_add(&gdsf->history,
					      region->start / gdsf->cost->page);
}

static void gdsf_insert(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_gdsf *gdsf = gdsf_of(policy);

	gdsf_node(region)->uses = 0;
	gdsf_use(gdsf, region);
	gdsf_enter(gdsf, region);
	gdsf->count++;
}

static void gdsf_touch(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_gdsf *gdsf = gdsf_of(policy);

	gdsf_leave(gdsf, region);
	gdsf_use(gdsf, region);
	gdsf_enter(gdsf, region);
}

static void gdsf_remove(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_gdsf *gdsf = gdsf_of(policy);

	gdsf_leave(gdsf, region);
	gdsf->count--;
}

/*
 * Returns the first region of a class that is not in use. Regions in front of
 * the returned region, which are in use, count as used now.
 */
static struct mrrc_region *gdsf_head(struct mrrc_gdsf *gdsf, int class)
{
	struct mrrc_region *first = NULL;
	struct mrrc_region *region;

	while ((region = TAILQ_FIRST(&gdsf->class[class])) &&
	       mrrc_region_held(region)) {
		if (region == first)
			return NULL;
		if (!first)
			first = region;
		gdsf_leave(gdsf, region);
		gdsf_enter(gdsf, region);
	}
	return region;
}

static struct mrrc_region *gdsf_victim(struct mrrc_policy *policy)
{
	struct mrrc_gdsf *gdsf = gdsf_of(policy);
	struct mrrc_region *best = NULL;
	struct mrrc_region *head;
	uint64_t bits;
	int word;

	for (word = 0; word < WORDS; word++) {
		for (bits = gdsf->used[word]; bits; bits &= bits - 1) {
			head = gdsf_head(gdsf,
					 64 * word + __builtin_ctzll(bits));
			if (head &&
			    (!best || gdsf_node(head)->priority <
					      gdsf_node(best)->priority))
				best = head;
		}
	}
	/*
	 * a region that was in use for a long time may have less value than
	 * former victims
	 */
	if (best && gdsf_node(best)->priority > gdsf->floor)
		gdsf->floor = gdsf_node(best)->priority;
	return best;
}

static bool gdsf_valid(const struct mrrc_policy *policy, size_t count)
{
	const struct mrrc_gdsf *gdsf = (const struct mrrc_gdsf *) policy;
	struct mrrc_region *region;
	double priority;
	size_t seen = 0;
	int i;

	for (i = 0; i < CLASSES; i++) {
		priority = 0;
		if (TAILQ_EMPTY(&gdsf->class[i]) !=
		    !(gdsf->used[i / 64] >> i % 64 & 1))
			return false;
		TAILQ_FOREACH(region, &gdsf->class[i], link) {
			if (region->state != MRRC_REGION_INDEXED ||
			    gdsf_node(region)->class != (uint32_t) i ||
			    gdsf_node(region)->priority < priority)
				return false;
			priority = gdsf_node(region)->priority;
			seen++;
		}
	}
	return seen == count && gdsf->count == count;
}

const struct mrrc_policy_ops mrrc_policy_gdsf_ops = {
	.name = "gdsf",
	.help = "greedy-dual by true cost, size, frequency and age",
	.pieces = 4,
	.batch = 16,
	.merge = 1,
	.size = sizeof(struct mrrc_gdsf),
	.param = {
		{ "history", "1: uses before an eviction count", 1, 0, 1 },
	},
	.init = gdsf_init,
	.fini = gdsf_fini,
	.insert = gdsf_insert,
	.touch = gdsf_touch,
	.remove = gdsf_remove,
	.victim = gdsf_victim,
	.valid = gdsf_valid,
};
