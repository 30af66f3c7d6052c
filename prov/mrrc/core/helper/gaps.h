/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A histogram of the gaps between two uses, with four classes for each power of
 * two, and the length that few of the last gaps exceed.
 *
 * The longest of many gaps tells little, since a single gap decides the
 * longest. The length that only a fixed part of the gaps exceeds is stable: if
 * unused buffers are kept for that length of time, at most the fixed part of
 * the uses is late.
 *
 * Zeroes are a valid initial value. Not thread-safe; allocates nothing.
 *
 * Invariants (mrrc_gaps_valid):
 *   G1 `all` is the sum of all counts, `longer` is the sum of the counts of the
 *      classes above `most`
 *   G2 `longer` is at most 1/PART of `all`; `longer` and the count of the class
 *      `most` together are more than 1/PART of `all`
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
	uint32_t longer; /* gaps in the classes above `most` */
	unsigned most;	 /* number of a class */
};

void mrrc_gaps_add(struct mrrc_gaps *gaps, uint64_t gap);

/*
 * Returns a length that at most one of PART gaps reaches, rounded up by at most
 * a quarter. 0: no gap was seen.
 */
uint64_t mrrc_gaps_most(const struct mrrc_gaps *gaps);

bool mrrc_gaps_valid(const struct mrrc_gaps *gaps);

#endif /* MRRC_GAPS_H */
