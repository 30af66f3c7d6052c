/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data of a trace that all runs of helper.h share: the requests of each
 * buffer and each thread, and the ends of operations.
 */
#ifndef SIM_TIMELINE_H
#define SIM_TIMELINE_H

#include "sim/offline.h"

struct sim_ending {
	uint64_t ns; /* time from the first request */
	uint32_t request;
};

struct sim_timeline {
	const struct sim_future *future;
	/* time of the last request, relative to the first one */
	uint64_t end_ns;
	/* by request */
	/*
	 * number of a request's buffer, from 0; a buffer begins at one address
	 */
	uint32_t *buffer;
	uint32_t *next;	  /* next request of the buffer; SIM_NEVER */
	uint32_t *thread; /* number, from 0 */
	size_t buffers, threads;
	uint32_t *first;	   /* first request of each buffer */
	struct sim_ending *ending; /* in order of time */
	size_t endings;
};

/*
 * Makes a timeline, which uses @future as long as the timeline exists. Returns
 * -ENOMEM, or -E2BIG for a trace longer than 36 years.
 */
int sim_timeline_make(const struct sim_future *future,
		      struct sim_timeline *timeline);
void sim_timeline_free(struct sim_timeline *timeline);

static inline uint64_t sim_timeline_ns(const struct sim_timeline *timeline,
				       uint32_t i)
{
	const struct sim_req *req = timeline->future->trace->req;

	return (req[i].time - req->time) * 1000;
}

#endif /* SIM_TIMELINE_H */
