/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffers, threads and ends of a trace (timeline.h).
 */
#include "config.h"
#include "sim/timeline.h"

#include <errno.h>
#include <stdlib.h>

#define NS_MAX (UINT64_C(1) << 60)

/* Requests with equal labels belong to one buffer, or to one thread. */
struct label {
	uint64_t high, low;
	uint32_t request;
};

static int by_label(const void *left, const void *right)
{
	const struct label *a = left, *b = right;

	if (a->high != b->high)
		return a->high < b->high ? -1 : 1;
	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return (a->request > b->request) - (a->request < b->request);
}

/* Numbers the labels from 0, by request; returns the number of labels. */
static size_t number(struct label *label, size_t count, uint32_t *number)
{
	size_t n = 0, i;

	qsort(label, count, sizeof(*label), by_label);
	for (i = 0; i < count; i++) {
		n += i && (label[i].high != label[i - 1].high ||
			   label[i].low != label[i - 1].low);
		number[label[i].request] = n;
	}
	return n + 1;
}

static int find_labels(struct sim_timeline *timeline)
{
	const struct sim_req *req = timeline->future->trace->req;
	const size_t count = timeline->future->trace->count;
	struct label *label = calloc(count, sizeof(*label));
	size_t i;

	if (!label)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		label[i] = (struct label){ req[i].proc, req[i].thread, i };
	timeline->threads = number(label, count, timeline->thread);
	for (i = 0; i < count; i++)
		label[i] = (struct label){ timeline->future->first[i], 0, i };
	timeline->buffers = number(label, count, timeline->buffer);
	free(label);
	return 0;
}

/*
 * Links the requests of each buffer, from the last request to the first, so
 * that the next use of each request's buffer is known.
 */
static int find_uses(struct sim_timeline *timeline)
{
	const size_t count = timeline->future->trace->count;
	uint32_t *first;
	size_t i;

	timeline->first = malloc(timeline->buffers * sizeof(uint32_t));
	if (!timeline->first)
		return -ENOMEM;
	for (i = 0; i < timeline->buffers; i++)
		timeline->first[i] = SIM_NEVER;
	for (i = count; i-- > 0;) {
		first = &timeline->first[timeline->buffer[i]];
		timeline->next[i] = *first;
		*first = i;
	}
	return 0;
}

static int by_ns(const void *left, const void *right)
{
	const struct sim_ending *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->request > b->request) - (a->request < b->request);
}

/*
 * Lists the times at which requests stop holding their buffers, if the time that
 * a request holds its buffer is known and no longer than the trace.
 */
static void find_endings(struct sim_timeline *timeline)
{
	const struct sim_trace *trace = timeline->future->trace;
	struct sim_ending *ending = timeline->ending;
	uint64_t held;
	size_t i;

	for (i = 0; i < trace->count; i++) {
		held = trace->req[i].held;
		if (!held || held > timeline->end_ns / 1000)
			continue;
		*ending++ = (struct sim_ending){
			sim_timeline_ns(timeline, i) + held * 1000,
			i,
		};
	}
	timeline->endings = ending - timeline->ending;
	qsort(timeline->ending, timeline->endings, sizeof(*ending), by_ns);
}

int sim_timeline_make(const struct sim_future *future,
		      struct sim_timeline *timeline)
{
	const struct sim_trace *trace = future->trace;
	const uint64_t us =
		trace->req[trace->count - 1].time - trace->req[0].time;
	int ret = -ENOMEM;

	if (us > NS_MAX / 1000)
		return -E2BIG;
	*timeline = (struct sim_timeline){
		.future = future,
		.end_ns = us * 1000,
		.buffer = calloc(trace->count, sizeof(uint32_t)),
		.next = calloc(trace->count, sizeof(uint32_t)),
		.thread = calloc(trace->count, sizeof(uint32_t)),
		.ending = calloc(trace->count, sizeof(struct sim_ending)),
	};
	if (timeline->buffer && timeline->next && timeline->thread &&
	    timeline->ending)
		ret = find_labels(timeline);
	if (!ret)
		ret = find_uses(timeline);
	if (!ret)
		find_endings(timeline);
	else
		sim_timeline_free(timeline);
	return ret;
}

void sim_timeline_free(struct sim_timeline *timeline)
{
	free(timeline->buffer);
	free(timeline->next);
	free(timeline->thread);
	free(timeline->first);
	free(timeline->ending);
	*timeline = (struct sim_timeline){ 0 };
}
