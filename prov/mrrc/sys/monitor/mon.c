/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What one monitor watches, and its events (mon.h). Lock order: mon_registry.c.
 */
#include "config.h"
#include "sys/monitor/mon_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sys/proof/prove.h"
#include "sys/monitor/mon_watch.h"
#include "sys/monitor/mon_room.h"

void mrrc_mon_subscribe(struct mrrc_mon *mon, struct mrrc_mon_sub *sub)
{
	mrrc_lock_acquire(&mon->lock);
	TAILQ_INSERT_TAIL(&mon->subs, sub, link);
	mrrc_lock_release(&mon->lock);
}

void mrrc_mon_unsubscribe(struct mrrc_mon *mon, struct mrrc_mon_sub *sub)
{
	if (mrrc_mon_forked(mon))
		return;
	mrrc_lock_acquire(&mon->lock);
	TAILQ_REMOVE(&mon->subs, sub, link);
	mrrc_lock_release(&mon->lock);
}

/* ---- subscribers ---- */

/* MONITOR lock held. */
static void mon_enter(struct mrrc_mon *mon, struct mrrc_mon_sub *sub)
{
	mrrc_lock_assert_held(&mon->lock);
	if (!mon->entered)
		mrrc_lock_acquire(sub->lock);
}

static void mon_leave(struct mrrc_mon *mon, struct mrrc_mon_sub *sub)
{
	if (!mon->entered)
		mrrc_lock_release(sub->lock);
}

static struct mrrc_range mon_sub_notify(struct mrrc_mon *mon,
					struct mrrc_mon_sub *sub,
					uintptr_t start, uintptr_t end)
{
	struct mrrc_range hull;

	mon_enter(mon, sub);
	hull = sub->notify(sub, start, end);
	mon_leave(mon, sub);
	return hull;
}

struct mrrc_range mrrc_mon_sub_cover(struct mrrc_mon *mon,
				     struct mrrc_mon_sub *sub, uintptr_t pos)
{
	struct mrrc_range range;

	mon_enter(mon, sub);
	range = sub->cover(sub, pos);
	mon_leave(mon, sub);
	return range;
}

/* ---- handling ---- */

/* Ends the monitor. MONITOR lock held, reason set. seq is odd and stays so. */
static void mon_fail_locked(struct mrrc_mon *mon)
{
	struct mrrc_mon_sub *sub;

	mrrc_lock_assert_held(&mon->lock);
	atomic_fetch_or(&mon->seq, 1);
	mrrc_fence(seq_cst);
	atomic_store(&mon->failed, true);
	TAILQ_FOREACH(sub, &mon->subs, link)
		mon_sub_notify(mon, sub, 0, UINTPTR_MAX);
	mon->ops->stop(mon);
}

/* Makes seq odd until the events are settled. MONITOR lock held. */
static void mon_unsettle(struct mrrc_mon *mon)
{
	mrrc_lock_assert_held(&mon->lock);
	/* seq is odd before the first event is read: see mon.h. */
	atomic_fetch_or(&mon->seq, 1);
	mrrc_fence(seq_cst);
}

static bool mon_settle(struct mrrc_mon *mon)
{
	mrrc_lock_assert_held(&mon->lock);
	if (mon->ops->settle)
		return mon->ops->settle(mon);
	atomic_fetch_add(&mon->seq, 1);
	return true;
}

/*
 * Handles all events up to now. Leaves events that come meanwhile, with seq
 * still odd: threads that find the lock taken may post events faster than this
 * thread handles events. MONITOR lock held.
 */
static void mon_handle(struct mrrc_mon *mon)
{
	mon_unsettle(mon);
	if (mon->ops->drain(mon))
		mon_fail_locked(mon);
	else
		mon_settle(mon);
}

/* ---- watching ---- */

/*
 * Unwatches an idle range, unless it is a huge page that is no longer watched
 * whole: such a page was unwatched before, and another userfaultfd may watch
 * its memory by now. MONITOR lock held.
 */
static void mon_uncover_idle(struct mrrc_mon *mon,
			     const struct mrrc_idle_range *range)
{
	if (!range->whole || mrrc_huge_whole(&mon->huge, range->start))
		mrrc_mon_uncover(mon, range->start, range->end);
}

/* MONITOR lock held. */
bool mrrc_mon_unwatch_all_idle(struct mrrc_mon *mon)
{
	struct mrrc_idle_range range;
	bool any = false;

	while (mrrc_idle_take(&mon->idle, &range)) {
		mon_uncover_idle(mon, &range);
		any = true;
	}
	return any;
}

/* ---- watching, the calls ---- */

