/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions of mon.c for the other files of a monitor.
 */
#ifndef MRRC_MON_PRIV_H
#define MRRC_MON_PRIV_H

#include "sys/monitor/mon.h"

/* Makes all caches forget the range, and ends its watch. MONITOR lock held. */
void mrrc_mon_forget(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);

/*
 * MONITOR lock held: calls the subscriber's cover() while the subscriber's lock
 * is held, too.
 */
struct mrrc_range mrrc_mon_sub_cover(struct mrrc_mon *mon,
				     struct mrrc_mon_sub *sub, uintptr_t pos);

/* MONITOR lock held: unwatch the idle ranges. Were there any? */
bool mrrc_mon_unwatch_all_idle(struct mrrc_mon *mon);

#endif /* MRRC_MON_PRIV_H */
