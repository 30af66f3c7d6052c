/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registers ahead of use (ahead.h): noted uses, steps, turns, and life.
 */
#include "config.h"
#include "sys/predict/ahead_priv.h"

#include <errno.h>

#include "sys/base/apart.h"
#include "sys/base/biased_lock.h"
#include "sys/base/vm.h"
#include "sys/cache/miss.h"
#include "sys/cache/reaper.h"
#include "sys/predict/ahead_away.h"

#define SIGNATURES 4096
#define BATCH	   32 /* buffers that one barrier serves */

/* ns of a wake-up, and of handling a region in a queue */
#define QUEUE_NS   50000
#define PERIOD	   UINT64_C(2000000) /* ns between two looks at the rings */
#define PERIOD_MAX (8 * PERIOD)	     /* the same with little to do */
#define BARRED_MAX (256 * PERIOD)    /* the same while the helper may not act */
/* turns without a use before the helper sleeps until it is woken */
#define QUIET  4
#define ASK_NS UINT64_C(1000000000) /* ns between questions while asleep */
/* a region in use is judged again after a quarter of the time since its use */
#define BUSY_PART 4
/* factor: a region leaves only for this many times its cost */
#define WORTH 8

static struct mrrc_buffer *buffer_of(struct mrrc_scheduled *item)
{
	return (struct mrrc_buffer *) ((char *) item -
				       offsetof(struct mrrc_buffer, item));
}

/* ---- noted uses: to buffers, and to the schedule ------------------------- */

/* Makes a buffer, in place of the least recently used one if necessary. */
static struct mrrc_buffer *buffer_new(struct mrrc_ahead *ahead, uintptr_t start,
				      size_t len)
{
	struct mrrc_buffer *buffer;

	if (ahead->made < MRRC_AHEAD_BUFFERS) {
		buffer = &ahead->buffer[ahead->made++];
	} else {
		buffer = TAILQ_FIRST(&ahead->used);
		TAILQ_REMOVE(&ahead->used, buffer, link);
		mrrc_schedule_forget(&ahead->schedule, &buffer->item);
		mrrc_spans_remove(&ahead->buffers, &buffer->span);
	}
	*buffer = (struct mrrc_buffer){ .prepared = false };
	mrrc_scheduled_init(&buffer->item, len);
	buffer->span.start = start;
	buffer->span.len = len;
	mrrc_spans_add(&ahead->buffers, &buffer->span);
	TAILQ_INSERT_TAIL(&ahead->used, buffer, link);
	return buffer;
}

static struct mrrc_buffer *buffer_get(struct mrrc_ahead *ahead, uintptr_t start,
				      size_t len)
{
	struct mrrc_span *span = mrrc_spans_at(&ahead->buffers, start);
	struct mrrc_buffer *buffer;

	if (!span)
		return buffer_new(ahead, start, len);
	buffer = mrrc_ahead_buffer(span);
	TAILQ_REMOVE(&ahead->used, buffer, link);
	TAILQ_INSERT_TAIL(&ahead->used, buffer, link);
	if (len > span->len) {
		mrrc_spans_resize(&ahead->buffers, span, len);
		buffer->item.len = len;
	}
	return buffer;
}

/*
 * Reports to the schedule that an operation began to use a buffer, and at once
 * that it ended: ahead_leave() keeps regions that are still in use.
 */
