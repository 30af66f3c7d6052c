/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Admission by cost (admit.h).
 */
#include "config.h"
#include "core/cache/admit.h"

/*
 * A range never seen before may not displace more than this part of the cache.
 */
#define NEW_PART 4

/*
 * TELLING: the number of registrations below which the counts decide nothing.
 * FADING: the number of registrations at which the counts are halved.
 */
#define TELLING 8
#define FADING	256
/*
 * LOST_PART: at most this part of the registrations may have been lost. MARGIN:
 * a safety factor, since few registrations get most of the hits.
 */
#define LOST_PART 16
#define MARGIN	  2

int mrrc_admit_init(struct mrrc_admit *admit, const struct mrrc_cost *cost,
		    size_t max_bytes, size_t max_regions)
{
	size_t ranges = max_bytes / cost->page;

	if (ranges > max_regions)
		ranges = max_regions;
	*admit = (struct mrrc_admit){ .cost = *cost, .max_bytes = max_bytes };
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

/* Have recent registrations of this price paid off, compared with copies? */
static bool admit_pays(struct mrrc_admit *admit, const uint64_t *value,
		       double copy, double price)
{
	uint64_t hits = value[MRRC_STAT_HITS] - admit->hits;
	uint64_t made = value[MRRC_STAT_REGISTRATIONS] - admit->registrations;
	uint64_t lost = value[MRRC_STAT_INVALIDATIONS] +
			value[MRRC_STAT_EVICTIONS] - admit->lost;

	if (made >= FADING) {
		admit->hits += hits /= 2;
		admit->registrations += made /= 2;
		admit->lost += lost /= 2;
	}
	return made >= TELLING && lost < made / LOST_PART &&
	       (double) hits * copy >= MARGIN * (double) made * price;
}

enum mrrc_admission mrrc_admit(struct mrrc_admit *admit,
			       const struct mrrc_cache *cache, uintptr_t addr,
			       size_t len, size_t missing)
{
	const struct mrrc_cost *cost = &admit->cost;
	const unsigned uses =
		mrrc_history_add(&admit->history, addr / cost->page);
	const double copy = mrrc_cost_copy(cost, len);
	const double price =
		mrrc_cost_reg(cost, missing) + mrrc_cost_dereg(cost, missing);

	if (cost->copy_page > 0 && copy < price) {
		/*
		 * a range whose count is at the history's maximum was used
		 * often enough to be registered
		 */
		if (uses * copy < price && uses < MRRC_HISTORY_MAX &&
		    !(mrrc_cache_room(cache, missing) &&
		      admit_pays(admit, cache->stats->value, copy, price)))
			return MRRC_ADMIT_BOUNCE;
		/*
		 * the request is registered: copies are counted anew if the
		 * region is evicted
		 */
		mrrc_history_clear(&admit->history, addr / cost->page);
	}
	if (uses == 1 && missing > admit->max_bytes / NEW_PART)
		return MRRC_ADMIT_ONCE;
	return MRRC_ADMIT_KEEP;
}
