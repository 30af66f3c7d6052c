/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passes a monitor's events to callbacks that may block (notifier.h).
 *
 * Overlapping ranges become one range, which bounds the number of ranges
 * although callers never end a watch. A change ends the watch of the whole
 * range, and the callback is told the whole range. Lock order: serial (one
 * watch at a time) -> MONITOR -> lock.
 */
#include "config.h"
#include "sys/monitor/notifier.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "core/index/index.h"
#include "sys/base/pause.h"
#include "sys/base/threads.h"
#include "sys/base/vm.h"

/* limit of queued ranges; when full, ranges are merged */
#define NOTIFIER_QUEUE 64
#define NOTIFIER_TRIES 32 /* probes before a range counts as changed */

struct mrrc_notifier {
	struct mrrc_mon *mon;
	struct mrrc_mon_sub sub;
	mrrc_notifier_cb tell;
	void *arg;
	struct mrrc_lock serial; /* NOTIFIER: one watch at a time */
	struct mrrc_lock lock;	 /* CACHE: all below */
	struct mrrc_index watched;
	struct mrrc_region_list dead; /* regions to free without locks held */
	struct mrrc_range adding;     /* being watched, not yet in the index */
	bool adding_stale;
	struct mrrc_range queue[NOTIFIER_QUEUE];
	size_t queued;
	struct mrrc_range telling;
	sem_t wake;
	atomic_bool stop;
	pthread_t thread;
};

static struct mrrc_notifier *notifier_of(struct mrrc_mon_sub *sub)
{
	return (struct mrrc_notifier *) ((char *) sub -
					 offsetof(struct mrrc_notifier, sub));
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
static void notifier_queue(struct mrrc_notifier *notifier, uintptr_t start,
			   uintptr_t end)
{
	if (notifier->queued == NOTIFIER_QUEUE) {
		range_add(&notifier->queue[NOTIFIER_QUEUE - 1], start, end);
		return;
	}
	notifier->queue[notifier->queued++] = (struct mrrc_range){ start, end };
	sem_post(&notifier->wake);
}

static struct mrrc_range notifier_notify(struct mrrc_mon_sub *sub,
					 uintptr_t start, uintptr_t end)
{
	struct mrrc_notifier *notifier = notifier_of(sub);
	struct mrrc_range hull = { start, end };
	struct mrrc_region *region, *next;

	mrrc_lock_assert_held(&notifier->lock);
	if (range_overlaps(notifier->adding, start, end))
		notifier->adding_stale = true;
	region = mrrc_index_first_overlap(&notifier->watched, start,
					  end - start);
	if (!region)
		return (struct mrrc_range){ 0, 0 };
	while (region) {
		next = mrrc_index_next_overlap(region, start, end - start);
		range_add(&hull, region->start, mrrc_region_end(region));
		mrrc_index_remove(&notifier->watched, region);
		TAILQ_INSERT_TAIL(&notifier->dead, region, link);
		region = next;
	}
	notifier_queue(notifier, hull.start, hull.end);
	return hull;
}

static struct mrrc_range notifier_cover(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	struct mrrc_notifier *notifier = notifier_of(sub);
	struct mrrc_range best = { 0, 0 };
	struct mrrc_region *region;

	mrrc_lock_assert_held(&notifier->lock);
	region = mrrc_index_first_overlap(&notifier->watched, pos,
					  UINTPTR_MAX - pos);
	if (region)
		best = (struct mrrc_range){ region->start,
					    mrrc_region_end(region) };
	if (notifier->adding.end > pos &&
	    (!best.end || notifier->adding.start < best.start))
		best = notifier->adding;
	return best;
}

/* ---- telling ---- */

static bool notifier_next(struct mrrc_notifier *notifier,
			  struct mrrc_region_list *dead)
{
	bool any;

