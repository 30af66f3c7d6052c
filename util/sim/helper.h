/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulates the effect of a helper thread on the registered bytes over time:
 * one run through a trace, at the trace's times. The simulated caches have no
 * limits: only the helper deregisters.
 *
 * A buffer begins at one address of a process, and is as long as its longest
 * request. Registered bytes that are in several buffers count once. An
 * operation that finds its buffer deregistered, or not registered yet, is late:
 * it registers the buffer, and the times of the trace do not change.
 *
 * Results are deterministic. Runs share only the timeline, which no run
 * changes.
 */
#ifndef SIM_HELPER_H
#define SIM_HELPER_H

#include "sim/timeline.h"

#define SIM_SERIES_TIME 200 /* points of registered bytes over time */

enum sim_helper_kind {
	SIM_HELPER_LEAVE,   /* no helper: buffers stay registered */
	SIM_HELPER_TIMEOUT, /* deregisters after an idle time */
	SIM_HELPER_PREDICT, /* core/helper/schedule.h */
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
	/* requests for memory that was never registered before */
	uint64_t first;
	/* other requests that came late */
	uint64_t late;
	/* number of registrations, including the helper's */
	uint64_t registrations;
	uint64_t predicted, within_5, within_05; /* core/helper/schedule.h */
	/* mean of registered bytes over time */
	double mean_bytes;
	uint64_t peak_bytes;
	/* registered bytes at equal intervals */
	uint64_t bytes[SIM_SERIES_TIME];
};

/* -ENOMEM */
int sim_helper_run(const struct sim_helper_run *run,
		   struct sim_helper_result *result);

/*
 * Returns the fraction, 0 to 1, of late requests among requests that could be
 * late.
 */
double sim_helper_late(const struct sim_helper_result *result);

/*
 * Finds the shortest idle time with which no more than @late requests are late.
 * As the choice depends on the whole trace, no other timeout is better.
 */
int sim_helper_equal(const struct sim_helper_run *run, uint64_t late,
		     uint64_t *idle_us);

#endif /* SIM_HELPER_H */
