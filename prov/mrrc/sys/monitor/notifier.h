/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watches memory for a callback that may block when told of a change:
 * libfabric's own caches take a lock under which they register and unmap.
 *
 * The unmapping thread sleeps until its event is read, so the reading thread
 * must not wait for such a lock. Hence the notifier queues events, and a thread
 * of the notifier passes events to the callback. This is safe, as valid()
 * returns false from the time when an event is read until it is passed on.
 *
 * Any thread, no lock of ours held.
 */
#ifndef MRRC_NOTIFIER_H
#define MRRC_NOTIFIER_H

#include "sys/monitor/mon.h"

struct mrrc_notifier;

/* The range has changed. May block. */
typedef void (*mrrc_notifier_cb)(void *arg, uintptr_t start, size_t len);

/* @mon outlives the notifier. */
int mrrc_notifier_open(struct mrrc_mon *mon, mrrc_notifier_cb tell, void *arg,
		       struct mrrc_notifier **notifier);
void mrrc_notifier_close(struct mrrc_notifier *notifier);

/*
 * Watches the range, whose pages are pinned, to report changes. Returns 0, or
 * the reason why changes could go unnoticed. A watch ends when a change is
 * reported.
 */
int mrrc_notifier_watch(struct mrrc_notifier *notifier, uintptr_t start,
			size_t len);

/* Is a watched range unchanged so far? */
bool mrrc_notifier_valid(struct mrrc_notifier *notifier, uintptr_t start,
			 size_t len);

#endif /* MRRC_NOTIFIER_H */