	mrrc_lock_acquire(&notifier->lock);
	TAILQ_CONCAT(dead, &notifier->dead, link);
	any = notifier->queued;
	if (any) {
		notifier->telling = notifier->queue[--notifier->queued];
	} else {
		notifier->telling = (struct mrrc_range){ 0, 0 };
	}
	mrrc_lock_release(&notifier->lock);
	return any;
}

static void *notifier_main(void *arg)
{
	struct mrrc_region_list dead = TAILQ_HEAD_INITIALIZER(dead);
	struct mrrc_notifier *notifier = arg;
	struct mrrc_region *region;

	for (;;) {
		while (sem_wait(&notifier->wake))
			;
		mrrc_thread_outside();
		while (notifier_next(notifier, &dead))
			notifier->tell(notifier->arg, notifier->telling.start,
				       notifier->telling.end -
					       notifier->telling.start);
		while ((region = TAILQ_FIRST(&dead))) {
			TAILQ_REMOVE(&dead, region, link);
			free(region);
		}
		mrrc_thread_inside();
		if (atomic_load(&notifier->stop))
			return NULL;
	}
}

/* ---- watching ---- */

/*
 * Watches a range that cover() reports already. On failure the caller unwatches
 * the range, if mrrc_mon_watched() says so.
 */
static int notifier_try(struct mrrc_notifier *notifier, struct mrrc_range range)
{
	const size_t len = range.end - range.start;
	uint64_t token;
	int cancel;
	int ret;

	/*
	 * a thread that is cancelled in open(2) or read(2) would end with
	 * serial held
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = mrrc_mon_watch(notifier->mon, range.start, len, &token);
	if (!ret && !mrrc_mon_sees(notifier->mon, range.start, len, token))
		ret = -EOPNOTSUPP;
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

/*
 * Adds region to the index, together with the ranges that it overlaps. Lock
 * held.
 */
static void notifier_index(struct mrrc_notifier *notifier,
			   struct mrrc_region *region)
{
	struct mrrc_range hull = { region->start, mrrc_region_end(region) };
	struct mrrc_region *other, *next;

	other = mrrc_index_first_overlap(&notifier->watched, region->start,
					 region->len);
	while (other) {
		next = mrrc_index_next_overlap(other, region->start,
					       region->len);
		range_add(&hull, other->start, mrrc_region_end(other));
		mrrc_index_remove(&notifier->watched, other);
		TAILQ_INSERT_TAIL(&notifier->dead, other, link);
		other = next;
	}
	region->start = hull.start;
	region->len = hull.end - hull.start;
	mrrc_index_insert(&notifier->watched, region);
}

int mrrc_notifier_watch(struct mrrc_notifier *notifier, uintptr_t start,
			size_t len)
{
	const uintptr_t mask = mrrc_vm_page() - 1;
	struct mrrc_range range;
	struct mrrc_region *region;
	int ret;

	if (mrrc_mon_forked(notifier->mon))
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

	/* Earlier events are not changes of this range. */
	if (mrrc_mon_seq(notifier->mon) & 1)
		mrrc_mon_drain(notifier->mon);
	mrrc_lock_acquire(&notifier->serial);
	mrrc_lock_acquire(&notifier->lock);
	notifier->adding = range;
	notifier->adding_stale = false;
	mrrc_lock_release(&notifier->lock);

	ret = notifier_try(notifier, range);

	mrrc_lock_acquire(&notifier->lock);
	if (!ret && notifier->adding_stale)
		ret = -EAGAIN;
	if (!ret)
		notifier_index(notifier, region);
	notifier->adding = (struct mrrc_range){ 0, 0 };
	mrrc_lock_release(&notifier->lock);
	/* if the kernel refused, the range's watch may be another user's */
	if (ret && mrrc_mon_watched(ret))
		mrrc_mon_unwatch(notifier->mon, range.start,
				 range.end - range.start);
	mrrc_lock_release(&notifier->serial);
	if (ret)
		free(region);
	return ret;
}

/* Lock held, memory quiet. */
static bool notifier_known(struct mrrc_notifier *notifier, uintptr_t start,
			   size_t len)
{
	size_t i;

	for (i = 0; i < notifier->queued; i++) {
		if (range_overlaps(notifier->queue[i], start, start + len))
			return false;
	}
	return !range_overlaps(notifier->telling, start, start + len) &&
	       mrrc_index_find(&notifier->watched, start, len);
}

bool mrrc_notifier_valid(struct mrrc_notifier *notifier, uintptr_t start,
			 size_t len)
{
	struct mrrc_mon *mon = notifier->mon;
	bool known;
	uint64_t seq;
	int tries, ret;

	for (tries = 0; tries < NOTIFIER_TRIES; tries++) {
		if (!mrrc_mon_works(mon))
			return false;
		seq = mrrc_mon_seq(mon);
		ret = seq & 1 ? -EAGAIN : mrrc_mon_check(mon);
		if (!ret) {
			mrrc_lock_acquire(&notifier->lock);
			known = notifier_known(notifier, start, len);
			if (mrrc_mon_seq(mon) == seq) {
				mrrc_lock_release(&notifier->lock);
				return known;
			}
			mrrc_lock_release(&notifier->lock);
			continue;
		}
		if (ret != -EAGAIN)
			return false;
		mrrc_mon_drain(mon);
		mrrc_pause_brief(NOTIFIER_TRIES - 1 - tries);
	}
	return false;
}

/* ---- life ---- */

int mrrc_notifier_open(struct mrrc_mon *mon, mrrc_notifier_cb tell, void *arg,
		       struct mrrc_notifier **out)
{
	struct mrrc_notifier *notifier;
	int ret;

	notifier = calloc(1, sizeof(*notifier));
	if (!notifier)
		return -ENOMEM;
	notifier->mon = mon;
	notifier->tell = tell;
	notifier->arg = arg;
	notifier->sub.lock = &notifier->lock;
	notifier->sub.notify = notifier_notify;
	notifier->sub.cover = notifier_cover;
	notifier->sub.ranges = &notifier->watched.count;
	mrrc_index_init(&notifier->watched);
	TAILQ_INIT(&notifier->dead);
	sem_init(&notifier->wake, 0, 0);
	ret = mrrc_lock_init(&notifier->serial, MRRC_RANK_NOTIFIER);
	if (ret)
		goto err_free;
	ret = mrrc_lock_init(&notifier->lock, MRRC_RANK_CACHE);
	if (ret)
		goto err_serial;
	ret = mrrc_thread_start(&notifier->thread, 0, notifier_main, notifier);
	if (ret)
		goto err_lock;
	mrrc_mon_subscribe(mon, &notifier->sub);
	*out = notifier;
	return 0;

err_lock:
	mrrc_lock_fini(&notifier->lock);
err_serial:
	mrrc_lock_fini(&notifier->serial);
err_free:
	sem_destroy(&notifier->wake);
	free(notifier);
	return ret;
}

void mrrc_notifier_close(struct mrrc_notifier *notifier)
{
	struct mrrc_region *region;

	atomic_store(&notifier->stop, true);
	sem_post(&notifier->wake);
	mrrc_thread_join(notifier->thread);
	mrrc_mon_unsubscribe(notifier->mon, &notifier->sub);
	/* everything that is watched becomes dead */
	mrrc_lock_acquire(&notifier->lock);
	notifier_notify(&notifier->sub, 0, UINTPTR_MAX);
	mrrc_lock_release(&notifier->lock);
	while ((region = TAILQ_FIRST(&notifier->dead))) {
		TAILQ_REMOVE(&notifier->dead, region, link);
		mrrc_mon_unwatch(notifier->mon, region->start, region->len);
		free(region);
	}
	mrrc_lock_fini(&notifier->lock);
	mrrc_lock_fini(&notifier->serial);
	sem_destroy(&notifier->wake);
	free(notifier);
}
