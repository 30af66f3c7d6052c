/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reactions of a monitor to unmaps that hooks announce. */
#ifndef MRRC_MON_LIBC_H
#define MRRC_MON_LIBC_H

#include "sys/monitor/mon.h"

/* The hook's callback (mrrc_libc_hooks_cb). */
void mrrc_mon_announce(void *mon, uintptr_t start, uintptr_t end,
		       enum mrrc_libc_hooks_how how);

/* Makes marks for the ranges that are watched already. */
void mrrc_mon_mark(struct mrrc_mon *mon);

#endif /* MRRC_MON_LIBC_H */
