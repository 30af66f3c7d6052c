/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events of the userfaultfd monitor, and its two threads. */
#ifndef MRRC_MON_UFFD_READ_H
#define MRRC_MON_UFFD_READ_H

#include "sys/monitor/mon_uffd_priv.h"

/* 0, or -EBADF: the userfaultfd's number belongs to another file now */
int mrrc_uffd_lost(const struct mrrc_uffd *uffd);

/*
 * Starts the reader, then the handler; nothing is watched before both threads
 * run. -E*: neither thread runs.
 */
int mrrc_uffd_read_start(struct mrrc_mon *mon);
/* Ends both threads, and waits for their end. Not for a forked child. */
void mrrc_uffd_read_end(struct mrrc_mon *mon);

/* The monitor's operations of these names (mon.h) */
int mrrc_uffd_drain(struct mrrc_mon *mon);
bool mrrc_uffd_settle(struct mrrc_mon *mon);
void mrrc_uffd_post(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event);
void mrrc_uffd_stop(struct mrrc_mon *mon);

#endif /* MRRC_MON_UFFD_READ_H */
