/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Computes summaries of requests (summary.h).
 *
 * Reuse distance: a Fenwick tree has a mark at each buffer's latest request, so
 * the marks between two requests for a buffer are the other buffers. Overlap: a
 * tree has disjoint ranges, of the pages seen so far. The computations of reuse
 * and overlap take n log n steps, and leave out failed requests and invalid
 * ranges.
 */
#include "config.h"
#include "trace/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/tree.h>

const char *const trace_share_names[TRACE_SHARES] = {
	"none",	      "up to 25 %",    "up to 50 %",
	"up to 75 %", "less than all", "all",
};

/* A request's pages. */
struct buffer {
	uint64_t lo, hi; /* pages [lo, hi) */
	uint32_t proc;
	size_t at;     /* index of the request */
	size_t before; /* latest request of the same buffer; SIZE_MAX: none */
};

unsigned trace_log2(uint64_t number)
{
	return number ? 64 - __builtin_clzll(number) : 0;
}

uint64_t trace_log2_from(unsigned bucket)
{
	return bucket ? UINT64_C(1) << (bucket - 1) : 0;
}

/* ---- buffers ---- */

static int by_buffer(const void *left, const void *right)
{
	const struct buffer *a = left, *b = right;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static int by_place(const void *left, const void *right)
{
	const struct buffer *a = left, *b = right;

	return (a->at > b->at) - (a->at < b->at);
}

/* Fills in `before`; returns the number of different buffers. */
static uint64_t link_buffers(struct buffer *buffer, size_t count)
{
	uint64_t different = 0;
	size_t i;

	qsort(buffer, count, sizeof(*buffer), by_buffer);
	for (i = 0; i < count; i++) {
		buffer[i].before = SIZE_MAX;
		if (i && buffer[i].proc == buffer[i - 1].proc &&
		    buffer[i].lo == buffer[i - 1].lo &&
		    buffer[i].hi == buffer[i - 1].hi)
			buffer[i].before = buffer[i - 1].at;
		else
			different++;
	}
	qsort(buffer, count, sizeof(*buffer), by_place);
	return different;
}

/* ---- reuse ---- */

static void mark(uint32_t *tree, size_t count, size_t at, int by)
{
	for (at++; at <= count; at += at & -at)
		tree[at] += by;
}

/* Counts the marks before a place. */
static uint64_t marks(const uint32_t *tree, size_t at)
{
	uint64_t sum = 0;

	for (; at; at -= at & -at)
		sum += tree[at];
	return sum;
}

static int count_reuse(const struct buffer *buffer, size_t count,
		       struct trace_summary *summary)
{
	uint32_t *tree = calloc(count + 1, sizeof(*tree));
	uint64_t between;
	size_t i, before;

	if (!tree)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		before = buffer[i].before;
		if (before == SIZE_MAX) {
			summary->first++;
		} else {
			between = marks(tree, i) - marks(tree, before + 1);
			summary->reuse[trace_log2(between)]++;
			mark(tree, count, before, -1);
		}
		mark(tree, count, i, 1);
	}
	free(tree);
	return 0;
}

/* ---- overlap ---- */

struct range {
	uint64_t lo, hi;
	uint32_t proc;
	RB_ENTRY(range) node;
};

RB_HEAD(range_tree, range);

static int by_end(struct range *a, struct range *b)
{
	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	return (a->hi > b->hi) - (a->hi < b->hi);
}

#define UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(range_tree, range, node, by_end, UNUSED_STATIC)
RB_GENERATE_INTERNAL(range_tree, range, node, by_end, UNUSED_STATIC)

static unsigned share(uint64_t part, uint64_t whole)
{
	if (!part)
		return 0;
	if (part == whole)
		return TRACE_SHARES - 1;
	return (4 * part + whole - 1) / whole;
}

/*
 * Adds a range to the tree, merged with the ranges that the new range touches;
 * returns the number of bytes that were in the tree already.
 */
static uint64_t add_range(struct range_tree *tree, struct range *range)
{
	const uint64_t lo = range->lo, hi = range->hi;
	struct range key = { .proc = range->proc, .hi = lo };
	struct range *at, *next;
	uint64_t from, to, seen = 0;

	for (at = RB_NFIND(range_tree, tree, &key);
	     at && at->proc == range->proc && at->lo <= hi; at = next) {
		next = RB_NEXT(range_tree, tree, at);
		from = at->lo > lo ? at->lo : lo;
		to = at->hi < hi ? at->hi : hi;
		seen += to - from;
		if (at->lo < range->lo)
			range->lo = at->lo;
		if (at->hi > range->hi)
			range->hi = at->hi;
		RB_REMOVE(range_tree, tree, at);
	}
	RB_INSERT(range_tree, tree, range);
	return seen;
}