static void ahead_use(struct mrrc_ahead *ahead, struct mrrc_uses *uses,
		      const struct mrrc_use *use)
{
	const uintptr_t mask = mrrc_vm_page() - 1;
	const uintptr_t start = use->addr & ~mask;
	struct mrrc_signature signature;
	struct mrrc_buffer *buffer;
	size_t len;

	/* not a valid range: the application's call fails */
	if (use->len > UINTPTR_MAX - mask ||
	    use->addr > UINTPTR_MAX - mask - use->len)
		return;
	len = ((use->addr + use->len + mask) & ~mask) - start;
	buffer = buffer_get(ahead, start, len);
	if (mrrc_away_back(ahead, start, len))
		mrrc_ahead_stat(ahead, MRRC_STAT_LATE, 1);
	else if (buffer->prepared)
		mrrc_ahead_stat(ahead, MRRC_STAT_AHEAD_USED, 1);
	buffer->prepared = false;
	/* the time since the last use may be more than one gap */
	if (buffer->item.last < ahead->lost)
		buffer->item.before = false;
	mrrc_predict_sign(&uses->context, use->site, use->addr, use->len,
			  &signature);
	mrrc_schedule_use(&ahead->schedule, &buffer->item, &signature,
			  mrrc_ticks_ns(&ahead->ticks, use->when));
	mrrc_schedule_done(&ahead->schedule, &buffer->item);
}

/*
 * The next ring after @uses that has uses. Moves rings of ended threads to
 * @ended. CACHE lock held.
 */
static struct mrrc_uses *ahead_ring(struct mrrc_ahead *ahead,
				    struct mrrc_uses *uses,
				    struct mrrc_uses_list *ended)
{
	struct mrrc_uses_list *list = &ahead->cache->hints_list.uses;
	struct mrrc_uses *next;

	uses = uses ? TAILQ_NEXT(uses, link) : TAILQ_FIRST(list);
	for (; uses && !mrrc_uses_any(uses); uses = next) {
		next = TAILQ_NEXT(uses, link);
		if (!uses->ended)
			continue;
		TAILQ_REMOVE(list, uses, link);
		TAILQ_INSERT_TAIL(ended, uses, link);
	}
	return uses;
}

/* Reads the rings of all threads once. Were there any uses? */
static bool ahead_read(struct mrrc_ahead *ahead)
{
	struct mrrc_uses_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct mrrc_cache_mt *cache = ahead->cache;
	struct mrrc_uses *uses = NULL;
	uint64_t lost = 0, before, when;
	size_t count, total = 0, i;

	for (;;) {
		mrrc_lock_acquire(&cache->lock);
		uses = ahead_ring(ahead, uses, &ended);
		ahead->schedule.cost = cache->cache.cost;
		mrrc_lock_release(&cache->lock);
		if (!uses)
			break;
		before = lost;
		count = mrrc_uses_read(uses, ahead->use, MRRC_USES_RING, &lost);
		mrrc_ticks_look(&ahead->ticks);
		when = count ? mrrc_ticks_ns(&ahead->ticks, ahead->use->when) :
			       ahead->ticks.ns;
		/* another ring may have lost later uses */
		if (lost != before && when > ahead->lost)
			ahead->lost = when;
		for (i = 0; i < count; i++)
			ahead_use(ahead, uses, &ahead->use[i]);
		total += count;
	}
	mrrc_ahead_stat(ahead, MRRC_STAT_NOTED, total + lost);
	mrrc_ahead_stat(ahead, MRRC_STAT_NOTES_LOST, lost);
	while ((uses = TAILQ_FIRST(&ended))) {
		TAILQ_REMOVE(&ended, uses, link);
		mrrc_thread_outside();
		mrrc_uses_free(uses);
		mrrc_thread_inside();
	}
	return total;
}

/* ---- steps --------------------------------------------------------------- */

/* Does a buffer in this region have to stay registered? */
static bool ahead_wanted(const struct mrrc_ahead *ahead,
			 const struct mrrc_region *region)
{
	const uintptr_t start = region->start;
	struct mrrc_span *span;

	for (span = mrrc_spans_first(&ahead->buffers, start, region->len); span;
	     span = mrrc_spans_next(span, start, region->len)) {
		if (mrrc_scheduled_registered(&mrrc_ahead_buffer(span)->item))
			return true;
	}
	return false;
}