/*
 * The token since which a range has been watched, alone or with its huge pages,
 * and is known to be private; or 0. MONITOR lock held.
 */
static uint64_t mon_seen(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	const uint64_t token = mrrc_huge_seen(&mon->huge, start, start + len);

	return token ? token : mrrc_idle_seen(&mon->idle, start, start + len);
}

/* MONITOR lock held. */
static int mon_watch_locked(struct mrrc_mon *mon, uintptr_t start, size_t len,
			    uint64_t *token)
{
	int ret;

	mrrc_libc_hooks_mark(start, len);
	*token = 0;
	if (mon_seen(mon, start, len))
		return 0;
	if (mrrc_mon_full(mon))
		return -ENOSPC;
	ret = mrrc_mon_watch_range(mon, start, len);
	if (ret < 0)
		return ret;
	*token = mrrc_idle_watch(&mon->idle, start, start + len);
	if (ret == MRRC_MON_SEEN) {
		mrrc_idle_saw(&mon->idle, start, *token);
		*token = 0;
	}
	return 0;
}

/*
 * Starts the monitor's threads at the first watch: a process that registers
 * nothing needs no threads.
 */
static void mon_begin(struct mrrc_mon *mon)
{
	const int ret = mrrc_mon_works(mon) && mon->ops->begin ?
				mon->ops->begin(mon) :
				0;

	if (ret)
		mrrc_mon_fail(mon, "%s: no thread for its events: %s",
			      mon->ops->name, strerror(-ret));
	else
		atomic_store(&mon->begun, true);
}

int mrrc_mon_watch(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t *token)
{
	if (!atomic_load_explicit(&mon->begun, memory_order_acquire))
		mon_begin(mon);
	return mrrc_mon_try_watch(mon, start, len, token);
}

int mrrc_mon_try_watch(struct mrrc_mon *mon, uintptr_t start, size_t len,
		       uint64_t *token)
{
	int ret = -ENODEV, before;

	/* this check is rare, as hits do not come here */
	mrrc_libc_hooks_check();
	mrrc_lock_acquire(&mon->lock);
	/* Earlier events must not count as changes of this range. */
	if (mrrc_mon_works(mon) && mrrc_mon_seq(mon) & 1)
		mon_handle(mon);
	if (mrrc_mon_works(mon))
		ret = mon_watch_locked(mon, start, len, token);
	/* Each range takes mappings, which are limited. */
	if (mrrc_mon_no_room(ret) && mrrc_mon_unwatch_all_idle(mon)) {
		before = ret;
		ret = mon_watch_locked(mon, start, len, token);
		/* the kernel has perhaps begun at the first try */
		if (ret == -ENOSPC)
			ret = before;
	}
	mrrc_lock_release(&mon->lock);
	return ret;
}

bool mrrc_mon_sees(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t token)
{
	bool sees;

	if (!mrrc_mon_works(mon))
		return false;
	if (!mon->ops->lazy)
		return mon->ops->sees(mon, start, len);
	mrrc_lock_acquire(&mon->lock);
	sees = mon_seen(mon, start, len);
	mrrc_lock_release(&mon->lock);
	if (sees)
		return mrrc_mon_works(mon);
	sees = mon->ops->sees(mon, start, len);
	if (!sees)
		return false;
	mrrc_lock_acquire(&mon->lock);
	mrrc_idle_saw(&mon->idle, start, token);
	mrrc_lock_release(&mon->lock);
	return true;
}

uint64_t mrrc_mon_unchanged(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	uint64_t token;

	mrrc_lock_acquire(&mon->lock);
	token = mrrc_mon_works(mon) && mon->ops->lazy ?
			mon_seen(mon, start, len) :
			0;
	mrrc_lock_release(&mon->lock);
	return token;
}

/*
 * The range that stays watched when no cache needs [@start, @start + @len): the
 * range's huge page, if the page is watched whole, or the range itself. MONITOR
 * lock held.
 */
static struct mrrc_idle_range mon_idle_range(const struct mrrc_huge *huge,
					     uintptr_t start, size_t len)
{
	const uintptr_t page = mrrc_huge_floor(huge, start);

	return mrrc_huge_whole(huge, start) &&
			       page == mrrc_huge_floor(huge, start + len - 1) ?
		       (struct mrrc_idle_range){ page, page + huge->size, true,
						 false } :
		       (struct mrrc_idle_range){ start, start + len, false,
						 false };
}

