/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watches memory for somebody who may block when told that it changed:
 * libfabric's own caches take a lock under which they register and unmap.
 *
 * The unmapping thread sleeps until its event is read, so whoever reads it
 * must not wait for such a lock. Hence events are queued here, and a thread
 * of the relay's own tells them. Between the two valid() says no, which is
 * what makes it safe.
 *
 * Any thread, no lock of ours held.
 */
#ifndef MRRC_RELAY_H
#define MRRC_RELAY_H

#include "sys/mon.h"

struct mrrc_relay;

/* Whatever is known of the range is wrong. May block. */
typedef void (*mrrc_relay_cb)(void *arg, uintptr_t start, size_t len);

/* mon: outlives the relay. */
int mrrc_relay_open(struct mrrc_mon *mon, mrrc_relay_cb tell, void *arg,
		    struct mrrc_relay **relay);
void mrrc_relay_close(struct mrrc_relay *relay);

/*
 * From now on tell of changes in the pages of the range, which are pinned.
 * 0, or why changes could go unnoticed. A watch ends when it was told.
 */
int mrrc_relay_watch(struct mrrc_relay *relay, uintptr_t start, size_t len);

/* Has nothing happened to a watched range so far? */
bool mrrc_relay_valid(struct mrrc_relay *relay, uintptr_t start, size_t len);

#endif /* MRRC_RELAY_H */
