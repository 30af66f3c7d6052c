/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long the gaps between two uses are: counts by length, with four classes
 * for each power of two, and the length that few of the last gaps exceed.
 *
 * The longest of many gaps tells little, since one gap decides it. What all but
 * a fixed part of them stay below is stable, and keeping unused buffers for
 * that time makes no more than that part of the uses late.
 *
 * Zeroes are a valid initial value. Not thread-safe; allocates nothing.
 *
 * Invariants (mrrc_gaps_valid):
 *   G1 all is the sum of the counts, longer that of the classes above `most`
 *   G2 longer is at most one of PART, and with the class `most` it is more
 */
#ifndef MRRC_GAPS_H
#define MRRC_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#define MRRC_GAPS_PART	  128 /* one gap of 128 may be longer: less than 1 % */
#define MRRC_GAPS_CLASSES 256

struct mrrc_gaps {
	uint32_t count[MRRC_GAPS_CLASSES];
	uint32_t all;	 /* gaps, old ones counted less */
	uint32_t longer; /* of these */
	unsigned most;	 /* a class */
};

void mrrc_gaps_add(struct mrrc_gaps *gaps, uint64_t gap);

/*
 * At most one of PART gaps is as long as this; rounded up, by a quarter at most.
 * 0: there are none.
 */
uint64_t mrrc_gaps_most(const struct mrrc_gaps *gaps);

bool mrrc_gaps_valid(const struct mrrc_gaps *gaps);

#endif /* MRRC_GAPS_H */