/* Lazy monitors unwatch later, as evicted memory is often registered again. */
void mrrc_mon_unwatch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	struct mrrc_idle_range range, out;

	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon) && !mon->ops->lazy) {
		mrrc_mon_uncover(mon, start, start + len);
	} else if (mrrc_mon_works(mon)) {
		range = mon_idle_range(&mon->huge, start, len);
		if (mrrc_idle_add(&mon->idle, &range, &out))
			mon_uncover_idle(mon, &out);
	}
	mrrc_lock_release(&mon->lock);
}

void mrrc_mon_unwatch_idle(struct mrrc_mon *mon)
{
	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon))
		mrrc_mon_unwatch_all_idle(mon);
	mrrc_lock_release(&mon->lock);
}

/* ---- events ---- */

int mrrc_mon_refused(struct mrrc_mon *mon, int ret)
{
	mrrc_mon_fail(mon, "%s: the probe answered \"%s\"", mon->ops->name,
		      strerror(-ret));
	return -ENODEV;
}

/*
 * Unwatches the memory next to an unmapped range, not the range itself, which
 * may have other mappings by now that another userfaultfd watches. Huge pages
 * that lost a part are no longer huge.
 */
static void mon_unmapped(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
			 struct mrrc_range hull)
{
	struct mrrc_huge *huge = &mon->huge;
	const uintptr_t first = mrrc_huge_floor(huge, start);
	const uintptr_t last = mrrc_huge_ceil(huge, end);

	if (mrrc_huge_whole(huge, start) && first < hull.start)
		hull.start = first;
	if (mrrc_huge_whole(huge, end - 1) && last > hull.end)
		hull.end = last;
	mrrc_huge_remove(huge, first, last);
	mrrc_mon_uncover_part(mon, hull.start, start);
	mrrc_mon_uncover_part(mon, end, hull.end);
}

/*
 * Tells all subscribers to forget the range. Invalidated regions may be larger
 * than the range: the rest of their memory may still be mapped and needs no
 * watching.
 */
bool mrrc_mon_event(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event)
{
	struct mrrc_range hull = { start, end };
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;
	bool known = false;

	mrrc_lock_assert_held(&mon->lock);
	mrrc_mon_changed(mon, start, end);
	mrrc_idle_drop(&mon->idle, start, end, &hull);
	mrrc_huge_renew(&mon->huge, start, end);
	TAILQ_FOREACH(sub, &mon->subs, link) {
		range = mon_sub_notify(mon, sub, start, end);
		if (range.start == range.end)
			continue;
		known = true;
		if (range.start < hull.start)
			hull.start = range.start;
		if (range.end > hull.end)
			hull.end = range.end;
	}
	if (event == MRRC_MON_REMOVE) {
		mrrc_mon_uncover_part(mon, start, end);
		mrrc_mon_uncover(mon, hull.start, hull.end);
	} else {
		mon_unmapped(mon, start, end, hull);
	}
	return known;
}

void mrrc_mon_fail(struct mrrc_mon *mon, const char *fmt, ...)
{
	va_list args;

	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon)) {
		va_start(args, fmt);
		vsnprintf(mon->reason, sizeof(mon->reason), fmt, args);
		va_end(args);
		mon_fail_locked(mon);
	}
	mrrc_lock_release(&mon->lock);
}

void mrrc_mon_drain(struct mrrc_mon *mon)
{
	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon))
		mon_handle(mon);
	mrrc_lock_release(&mon->lock);
}

/* Events that are read during this call are left to the next drain. */
void mrrc_mon_forget(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	mon_unsettle(mon);
	mrrc_mon_event(mon, start, end, MRRC_MON_REMOVE);
	mon_settle(mon);
}

void mrrc_mon_invalidate(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon))
		mrrc_mon_forget(mon, start, start + len);
	mrrc_lock_release(&mon->lock);
}

void mrrc_mon_asks(struct mrrc_mon *mon, char why[MRRC_TRUST_WHY])
{
	const enum mrrc_mon_ask ask = atomic_load(&mon->ask);
	const char *broken = mrrc_trust_broken();

	*why = '\0';
	if (ask == MRRC_ASK_NEVER || !mrrc_mon_works(mon))
		return;
	if (ask == MRRC_ASK_ALWAYS)
		strcpy(why, "they always are to");
	else if (atomic_load(&mon->trusting) && broken)
		snprintf(why, MRRC_TRUST_WHY, "%s", broken);
	else if (!atomic_load(&mon->trusting) ||
		 mrrc_trust_mode() == MRRC_TRUST_NOBODY)
		strcpy(why, "libc's calls are not hooked");
	else if (mrrc_trust_mode() == MRRC_TRUST_PROVEN)
		mrrc_prove_why(why);
}
