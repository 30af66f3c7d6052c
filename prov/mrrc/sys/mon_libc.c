/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A monitor's reaction to an unmap that a hook announces (libc_hooks.h): the
 * range is invalidated and no longer watched.
 *
 * Runs in the thread that unmaps, with the locks that the thread holds, signals
 * blocked.
 */
#include "config.h"
#include "sys/mon_priv.h"

#include "sys/libc_hooks.h"

#define MRRC_MON_SPIN 256 /* tries for the lock */

/* MONITOR lock held: does any subscriber know the range, or is it watched? */
static bool mon_known(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;

	TAILQ_FOREACH(sub, &mon->subs, link) {
		range = sub->cover(sub, start);
		if (range.start != range.end && range.start < end)
			return true;
	}
	return mrrc_idle_overlaps(&mon->idle, start, end);
}

/* Removes the marks of a range that is not known here. */
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

/*
 * Does not wait longer than the kernel's own report would take: the lock's
 * holder may be asleep, or in a signal handler.
 */
static bool mon_try(struct mrrc_mon *mon)
{
	int tries;

	for (tries = 0; tries < MRRC_MON_SPIN; tries++) {
		if (mrrc_lock_try(&mon->lock))
			return true;
		mon_relax();
	}
	return false;
}

bool mrrc_mon_announce(void *arg, uintptr_t start, uintptr_t end,
		       enum mrrc_libc_hooks_how how)
{
	/* We may have interrupted the very thread that holds a lock. */
	const bool inside = mrrc_lock_inside();
	struct mrrc_mon *mon = arg;

	if (inside || !mon_try(mon)) {
		if (how == MRRC_LIBC_HOOKS_AFTER) {
			mon->ops->post(mon, start, end);
			return true;
		}
		if (inside || (how == MRRC_LIBC_HOOKS_HINT &&
			       mrrc_trust_mode() != MRRC_TRUST_HOOKED))
			return false;
		/* The hook is the only report: wait. */
		mrrc_lock_acquire(&mon->lock);
	}
	/*
	 * Linux before 6.4 leaves what is unwatched apart from what follows it,
	 * if the watched mapping began before it: all of it is watched first.
	 */
	if (how == MRRC_LIBC_HOOKS_CLEAR && mrrc_mon_works(mon))
		mon->ops->watch(mon, start, end - start);
	if (!mrrc_mon_works(mon))
		;
	else if (start == end)
		mrrc_mon_crowded(mon);
	else if (how == MRRC_LIBC_HOOKS_CLEAR || mon_known(mon, start, end))
		mrrc_mon_forget(mon, start, end);
	else
		mon_unmark(mon, start, end);
	mrrc_lock_release(&mon->lock);
	return true;
}

void mrrc_mon_mark(struct mrrc_mon *mon)
{
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;
	uintptr_t pos;

	mrrc_lock_acquire(&mon->lock);
	TAILQ_FOREACH(sub, &mon->subs, link) {
		for (pos = 0;; pos = range.end) {
			range = sub->cover(sub, pos);
			if (range.start == range.end || range.end <= pos)
				break;
			mrrc_libc_hooks_mark(range.start,
					     range.end - range.start);
		}
	}
	mrrc_lock_release(&mon->lock);
}
