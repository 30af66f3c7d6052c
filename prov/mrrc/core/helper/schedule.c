/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The schedule of a helper thread (schedule.h). */
#include "config.h"
#include "core/helper/schedule.h"

#include <assert.h>
#include <string.h>

/*
 * PATIENCE: if no prediction exists, the region is judged again after at least
 * PATIENCE times the region's cost
 */
#define PATIENCE 64
#define COST_MAX 1e16 /* ns, 115 days: sums do not wrap */

void mrrc_schedule_init(struct mrrc_schedule *schedule,
			struct mrrc_predict *predict,
			const struct mrrc_cost *cost, uint64_t queue_ns)
{
	*schedule = (struct mrrc_schedule){
		.predict = predict,
		.cost = *cost,
		.queue_ns = queue_ns,
	};
	TAILQ_INIT(&schedule->used);
	mrrc_deadlines_init(&schedule->planned);
	mrrc_deadlines_init(&schedule->kept);
}

void mrrc_scheduled_init(struct mrrc_scheduled *item, size_t len)
{
	*item = (struct mrrc_scheduled){ .len = len };
}

/*
 * The time t_p of both conditions of the paper: to move a region from one queue
 * to another, to deregister the region and to register it again. In the
 * registration queue t_p covers the region's registration, and before that the
 * deregistration of another region of the same size.
 */
static uint64_t mrrc_schedule_cost(const struct mrrc_schedule *schedule,
				   const struct mrrc_scheduled *item)
{
	const double ns = mrrc_cost_dereg(&schedule->cost, item->len) +
			  mrrc_cost_reg(&schedule->cost, item->len);

	return (uint64_t) (ns < COST_MAX ? ns : COST_MAX) +
	       2 * schedule->queue_ns;
}

static struct mrrc_scheduled *mrrc_scheduled_of(struct mrrc_deadline *deadline)
{
	return (struct mrrc_scheduled *) ((char *) deadline -
					  offsetof(struct mrrc_scheduled,
						   deadline));
}

/* Takes the item out of its queue. */
static void mrrc_schedule_leave(struct mrrc_schedule *schedule,
				struct mrrc_scheduled *item)
{
	switch (item->state) {
	case MRRC_SCHEDULED_USED:
		TAILQ_REMOVE(&schedule->used, item, link);
		break;
	case MRRC_SCHEDULED_KEPT:
		mrrc_deadlines_remove(&schedule->kept, &item->deadline);
		break;
	case MRRC_SCHEDULED_PLANNED:
		mrrc_deadlines_remove(&schedule->planned, &item->deadline);
		break;
	default:
		break;
	}
}

static void mrrc_schedule_keep(struct mrrc_schedule *schedule,
			       struct mrrc_scheduled *item, uint64_t until)
{
	item->deadline.due = until;
	item->state = MRRC_SCHEDULED_KEPT;
	mrrc_deadlines_add(&schedule->kept, &item->deadline);
}

/* ---- uses ---------------------------------------------------------------- */

/* Rates the prediction for the previous use, and learns the gap. */
static void mrrc_schedule_learn(struct mrrc_schedule *schedule,
				const struct mrrc_scheduled *item, uint64_t now)
{
	const uint64_t gap = now > item->last ? now - item->last : 0;
	struct mrrc_schedule_stats *stats = &schedule->stats;
	struct mrrc_prediction prediction;
	uint64_t error;

	mrrc_predict_next(schedule->predict, &item->signature, &prediction);
	if (prediction.period) {
		error = gap > prediction.period ? gap - prediction.period :
						  prediction.period - gap;
		stats->predicted++;
		stats->within_5 += error <= gap / 20;
		stats->within_05 += error <= gap / 200;
	}
	mrrc_predict_gap(schedule->predict, &item->signature, gap);
}

bool mrrc_schedule_use(struct mrrc_schedule *schedule,
		       struct mrrc_scheduled *item,
		       const struct mrrc_signature *signature, uint64_t now)
{
	const bool registered = mrrc_scheduled_registered(item);

	schedule->stats.uses++;
	if (item->before) {
		schedule->stats.again++;
		schedule->stats.late += !registered;
		mrrc_schedule_learn(schedule, item, now);
	}
	mrrc_predict_use(schedule->predict, signature);
	mrrc_schedule_leave(schedule, item);
	item->state = MRRC_SCHEDULED_IN_USE;
	item->holds++;
	item->signature = *signature;
	item->last = now;
	item->before = true;
	return registered;
}

void mrrc_schedule_done(struct mrrc_schedule *schedule,
			struct mrrc_scheduled *item)
{
	assert(item->state == MRRC_SCHEDULED_IN_USE);
	if (--item->holds)
		return;
	item->state = MRRC_SCHEDULED_USED;
	TAILQ_INSERT_TAIL(&schedule->used, item, link);
}

void mrrc_schedule_registered(struct mrrc_schedule *schedule,
			      struct mrrc_scheduled *item)
{
	struct mrrc_prediction prediction;
	uint64_t until;

	/* meanwhile the region was used or forgotten */
	if (item->state != MRRC_SCHEDULED_COMING)
		return;
	mrrc_predict_next(schedule->predict, &item->signature, &prediction);
	/* the predictor may have replaced the entry */
	until = prediction.to != MRRC_PREDICT_NEVER ?
			item->last + prediction.to :
			item->deadline.due + PATIENCE * item->deadline.cost;
	mrrc_schedule_keep(schedule, item, until);
}

