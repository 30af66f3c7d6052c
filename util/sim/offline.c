/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Implements Belady's rule with costs, and the lower bound of costs
 * (offline.h).
 *
 * Judging every region for every victim would take too long: a round judges all
 * regions, and the worst regions wait at the head of the list, in order, until
 * they are evicted or used.
 */
#include "config.h"
#include "sim/offline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_PART 32 /* one region in 32 waits after a round */

/* State that the caches of a run's processes share. */
struct sim_offline {
	const struct sim_future *future;
	struct sim_span *span; /* children of i: 2 * i, 2 * i + 1 */
	size_t leaves;
	size_t now;
	int error;
	uint32_t proc; /* process whose cache is opened next */
};

/* A span of parts, halved by its children; the root is span 1. */
struct sim_span {
	uint32_t soonest; /* soonest next use of any part of the span */
	/* all parts have the same next use: children are stale */
	bool same;
};

struct sim_belady {
	struct mrrc_policy policy;
	/* waiting regions, then the other regions */
	struct mrrc_region_list list;
	struct sim_offline *offline;
	const struct mrrc_cost *cost;
	uint32_t proc;
	size_t count;
	size_t waiting;
	struct sim_judged *judged; /* room for a round */
	size_t room;
};

/* The words of a region that the heuristic uses. */
struct sim_node {
	uint32_t first; /* first of its parts */
	uint32_t parts;
	uint32_t soonest; /* next use of any part, unless the use has passed */
	bool waits;
};

struct sim_judged {
	double score;
	struct mrrc_region *region;
};

_Static_assert(sizeof(struct sim_node) <=
		       sizeof(((struct mrrc_region *) NULL)->policy),
	       "policy words");

static struct sim_belady *sim_belady_of(struct mrrc_policy *policy)
{
	return (struct sim_belady *) policy;
}

static struct sim_node *sim_node(struct mrrc_region *region)
{
	return (struct sim_node *) region->policy;
}

struct sim_offline *sim_offline_open(const struct sim_future *future)
{
	struct sim_offline *offline = calloc(1, sizeof(*offline));

	if (!offline)
		return NULL;
	offline->future = future;
	for (offline->leaves = 1; offline->leaves < future->parts;)
		offline->leaves *= 2;
	offline->span = malloc(2 * offline->leaves * sizeof(*offline->span));
	if (!offline->span) {
		free(offline);
		return NULL;
	}
	offline->span[1] = (struct sim_span){ SIM_NEVER, true };
	return offline;
}

void sim_offline_close(struct sim_offline *offline)
{
	if (!offline)
		return;
	free(offline->span);
	free(offline);
}

/*
 * Sets the next use of parts [from, to); span i has the parts [lo, lo + len).
 */
static void sim_span_set(struct sim_span *span, size_t i, size_t lo, size_t len,
			 size_t from, size_t to, uint32_t next)
{
	struct sim_span *left = &span[2 * i], *right = left + 1;

	if (to <= lo || lo + len <= from)
		return;
	if (from <= lo && lo + len <= to) {
		span[i] = (struct sim_span){ next, true };
		return;
	}
	if (span[i].same)
		*left = *right = span[i];
	sim_span_set(span, 2 * i, lo, len / 2, from, to, next);
	sim_span_set(span, 2 * i + 1, lo + len / 2, len / 2, from, to, next);
	span[i] = (struct sim_span){
		left->soonest < right->soonest ? left->soonest : right->soonest,
		false,
	};
}

static uint32_t sim_span_soonest(const struct sim_span *span, size_t i,
				 size_t lo, size_t len, size_t from, size_t to)
{
	uint32_t left, right;

	/* go down to parts that differ: few regions have more than one part */
	while (!span[i].same && (lo < from || to < lo + len)) {
		len /= 2;
		i *= 2;
		if (from >= lo + len) {
			lo += len;
			i++;
		} else if (to > lo + len) {
			left = sim_span_soonest(span, i, lo, len, from,
						lo + len);
			right = sim_span_soonest(span, i + 1, lo + len, len,
						 lo + len, to);
			return left < right ? left : right;
		}
	}
	return span[i].soonest;
}

void sim_offline_now(struct sim_offline *offline, size_t now)
{
	const struct sim_future *future = offline->future;
	size_t k;

	for (k = future->at[now]; k < future->at[now + 1]; k++)
		sim_span_set(offline->span, 1, 0, offline->leaves,
			     future->stretch[k].part,
			     sim_stretch_end(future, now, k),
			     future->stretch[k].next);
	offline->now = now;
}

int sim_offline_error(const struct sim_offline *offline)
{
	return offline->error;
}

