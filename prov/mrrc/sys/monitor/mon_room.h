/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The number of ranges that a monitor may watch (struct mrrc_mon_room). */
#ifndef MRRC_MON_ROOM_H
#define MRRC_MON_ROOM_H

#include "sys/monitor/mon.h"

void mrrc_mon_room_init(struct mrrc_mon_room *room);

/* MONITOR lock held: is the limit of ranges reached? */
bool mrrc_mon_full(struct mrrc_mon *mon);

/*
 * To be called when the process may be running out of mappings. MONITOR lock
 * held.
 */
void mrrc_mon_crowded(struct mrrc_mon *mon);

#endif /* MRRC_MON_ROOM_H */
