/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Generators of synthetic traces, by name: each imitates a workload whose own
 * trace is not available. Each generator's file states its model, the model's
 * source, and the assumptions. A trace depends on its generator, seed and size
 * alone, and a shorter trace is the start of a longer trace.
 */
#ifndef SIM_GEN_H
#define SIM_GEN_H

#include "sim/trace.h"

#define SIM_PAGE 4096 /* ou2009, section 7 */

struct sim_gen {
	const char *name;
	const char *help;
	size_t requests; /* default number of requests */
	/*
	 * Makes a trace of @requests requests, or of the default number if
	 * @requests is 0. Returns 0, -ENOMEM or -EFBIG.
	 */
	int (*make)(uint64_t seed, size_t requests, struct sim_trace *trace);
};

extern const struct sim_gen sim_gen_cello;
extern const struct sim_gen sim_gen_httpd;
extern const struct sim_gen sim_gen_nas;
extern const struct sim_gen sim_gen_kv;

/* Finds a generator by name, or NULL; by index, NULL after the last. */
const struct sim_gen *sim_gen_find(const char *name);
const struct sim_gen *sim_gen_at(size_t i);

/* Makes the trace of "NAME[:seed=N][:requests=N]"; -ENOENT if unknown. */
int sim_gen_spec(const char *spec, struct sim_trace *trace);

#endif /* SIM_GEN_H */
