/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kernel's watches of a monitor. MONITOR lock held. */
#ifndef MRRC_MON_WATCH_H
#define MRRC_MON_WATCH_H

#include "sys/monitor/mon.h"

/*
 * Watches the range, and the rest of its huge pages. Returns the same values as
 * ops->watch().
 */
int mrrc_mon_watch_range(struct mrrc_mon *mon, uintptr_t start, size_t len);

/*
 * Unwatch the parts of the range that no cache covers. mrrc_mon_uncover()
 * leaves a huge page watched whole, or unwatches all of the page;
 * mrrc_mon_uncover_part() disregards huge pages.
 */
void mrrc_mon_uncover(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);
void mrrc_mon_uncover_part(struct mrrc_mon *mon, uintptr_t start,
			   uintptr_t end);

/*
 * Unwatches the parts of the range in huge pages that are watched whole, and
 * not the memory between these pages, which another userfaultfd may watch.
 */
void mrrc_mon_unwatch_huge(struct mrrc_mon *mon, uintptr_t start,
			   uintptr_t end);

/* To be called when the range has changed, or is no longer watched. */
void mrrc_mon_changed(struct mrrc_mon *mon, uintptr_t start, uintptr_t end);

#endif /* MRRC_MON_WATCH_H */
