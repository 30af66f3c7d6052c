/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides which memory the kernel watches for a monitor: the ranges of caches,
 * and the rest of the huge pages in which they lie (huge.h). The kernel keeps a
 * huge page only if all of it belongs to one mapping, and watching a part
 * splits the mapping.
 *
 * Only the part of a huge page that the application unmaps or discards is
 * unwatched, as the unmap or discard splits the huge page anyway.
 *
 * MONITOR lock held throughout.
 */
#include "config.h"
#include "sys/monitor/mon_watch.h"
#include "sys/monitor/mon_priv.h"

/* ---- unwatching ---- */

/* The first gap between covered ranges in [start, end); false: no gap. */
static bool watch_gap(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		      struct mrrc_range *gap)
{
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;

	while (start < end) {
		*gap = (struct mrrc_range){ start, end };
		TAILQ_FOREACH(sub, &mon->subs, link) {
			range = mrrc_mon_sub_cover(mon, sub, start);
			if (range.start == range.end)
				continue;
			if (range.start <= start)
				break;
			if (range.start < gap->end)
				gap->end = range.start;
		}
		if (!sub)
			return true;
		start = range.end;
	}
	return false;
}

void mrrc_mon_changed(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	mrrc_idle_forget(&mon->idle, start, end);
	mrrc_huge_changed(&mon->huge, start, end);
}

static void watch_end(struct mrrc_mon *mon, struct mrrc_range range)
{
	mrrc_mon_changed(mon, range.start, range.end);
	mrrc_idle_drop(&mon->idle, range.start, range.end, NULL);
	mon->ops->unwatch(mon, range.start, range.end - range.start);
}

void mrrc_mon_uncover_part(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	struct mrrc_range gap;

	mrrc_lock_assert_held(&mon->lock);
	for (; watch_gap(mon, start, end, &gap); start = gap.end)
		watch_end(mon, gap);
}

/*
 * Does the huge page of @addr stay watched, though no range covers the page's
 * part in the gap?
 */
static bool watch_stays(struct mrrc_mon *mon, uintptr_t addr,
			struct mrrc_range gap)
{
	const struct mrrc_huge *huge = &mon->huge;
	const uintptr_t page = mrrc_huge_floor(huge, addr);

	return mrrc_huge_whole(huge, addr) &&
	       (page < gap.start || page + huge->size > gap.end ||
		mrrc_idle_overlaps(&mon->idle, page, page + huge->size));
}

void mrrc_mon_uncover(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	struct mrrc_huge *huge = &mon->huge;
	struct mrrc_range gap, left;

	mrrc_lock_assert_held(&mon->lock);
	if (mrrc_huge_whole(huge, start))
		start = mrrc_huge_floor(huge, start);
	if (mrrc_huge_whole(huge, end - 1))
		end = mrrc_huge_ceil(huge, end);
	for (; watch_gap(mon, start, end, &gap); start = gap.end) {
		left = gap;
		if (watch_stays(mon, gap.start, gap))
			left.start =
				mrrc_huge_floor(huge, gap.start) + huge->size;
		if (watch_stays(mon, gap.end - 1, gap))
			left.end = mrrc_huge_floor(huge, gap.end - 1);
		if (left.start >= left.end)
			continue;
		mrrc_huge_remove(huge, left.start, left.end);
		watch_end(mon, left);
	}
}

void mrrc_mon_unwatch_huge(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	const struct mrrc_huge *huge = &mon->huge;
	uintptr_t next;

	mrrc_lock_assert_held(&mon->lock);
	/*
	 * forget ranges that no cache needs, in huge pages that stayed watched
	 */
	mrrc_idle_forget(&mon->idle, start, end);
	for (; start < end && mrrc_huge_overlaps(huge, start, end);
	     start = next) {
		next = mrrc_huge_floor(huge, start) + huge->size;
		if (!mrrc_huge_whole(huge, start)) {
			/* the range may be all addresses behind a shmat(2) */
			if ((end - next) / huge->size > MRRC_HUGE_SETS)
				next = mrrc_huge_next(huge, start);
			continue;
		}
		mrrc_huge_changed(&mon->huge, start, start + 1);
		mon->ops->unwatch(mon, start,
				  (next < end ? next : end) - start);
	}
}