void sim_offline_proc(struct sim_offline *offline, uint32_t proc)
{
	offline->proc = proc;
}

static int sim_belady_init(struct mrrc_policy *policy,
			   const struct mrrc_policy_attr *attr)
{
	struct sim_belady *belady = sim_belady_of(policy);

	TAILQ_INIT(&belady->list);
	belady->offline = attr->arg;
	belady->cost = attr->cost;
	belady->proc = belady->offline->proc;
	return 0;
}

static void sim_belady_fini(struct mrrc_policy *policy)
{
	free(sim_belady_of(policy)->judged);
}

/* Finds the first part that begins at addr or later. */
static size_t sim_part(const struct sim_belady *belady, uintptr_t addr)
{
	const struct sim_future *future = belady->offline->future;
	const uint64_t key = (uint64_t) belady->proc << SIM_PROC_SHIFT |
			     addr / future->page;
	size_t lo = 0;
	size_t hi = future->parts;
	size_t mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (future->part[mid] < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void sim_belady_insert(struct mrrc_policy *policy,
			      struct mrrc_region *region)
{
	struct sim_belady *belady = sim_belady_of(policy);
	const size_t first = sim_part(belady, region->start);
	const size_t end = sim_part(belady, mrrc_region_end(region));

	*sim_node(region) = (struct sim_node){ first, end - first, 0, false };
	TAILQ_INSERT_TAIL(&belady->list, region, link);
	belady->count++;
}

static void sim_belady_leave(struct sim_belady *belady,
			     struct mrrc_region *region)
{
	TAILQ_REMOVE(&belady->list, region, link);
	belady->waiting -= sim_node(region)->waits;
	sim_node(region)->waits = false;
}

static void sim_belady_touch(struct mrrc_policy *policy,
			     struct mrrc_region *region)
{
	struct sim_belady *belady = sim_belady_of(policy);

	sim_belady_leave(belady, region);
	TAILQ_INSERT_TAIL(&belady->list, region, link);
}

static void sim_belady_remove(struct mrrc_policy *policy,
			      struct mrrc_region *region)
{
	struct sim_belady *belady = sim_belady_of(policy);

	sim_belady_leave(belady, region);
	belady->count--;
}

/* Judges a region: the higher the score, the sooner it is evicted. */
static double sim_score(const struct sim_belady *belady,
			struct mrrc_region *region)
{
	const struct sim_offline *offline = belady->offline;
	struct sim_node *node = sim_node(region);
	const double cost = mrrc_cost_reg(belady->cost, region->len) +
			    mrrc_cost_dereg(belady->cost, region->len);

	if (node->soonest <= offline->now)
		node->soonest = !node->parts ?
					SIM_NEVER :
					sim_span_soonest(offline->span, 1, 0,
							 offline->leaves,
							 node->first,
							 (size_t) node->first +
								 node->parts);
	if (node->soonest == SIM_NEVER)
		return 1e300;
	return (double) (node->soonest - offline->now) * (double) region->len /
	       cost;
}

static int sim_judged_compare(const void *a, const void *b)
{
	const struct sim_judged *x = a;
	const struct sim_judged *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return (x->region->start > y->region->start) -
	       (x->region->start < y->region->start);
}

/* Finds the first region that is not in use, without a judgement. */
static struct mrrc_region *sim_any(const struct sim_belady *belady)
{
	struct mrrc_region *region;

	TAILQ_FOREACH(region, &belady->list, link) {
		if (!mrrc_region_held(region))
			break;
	}
	return region;
}

/*
 * Judges all regions that are not in use. Returns false if all regions are in
 * use, or if memory cannot be allocated.
 */
static bool sim_round(struct sim_belady *belady)
{
	struct sim_judged *judged = belady->judged;
	struct mrrc_region *region;
	size_t n = 0;
	size_t i;

	if (belady->count > belady->room) {
		judged = realloc(judged, 2 * belady->count * sizeof(*judged));
		if (!judged) {
			belady->offline->error = -ENOMEM;
			return false;
		}
		belady->judged = judged;
		belady->room = 2 * belady->count;
	}
	TAILQ_FOREACH(region, &belady->list, link) {
		if (!mrrc_region_held(region))
			judged[n++] = (struct sim_judged){
				sim_score(belady, region),
				region,
			};
	}
	if (!n)
		return false;
	qsort(judged, n, sizeof(*judged), sim_judged_compare);
	for (i = n / ROUND_PART + 1; i-- > 0;) {
		region = judged[i].region;
		sim_belady_leave(belady, region);
		TAILQ_INSERT_HEAD(&belady->list, region, link);
		sim_node(region)->waits = true;
		belady->waiting++;
	}
	return true;
}

static struct mrrc_region *sim_belady_victim(struct mrrc_policy *policy)
{
	struct sim_belady *belady = sim_belady_of(policy);
	struct mrrc_region *region;

	while (belady->waiting || sim_round(belady)) {
		region = TAILQ_FIRST(&belady->list);
		if (!mrrc_region_held(region))
			return region;
		sim_belady_touch(policy, region);
	}
	return sim_any(belady);
}

static bool sim_belady_valid(const struct mrrc_policy *policy, size_t count)
{
	return ((const struct sim_belady *) policy)->count == count;
}

const struct mrrc_policy_ops sim_offline_ops = {
	.name = "offline",
	.help = "knows the future",
	.pieces = 4,
	.batch = 16,
	.size = sizeof(struct sim_belady),
	.init = sim_belady_init,
	.fini = sim_belady_fini,
	.insert = sim_belady_insert,
	.touch = sim_belady_touch,
	.remove = sim_belady_remove,
	.victim = sim_belady_victim,
	.valid = sim_belady_valid,
};

/* ---- the bound ---- */

/* One reuse of a stretch, which a cache might have kept until that use. */
struct sim_reuse {
	/* ns saved, for each page and each request during which it is kept */
	double density;
	double room; /* pages times requests */
};

static int sim_reuse_compare(const void *a, const void *b)
{
	const struct sim_reuse *x = a;
	const struct sim_reuse *y = b;

	return (x->density < y->density) - (x->density > y->density);
}

static double sim_request_pages(const struct sim_future *future, size_t i)
{
	const struct sim_req *req = &future->trace->req[i];

	return (double) ((req->addr + req->len - 1) / future->page -
			 req->addr / future->page + 1);
}

/* Prices by which all requests are judged. */
struct sim_price {
	double page, call; /* price of registering and deregistering */
	bool copy;	   /* requests may be copied where that is cheaper */
	const struct mrrc_cost *cost;
};

/* The minimum cost of a page of a request, if the page is not cached. */
static double sim_price(const struct sim_future *future,
			const struct sim_price *price, size_t i)
{
	const double pages = sim_request_pages(future, i);
	const double reg = price->page + price->call / pages;
	const double copy =
		mrrc_cost_copy(price->cost, future->trace->req[i].len) / pages;

	return price->copy && copy < reg ? copy : reg;
}

/* Lists all reuses; returns their number. */
static size_t sim_reuses(const struct sim_future *future,
			 const struct sim_price *price, struct sim_reuse *reuse)
{
	const size_t count = future->trace->count;
	uint64_t pages;
	size_t n = 0;
	size_t i, k;
	uint32_t next;

	for (i = 0; i < count; i++) {
		for (k = future->at[i]; k < future->at[i + 1]; k++) {
			next = future->stretch[k].next;
			if (next == SIM_NEVER)
				continue;
			pages = future->part[sim_stretch_end(future, i, k)] -
				future->part[future->stretch[k].part];
			reuse[n].density =
				sim_price(future, price, next) / (next - i);
			reuse[n++].room = (double) pages * (next - i);
		}
	}
	return n;
}

int sim_bound(const struct sim_future *future, const struct mrrc_cost *cost,
	      size_t max_bytes, bool bounce, double *ns)
{
	const size_t count = future->trace->count;
	const double scale = (double) future->page / cost->page;
	const struct sim_price price = {
		.page = (cost->reg_page + cost->dereg_page) * scale,
		.call = cost->reg + (cost->batch ? 0 : cost->dereg),
		.copy = bounce && cost->copy_page > 0,
		.cost = cost,
	};
	/* each process has a cache */
	const double capacity =
		(double) max_bytes / future->page * future->trace->procs;
	struct sim_reuse *reuse;
	double room = capacity * count;
	double total = 0;
	double part;
	size_t n, i;

	reuse = malloc((future->at[count] + 1) * sizeof(*reuse));
	if (!reuse)
		return -ENOMEM;
	n = sim_reuses(future, &price, reuse);
	qsort(reuse, n, sizeof(*reuse), sim_reuse_compare);
	for (i = 0; i < count; i++)
		total += sim_price(future, &price, i) *
			 sim_request_pages(future, i);
	for (i = 0; i < n && room > 0; i++) {
		part = reuse[i].room < room ? reuse[i].room : room;
		total -= reuse[i].density * part;
		room -= part;
	}
	/* regions that are left at the end are not deregistered */
	total -= capacity *
		 (cost->dereg_page * scale + (cost->batch ? 0 : cost->dereg));
	*ns = total > 0 ? total : 0;
	free(reuse);
	return 0;
}
