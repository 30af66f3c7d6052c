/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reuse estimate, the value of keeping a region: the likelihood that the
 * region is used again, learned for each frequency of use, times the cost of
 * registering the region relative to its size.
 *
 * Regions are classed by how often they were used. A class counts the uses
 * before eviction, and the room that its regions occupied until then, so hit /
 * (hit + occupied in vain) is learned as the program runs. The prior grows with
 * the uses. Time is counted in pages registered, so time stands still while all
 * requests hit.
 *
 * Not thread-safe; allocates nothing.
 */
#ifndef MRRC_REUSE_H
#define MRRC_REUSE_H

#include "core/cost/cost.h"

#include <stdint.h>

#define MRRC_REUSE_CLASSES 8
#define MRRC_REUSE_USES	   255 /* larger numbers of uses are not told apart */

struct mrrc_reuse {
	double hit[MRRC_REUSE_CLASSES];
	double occupied[MRRC_REUSE_CLASSES];
	double age;	   /* average age of the regions that leave */
	unsigned requests; /* requests since the last decay */
};

void mrrc_reuse_init(struct mrrc_reuse *reuse);

/* Counts a request, and lets old observations fade. */
void mrrc_reuse_request(struct mrrc_reuse *reuse);

/* A region now counts as used @uses times. */
void mrrc_reuse_enter(struct mrrc_reuse *reuse, unsigned uses);

/* A region that was used @uses times is used again, @age after its last use. */
void mrrc_reuse_again(struct mrrc_reuse *reuse, unsigned uses, uint64_t age);

/* A region was evicted, @age after its last use. */
void mrrc_reuse_leave(struct mrrc_reuse *reuse, uint64_t age);

/* The weight of a region's size: (cost / pages) ^ 1.5. */
double mrrc_reuse_weight(const struct mrrc_cost *cost, size_t len);

/* The whole estimate; @here: uses since the region was registered. */
double mrrc_reuse_value(const struct mrrc_reuse *reuse, unsigned uses,
			unsigned here, double weight);

#endif /* MRRC_REUSE_H */
