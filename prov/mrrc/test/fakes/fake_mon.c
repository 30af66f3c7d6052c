/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A monitor that the test drives (fake_mon.h). */
#include "config.h"
#include "test/fakes/fake_mon.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sys/base/vm.h"

static int fake_mon_open(struct mrrc_mon *mon)
{
	mon->impl = calloc(1, sizeof(struct fake_mon));
	return mon->impl ? 0 : -ENOMEM;
}

static void fake_mon_close(struct mrrc_mon *mon)
{
	free(mon->impl);
}

static void fake_mon_set(struct mrrc_mon *mon, uintptr_t start, size_t len,
			 bool on)
{
	struct fake_mon *fake = fake_mon_of(mon);
	const size_t page = mrrc_vm_page();
	uintptr_t at;
	size_t i;

	for (at = start; fake->base && at < start + len; at += page) {
		i = (at - fake->base) / page;
		if (at >= fake->base && i < 64)
			fake->watched[i] = on;
	}
}

static int fake_mon_watch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	struct fake_mon *fake = fake_mon_of(mon);

	fake->watches++;
	if (fake->watch_rc)
		return fake->watch_rc;
	fake_mon_set(mon, start, len, true);
	return fake->knows ? MRRC_MON_SEEN : 0;
}

static void fake_mon_unwatch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	fake_mon_of(mon)->unwatches++;
	fake_mon_set(mon, start, len, false);
}

static int fake_mon_drain(struct mrrc_mon *mon)
{
	struct fake_mon *fake = fake_mon_of(mon);
	unsigned i;

	fake->drains++;
	fake->early += !(mrrc_mon_seq(mon) & 1);
	if (fake->drain_rc) {
		snprintf(mon->reason, sizeof(mon->reason), "drain failed");
		return fake->drain_rc;
	}
	for (i = 0; i < fake->queued; i++)
		mrrc_mon_event(mon, fake->queue[i].start, fake->queue[i].end,
			       fake->queue[i].event);
	fake->queued = 0;
	if (fake->busy)
		fake->busy--;
	return 0;
}

static void fake_mon_call(struct mrrc_mon *mon,
			  void (**call)(struct mrrc_mon *mon))
{
	void (*const once)(struct mrrc_mon * mon) = *call;

	/* Without a call, nothing is written, as several threads may ask. */
	if (!once)
		return;
	*call = NULL;
	once(mon);
}

static int fake_mon_check(struct mrrc_mon *mon)
{
	struct fake_mon *fake = fake_mon_of(mon);

	fake_mon_call(mon, &fake->in_check);
	if (fake->busy || (fake->queued && !(mrrc_mon_seq(mon) & 1)))
		return -EAGAIN;
	return fake->check_rc;
}

static bool fake_mon_sees(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	struct fake_mon *fake = fake_mon_of(mon);

	fake_mon_call(mon, &fake->in_sees);
	return !fake->blind;
}

static void fake_mon_stop(struct mrrc_mon *mon)
{
	fake_mon_of(mon)->stops++;
}

void fake_mon_raise(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event)
{
	struct fake_mon *fake = fake_mon_of(mon);

	assert(fake->queued < FAKE_MON_EVENTS);
	fake->queue[fake->queued].start = start;
	fake->queue[fake->queued].end = end;
	fake->queue[fake->queued++].event = event;
}

void fake_mon_read(struct mrrc_mon *mon)
{
	atomic_fetch_or(&mon->seq, 1);
}

static bool fake_mon_are(struct mrrc_mon *mon, unsigned first, unsigned last,
			 bool on)
{
	for (; first < last; first++) {
		if (fake_mon_of(mon)->watched[first] != on)
			return false;
	}
	return true;
}

bool fake_mon_all(struct mrrc_mon *mon, unsigned first, unsigned last)
{
	return fake_mon_are(mon, first, last, true);
}

bool fake_mon_none(struct mrrc_mon *mon, unsigned first, unsigned last)
{
	return fake_mon_are(mon, first, last, false);
}

const struct mrrc_mon_ops fake_mon_ops = {
	.name = "fake",
	.open = fake_mon_open,
	.close = fake_mon_close,
	.watch = fake_mon_watch,
	.unwatch = fake_mon_unwatch,
	.drain = fake_mon_drain,
	.check = fake_mon_check,
	.sees = fake_mon_sees,
	.stop = fake_mon_stop,
};
