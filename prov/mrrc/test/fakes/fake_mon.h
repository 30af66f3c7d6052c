/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A monitor that the test drives: calls raise events, every answer can be
 * chosen, and each watched page is known.
 */
#ifndef MRRC_TEST_FAKE_MON_H
#define MRRC_TEST_FAKE_MON_H

#include "sys/monitor/mon.h"

#define FAKE_MON_EVENTS 64

struct fake_mon {
	int check_rc; /* answer of the probe while no answer is queued */
	int watch_rc;
	bool blind; /* sees() answers false */
	bool knows; /* watch() tells that sees() need not look */
	/*
	 * Called once, inside the next check() or sees(), to act as another
	 * thread would.
	 */
	void (*in_check)(struct mrrc_mon *mon);
	void (*in_sees)(struct mrrc_mon *mon);
	int drain_rc;
	atomic_uint busy; /* number of drains that leave the probe busy */
	unsigned queued;
	struct {
		uintptr_t start, end;
		enum mrrc_mon_event event;
	} queue[FAKE_MON_EVENTS];
	unsigned watches, unwatches, drains, stops;
	unsigned early; /* number of drains while seq was even */
	/* Whether each page of one window of addresses is watched. */
	uintptr_t base;
	bool watched[64];
};

extern const struct mrrc_mon_ops fake_mon_ops;

static inline struct fake_mon *fake_mon_of(struct mrrc_mon *mon)
{
	return mon->impl;
}

/* Queues an event; the next drain handles it. */
void fake_mon_raise(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event);

/* The reader has read the queued events: the probe no longer sees them. */
void fake_mon_read(struct mrrc_mon *mon);

/* Whether all, or none, of the window's pages [first, last) are watched. */
bool fake_mon_all(struct mrrc_mon *mon, unsigned first, unsigned last);
bool fake_mon_none(struct mrrc_mon *mon, unsigned first, unsigned last);

#endif /* MRRC_TEST_FAKE_MON_H */