static int count_overlap(const struct buffer *buffer, size_t count,
			 uint64_t page, struct trace_summary *summary)
{
	struct range_tree tree = RB_INITIALIZER(&tree);
	struct range *range = calloc(count + 1, sizeof(*range));
	uint64_t seen, all = 0;
	size_t i;

	if (!range)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		range[i].lo = buffer[i].lo;
		range[i].hi = buffer[i].hi;
		range[i].proc = buffer[i].proc;
		seen = add_range(&tree, &range[i]);
		summary->overlap[share(seen, buffer[i].hi - buffer[i].lo)]++;
		all += buffer[i].hi - buffer[i].lo - seen;
	}
	if (__builtin_mul_overflow(all, page, &summary->footprint))
		summary->footprint = UINT64_MAX;
	free(range);
	return 0;
}

/* ---- the rest ---- */

static int by_number(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *) left;
	const uint64_t b = *(const uint64_t *) right;

	return (a > b) - (a < b);
}

static uint64_t different(uint64_t *number, size_t count)
{
	uint64_t sum = 0;
	size_t i;

	qsort(number, count, sizeof(*number), by_number);
	for (i = 0; i < count; i++)
		sum += !i || number[i] != number[i - 1];
	return sum;
}

static int count_different(const struct trace_records *records,
			   struct trace_summary *summary)
{
	const size_t count = records->count;
	uint64_t *number = calloc(count + 1, sizeof(*number));
	const struct sim_rec *rec = records->rec;
	size_t i;

	if (!number)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		number[i] = rec[i].rec.thread;
	summary->threads = different(number, count);
	for (i = 0; i < count; i++)
		number[i] = rec[i].rec.site;
	summary->sites = different(number, count);
	for (i = 0; i < count; i++)
		number[i] = rec[i].proc;
	summary->procs = different(number, count);
	for (i = 0; i < count; i++)
		number[i] = rec[i].rec.peer << 2 | mrrc_trace_peer(&rec[i].rec);
	summary->peers = different(number, count);
	free(number);
	return 0;
}

static void count_one(const struct mrrc_trace_rec *rec,
		      struct trace_summary *summary)
{
	const enum mrrc_trace_result result = mrrc_trace_result(rec);

	summary->requests++;
	if (__builtin_add_overflow(summary->bytes, rec->len, &summary->bytes))
		summary->bytes = UINT64_MAX;
	summary->count[rec->op][result]++;
	summary->size[trace_log2(rec->len)]++;
	if (rec->end >= rec->begin) {
		summary->ended++;
		summary->held_ns += (double) (rec->end - rec->begin);
	}
	if (result == MRRC_TRACE_HIT)
		return;
	summary->priced++;
	summary->cost_ns += (double) rec->cost;
	if (rec->cost > summary->cost_max)
		summary->cost_max = rec->cost;
}

int trace_summary(const struct trace_records *records,
		  struct trace_summary *summary)
{
	const struct sim_rec *rec = records->rec;
	struct buffer *buffer;
	size_t i, count = 0;
	int ret;

	*summary = (struct trace_summary){ 0 };
	buffer = calloc(records->count + 1, sizeof(*buffer));
	if (!buffer)
		return -ENOMEM;
	for (i = 0; i < records->count; i++) {
		count_one(&rec[i].rec, summary);
		if (mrrc_trace_result(&rec[i].rec) == MRRC_TRACE_FAILED ||
		    !rec[i].rec.len ||
		    rec[i].rec.addr > UINT64_MAX - rec[i].rec.len)
			continue;
		buffer[count] = (struct buffer){
			.lo = rec[i].rec.addr / records->page,
			.hi = (rec[i].rec.addr + rec[i].rec.len - 1) /
				      records->page +
			      1,
			.proc = rec[i].proc,
			.at = count,
		};
		count++;
	}
	if (records->count)
		summary->ns =
			rec[records->count - 1].rec.begin - rec[0].rec.begin;
	summary->buffers = link_buffers(buffer, count);
	ret = count_reuse(buffer, count, summary);
	if (!ret)
		ret = count_overlap(buffer, count, records->page, summary);
	if (!ret)
		ret = count_different(records, summary);
	free(buffer);
	return ret;
}
