/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traces in memory (trace.h).
 */
#include "config.h"
#include "sim/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_ROOM 1024 /* initial room, in requests */

int sim_trace_init(struct sim_trace *trace, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	*trace = (struct sim_trace){ .name = copy };
	return 0;
}

void sim_trace_fini(struct sim_trace *trace)
{
	free(trace->req);
	free(trace->name);
	*trace = (struct sim_trace){ 0 };
}

static int trace_grow(struct sim_trace *trace, size_t max)
{
	struct sim_req *req;
	size_t bytes;

	if (__builtin_mul_overflow(max, sizeof(*req), &bytes))
		return -ENOMEM;
	req = realloc(trace->req, bytes);
	if (!req)
		return -ENOMEM;
	trace->req = req;
	trace->max = max;
	return 0;
}

/* T2, computed without wrapping. */
static bool req_valid(const struct sim_req *req)
{
	return req->len && req->len <= SIM_ADDR_MAX &&
	       req->addr <= SIM_ADDR_MAX - req->len &&
	       req->access < SIM_ACCESS_CNT;
}

int sim_trace_append(struct sim_trace *trace, const struct sim_req *req)
{
	int ret;

	if (!req_valid(req))
		return -EINVAL;
	if (trace->count && req->time < trace->req[trace->count - 1].time)
		return -EINVAL;
	if (req->proc >= SIM_PROCS_MAX)
		return -E2BIG;
	if (trace->count >= SIM_REQ_MAX)
		return -EFBIG;
	if (trace->count == trace->max) {
		ret = trace_grow(trace,
				 trace->max ? trace->max * 2 : TRACE_ROOM);
		if (ret)
			return ret;
	}
	trace->req[trace->count++] = *req;
	if (req->proc >= trace->procs)
		trace->procs = req->proc + 1;
	return 0;
}

bool sim_trace_valid(const struct sim_trace *trace)
{
	uint32_t procs = 0;
	size_t i;

	for (i = 0; i < trace->count; i++) {
		if (i && trace->req[i].time < trace->req[i - 1].time)
			return false; /* T1 */
		if (!req_valid(&trace->req[i]))
			return false; /* T2 */
		if (trace->req[i].proc >= procs)
			procs = trace->req[i].proc + 1;
	}
	return procs == trace->procs && procs <= SIM_PROCS_MAX; /* T3 */
}

/* ---- footprint ----------------------------------------------------------- */

static int extent_cmp(const void *left, const void *right)
{
	const struct sim_extent *a = left, *b = right;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/*
 * Merges @next with the last of @cnt extents, or appends @next. Returns the
 * number of extents.
 */
static size_t extent_add(struct sim_extent *extent, size_t cnt,
			 const struct sim_extent *next)
{
	struct sim_extent *last = cnt ? &extent[cnt - 1] : NULL;

	if (last && next->proc == last->proc && next->start >= last->start &&
	    next->start <= last->end) {
		if (next->end > last->end)
			last->end = next->end;
		return cnt;
	}
	extent[cnt] = *next;
	return cnt + 1;
}

int sim_trace_extents(const struct sim_trace *trace, uint64_t page,
		      struct sim_extent **out, size_t *out_cnt)
{
	struct sim_extent *extent, next;
	size_t i, cnt = 0, merged = 0;
	const struct sim_req *req;

	if (!page || page > SIM_ADDR_MAX || (page & (page - 1)))
		return -EINVAL;
	extent = calloc(trace->count + 1, sizeof(*extent));
	if (!extent)
		return -ENOMEM;
	/* merge repetitions and continuations at once, to sort fewer extents */
	for (req = trace->req; req < trace->req + trace->count; req++) {
		next.start = req->addr & ~(page - 1);
		next.end = (req->addr + req->len + page - 1) & ~(page - 1);
		next.proc = req->proc;
		cnt = extent_add(extent, cnt, &next);
	}
	qsort(extent, cnt, sizeof(*extent), extent_cmp);
	for (i = 0; i < cnt; i++) {
		next = extent[i];
		merged = extent_add(extent, merged, &next);
	}
	*out = extent;
	*out_cnt = merged;
	return 0;
}

int sim_trace_footprint(const struct sim_trace *trace, uint64_t page,
			uint64_t *bytes)
{
	struct sim_extent *extent;
	uint64_t sum = 0;
	size_t i, cnt;
	int ret;

	ret = sim_trace_extents(trace, page, &extent, &cnt);
	if (ret)
		return ret;
	for (i = 0; i < cnt; i++) {
		if (__builtin_add_overflow(sum, extent[i].end - extent[i].start,
					   &sum))
			sum = UINT64_MAX;
	}
	free(extent);
	*bytes = sum;
	return 0;
}

/* ---- merge --------------------------------------------------------------- */

/*
 * Finds the trace whose next request comes first; at least one trace must have
 * requests left.
 */
static size_t merge_first(const struct sim_trace *const *traces, size_t cnt,
			  const size_t *at)
{
	size_t i, best = cnt;

	for (i = 0; i < cnt; i++) {
		if (at[i] == traces[i]->count)
			continue;
		if (best == cnt || traces[i]->req[at[i]].time <
					   traces[best]->req[at[best]].time)
			best = i;
	}
	return best;
}

static int merge_all(const struct sim_trace *const *traces, size_t cnt,
		     size_t *at, struct sim_trace *merged)
{
	struct sim_req req;
	size_t i, t, total = 0;
	uint32_t procs = 0;
	uint32_t *base;
	int ret = 0;

	base = calloc(cnt + 1, sizeof(*base));
	if (!base)
		return -ENOMEM;
	for (t = 0; t < cnt; t++) {
		base[t] = procs;
		procs += traces[t]->procs;
		merged->parallel += sim_trace_parallel(traces[t]);
		total += traces[t]->count;
		if (procs > SIM_PROCS_MAX) {
			ret = -E2BIG;
			goto out;
		}
	}
	for (i = 0; i < total && !ret; i++) {
		t = merge_first(traces, cnt, at);
		req = traces[t]->req[at[t]++];
		req.proc += base[t];
		ret = sim_trace_append(merged, &req);
	}
out:
	free(base);
	return ret;
}

static void merge_cost(const struct sim_trace *const *traces, size_t cnt,
		       struct sim_trace *merged)
{
	size_t most = 0, i;

	for (i = 0; i < cnt; i++) {
		if (!traces[i]->priced || traces[i]->count < most)
			continue;
		most = traces[i]->count;
		merged->priced = true;
		merged->cost = traces[i]->cost;
		merged->max_bytes = traces[i]->max_bytes;
		merged->max_regions = traces[i]->max_regions;
	}
}

int sim_trace_merge(const struct sim_trace *const *traces, size_t cnt,
		    const char *name, struct sim_trace *merged)
{
	struct sim_trace out;
	size_t *at;
	int ret;

	ret = sim_trace_init(&out, name);
	if (ret)
		return ret;
	at = calloc(cnt + 1, sizeof(*at));
	if (!at) {
		ret = -ENOMEM;
		goto err_fini;
	}
	ret = merge_all(traces, cnt, at, &out);
	free(at);
	if (ret)
		goto err_fini;
	merge_cost(traces, cnt, &out);
	*merged = out;
	return 0;

err_fini:
	sim_trace_fini(&out);
	return ret;
}
