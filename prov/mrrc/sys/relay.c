/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A monitor's events for somebody who may block (relay.h).
 *
 * Ranges that overlap become one, which keeps their number bounded although
 * nobody ever ends a watch; a change then ends the watch of all of it, and
 * all of it is told.
 *
 * Locks: serial (one watch at a time) -> MONITOR -> lock.
 */
#include "config.h"
#include "sys/relay.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "core/index.h"
#include "sys/pause.h"
#include "sys/threads.h"
#include "sys/vm.h"

#define RELAY_QUEUE	64	/* ranges yet to be told; more become one */
#define RELAY_TRIES	32	/* probes before a range counts as changed */

struct mrrc_relay {
	struct mrrc_mon *mon;
	struct mrrc_mon_sub sub;
	mrrc_relay_cb tell;
	void *arg;
	struct mrrc_lock serial;	/* RELAY: one watch at a time */
	struct mrrc_lock lock;		/* CACHE: all below */
	struct mrrc_index watched;
	struct mrrc_region_list dead;	/* to be freed by who may */
	struct mrrc_range adding;	/* being watched, not in the index */
	bool adding_stale;
	struct mrrc_range queue[RELAY_QUEUE];
	size_t queued;
	struct mrrc_range telling;
	sem_t wake;
	atomic_bool stop;
	pthread_t thread;
};

static struct mrrc_relay *relay_of(struct mrrc_mon_sub *sub)
{
	return (struct mrrc_relay *)((char *)sub -
				     offsetof(struct mrrc_relay, sub));
}

static bool range_overlaps(struct mrrc_range range, uintptr_t start,
			   uintptr_t end)
{
	return range.start < end && start < range.end;
}

static void range_add(struct mrrc_range *range, uintptr_t start, uintptr_t end)
{
	if (start < range->start)
		range->start = start;
	if (end > range->end)
		range->end = end;
}

/* Lock held. */
static void relay_queue(struct mrrc_relay *relay, uintptr_t start,
			uintptr_t end)
{
	if (relay->queued == RELAY_QUEUE) {
		range_add(&relay->queue[RELAY_QUEUE - 1], start, end);
		return;
	}
	relay->queue[relay->queued++] = (struct mrrc_range) { start, end };
	sem_post(&relay->wake);
}

static struct mrrc_range relay_notify(struct mrrc_mon_sub *sub,
				      uintptr_t start, uintptr_t end)
{
	struct mrrc_relay *relay = relay_of(sub);
	struct mrrc_range hull = { start, end };
	struct mrrc_region *region, *next;

	mrrc_lock_acquire(&relay->lock);
	if (range_overlaps(relay->adding, start, end))
		relay->adding_stale = true;
	region = mrrc_index_first_overlap(&relay->watched, start, end - start);
	if (!region) {
		mrrc_lock_release(&relay->lock);
		return (struct mrrc_range) { 0, 0 };
	}
	while (region) {
		next = mrrc_index_next_overlap(region, start, end - start);
		range_add(&hull, region->start, mrrc_region_end(region));
		mrrc_index_remove(&relay->watched, region);
		TAILQ_INSERT_TAIL(&relay->dead, region, link);
		region = next;
	}
	relay_queue(relay, hull.start, hull.end);
	mrrc_lock_release(&relay->lock);
	return hull;
}

static struct mrrc_range relay_cover(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	struct mrrc_relay *relay = relay_of(sub);
	struct mrrc_range best = { 0, 0 };
	struct mrrc_region *region;

	mrrc_lock_acquire(&relay->lock);
	region = mrrc_index_first_overlap(&relay->watched, pos,
					  UINTPTR_MAX - pos);
	if (region)
		best = (struct mrrc_range) {
			region->start, mrrc_region_end(region)
		};
	if (relay->adding.end > pos &&
	    (!best.end || relay->adding.start < best.start))
		best = relay->adding;
	mrrc_lock_release(&relay->lock);
	return best;
}