/* ---- watching ---- */

/* Marks the page as not huge, and unwatches the memory next to the range. */
static void watch_none(struct mrrc_mon *mon, uintptr_t page, uintptr_t start,
		       uintptr_t end)
{
	mrrc_huge_none(&mon->huge, page);
	mrrc_mon_uncover_part(mon, start, end);
}

/* Watches a page whole, if it belongs to one mapping. */
static bool watch_page(struct mrrc_mon *mon, uintptr_t page)
{
	if (!mon->ops->one_mapping(mon, page, mon->huge.size))
		return false;
	mrrc_huge_add(&mon->huge, page, mrrc_idle_token(&mon->idle));
	return true;
}

/*
 * Watches *wide. If memory at one end cannot be watched, tries the other end
 * alone. Sets *wide to the watched range. false: nothing is watched.
 */
static bool watch_wide(struct mrrc_mon *mon, struct mrrc_range range,
		       struct mrrc_range *wide)
{
	const struct mrrc_range tries[] = { *wide,
					    { range.start, wide->end },
					    { wide->start, range.end } };
	/* in a single huge page both ends fail or succeed together */
	const int count = wide->end - wide->start > mon->huge.size ? 3 : 1;
	int i;

	for (i = 0; i < count; i++) {
		if (tries[i].start == range.start && tries[i].end == range.end)
			continue;
		if (!mon->ops->widen(mon, range.start, tries[i].start,
				     tries[i].end)) {
			*wide = tries[i];
			return true;
		}
	}
	return false;
}

/*
 * Extends the range to the huge pages at its ends, if it may have such pages.
 */
static struct mrrc_range watch_ends(struct mrrc_huge *huge,
				    struct mrrc_range range)
{
	const uintptr_t first = mrrc_huge_floor(huge, range.start);
	const uintptr_t end = mrrc_huge_ceil(huge, range.end);
	const bool same = end - first == huge->size;
	struct mrrc_range wide = range;

	if (same && first == range.start && end == range.end)
		return range;
	if (same)
		return mrrc_huge_may(huge, first) ?
			       (struct mrrc_range){ first, end } :
			       range;
	if (first < range.start && mrrc_huge_may(huge, first))
		wide.start = first;
	if (range.end < end && mrrc_huge_may(huge, range.end))
		wide.end = end;
	return wide;
}

/*
 * Watches the rest of the huge pages at both ends of the range. Returns whether
 * the range is part of a huge page that is watched whole.
 */
static bool watch_pages(struct mrrc_mon *mon, struct mrrc_range range)
{
	struct mrrc_huge *huge = &mon->huge;
	const uintptr_t first = mrrc_huge_floor(huge, range.start);
	const uintptr_t last = mrrc_huge_floor(huge, range.end - 1);
	struct mrrc_range wide = watch_ends(huge, range);
	bool whole = false;

	if (wide.start == range.start && wide.end == range.end)
		return false;
	if (!watch_wide(mon, range, &wide)) {
		mrrc_huge_none(huge, first);
		mrrc_huge_none(huge, last);
		return false;
	}
	if (first == last || wide.start < range.start)
		whole = watch_page(mon, first);
	if (wide.start < range.start && !whole)
		watch_none(mon, first, wide.start, range.start);
	if (first != last && wide.end > range.end)
		whole = watch_page(mon, last);
	if (wide.end > range.end && !whole)
		watch_none(mon, last, range.end, wide.end);
	return whole && first == last;
}

int mrrc_mon_watch_range(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	const struct mrrc_range range = { start, start + len };

	mrrc_lock_assert_held(&mon->lock);
	return mon->huge.size && watch_pages(mon, range) ?
		       MRRC_MON_SEEN :
		       mon->ops->watch(mon, start, len);
}
