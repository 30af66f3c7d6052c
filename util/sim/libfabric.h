/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libfabric's own registration cache (prov/util/src/util_mr_cache.c, the same
 * in 1.17 to 2.6), for operations that complete at once:
 *
 * - A region serves a request that it contains, to the byte, whatever the
 * rights: the verbs provider registers with all rights.
 * - A miss takes all regions within the request from the cache, and registers
 *   the request. Regions that overlap the request in part stay.
 * - Regions that were taken from the cache are deregistered when the next
 *   request comes.
 * - If the cache is full when a request comes, least recently used regions are
 *   deregistered before the lookup, until the cache is not full.
 *
 * Only one thread may use a struct sim_lf.
 *
 * Invariants (sim_lf_valid):
 *   L1 the tree and the list have the same regions, @count of them with @bytes
 *   L2 of two regions, the one that begins first ends first
 *   L3 at most max_count regions
 */
#ifndef SIM_LIBFABRIC_H
#define SIM_LIBFABRIC_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "sim/engine.h"

#define SIM_LF_COUNT 1024 /* default of FI_MR_CACHE_MAX_COUNT */

struct sim_lf_region {
	RB_ENTRY(sim_lf_region) node;
	TAILQ_ENTRY(sim_lf_region) link;
	uint64_t first, last; /* bytes */
};

RB_HEAD(sim_lf_tree, sim_lf_region);
TAILQ_HEAD(sim_lf_list, sim_lf_region);

struct sim_lf {
	struct sim_lf_tree tree;
	struct sim_lf_list lru; /* least recently used first */
	/* regions still registered, but not in the cache */
	struct sim_lf_list dead;
	size_t count;
	uint64_t bytes;
	size_t max_count;   /* FI_MR_CACHE_MAX_COUNT */
	uint64_t max_bytes; /* FI_MR_CACHE_MAX_SIZE */
	uint64_t evictions;
	/* Called for each region that is deregistered. */
	void (*dereg)(void *arg, const struct sim_lf_region *region);
	void *arg;
};

void sim_lf_init(struct sim_lf *lf, size_t max_count, uint64_t max_bytes);
/* Forgets all regions without calling dereg. */
void sim_lf_fini(struct sim_lf *lf);

/*
 * Serves a request: stores the region, and in *hit whether the region was
 * registered before. Returns -ENOMEM.
 */
int sim_lf_request(struct sim_lf *lf, uint64_t addr, uint64_t len, bool *hit,
		   const struct sim_lf_region **region);

bool sim_lf_valid(const struct sim_lf *lf);

/* Runs a trace through a cache for each process. 0 or -ENOMEM. */
int sim_lf_run(const struct sim_cell *cell, struct sim_result *result);

#endif /* SIM_LIBFABRIC_H */
