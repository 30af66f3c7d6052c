/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * No monitor: nothing is cached past its operation (mon.h).
 */
#include "config.h"
#include "sys/mon.h"

#include <errno.h>
#include <stdio.h>

static int mrrc_none_open(struct mrrc_mon *mon)
{
	snprintf(mon->reason, sizeof(mon->reason), "no memory monitor");
	atomic_store(&mon->seq, 1);
	atomic_store(&mon->failed, true);
	return 0;
}

static void mrrc_none_close(struct mrrc_mon *mon)
{
}

static int mrrc_none_watch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	return -ENODEV;
}

static void mrrc_none_unwatch(struct mrrc_mon *mon, uintptr_t start,
			      size_t len)
{
}

static int mrrc_none_call(struct mrrc_mon *mon)
{
	return -ENODEV;
}

static bool mrrc_none_sees(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	return false;
}

const struct mrrc_mon_ops mrrc_mon_none_ops = {
	.name = "none",
	.open = mrrc_none_open,
	.close = mrrc_none_close,
	.watch = mrrc_none_watch,
	.unwatch = mrrc_none_unwatch,
	.drain = mrrc_none_call,
	.check = mrrc_none_call,
	.sees = mrrc_none_sees,
	.stop = mrrc_none_close,
};