static size_t relay_count(struct mrrc_mon_sub *sub)
{
	struct mrrc_relay *relay = relay_of(sub);
	size_t count;

	mrrc_lock_acquire(&relay->lock);
	count = relay->watched.count;
	mrrc_lock_release(&relay->lock);
	return count;
}

/* ---- telling ---- */

static bool relay_next(struct mrrc_relay *relay,
		       struct mrrc_region_list *dead)
{
	bool any;

	mrrc_lock_acquire(&relay->lock);
	TAILQ_CONCAT(dead, &relay->dead, link);
	any = relay->queued;
	if (any) {
		relay->telling = relay->queue[--relay->queued];
	} else {
		relay->telling = (struct mrrc_range) { 0, 0 };
	}
	mrrc_lock_release(&relay->lock);
	return any;
}

static void *relay_main(void *arg)
{
	struct mrrc_region_list dead = TAILQ_HEAD_INITIALIZER(dead);
	struct mrrc_relay *relay = arg;
	struct mrrc_region *region;

	for (;;) {
		while (sem_wait(&relay->wake))
			;
		mrrc_thread_outside();
		while (relay_next(relay, &dead))
			relay->tell(relay->arg, relay->telling.start,
				    relay->telling.end - relay->telling.start);
		while ((region = TAILQ_FIRST(&dead))) {
			TAILQ_REMOVE(&dead, region, link);
			free(region);
		}
		mrrc_thread_inside();
		if (atomic_load(&relay->stop))
			return NULL;
	}
}

/* ---- watching ---- */

