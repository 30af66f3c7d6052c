/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How long the gaps between two uses are (gaps.h). */
#include "config.h"
#include "core/helper/gaps.h"

#define LAST 65536 /* at this many gaps all counts are halved */

static unsigned mrrc_gaps_class(uint64_t gap)
{
	unsigned power;

	if (gap < 4)
		return gap;
	power = 63 - __builtin_clzll(gap);
	return 4 * power + (gap >> (power - 2) & 3);
}

/* The length at which the next class begins. */
static uint64_t mrrc_gaps_end(unsigned bin)
{
	const unsigned next = bin + 1;

	if (next <= 4)
		return next;
	if (next < 8) /* no gap has these classes */
		return 4;
	return next < MRRC_GAPS_CLASSES ?
		       (UINT64_C(4) + next % 4) << (next / 4 - 2) :
		       UINT64_MAX;
}

/*
 * Moves `most` to its class, on average by one step for each addition.
 */
static void mrrc_gaps_settle(struct mrrc_gaps *gaps)
{
	const uint32_t allowed = gaps->all / MRRC_GAPS_PART;

	while (gaps->longer > allowed)
		gaps->longer -= gaps->count[++gaps->most];
	while (gaps->most && gaps->longer + gaps->count[gaps->most] <= allowed)
		gaps->longer += gaps->count[gaps->most--];
}

static void mrrc_gaps_halve(struct mrrc_gaps *gaps)
{
	unsigned bin;

	gaps->all = gaps->longer = 0;
	for (bin = 0; bin < MRRC_GAPS_CLASSES; bin++) {
		gaps->count[bin] /= 2;
		gaps->all += gaps->count[bin];
		if (bin > gaps->most)
			gaps->longer += gaps->count[bin];
	}
}

void mrrc_gaps_add(struct mrrc_gaps *gaps, uint64_t gap)
{
	const unsigned bin = mrrc_gaps_class(gap);

	if (gaps->all >= LAST)
		mrrc_gaps_halve(gaps);
	gaps->count[bin]++;
	gaps->all++;
	gaps->longer += bin > gaps->most;
	mrrc_gaps_settle(gaps);
}

uint64_t mrrc_gaps_most(const struct mrrc_gaps *gaps)
{
	return gaps->all ? mrrc_gaps_end(gaps->most) : 0;
}

bool mrrc_gaps_valid(const struct mrrc_gaps *gaps)
{
	const uint32_t allowed = gaps->all / MRRC_GAPS_PART;
	uint32_t all = 0, longer = 0;
	unsigned bin;

	for (bin = 0; bin < MRRC_GAPS_CLASSES; bin++) {
		all += gaps->count[bin];
		if (bin > gaps->most)
			longer += gaps->count[bin];
	}
	if (all != gaps->all || longer != gaps->longer)
		return false; /* G1 */
	return longer <= allowed &&
	       (!all || longer + gaps->count[gaps->most] > allowed); /* G2 */
}
