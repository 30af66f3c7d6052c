/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulates a cache that knows the future: by a heuristic that is hard to beat,
 * and by a bound that no cache can beat.
 *
 * The heuristic is Belady's rule with costs: the region whose next use is
 * farthest for its size and price is evicted: distance * pages / cost. The
 * bound relaxes the problem as PFOO does (Berger, Beckmann, Harchol-Balter
 * 2018): each reuse of each page, or a fraction of a page, may be kept
 * separately, and the cache must have room on average only.
 */
#ifndef SIM_OFFLINE_H
#define SIM_OFFLINE_H

#include "core/policy/policy.h"
#include "sim/trace.h"

#define SIM_NEVER      UINT32_MAX
#define SIM_PROC_SHIFT 48 /* number of bits of a page, below the process */

/*
 * The next use of each part of memory. Parts are the smallest ranges that
 * requests distinguish, so a request covers whole parts.
 */
struct sim_future {
	const struct sim_trace *trace;
	size_t page;
	uint64_t *part; /* starts of the parts: process and page, ascending */
	size_t parts;
	uint32_t *first; /* first part of each request */
	uint32_t *end;	 /* end of each request's parts */
	/* first stretch of each request; one more entry at the end */
	size_t *at;
	struct sim_stretch *stretch;
};

/*
 * A stretch: consecutive parts of a request that have the same next use. A
 * stretch ends where the request's next stretch begins.
 */
struct sim_stretch {
	uint32_t part;
	uint32_t next; /* the request that uses the stretch's parts next */
};

/*
 * Returns the end of stretch @k, which belongs to request @i: the number of the
 * part after the stretch's last part.
 */
static inline uint32_t sim_stretch_end(const struct sim_future *future,
				       size_t i, size_t k)
{
	return k + 1 < future->at[i + 1] ? future->stretch[k + 1].part :
					   future->end[i];
}

/* Makes a future. Returns -ENOMEM, or -E2BIG for addresses too high. */
int sim_future_make(const struct sim_trace *trace, size_t page,
		    struct sim_future *future);
void sim_future_free(struct sim_future *future);

/* The heuristic as a policy for core/cache/cache.h; one for each run. */
struct sim_offline;
extern const struct mrrc_policy_ops sim_offline_ops; /* arg: below */

/* Opens the heuristic. NULL: no memory. */
struct sim_offline *sim_offline_open(const struct sim_future *future);
void sim_offline_close(struct sim_offline *offline);

/* -ENOMEM if a judgement failed for lack of memory: the result is invalid. */
int sim_offline_error(const struct sim_offline *offline);

/* Tells for which process the next cache is opened. */
void sim_offline_proc(struct sim_offline *offline, uint32_t proc);

/* Announces request @now, before a cache is asked. */
void sim_offline_now(struct sim_offline *offline, size_t now);

/*
 * Computes a lower bound of costs in nanoseconds: no policy, with a cache of
 * @max_bytes for each process, spends less on registering and deregistering;
 * with @bounce the costs include copies where copies are cheaper. Returns
 * -ENOMEM.
 */
int sim_bound(const struct sim_future *future, const struct mrrc_cost *cost,
	      size_t max_bytes, bool bounce, double *ns);

#endif /* SIM_OFFLINE_H */
