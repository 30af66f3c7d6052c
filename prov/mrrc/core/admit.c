/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Admission by cost (admit.h).
 */
#include "config.h"
#include "core/admit.h"

/* What was never seen may not displace more than this part of the cache. */
#define NEW_PART	4

int mrrc_admit_init(struct mrrc_admit *admit, const struct mrrc_cost *cost,
		    size_t max_bytes, size_t max_regions)
{
	size_t ranges = max_bytes / cost->page;

	if (ranges > max_regions)
		ranges = max_regions;
	admit->cost = *cost;
	admit->max_bytes = max_bytes;
	return mrrc_history_init(&admit->history, ranges);
}

void mrrc_admit_fini(struct mrrc_admit *admit)
{
	mrrc_history_fini(&admit->history);
}

bool mrrc_admit_copy_once(const struct mrrc_admit *admit, size_t len)
{
	const struct mrrc_cost *cost = &admit->cost;

	return cost->copy_page > 0 &&
	       mrrc_cost_copy(cost, len) <
	       mrrc_cost_reg(cost, len) + mrrc_cost_dereg(cost, len);
}

enum mrrc_admission mrrc_admit(struct mrrc_admit *admit, uintptr_t addr,
			       size_t len, size_t missing)
{
	const struct mrrc_cost *cost = &admit->cost;
	const unsigned uses = mrrc_history_add(&admit->history,
					       addr / cost->page);
	const double copy = mrrc_cost_copy(cost, len);
	const double price = mrrc_cost_reg(cost, missing) +
			     mrrc_cost_dereg(cost, missing);

	if (cost->copy_page > 0 && copy < price) {
		/* history knows no more uses: often enough, then */
		if (uses * copy < price && uses < MRRC_HISTORY_MAX)
			return MRRC_ADMIT_BOUNCE;
		/* bought; should it be lost, renting begins anew */
		mrrc_history_clear(&admit->history, addr / cost->page);
	}
	if (uses == 1 && missing > admit->max_bytes / NEW_PART)
		return MRRC_ADMIT_ONCE;
	return MRRC_ADMIT_KEEP;
}
