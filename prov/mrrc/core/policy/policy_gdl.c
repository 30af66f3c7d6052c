/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Greedy-Dual with a learned reuse estimate, which never spends much more than
 * LRU.
 *
 * As in gdsf, a region has the value H = L + w, the region with the least H is
 * evicted, and L becomes this least H. But w is learned (reuse.h) from the uses
 * of present and departed regions (ghost.h), since frequency misleads where the
 * working set drifts or has few buffers. A shadow cache (shadow.h) simulates
 * LRU, and the estimate decides only while the cache can afford a wrong
 * estimate: the cost beyond LRU's so far, the probable cost of earlier victims,
 * and the victim's registration have to stay together within a fixed part of
 * LRU's cost. Otherwise the least recently used region is evicted.
 *
 * A region that is in use when a victim is sought is moved to a list aside, so
 * that the region is not examined again and again, and comes back as used now.
 *
 * docs/policies.md compares this policy with the others. Without the shadow
 * cache a use takes O(1), and a victim O(log n) for each region that is judged
 * for the victim; a region is judged at most once after each use.
 */
#include "config.h"
#include "core/policy/policy.h"

#include "core/policy/ghost.h"
#include "core/policy/shadow.h"
#include "core/policy/reuse.h"

enum { GDL_DUEL }; /* param[] */

#define GHOSTS 8192
#define PROBES 4 /* regions aside probed for a victim */

struct gdl_node {
	RB_ENTRY(gdl_node) node;
	double priority; /* H when the region was last judged */
	double floor;	 /* L when the region was last used */
	double weight;	 /* the weight of the region's size */
	uint64_t last;	 /* time of the last use, in pages registered */
	uint32_t uses;	 /* uses, also of earlier registrations */
	uint32_t here;	 /* uses since it was registered */
	bool aside;	 /* in the list aside, and in no other */
	bool used;	 /* used since it was judged */
	uint32_t shadow; /* hint where the shadow cache has the range */
};

RB_HEAD(mrrc_gdl_tree, gdl_node);

struct mrrc_gdl {
	struct mrrc_policy policy;
	struct mrrc_gdl_tree tree;     /* by value */
	struct mrrc_region_list list;  /* oldest use first */
	struct mrrc_region_list aside; /* regions in use when last seen */
	size_t count;
	const struct mrrc_cost *cost;
	struct mrrc_reuse learned;
	struct mrrc_ghosts ghosts;
	struct mrrc_shadow lru;
	uintptr_t start, end;		  /* range of the last request */
	const struct mrrc_region *victim; /* the last victim named */
	uint64_t now;			  /* pages registered so far */
	double floor;			  /* L */
	/* the estimate chose the victim, not LRU */
	bool by_estimate;
};

_Static_assert(sizeof(struct gdl_node) <=
		       sizeof(((struct mrrc_region *) NULL)->policy),
	       "policy words");

static struct mrrc_gdl *gdl_of(struct mrrc_policy *policy)
{
	return (struct mrrc_gdl *) policy;
}

static struct gdl_node *gdl_node(struct mrrc_region *region)
{
	return (struct gdl_node *) region->policy;
}

static struct mrrc_region *gdl_region(const struct gdl_node *node)
{
	return (struct mrrc_region *) ((char *) node -
				       offsetof(struct mrrc_region, policy));
}

static int gdl_cmp(struct gdl_node *a, struct gdl_node *b)
{
	const struct mrrc_region *x = gdl_region(a);
	const struct mrrc_region *y = gdl_region(b);

	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (int) x->access - (int) y->access;
}

#define MRRC_UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(mrrc_gdl_tree, gdl_node, node, gdl_cmp,
		      MRRC_UNUSED_STATIC)
RB_GENERATE_INTERNAL(mrrc_gdl_tree, gdl_node, node, gdl_cmp, MRRC_UNUSED_STATIC)

static int gdl_init(struct mrrc_policy *policy,
		    const struct mrrc_policy_attr *attr)
{
	struct mrrc_gdl *gdl = gdl_of(policy);
	int ret;

	RB_INIT(&gdl->tree);
	TAILQ_INIT(&gdl->list);
	TAILQ_INIT(&gdl->aside);
	gdl->cost = attr->cost;
	mrrc_reuse_init(&gdl->learned);
	ret = mrrc_ghosts_init(&gdl->ghosts, GHOSTS);
	if (ret || !policy->param[GDL_DUEL])
		return ret;
	ret = mrrc_shadow_init(&gdl->lru, gdl->cost, attr->max_bytes,
			       attr->max_regions);
	if (ret)
		mrrc_ghosts_fini(&gdl->ghosts);
	return ret;
}

static void gdl_fini(struct mrrc_policy *policy)
{
	struct mrrc_gdl *gdl = gdl_of(policy);

	if (policy->param[GDL_DUEL])
		mrrc_shadow_fini(&gdl->lru);
	mrrc_ghosts_fini(&gdl->ghosts);
}

