/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traces in memory (trace.h).
 */
#include "config.h"
#include "sim/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_ROOM 1024 /* requests, at first */

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

/* T2, written so that nothing can wrap. */
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

struct trace_range {
	uint64_t start, end;
	uint32_t proc;
};

static int range_cmp(const void *left, const void *right)
{
	const struct trace_range *a = left, *b = right;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* Bytes in the union of sorted ranges. */
static uint64_t ranges_union(const struct trace_range *range, size_t cnt)
{
	uint64_t sum = 0, start, end = 0;
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (!i || range[i].proc != range[i - 1].proc)
			end = 0;
		start = range[i].start > end ? range[i].start : end;
		if (range[i].end <= start)
			continue;
		end = range[i].end;
		if (__builtin_add_overflow(sum, end - start, &sum))
			return UINT64_MAX;
	}
	return sum;
}

int sim_trace_footprint(const struct sim_trace *trace, uint64_t page,
			uint64_t *bytes)
{
	struct trace_range *range, *last;
	const struct sim_req *req;
	size_t cnt = 0;

	if (!page || page > SIM_ADDR_MAX || (page & (page - 1)))
		return -EINVAL;
	if (!trace->count) {
		*bytes = 0;
		return 0;
	}
	range = calloc(trace->count, sizeof(*range));
	if (!range)
		return -ENOMEM;
	for (req = trace->req; req < trace->req + trace->count; req++) {
		last = &range[cnt];
		last->start = req->addr & ~(page - 1);
		last->end = (req->addr + req->len + page - 1) & ~(page - 1);
		last->proc = req->proc;
		/* a repetition or a continuation need not be sorted */
		if (cnt && last->proc == last[-1].proc &&
		    last->start >= last[-1].start &&
		    last->start <= last[-1].end) {
			if (last->end > last[-1].end)
				last[-1].end = last->end;
			continue;
		}
		cnt++;
	}
	qsort(range, cnt, sizeof(*range), range_cmp);
	*bytes = ranges_union(range, cnt);
	free(range);
	return 0;
}

/* ---- merge --------------------------------------------------------------- */

/* The trace whose next request comes first; there is one. */
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