/*
 * Takes the regions of one buffer out of the cache. CACHE lock held. A region
 * that peers can reach stays, since its key would change. false: an operation
 * uses a region.
 */
static bool ahead_leave(struct mrrc_ahead *ahead,
			const struct mrrc_buffer *buffer,
			struct mrrc_region_list *gone)
{
	struct mrrc_cache *cache = &ahead->cache->cache;
	const uintptr_t start = buffer->span.start;
	const size_t len = buffer->span.len;
	struct mrrc_region *region, *next;
	bool busy = false;
	int access;

	for (access = MRRC_RO; access <= MRRC_RW; access++) {
		region = mrrc_index_first_overlap(&cache->index[access], start,
						  len);
		for (; region; region = next) {
			next = mrrc_index_next_overlap(region, start, len);
			if (ahead_wanted(ahead, region))
				continue;
			if (mrrc_region_held(region))
				busy = true;
			else
				mrrc_cache_leave(cache, region, gone);
		}
	}
	return !busy;
}

/*
 * The minimum time between two turns, with the time for which other threads may
 * have the processor.
 */
static uint64_t ahead_least(const struct mrrc_ahead *ahead)
{
	return PERIOD + ahead->delay;
}

/* Checks a region in use again, each time after a longer wait. */
static void ahead_retain(struct mrrc_ahead *ahead, struct mrrc_buffer *buffer)
{
	const uint64_t now = ahead->ticks.ns;

	mrrc_schedule_retain(&ahead->schedule, &buffer->item,
			     now + (now - buffer->item.last) / BUSY_PART +
				     ahead_least(ahead));
}

static void ahead_deregister(struct mrrc_ahead *ahead,
			     struct mrrc_buffer *const *buffer, size_t count)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	struct mrrc_cache_mt *cache = ahead->cache;
	struct mrrc_region *region;
	uint64_t left;
	size_t i;

	mrrc_lock_acquire(&cache->lock);
	for (i = 0; i < count; i++) {
		if (!ahead_leave(ahead, buffer[i], &gone))
			ahead_retain(ahead, buffer[i]);
		else if (buffer[i]->prepared)
			mrrc_cache_count(&cache->cache, MRRC_STAT_AHEAD_UNUSED);
		buffer[i]->prepared = false;
	}
	mrrc_cache_left(&cache->cache, &gone, &victims);
	cache->helping = true;
	mrrc_lock_release(&cache->lock);

	TAILQ_FOREACH(region, &victims, link)
		mrrc_away_add(ahead, region);
	mrrc_thread_outside();
	left = mrrc_cache_mt_dereg_list(cache, &victims);
	mrrc_thread_inside();
	mrrc_ahead_stat(ahead, MRRC_STAT_EARLY, left);
	mrrc_cache_mt_helped(cache);
}

/* Registers the parts of a due buffer that are away. */
static void ahead_register(struct mrrc_ahead *ahead, struct mrrc_buffer *buffer)
{
	const uintptr_t start = buffer->span.start;
	const size_t len = buffer->span.len;
	struct mrrc_span *span, *next;
	bool there = false;
	int ret;

	for (span = mrrc_spans_first(&ahead->aways, start, len); span;
	     span = next) {
		next = mrrc_spans_next(span, start, len);
		mrrc_thread_outside();
		ret = mrrc_cache_mt_ahead(ahead->cache, span->start, span->len,
					  mrrc_away_at(span)->access,
					  mrrc_away_at(span)->token,
					  ahead->flushes);
		mrrc_thread_inside();
		mrrc_ahead_stat(ahead,
				ret ? MRRC_STAT_AHEAD_REFUSED : MRRC_STAT_AHEAD,
				ret != -EEXIST);
		buffer->prepared |= !ret;
		there |= !ret || ret == -EEXIST;
		mrrc_away_forget(ahead, mrrc_away_at(span));
	}
	if (there)
		mrrc_schedule_registered(&ahead->schedule, &buffer->item);
	else
		mrrc_schedule_forget(&ahead->schedule, &buffer->item);
}

