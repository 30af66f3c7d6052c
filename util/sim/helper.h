/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a helper thread does to the registered bytes over time: one run through
 * a trace, by its times. Without limits: what is registered is what the helper
 * leaves registered.
 *
 * A buffer is what begins at one address of a process, as long as its longest
 * request was. Bytes of several buffers that are registered count once. An
 * operation that finds its buffer deregistered, or not registered yet, is late:
 * it registers, and the times of the trace stay as they are.
 *
 * Deterministic. Runs share the timeline alone, and leave it as it is.
 */
#ifndef SIM_HELPER_H
#define SIM_HELPER_H

#include "sim/timeline.h"

#define SIM_SERIES_TIME 200 /* points of registered bytes over time */

enum sim_helper_kind {
	SIM_HELPER_LEAVE,   /* none: what was registered stays */
	SIM_HELPER_TIMEOUT, /* what was not used for a while goes */
	SIM_HELPER_PREDICT, /* core/schedule.h */
	SIM_HELPER_OFFLINE, /* a schedule that knows the next use */
};

struct sim_helper_run {
	const struct sim_timeline *timeline;
	const struct mrrc_cost *cost;
	enum sim_helper_kind kind;
	uint64_t idle_us; /* TIMEOUT: less than 36 years */
};

struct sim_helper_result {
	uint64_t requests;
	uint64_t first; /* of memory that had not been registered ever */
	uint64_t late;	/* of the others */
	uint64_t registrations;			 /* by the helper, too */
	uint64_t predicted, within_5, within_05; /* core/schedule.h */
	double mean_bytes;			 /* over time */
	uint64_t peak_bytes;
	uint64_t bytes[SIM_SERIES_TIME]; /* at equal times */
};

/* -ENOMEM */
int sim_helper_run(const struct sim_helper_run *run,
		   struct sim_helper_result *result);

/* Of the requests that could be, those that were late: 0 to 1. */
double sim_helper_late(const struct sim_helper_result *result);

/*
 * The shortest idle time with which no more requests are late. It suits the
 * trace as well as any could, being chosen afterwards.
 */
int sim_helper_equal(const struct sim_helper_run *run, uint64_t late,
		     uint64_t *idle_us);

#endif /* SIM_HELPER_H */
