/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds parts of memory and their next uses (offline.h).
 *
 * Every request cuts memory at its first and after its last page; the cuts in
 * order are the starts of the parts. A pass over the requests from the last to
 * the first then finds the next use of each part. A request makes one stretch
 * of parts that have the same next use, and cuts at most two stretches: so a
 * request has about three stretches, whatever its number of parts.
 */
#include "config.h"
#include "sim/offline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/tree.h>

static uint64_t sim_key(const struct sim_req *req, uint64_t page)
{
	return (uint64_t) req->proc << SIM_PROC_SHIFT | page;
}

static int sim_compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *) a;
	const uint64_t y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* Finds the index of a cut. */
static size_t sim_future_find(const struct sim_future *future, uint64_t key)
{
	size_t lo = 0;
	size_t hi = future->parts;
	size_t mid;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (future->part[mid] <= key)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static int sim_future_cut(struct sim_future *future)
{
	const struct sim_trace *trace = future->trace;
	const struct sim_req *req;
	uint64_t last;
	size_t n = 0;
	size_t i;

	if (trace->count >= SIM_NEVER / 2)
		return -E2BIG;
	future->part = malloc((2 * trace->count + 1) * sizeof(uint64_t));
	if (!future->part)
		return -ENOMEM;
	for (i = 0; i < trace->count; i++) {
		req = &trace->req[i];
		last = (req->addr + req->len - 1) / future->page;
		if ((last + 1) >> SIM_PROC_SHIFT)
			return -E2BIG;
		future->part[n++] = sim_key(req, req->addr / future->page);
		future->part[n++] = sim_key(req, last + 1);
	}
	qsort(future->part, n, sizeof(uint64_t), sim_compare);
	for (i = 0; i < n; i++) {
		if (!i || future->part[i] != future->part[future->parts - 1])
			future->part[future->parts++] = future->part[i];
	}
	return 0;
}

/* Finds the parts of each request. */
static int sim_future_place(struct sim_future *future)
{
	const struct sim_trace *trace = future->trace;
	const struct sim_req *req;
	uint64_t end;
	size_t i;

	future->first = malloc(trace->count * sizeof(uint32_t));
	future->end = malloc(trace->count * sizeof(uint32_t));
	if (!future->first || !future->end)
		return -ENOMEM;
	for (i = 0; i < trace->count; i++) {
		req = &trace->req[i];
		end = sim_key(req,
			      (req->addr + req->len - 1) / future->page + 1);
		future->first[i] =
			sim_future_find(future,
					sim_key(req, req->addr / future->page));
		future->end[i] = sim_future_find(future, end);
	}
	return 0;
}

/* ---- stretches ---- */

/* A stretch of the next uses known so far, ordered by its first part. */
struct node {
	RB_ENTRY(node) link;
	uint32_t next;
};

RB_HEAD(tree, node);

static int by_part(struct node *a, struct node *b)
{
	return (a > b) - (a < b);
}

#define UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(tree, node, link, by_part, UNUSED_STATIC)
RB_GENERATE_INTERNAL(tree, node, link, by_part, UNUSED_STATIC)

/* Finds the stretch that contains a part. */
static struct node *tree_at(const struct tree *tree, const struct node *part)
{
	struct node *node = RB_ROOT(tree), *found = NULL;

	while (node) {
		if (node <= part)
			found = node;
		node = node <= part ? RB_RIGHT(node, link) :
				      RB_LEFT(node, link);
	}
	return found;
}

static void tree_begin(struct tree *tree, struct node *part, uint32_t next)
{
	part->next = next;
	RB_INSERT(tree, tree, part);
}

/* Begins a stretch at a part. */
static void tree_cut(struct tree *tree, struct node *part)
{
	const struct node *in = tree_at(tree, part);

	if (in != part)
		tree_begin(tree, part, in->next);
}

static int add_stretch(struct sim_future *future, size_t *count, size_t *max,
		       uint32_t part, uint32_t next)
{
	struct sim_stretch *more;

	if (*count == *max) {
		*max = *max ? 2 * *max : 1024;
		more = reallocarray(future->stretch, *max, sizeof(*more));
		if (!more)
			return -ENOMEM;
		future->stretch = more;
	}
	future->stretch[(*count)++] = (struct sim_stretch){ part, next };
	return 0;
}

/*
 * Reverses the order of stretches, since the last request's last stretch was
 * added first.
 */
static void turn_round(struct sim_future *future, size_t total)
{
	struct sim_stretch *lo = future->stretch, *hi = lo + total, swap;
	size_t i;

	while (lo < hi) {
		swap = *lo;
		*lo++ = *--hi;
		*hi = swap;
	}
	future->at[0] = 0;
	for (i = 0; i < future->trace->count; i++)
		future->at[i + 1] += future->at[i];
}

static int sim_future_chain(struct sim_future *future)
{
	const size_t count = future->trace->count;
	struct tree tree = RB_INITIALIZER(&tree);
	struct node *node, *before, *from;
	size_t total = 0, max = 0, i;
	int ret = 0;

	future->at = calloc(count + 1, sizeof(size_t));
	node = calloc(future->parts + 1, sizeof(*node));
	if (!future->at || !node) {
		free(node);
		return -ENOMEM;
	}
	tree_begin(&tree, node, SIM_NEVER);
	for (i = count; !ret && i-- > 0;) {
		tree_cut(&tree, &node[future->first[i]]);
		tree_cut(&tree, &node[future->end[i]]);
		from = tree_at(&tree, &node[future->end[i] - 1]);
		for (; !ret && from && from >= &node[future->first[i]];
		     from = before) {
			ret = add_stretch(future, &total, &max, from - node,
					  from->next);
			future->at[i + 1]++;
			before = RB_PREV(tree, &tree, from);
			RB_REMOVE(tree, &tree, from);
		}
		tree_begin(&tree, &node[future->first[i]], i);
	}
	free(node);
	if (!ret)
		turn_round(future, total);
	return ret;
}

int sim_future_make(const struct sim_trace *trace, size_t page,
		    struct sim_future *future)
{
	int ret;

	*future = (struct sim_future){ .trace = trace, .page = page };
	ret = sim_future_cut(future);
	if (!ret)
		ret = sim_future_place(future);
	if (!ret)
		ret = sim_future_chain(future);
	if (ret)
		sim_future_free(future);
	return ret;
}

void sim_future_free(struct sim_future *future)
{
	free(future->part);
	free(future->first);
	free(future->end);
	free(future->at);
	free(future->stretch);
	*future = (struct sim_future){ 0 };
}