/*
 * Would the buffer be away for long enough, so that the helper's work is a
 * small part of the time, however short the buffer's period is?
 */
static bool ahead_worth(struct mrrc_ahead *ahead, struct mrrc_buffer *buffer)
{
	struct mrrc_scheduled *item = &buffer->item;
	const uint64_t worth = WORTH * (item->deadline.cost - ahead->delay);
	const uint64_t due = item->deadline.due;

	if (item->state != MRRC_SCHEDULED_PLANNED ||
	    due >= ahead->ticks.ns + item->deadline.cost + worth)
		return true;
	mrrc_schedule_retain(&ahead->schedule, item, due + worth);
	return false;
}

/* Executes some steps; false: no steps are due before *wake. */
static bool ahead_steps(struct mrrc_ahead *ahead, uint64_t *wake)
{
	struct mrrc_buffer *batch[BATCH];
	struct mrrc_scheduled *item;
	enum mrrc_step step;
	unsigned steps, count = 0;

	for (steps = 0; steps < BATCH; steps++) {
		step = mrrc_schedule_next(&ahead->schedule,
					  mrrc_ticks_look(&ahead->ticks), &item,
					  wake);
		if (step == MRRC_STEP_NONE)
			break;
		if (step == MRRC_STEP_REGISTER)
			ahead_register(ahead, buffer_of(item));
		else if (ahead_worth(ahead, buffer_of(item)))
			batch[count++] = buffer_of(item);
	}
	if (count)
		ahead_deregister(ahead, batch, count);
	return steps;
}

/* ---- turns --------------------------------------------------------------- */

/*
 * Called after a flush, or when the helper may not act: forgets all regions
 * that are away.
 */
static void ahead_forget(struct mrrc_ahead *ahead)
{
	struct mrrc_away *away;

	while ((away = TAILQ_FIRST(&ahead->gone)))
		mrrc_away_forget(ahead, away);
}

/*
 * Asks the node's budget whether the helper may act, as the processes of the
 * node share processors.
 */
static void ahead_ask(struct mrrc_ahead *ahead, bool would)
{
	struct mrrc_cache_mt *cache = ahead->cache;

	if (cache->budget)
		ahead->leave = mrrc_budget_helper(cache->budget, &cache->member,
						  cache->helpers, would);
}

static bool ahead_may(struct mrrc_ahead *ahead)
{
	struct mrrc_cache_mt *cache = ahead->cache;
	uint64_t flushes, delay;

	ahead_ask(ahead, true);
	mrrc_lock_acquire(&cache->lock);
	flushes = cache->flushes;
	mrrc_lock_release(&cache->lock);
	delay = ahead->leave.move_ns;
	ahead->delay = delay / 2 * 2;
	ahead->schedule.queue_ns = QUEUE_NS + delay / 2;
	if (!ahead->leave.may || flushes != ahead->flushes)
		ahead_forget(ahead);
	ahead->flushes = flushes;
	return ahead->leave.may;
}

/*
 * The time at which a sleeping helper wakes, if no use wakes it before. A
 * helper that may not act wakes from time to time to ask again, since a process
 * that ends does not notify other processes.
 */
static uint64_t ahead_asleep(struct mrrc_ahead *ahead, bool may, uint64_t wake)
{
	if (wake == UINT64_MAX)
		ahead_ask(ahead, false);
	if (!may && mrrc_schedule_holds(&ahead->schedule))
		return ahead->ticks.ns + ASK_NS;
	return wake;
}

/*
 * Called when no use was noted for some time: sets the flag by which the next
 * use wakes the helper. The barrier makes a use that another thread is noting
 * visible here, or the flag visible to that thread. false: a use was noted.
 */
