/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * No monitor: no registration is kept longer than its operation (mon.h).
 */
#include "config.h"
#include "sys/monitor/mon.h"

#include <errno.h>
#include <stdio.h>

static int none_open(struct mrrc_mon *mon)
{
	snprintf(mon->reason, sizeof(mon->reason), "no memory monitor");
	atomic_store(&mon->seq, 1);
	atomic_store(&mon->failed, true);
	return 0;
}

static void none_close(struct mrrc_mon *mon)
{
}

static int none_watch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	return -ENODEV;
}

static void none_unwatch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
}

static int none_call(struct mrrc_mon *mon)
{
	return -ENODEV;
}

static bool none_sees(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	return false;
}

const struct mrrc_mon_ops mrrc_mon_none_ops = {
	.name = "none",
	.open = none_open,
	.close = none_close,
	.watch = none_watch,
	.unwatch = none_unwatch,
	.drain = none_call,
	.check = none_call,
	.sees = none_sees,
	.stop = none_close,
};
