/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to mon_registry.c, mon.c (events) and mon_libc.c (announcements).
 */
#ifndef MRRC_MON_PRIV_H
#define MRRC_MON_PRIV_H

#include "sys/monitor/mon.h"

/* MONITOR lock held: all caches forget the range, and its watch ends. */
void mrrc_mon_forget(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);

/* The hook's callback (mrrc_libc_hooks_cb). */
void mrrc_mon_announce(void *mon, uintptr_t start, uintptr_t end,
		       enum mrrc_libc_hooks_how how);

/* MONITOR lock held. The calls of struct mrrc_mon_sub, with its lock. */
struct mrrc_range mrrc_mon_sub_notify(struct mrrc_mon *mon,
				      struct mrrc_mon_sub *sub, uintptr_t start,
				      uintptr_t end);
struct mrrc_range mrrc_mon_sub_cover(struct mrrc_mon *mon,
				     struct mrrc_mon_sub *sub, uintptr_t pos);

/*
 * mon_watch.c. MONITOR lock held: watch the range, and the rest of its huge
 * pages. As ops->watch.
 */
int mrrc_mon_watch_range(struct mrrc_mon *mon, uintptr_t start, size_t len);

/*
 * MONITOR lock held: unwatch the parts of the range that no cache covers. Where
 * huge pages are watched whole, these stay so, or all of them ends; _part() does
 * not heed them.
 */
void mrrc_mon_uncover(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);
void mrrc_mon_uncover_part(struct mrrc_mon *mon, uintptr_t start,
			   uintptr_t end);

/*
 * MONITOR lock held: unwatch the range as far as it is in huge pages that are
 * watched whole; what lies between them may be watched by others.
 */
void mrrc_mon_unwatch_huge(struct mrrc_mon *mon, uintptr_t start,
			   uintptr_t end);

/* MONITOR lock held: the range has changed, or is no longer watched. */
void mrrc_mon_changed(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);

/* MONITOR lock held: unwatch the idle ranges. Were there any? */
bool mrrc_mon_unwatch_all_idle(struct mrrc_mon *mon);

/* mon_room.c. MONITOR lock held: is the limit of ranges reached? */
void mrrc_mon_room_init(struct mrrc_mon_room *room);
bool mrrc_mon_full(struct mrrc_mon *mon);

/* MONITOR lock held: the process may be running out of mappings. */
void mrrc_mon_crowded(struct mrrc_mon *mon);

/* Makes marks for the ranges that are watched already. */
void mrrc_mon_mark(struct mrrc_mon *mon);

#endif /* MRRC_MON_PRIV_H */
