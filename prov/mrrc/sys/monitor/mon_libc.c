/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handles an unmap that a hook announces (libc_hooks.h): invalidates and
 * unwatches the range. If a lock that the announcement needs is taken, the
 * announcement becomes an event, which the next lookup handles.
 *
 * The calls run in the unmapping thread, which may hold any lock, with all
 * signals blocked, and wait for no lock.
 */
#include "config.h"
#include "sys/monitor/mon_libc.h"
#include "sys/monitor/mon_priv.h"

#include "sys/hooks/libc_hooks.h"
#include "sys/monitor/mon_watch.h"
#include "sys/monitor/mon_room.h"

#define MRRC_MON_SPIN  256 /* tries for a lock */
#define MRRC_MON_AGAIN 64  /* calls of mmap until the next try */

/* Does any subscriber know the range, or is it watched? MONITOR lock held. */
static bool mon_known(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;

	TAILQ_FOREACH(sub, &mon->subs, link) {
		range = mrrc_mon_sub_cover(mon, sub, start);
		if (range.start != range.end && range.start < end)
			return true;
	}
	return mrrc_idle_overlaps(&mon->idle, start, end);
}

/* Removes the marks of a range that this monitor does not know. */
static void mon_unmark(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	uintptr_t addr = start & ~(MRRC_LIBC_HOOKS_CHUNK - 1);

	if (end - addr > MRRC_LIBC_HOOKS_CHUNK * 4)
		return;
	for (; addr < end; addr += MRRC_LIBC_HOOKS_CHUNK) {
		if (!mon_known(mon, addr, addr + MRRC_LIBC_HOOKS_CHUNK))
			mrrc_libc_hooks_unmark(addr);
	}
}

static inline void mon_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Tries to take a lock for at most as long as such locks are usually held. */
static bool mon_try(struct mrrc_lock *lock)
{
	int tries;

	for (tries = 0; tries < MRRC_MON_SPIN; tries++) {
		if (mrrc_lock_try(lock))
			return true;
		mon_relax();
	}
	return false;
}

/* Releases the locks of the subscribers before @last, and the monitor's. */
static void mon_exit_all(struct mrrc_mon *mon, const struct mrrc_mon_sub *last)
{
	struct mrrc_mon_sub *sub;

	mon->entered = false;
	TAILQ_FOREACH(sub, &mon->subs, link) {
		if (sub == last)
			break;
		mrrc_lock_release(sub->lock);
	}
	mrrc_lock_release(&mon->lock);
}

/*
 * Takes all locks that an announcement needs, without waiting: a lock's holder
 * may be asleep, or interrupted by a signal until this call is over.
 */
static bool mon_enter_all(struct mrrc_mon *mon)
{
	struct mrrc_mon_sub *sub;

	/* this call may have interrupted the thread that holds a lock */
	if (mrrc_lock_inside() || !mon_try(&mon->lock))
		return false;
	TAILQ_FOREACH(sub, &mon->subs, link) {
		if (!mon_try(sub->lock)) {
			mon_exit_all(mon, sub);
			return false;
		}
	}
	mon->entered = true;
	return true;
}

/*
 * Makes an announcement an event, without locks: the event is handled before
 * the next hit, and the kernel may report the change as well. Does not unwatch
 * the range, which the monitor may not watch: kernels before 6.14 would end the
 * watch of another userfaultfd.
 */
static void mon_announce_event(struct mrrc_mon *mon, uintptr_t start,
			       uintptr_t end, enum mrrc_libc_hooks_how how)
{
	if (start == end) {
		mrrc_libc_hooks_count(mon, MRRC_MON_AGAIN);
		return;
	}
	/*
	 * when the event is handled, another mapping may be at these addresses
	 */
	mon->ops->post(mon, start, end,
		       how == MRRC_LIBC_HOOKS_AFTER ? MRRC_MON_REMOVE :
						      MRRC_MON_UNMAP);
}

static void mon_announce_now(struct mrrc_mon *mon, uintptr_t start,
			     uintptr_t end, enum mrrc_libc_hooks_how how)
{
	if (start == end)
		mrrc_mon_crowded(mon);
	else if (how == MRRC_LIBC_HOOKS_CLEAR || mon_known(mon, start, end))
		mrrc_mon_forget(mon, start, end);
	else if (mrrc_huge_overlaps(&mon->huge, start, end))
		mrrc_mon_unwatch_huge(mon, start, end);
	else
		mon_unmark(mon, start, end);
}

void mrrc_mon_announce(void *arg, uintptr_t start, uintptr_t end,
		       enum mrrc_libc_hooks_how how)
{
	struct mrrc_mon *mon = arg;
	const bool entered = mon_enter_all(mon);
	int ret = -ENODEV;

	/*
	 * Watches the whole range first: Linux before 6.4 does not merge an
	 * unwatched part with the mapping behind the part, if the watched
	 * mapping began before the part.
	 */
	if (how == MRRC_LIBC_HOOKS_CLEAR && mrrc_mon_works(mon) &&
	    atomic_load(&mon->begun))
		ret = mon->ops->watch(mon, start, end - start);
	/*
	 * Another userfaultfd may watch a part of the range, and its watch
	 * would end with ours: the application's call fails, as without hooks.
	 */
	if (ret < 0 && how == MRRC_LIBC_HOOKS_CLEAR)
		how = MRRC_LIBC_HOOKS_BEFORE;
	if (ret >= 0 && !entered)
		mon->ops->unwatch(mon, start, end - start);
	if (mrrc_mon_works(mon) && entered)
		mon_announce_now(mon, start, end, how);
	else if (mrrc_mon_works(mon))
		mon_announce_event(mon, start, end, how);
	if (entered)
		mon_exit_all(mon, NULL);
}

void mrrc_mon_mark(struct mrrc_mon *mon)
{
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;
	uintptr_t pos;

	mrrc_lock_acquire(&mon->lock);
	TAILQ_FOREACH(sub, &mon->subs, link) {
		for (pos = 0;; pos = range.end) {
			range = mrrc_mon_sub_cover(mon, sub, pos);
			if (range.start == range.end || range.end <= pos)
				break;
			mrrc_libc_hooks_mark(range.start,
					     range.end - range.start);
		}
	}
	mrrc_lock_release(&mon->lock);
}