/* The key of a page; never 0, which is no key: pages are counted from 1. */
static uint64_t gdl_key(const struct mrrc_gdl *gdl, uintptr_t addr)
{
	return addr / gdl->cost->page + 1;
}

static void gdl_request(struct mrrc_policy *policy, uintptr_t start, size_t len)
{
	struct mrrc_gdl *gdl = gdl_of(policy);
	const size_t mask = gdl->cost->page - 1;

	mrrc_reuse_request(&gdl->learned);
	gdl->start = start;
	gdl->end = (start + len + mask) & ~mask;
}

/*
 * Returns the address for the shadow cache. Each kind of access gets a separate
 * range, since each kind is registered separately.
 */
static uintptr_t gdl_shadow(const struct mrrc_region *region, uintptr_t addr)
{
	return addr + ((uintptr_t) region->access << 60);
}

/*
 * Compares with LRU, which serves the same part of the last request as @region
 * does: if LRU had lost the region, LRU would register that part alone.
 */
static void gdl_compare(struct mrrc_gdl *gdl, struct mrrc_region *region)
{
	uintptr_t start = region->start;
	uintptr_t end = mrrc_region_end(region);

	if (start < gdl->start)
		start = gdl->start;
	if (end > gdl->end)
		end = gdl->end;
	if (start < end)
		mrrc_shadow_use(&gdl->lru, gdl_shadow(region, start),
				end - start, false, &gdl_node(region)->shadow);
}

/* Judges a region: its value since its last use, by the present estimate. */
static void gdl_judge(const struct mrrc_gdl *gdl, struct gdl_node *node)
{
	node->used = false;
	node->priority = node->floor + mrrc_reuse_value(&gdl->learned,
							node->uses, node->here,
							node->weight);
}

/* Puts the region at the newest place, as if it was used now. */
static void gdl_place(struct mrrc_gdl *gdl, struct mrrc_region *region)
{
	struct gdl_node *node = gdl_node(region);

	node->aside = false;
	node->last = gdl->now;
	node->floor = gdl->floor;
	gdl_judge(gdl, node);
	RB_INSERT(mrrc_gdl_tree, &gdl->tree, node);
	TAILQ_INSERT_TAIL(&gdl->list, region, link);
}

static void gdl_unplace(struct mrrc_gdl *gdl, struct mrrc_region *region)
{
	if (gdl_node(region)->aside) {
		TAILQ_REMOVE(&gdl->aside, region, link);
		return;
	}
	RB_REMOVE(mrrc_gdl_tree, &gdl->tree, gdl_node(region));
	TAILQ_REMOVE(&gdl->list, region, link);
}

static void gdl_insert(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_gdl *gdl = gdl_of(policy);
	struct gdl_node *node = gdl_node(region);
	struct mrrc_ghost ghost = { 0 };

	gdl->now += mrrc_cost_pages(gdl->cost, region->len);
	if (mrrc_ghosts_take(&gdl->ghosts, gdl_key(gdl, region->start), &ghost))
		mrrc_reuse_again(&gdl->learned, ghost.uses,
				 gdl->now - ghost.last);
	*node = (struct gdl_node){
		.weight = mrrc_reuse_weight(gdl->cost, region->len),
		.uses = ghost.uses < MRRC_REUSE_USES ? ghost.uses + 1 :
						       MRRC_REUSE_USES,
	};
	mrrc_reuse_enter(&gdl->learned, node->uses);
	gdl_place(gdl, region);
	if (policy->param[GDL_DUEL])
		mrrc_shadow_use(&gdl->lru, gdl_shadow(region, region->start),
				region->len, true, &node->shadow);
	gdl->victim = NULL;
	gdl->count++;
}

/*
 * Marks the region as used last, but leaves it at its place in the tree: hits
 * are many, and the region is judged again before it is evicted.
 */
static void gdl_used(struct mrrc_gdl *gdl, struct mrrc_region *region)
{
	struct gdl_node *node = gdl_node(region);

	node->used = true;
	node->last = gdl->now;
	node->floor = gdl->floor;
	TAILQ_REMOVE(&gdl->list, region, link);
	TAILQ_INSERT_TAIL(&gdl->list, region, link);
}

static void gdl_touch(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_gdl *gdl = gdl_of(policy);
	struct gdl_node *node = gdl_node(region);

	mrrc_reuse_again(&gdl->learned, node->uses, gdl->now - node->last);
	if (node->uses < MRRC_REUSE_USES)
		node->uses++;
	node->here++;
	mrrc_reuse_enter(&gdl->learned, node->uses);
	if (node->aside) {
		gdl_unplace(gdl, region);
		gdl_place(gdl, region);
	} else {
		gdl_used(gdl, region);
	}
	if (policy->param[GDL_DUEL])
		gdl_compare(gdl, region);
}

