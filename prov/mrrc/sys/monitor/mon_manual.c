/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The manual monitor (mon.h) watches nothing, and caches may keep all
 * registrations. The application has promised to call fi_mrrc_invalidate()
 * before it unmaps (mrrc_mon_invalidate).
 */
#include "config.h"
#include "sys/monitor/mon.h"

static int manual_open(struct mrrc_mon *mon)
{
	return 0;
}

static void manual_close(struct mrrc_mon *mon)
{
}

static int manual_watch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	return 0;
}

static void manual_unwatch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
}

static int manual_call(struct mrrc_mon *mon)
{
	return 0;
}

static bool manual_sees(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	return true;
}

const struct mrrc_mon_ops mrrc_mon_manual_ops = {
	.name = "manual",
	.manual = true,
	.ask = MRRC_ASK_NEVER,
	.open = manual_open,
	.close = manual_close,
	.watch = manual_watch,
	.unwatch = manual_unwatch,
	.drain = manual_call,
	.check = manual_call,
	.sees = manual_sees,
	.stop = manual_close,
};
