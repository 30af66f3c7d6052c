/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to mon_registry.c, mon.c (events) and mon_libc.c (announcements).
 */
#ifndef MRRC_MON_PRIV_H
#define MRRC_MON_PRIV_H

#include "sys/monitor/mon.h"

/* Makes all caches forget the range, and ends its watch. MONITOR lock held. */
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
 * mon_watch.c. Watches the range, and the rest of its huge pages. MONITOR lock
 * held. Returns as ops->watch does.
 */
int mrrc_mon_watch_range(struct mrrc_mon *mon, uintptr_t start, size_t len);

/*
 * MONITOR lock held: unwatch the parts of the range that no cache covers. Huge
 * pages that are watched whole stay so, or their watch ends as a whole; _part()
 * disregards huge pages.
 */
void mrrc_mon_uncover(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);
void mrrc_mon_uncover_part(struct mrrc_mon *mon, uintptr_t start,
			   uintptr_t end);

/*
 * MONITOR lock held: unwatch the parts of the range in huge pages that are
 * watched whole; other users may watch the memory between these pages.
 */
void mrrc_mon_unwatch_huge(struct mrrc_mon *mon, uintptr_t start,
			   uintptr_t end);

/*
 * To be called when the range has changed, or is no longer watched. MONITOR
 * lock held.
 */
void mrrc_mon_changed(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);

/* MONITOR lock held: unwatch the idle ranges. Were there any? */
bool mrrc_mon_unwatch_all_idle(struct mrrc_mon *mon);

/* mon_room.c. MONITOR lock held: is the limit of ranges reached? */
void mrrc_mon_room_init(struct mrrc_mon_room *room);
bool mrrc_mon_full(struct mrrc_mon *mon);

/*
 * To be called when the process may be running out of mappings. MONITOR lock
 * held.
 */
void mrrc_mon_crowded(struct mrrc_mon *mon);

/* Makes marks for the ranges that are watched already. */
void mrrc_mon_mark(struct mrrc_mon *mon);

#endif /* MRRC_MON_PRIV_H */
