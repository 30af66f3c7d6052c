/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parts of memory and their next uses (offline.h).
 *
 * Every request cuts memory at its first and after its last page; the cuts
 * in order are the starts of the parts. Going through the requests from the
 * last to the first then tells when each part is used next.
 */
#include "config.h"
#include "sim/offline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>


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

/* The index of a cut. */
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

/* Where the parts of each request are. */
static int sim_future_place(struct sim_future *future)
{
	const struct sim_trace *trace = future->trace;
	const struct sim_req *req;
	uint64_t end;
	size_t i;

	future->first = malloc(trace->count * sizeof(uint32_t));
	future->at = malloc((trace->count + 1) * sizeof(size_t));
	if (!future->first || !future->at)
		return -ENOMEM;
	future->at[0] = 0;
	for (i = 0; i < trace->count; i++) {
		req = &trace->req[i];
		end = sim_key(req, (req->addr + req->len - 1) / future->page +
			      1);
		future->first[i] = sim_future_find(
			future, sim_key(req, req->addr / future->page));
		future->at[i + 1] = future->at[i] +
				    sim_future_find(future, end) -
				    future->first[i];
	}
	return 0;
}

static int sim_future_chain(struct sim_future *future)
{
	const size_t count = future->trace->count;
	uint32_t *seen;
	size_t i, k;
	uint32_t *part;

	future->next = malloc(future->at[count] * sizeof(uint32_t));
	seen = malloc(future->parts * sizeof(uint32_t));
	if (!future->next || !seen) {
		free(seen);
		return -ENOMEM;
	}
	memset(seen, 0xff, future->parts * sizeof(uint32_t));
	for (i = count; i-- > 0;) {
		part = &seen[future->first[i]];
		for (k = future->at[i]; k < future->at[i + 1]; k++, part++) {
			future->next[k] = *part;
			*part = i;
		}
	}
	free(seen);
	return 0;
}

int sim_future_make(const struct sim_trace *trace, size_t page,
		    struct sim_future *future)
{
	int rc;

	*future = (struct sim_future) { .trace = trace, .page = page };
	rc = sim_future_cut(future);
	if (!rc)
		rc = sim_future_place(future);
	if (!rc)
		rc = sim_future_chain(future);
	if (rc)
		sim_future_free(future);
	return rc;
}

void sim_future_free(struct sim_future *future)
{
	free(future->part);
	free(future->first);
	free(future->at);
	free(future->next);
	*future = (struct sim_future) { 0 };
}
