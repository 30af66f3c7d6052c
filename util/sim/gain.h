/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_sim --gain: reports a program's gain from a cache, and settings for
 * the cache. The rows of a grid whose policies are SIM_GAIN become one report
 * for each trace and cost model.
 */
#ifndef SIM_GAIN_H
#define SIM_GAIN_H

#include "core/policy/policy.h"
#include "sim/report.h"

enum sim_gain_way {
	SIM_GAIN_NONE,
	SIM_GAIN_LF,
	SIM_GAIN_LF_ALL, /* libfabric's cache, with room for all regions */
	SIM_GAIN_OURS,
	SIM_GAIN_ALLOC,
	SIM_GAIN_STATIC,
	SIM_GAIN_CNT,
};

/* In the order of enum sim_gain_way. */
#define SIM_GAIN                                                 \
	SIM_NAME_NONE "," SIM_NAME_LF "," SIM_NAME_LF_ALL        \
		      "," MRRC_POLICY_DEFAULT "," SIM_NAME_ALLOC \
		      "," SIM_NAME_STATIC

/* a saving of a smaller share of the run is no gain */
#define SIM_GAIN_LEAST	.01
#define SIM_GAIN_ADVICE 3
#define SIM_GAIN_LINE	160

struct sim_gain {
	const struct sim_row *row; /* the first of SIM_GAIN_CNT rows */
	double run;		   /* seconds of all processes; 0: not known */
	/* share of the run that registrations take; 0: not known */
	double share[SIM_GAIN_CNT];
	char advice[SIM_GAIN_ADVICE][SIM_GAIN_LINE];
	unsigned advices;
};

/* Computes the gain. @row is the first of SIM_GAIN_CNT rows. */
void sim_gain(const struct sim_row *row, struct sim_gain *gain);

/* Prints the report. Returns 0, or -errno of a write that failed. */
int sim_gain_report(const struct sim_row *rows, size_t cnt,
		    enum sim_format format, FILE *out);

#endif /* SIM_GAIN_H */