static void gdl_remove(struct mrrc_policy *policy, struct mrrc_region *region)
{
	struct mrrc_gdl *gdl = gdl_of(policy);
	const struct gdl_node *node = gdl_node(region);

	gdl_unplace(gdl, region);
	mrrc_ghosts_put(&gdl->ghosts,
			&(struct mrrc_ghost){
				.key = gdl_key(gdl, region->start),
				.last = node->last,
				.uses = node->uses,
			});
	if (region == gdl->victim) {
		mrrc_reuse_leave(&gdl->learned, gdl->now - node->last);
		if (policy->param[GDL_DUEL])
			mrrc_shadow_evict(&gdl->lru,
					  gdl_shadow(region, region->start),
					  region->len);
		if (gdl->by_estimate && node->priority > gdl->floor)
			gdl->floor = node->priority;
	} else if (policy->param[GDL_DUEL]) {
		mrrc_shadow_forget(&gdl->lru, gdl_shadow(region, region->start),
				   region->len);
	}
	gdl->victim = NULL;
	gdl->count--;
}

static void gdl_set_aside(struct mrrc_gdl *gdl, struct mrrc_region *region)
{
	gdl_unplace(gdl, region);
	gdl_node(region)->aside = true;
	TAILQ_INSERT_TAIL(&gdl->aside, region, link);
}

/*
 * Examines the next @left regions of the list aside, and brings back the
 * regions that are no longer in use.
 */
static bool gdl_bring_back(struct mrrc_gdl *gdl, size_t left)
{
	struct mrrc_region *region;
	bool any = false;

	while (left-- && (region = TAILQ_FIRST(&gdl->aside))) {
		TAILQ_REMOVE(&gdl->aside, region, link);
		if (mrrc_region_held(region)) {
			TAILQ_INSERT_TAIL(&gdl->aside, region, link);
			continue;
		}
		gdl_place(gdl, region);
		any = true;
	}
	return any;
}

static struct mrrc_region *gdl_least(struct mrrc_gdl *gdl)
{
	struct gdl_node *node;
	struct mrrc_region *region;

	while ((node = RB_MIN(mrrc_gdl_tree, &gdl->tree)) && node->used) {
		RB_REMOVE(mrrc_gdl_tree, &gdl->tree, node);
		gdl_judge(gdl, node);
		RB_INSERT(mrrc_gdl_tree, &gdl->tree, node);
	}
	if (!node)
		return NULL;
	region = gdl_region(node);
	gdl->by_estimate = !gdl->policy.param[GDL_DUEL] ||
			   mrrc_shadow_affords(&gdl->lru, region->len);
	return gdl->by_estimate ? region : TAILQ_FIRST(&gdl->list);
}

static struct mrrc_region *gdl_victim(struct mrrc_policy *policy)
{
	struct mrrc_gdl *gdl = gdl_of(policy);
	struct mrrc_region *region;

	gdl_bring_back(gdl, PROBES);
	do {
		while ((region = gdl_least(gdl)) && mrrc_region_held(region))
			gdl_set_aside(gdl, region);
	} while (!region && gdl_bring_back(gdl, gdl->count));
	gdl->victim = region;
	return region;
}

static bool gdl_valid(const struct mrrc_policy *policy, size_t count)
{
	struct mrrc_gdl *gdl = gdl_of((struct mrrc_policy *) policy);
	const struct gdl_node *before = NULL;
	struct gdl_node *node;
	struct mrrc_region *region;
	size_t listed = 0;
	size_t seen = 0;

	RB_FOREACH(node, mrrc_gdl_tree, &gdl->tree) {
		if (gdl_region(node)->state != MRRC_REGION_INDEXED ||
		    !node->uses || node->aside ||
		    (before && before->priority > node->priority))
			return false;
		before = node;
		seen++;
	}
	TAILQ_FOREACH(region, &gdl->list, link)
		listed++;
	if (seen != listed)
		return false;
	TAILQ_FOREACH(region, &gdl->aside, link) {
		if (!gdl_node(region)->aside)
			return false;
		seen++;
	}
	if (policy->param[GDL_DUEL] && !mrrc_shadow_valid(&gdl->lru))
		return false;
	return seen == count && gdl->count == count;
}

const struct mrrc_policy_ops mrrc_policy_gdl_ops = {
	.name = "gdl",
	.help = "greedy-dual by learned worth, never much dearer than LRU",
	.pieces = 4,
	.batch = 16,
	.merge = 1,
	.size = sizeof(struct mrrc_gdl),
	.param = {
		{ "duel", "0: not compared with LRU", 1, 0, 1 },
	},
	.init = gdl_init,
	.fini = gdl_fini,
	.request = gdl_request,
	.insert = gdl_insert,
	.touch = gdl_touch,
	.remove = gdl_remove,
	.victim = gdl_victim,
	.valid = gdl_valid,
};