static bool ahead_sleep(struct mrrc_ahead *ahead)
{
	struct mrrc_cache_mt *cache = ahead->cache;
	struct mrrc_uses *uses;
	bool any = false;

	atomic_store(&cache->asleep, true);
	mrrc_biased_barrier();
	mrrc_lock_acquire(&cache->lock);
	TAILQ_FOREACH(uses, &cache->hints_list.uses, link)
		any |= mrrc_uses_any(uses) || uses->ended;
	mrrc_lock_release(&cache->lock);
	if (any)
		atomic_store(&cache->asleep, false);
	return !any;
}

/*
 * The time until the helper reads the rings next: at least ahead_least(), and
 * longer from turn to turn. A helper that may not act reads the rings, too, to
 * know the used buffers when it may act again; meanwhile overwritten entries do
 * not matter.
 */
static uint64_t ahead_period(struct mrrc_ahead *ahead, bool may)
{
	const uint64_t least = ahead_least(ahead);
	const uint64_t max = may ? PERIOD_MAX : BARRED_MAX;
	const uint64_t period = ahead->period < max ? ahead->period : max;

	ahead->period = period < max ? 2 * period : max;
	return period > least ? period : least;
}

uint64_t mrrc_ahead_turn(struct mrrc_ahead *ahead, bool *asleep)
{
	uint64_t wake = UINT64_MAX;
	uint64_t period;
	bool any, may;

	*asleep = false;
	if (atomic_load(&ahead->cache->asleep))
		atomic_store(&ahead->cache->asleep, false);
	may = ahead_may(ahead);
	any = ahead_read(ahead);
	mrrc_ticks_look(&ahead->ticks);
	mrrc_away_sweep(ahead);
	ahead->quiet = any ? 0 : ahead->quiet + 1;
	if (may && ahead_steps(ahead, &wake)) {
		ahead->period = PERIOD;
		mrrc_ahead_show(ahead);
		return 0;
	}
	mrrc_ahead_show(ahead);
	*asleep = ahead->quiet > QUIET && ahead_sleep(ahead);
	if (*asleep)
		return ahead_asleep(ahead, may, wake);
	period = ahead_period(ahead, may);
	/* a step that is due soon looks at the rings, too */
	return ahead->ticks.ns + 2 * period < wake ? ahead->ticks.ns + period :
						     wake;
}

/* ---- life ---------------------------------------------------------------- */

int mrrc_ahead_open(struct mrrc_cache_mt *cache, bool counter,
		    struct mrrc_ahead **out)
{
	struct mrrc_ahead *ahead;

	if (!mrrc_mon_remembers(cache->mon))
		return -ENODEV;
	ahead = mrrc_apart_grow(NULL, sizeof(*ahead) +
					      mrrc_predict_bytes(SIGNATURES));
	if (!ahead)
		return -ENOMEM;
	mrrc_predict_place(&ahead->predict, SIGNATURES, ahead->entries);
	ahead->cache = cache;
	ahead->leave.may = true;
	ahead->period = PERIOD;
	mrrc_schedule_init(&ahead->schedule, &ahead->predict,
			   &cache->cache.cost, QUEUE_NS);
	mrrc_ticks_init(&ahead->ticks, counter);
	ahead->counted = ahead->ticks.ns;
	mrrc_spans_init(&ahead->buffers);
	mrrc_spans_init(&ahead->aways);
	TAILQ_INIT(&ahead->used);
	TAILQ_INIT(&ahead->gone);
	TAILQ_INIT(&ahead->free);
	mrrc_hints_list_note(&cache->hints_list, counter);
	*out = ahead;
	return 0;
}

void mrrc_ahead_close(struct mrrc_ahead *ahead)
{
	ahead_ask(ahead, false);
	mrrc_apart_free(ahead);
}

const struct mrrc_predictor mrrc_ahead_predictor = {
	.open = mrrc_ahead_open,
	.close = mrrc_ahead_close,
	.turn = mrrc_ahead_turn,
};