/* Watch what cover() reports already; on failure nothing is left behind. */
static int relay_try(struct mrrc_relay *relay, struct mrrc_range range)
{
	const size_t len = range.end - range.start;
	uint64_t token;
	int cancel;
	int rc;

	/* in open(2) or read(2) it would leave with serial held */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = mrrc_mon_watch(relay->mon, range.start, len, &token);
	if (!rc && !mrrc_mon_sees(relay->mon, range.start, len, token))
		rc = -EOPNOTSUPP;
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

/* Lock held: region becomes part of the index, with what it overlaps. */
static void relay_index(struct mrrc_relay *relay, struct mrrc_region *region)
{
	struct mrrc_range hull = {
		region->start, mrrc_region_end(region)
	};
	struct mrrc_region *other, *next;

	other = mrrc_index_first_overlap(&relay->watched, region->start,
					 region->len);
	while (other) {
		next = mrrc_index_next_overlap(other, region->start,
					       region->len);
		range_add(&hull, other->start, mrrc_region_end(other));
		mrrc_index_remove(&relay->watched, other);
		TAILQ_INSERT_TAIL(&relay->dead, other, link);
		other = next;
	}
	region->start = hull.start;
	region->len = hull.end - hull.start;
	mrrc_index_insert(&relay->watched, region);
}

int mrrc_relay_watch(struct mrrc_relay *relay, uintptr_t start, size_t len)
{
	const uintptr_t mask = mrrc_vm_page() - 1;
	struct mrrc_range range;
	struct mrrc_region *region;
	int rc;

	if (mrrc_mon_forked(relay->mon))
		return -ENODEV;
	if (!start || !len || len > UINTPTR_MAX - 2 * mask - start)
		return -EINVAL;
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	range.start = start & ~mask;
	range.end = (start + len + mask) & ~mask;
	region->start = range.start;
	region->len = range.end - range.start;

	/* What has happened up to now is no news of this range. */
	if (mrrc_mon_seq(relay->mon) & 1)
		mrrc_mon_drain(relay->mon);
	mrrc_lock_acquire(&relay->serial);
	mrrc_lock_acquire(&relay->lock);
	relay->adding = range;
	relay->adding_stale = false;
	mrrc_lock_release(&relay->lock);

	rc = relay_try(relay, range);

	mrrc_lock_acquire(&relay->lock);
	if (!rc && relay->adding_stale)
		rc = -EAGAIN;
	if (!rc)
		relay_index(relay, region);
	relay->adding = (struct mrrc_range) { 0, 0 };
	mrrc_lock_release(&relay->lock);
	/* a refusal has changed nothing, and may concern another's range */
	if (rc && mrrc_mon_watched(rc))
		mrrc_mon_unwatch(relay->mon, range.start,
				 range.end - range.start);
	mrrc_lock_release(&relay->serial);
	if (rc)
		free(region);
	return rc;
}

/* Lock held, memory quiet. */
static bool relay_known(struct mrrc_relay *relay, uintptr_t start, size_t len)
{
	size_t i;

	for (i = 0; i < relay->queued; i++) {
		if (range_overlaps(relay->queue[i], start, start + len))
			return false;
	}
	return !range_overlaps(relay->telling, start, start + len) &&
	       mrrc_index_find(&relay->watched, start, len);
}

bool mrrc_relay_valid(struct mrrc_relay *relay, uintptr_t start, size_t len)
{
	struct mrrc_mon *mon = relay->mon;
	bool known;
	uint64_t seq;
	int tries, rc;

	for (tries = 0; tries < RELAY_TRIES; tries++) {
		if (!mrrc_mon_works(mon))
			return false;
		seq = mrrc_mon_seq(mon);
		rc = seq & 1 ? -EAGAIN : mrrc_mon_check(mon);
		if (!rc) {
			mrrc_lock_acquire(&relay->lock);
			known = relay_known(relay, start, len);
			if (mrrc_mon_seq(mon) == seq) {
				mrrc_lock_release(&relay->lock);
				return known;
			}
			mrrc_lock_release(&relay->lock);
			continue;
		}
		if (rc != -EAGAIN)
			return false;
		mrrc_mon_drain(mon);
		mrrc_pause_brief(RELAY_TRIES - 1 - tries);
	}
	return false;
}

/* ---- life ---- */

int mrrc_relay_open(struct mrrc_mon *mon, mrrc_relay_cb tell, void *arg,
		    struct mrrc_relay **out)
{
	struct mrrc_relay *relay;
	int rc;

	relay = calloc(1, sizeof(*relay));
	if (!relay)
		return -ENOMEM;
	relay->mon = mon;
	relay->tell = tell;
	relay->arg = arg;
	relay->sub.notify = relay_notify;
	relay->sub.cover = relay_cover;
	relay->sub.count = relay_count;
	mrrc_index_init(&relay->watched);
	TAILQ_INIT(&relay->dead);
	sem_init(&relay->wake, 0, 0);
	rc = mrrc_lock_init(&relay->serial, MRRC_RANK_RELAY);
	if (rc)
		goto err_free;
	rc = mrrc_lock_init(&relay->lock, MRRC_RANK_CACHE);
	if (rc)
		goto err_serial;
	rc = mrrc_thread_start(&relay->thread, 0, relay_main, relay);
	if (rc)
		goto err_lock;
	mrrc_mon_subscribe(mon, &relay->sub);
	*out = relay;
	return 0;

err_lock:
	mrrc_lock_fini(&relay->lock);
err_serial:
	mrrc_lock_fini(&relay->serial);
err_free:
	sem_destroy(&relay->wake);
	free(relay);
	return rc;
}

void mrrc_relay_close(struct mrrc_relay *relay)
{
	struct mrrc_region *region;

	atomic_store(&relay->stop, true);
	sem_post(&relay->wake);
	mrrc_thread_join(relay->thread);
	mrrc_mon_unsubscribe(relay->mon, &relay->sub);
	/* everything that is watched becomes dead */
	relay_notify(&relay->sub, 0, UINTPTR_MAX);
	while ((region = TAILQ_FIRST(&relay->dead))) {
		TAILQ_REMOVE(&relay->dead, region, link);
		mrrc_mon_unwatch(relay->mon, region->start, region->len);
		free(region);
	}
	mrrc_lock_fini(&relay->lock);
	mrrc_lock_fini(&relay->serial);
	sem_destroy(&relay->wake);
	free(relay);
}