void mrrc_schedule_retain(struct mrrc_schedule *schedule,
			  struct mrrc_scheduled *item, uint64_t until)
{
	assert(!mrrc_scheduled_registered(item));
	mrrc_schedule_leave(schedule, item);
	mrrc_schedule_keep(schedule, item, until);
}

void mrrc_schedule_forget(struct mrrc_schedule *schedule,
			  struct mrrc_scheduled *item)
{
	assert(item->state != MRRC_SCHEDULED_IN_USE);
	mrrc_schedule_leave(schedule, item);
	item->state = MRRC_SCHEDULED_OUT;
}

/* ---- steps --------------------------------------------------------------- */

/*
 * Decides about a registered region that is in no queue and not in use. true:
 * the region has to be deregistered.
 */
static bool mrrc_schedule_judge(struct mrrc_schedule *schedule,
				struct mrrc_scheduled *item, uint64_t now)
{
	const uint64_t cost = mrrc_schedule_cost(schedule, item);
	struct mrrc_prediction prediction;
	uint64_t due;

	mrrc_predict_next(schedule->predict, &item->signature, &prediction);
	due = mrrc_deadlines_fit(&schedule->planned,
				 item->last + prediction.from, cost);
	if (prediction.from && now + cost <= due) {
		item->deadline.due = due;
		item->deadline.cost = cost;
		item->state = MRRC_SCHEDULED_PLANNED;
		mrrc_deadlines_add(&schedule->planned, &item->deadline);
		schedule->stats.planned++;
		return true;
	}
	if (prediction.to == MRRC_PREDICT_NEVER) {
		mrrc_schedule_keep(schedule, item,
				   now + (now - item->last) + PATIENCE * cost +
					   1);
		return false;
	}
	if (item->last + prediction.to > now) {
		mrrc_schedule_keep(schedule, item, item->last + prediction.to);
		return false;
	}
	item->state = MRRC_SCHEDULED_OUT;
	schedule->stats.dropped++;
	return true;
}

/* Returns a planned registration that cannot wait for another step. */
static struct mrrc_scheduled *
mrrc_schedule_due(const struct mrrc_schedule *schedule, uint64_t now)
{
	struct mrrc_deadline *first = mrrc_deadlines_first(&schedule->planned);

	return first && now + first->cost >= first->due ?
		       mrrc_scheduled_of(first) :
		       NULL;
}

/*
 * Returns a region to judge: the first of the used queue, or a region that was
 * kept long enough.
 */
static struct mrrc_scheduled *
mrrc_schedule_judged(const struct mrrc_schedule *schedule, uint64_t now)
{
	struct mrrc_deadline *first = mrrc_deadlines_first(&schedule->kept);

	if (!TAILQ_EMPTY(&schedule->used))
		return TAILQ_FIRST(&schedule->used);
	return first && first->due <= now ? mrrc_scheduled_of(first) : NULL;
}

static uint64_t mrrc_schedule_wake(const struct mrrc_schedule *schedule)
{
	const struct mrrc_deadline *reg, *keep;
	uint64_t wake = UINT64_MAX;

	reg = mrrc_deadlines_first(&schedule->planned);
	keep = mrrc_deadlines_first(&schedule->kept);
	if (reg)
		wake = reg->due - reg->cost;
	if (keep && keep->due < wake)
		wake = keep->due;
	return wake;
}

enum mrrc_step mrrc_schedule_next(struct mrrc_schedule *schedule, uint64_t now,
				  struct mrrc_scheduled **out, uint64_t *wake)
{
	struct mrrc_scheduled *item;

	for (;;) {
		item = mrrc_schedule_due(schedule, now);
		if (item) {
			mrrc_schedule_leave(schedule, item);
			item->state = MRRC_SCHEDULED_COMING;
			*out = item;
			return MRRC_STEP_REGISTER;
		}
		item = mrrc_schedule_judged(schedule, now);
		if (!item) {
			*wake = mrrc_schedule_wake(schedule);
			return MRRC_STEP_NONE;
		}
		mrrc_schedule_leave(schedule, item);
		if (mrrc_schedule_judge(schedule, item, now)) {
			*out = item;
			return MRRC_STEP_DEREGISTER;
		}
	}
}

/* ---- invariants ---------------------------------------------------------- */

static bool mrrc_schedule_valid_queue(const struct mrrc_deadlines *queue,
				      enum mrrc_scheduled_state state,
				      bool spaced)
{
	struct mrrc_deadline *at, *next;
	size_t count = 0;

	for (at = mrrc_deadlines_first(queue); at; at = next, count++) {
		next = mrrc_deadlines_next(at);
		if (mrrc_scheduled_of(at)->state != state ||
		    mrrc_scheduled_of(at)->holds)
			return false; /* D1, D2 */
		if (spaced && next && at->due > next->due - next->cost)
			return false; /* D3 */
	}
	return count == queue->count;
}

bool mrrc_schedule_valid(const struct mrrc_schedule *schedule)
{
	const struct mrrc_scheduled *item;

	TAILQ_FOREACH(item, &schedule->used, link) {
		if (item->state != MRRC_SCHEDULED_USED || item->holds)
			return false; /* D1, D2 */
	}
	return mrrc_schedule_valid_queue(&schedule->planned,
					 MRRC_SCHEDULED_PLANNED, true) &&
	       mrrc_schedule_valid_queue(&schedule->kept, MRRC_SCHEDULED_KEPT,
					 false);
}
