/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Computes the number of ranges that a monitor may watch (struct
 * mrrc_mon_room), by the mappings that the process can spare, and chooses the
 * subscriber that gives up ranges.
 *
 * MONITOR lock held, except in mrrc_mon_make_room and mrrc_mon_room_init.
 */
#include "config.h"
#include "sys/monitor/mon_room.h"
#include "sys/monitor/mon_priv.h"

#include "sys/hooks/libc_hooks.h"
#include "sys/base/mappings.h"
#include "sys/base/vm.h"

/* A subscriber gives up ranges for one that has at least this many fewer. */
#define MRRC_MON_SHARE 256

void mrrc_mon_room_init(struct mrrc_mon_room *room)
{
	room->mappings = mrrc_vm_map_max();
	room->most = room->mappings / 4;
	room->look = room->mappings / 64;
}

static size_t sub_ranges(const struct mrrc_mon_sub *sub)
{
	return sub->ranges ?
		       atomic_load_explicit((_Atomic size_t *) sub->ranges,
					    memory_order_relaxed) :
		       0;
}

/* MONITOR lock held. */
static size_t mon_ranges(struct mrrc_mon *mon)
{
	size_t count = mon->idle.count;
	struct mrrc_mon_sub *sub;

	TAILQ_FOREACH(sub, &mon->subs, link)
		count += sub_ranges(sub);
	return count;
}

/*
 * The number of ranges that may always be watched: just under a twentieth of
 * the limit of mappings.
 */
static size_t mon_least(const struct mrrc_mon_room *room)
{
	return room->mappings / 42;
}

/*
 * The number of watches until the mappings are counted again: a quarter of the
 * number of ranges that may still be added, but at most four times @all, the
 * number of mappings, as counting takes longer the more mappings there are.
 */
static size_t mon_look_after(const struct mrrc_mon_room *room, size_t ranges,
			     size_t all)
{
	const size_t least = room->mappings / 64;
	const size_t more = room->most > ranges ? room->most - ranges : 0;
	const size_t look = more / 4 < 4 * all ? more / 4 : 4 * all;

	return look > least ? look : least;
}

/*
 * MONITOR lock held: counts the mappings, and sets the limit of ranges. @ranges
 * ranges are watched now, and take at most two mappings each; adjacent ranges
 * share one mapping.
 */
static void mon_look(struct mrrc_mon *mon, size_t ranges)
{
	struct mrrc_mon_room *room = &mon->room;
	const size_t half = room->mappings / 2;
	const size_t most = room->mappings / 20 * 19;
	const size_t all = mrrc_mappings_count();
	const size_t ours = 2 * ranges < all ? 2 * ranges : all;
	const size_t left = all < most ? most - all : 0;
	/*
	 * adjacent ranges may take more than half of the mappings when ranges
	 * between the adjacent ranges have been dropped
	 */
	const size_t over = ours > half ? ours - half : 0;
	size_t lack = all > most ? all - most : 0;
	size_t more = ours < half ? (half - ours) / 2 : 0;
	size_t calls = left / 4; /* two mappings each; others are not counted */

	if (more > left / 2)
		more = left / 2;
	if (lack < over)
		lack = over;
	room->most = ranges > lack / 2 ? ranges - lack / 2 + more : 0;
	if (calls < room->mappings / 1024)
		calls = room->mappings / 1024;
	/*
	 * if the hooks cannot count calls of mmap(2), the application cannot
	 * get back mappings that it needs later
	 */
	if (!mrrc_libc_hooks_count(mon, calls) || room->most < mon_least(room))
		room->most = mon_least(room);
	room->look = mon_look_after(room, ranges, all);
}

/* MONITOR lock held: is the limit reached? */
bool mrrc_mon_full(struct mrrc_mon *mon)
{
	size_t ranges;

	if (!mon->room.mappings)
		return false;
	ranges = mon_ranges(mon);
	if (!mon->room.look--)
		mon_look(mon, ranges);
	return ranges >= mon->room.most;
}

/*
 * The subscriber with the most ranges; NULL: no subscriber has ranges. MONITOR
 * lock held.
 */
static struct mrrc_mon_sub *mon_richest(struct mrrc_mon *mon, size_t *most)
{
	struct mrrc_mon_sub *sub, *richest = NULL;
	size_t count;

	*most = 0;
	TAILQ_FOREACH(sub, &mon->subs, link) {
		count = sub_ranges(sub);
		if (count > *most) {
			*most = count;
			richest = sub;
		}
	}
	return richest;
}

/*
 * Invalidates @count ranges of @sub, as if they were unmapped. MONITOR lock
 * held.
 */
static void mon_take(struct mrrc_mon *mon, struct mrrc_mon_sub *sub,
		     size_t count)
{
	struct mrrc_range range = { 0, 0 };

	for (; count; count--) {
		range = mrrc_mon_sub_cover(mon, sub, range.end);
		if (range.start == range.end)
			break;
		mrrc_mon_forget(mon, range.start, range.end);
	}
}

bool mrrc_mon_make_room(struct mrrc_mon *mon, struct mrrc_mon_sub *sub)
{
	struct mrrc_mon_sub *richest;
	size_t most;
	bool taken;

	mrrc_lock_acquire(&mon->lock);
	richest = mon_richest(mon, &most);
	taken = mrrc_mon_works(mon) && richest && richest != sub &&
		most > sub_ranges(sub) + MRRC_MON_SHARE;
	if (taken)
		mon_take(mon, richest, MRRC_MON_SHARE / 4);
	mrrc_lock_release(&mon->lock);
	return taken;
}

/*
 * MONITOR lock held: reduces the number of ranges to @goal; the subscriber with
 * the most ranges gives up ranges first.
 */
static void mon_shed(struct mrrc_mon *mon, size_t goal)
{
	size_t ranges, before = SIZE_MAX, most;
	struct mrrc_mon_sub *sub;

	mrrc_mon_unwatch_all_idle(mon);
	while ((ranges = mon_ranges(mon)) > goal && ranges < before) {
		before = ranges;
		sub = mon_richest(mon, &most);
		if (sub)
			mon_take(mon, sub, ranges - goal);
	}
}

void mrrc_mon_crowded(struct mrrc_mon *mon)
{
	struct mrrc_mon_room *room = &mon->room;
	const size_t least = mon_least(room), some = room->mappings / 64;
	const size_t ranges = room->mappings ? mon_ranges(mon) : 0;

	if (ranges > least) {
		mon_look(mon, ranges);
		if (ranges <= room->most)
			return;
		/*
		 * leaves room, so that the limit is not reached again at once
		 */
		mon_shed(mon,
			 room->most > least + some ? room->most - some : least);
		mrrc_libc_hooks_count(mon, some / 2);
	} else {
		/* count the mappings before more ranges are watched */
		room->look = 0;
	}
}
