/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The schedule of a helper thread, by which a region is registered while it is
 * in use and deregistered in between: the two queues of li2011, section 3.2.
 *
 * A region whose last operation has ended enters the deregistration queue. The
 * schedule asks the predictor for the next use. The region is deregistered if
 *
 *   now + cost <= deadline
 *
 * where the cost includes deregistering, registering and the queues. A
 * deregistered region enters the registration queue, in which deadlines are
 * spaced (deadline.h), and is registered again at its deadline less the cost.
 * If the condition is false, the region is kept until the latest time at which
 * its use is expected.
 *
 * The owner has a mrrc_scheduled for each buffer, registered or not. The owner
 * reports uses, and one thread executes the steps that mrrc_schedule_next()
 * returns. Times are nanoseconds, and passed as arguments: there is no clock.
 * Not thread-safe; allocates nothing.
 *
 * Invariants (mrrc_schedule_valid):
 *   D1 a region is in the queue of its state, and in no other
 *   D2 a region has holds exactly while it is IN_USE
 *   D3 planned registrations leave room for each other
 */
#ifndef MRRC_SCHEDULE_H
#define MRRC_SCHEDULE_H

#include <bsd/sys/queue.h>

#include "core/cost/cost.h"
#include "core/helper/deadline.h"
#include "core/helper/predict.h"

enum mrrc_scheduled_state {
	/* not registered, and no registration planned */
	MRRC_SCHEDULED_OUT,
	MRRC_SCHEDULED_IN_USE,	/* registered, and in use by operations */
	MRRC_SCHEDULED_USED,	/* registered; to be judged */
	MRRC_SCHEDULED_KEPT,	/* registered, for an expected use */
	MRRC_SCHEDULED_PLANNED, /* to be registered by its deadline */
	MRRC_SCHEDULED_COMING,	/* being registered for its next use */
};

struct mrrc_scheduled {
	TAILQ_ENTRY(mrrc_scheduled) link; /* while USED */
	struct mrrc_deadline deadline;	  /* while KEPT or PLANNED */
	struct mrrc_signature signature;  /* signature of the last use */
	uint64_t last;			  /* time of the last use */
	size_t len;			  /* bytes */
	unsigned holds;			  /* number of operations */
	enum mrrc_scheduled_state state;
	bool before; /* signature and last are set */
};

/* Counters since init, the same as in figure 5 of the paper. */
struct mrrc_schedule_stats {
	uint64_t uses;
	/* uses of a region that was used before; parts of this number: */
	uint64_t again;
	/* uses of a region that is no longer registered, or not yet */
	uint64_t late;
	uint64_t predicted; /* uses with a predicted period */
	uint64_t within_5;  /* uses within 5 percent of the period */
	uint64_t within_05; /* uses within a half percent */
	uint64_t planned;   /* deregistrations until a deadline */
	uint64_t dropped;   /* deregistrations without a deadline */
};

struct mrrc_schedule {
	struct mrrc_predict *predict;
	struct mrrc_cost cost;
	/* time to handle a region in a queue */
	uint64_t queue_ns;
	TAILQ_HEAD(, mrrc_scheduled) used; /* deregistration queue */
	struct mrrc_deadlines planned;	   /* registration queue */
	/* by the time until which a region is kept */
	struct mrrc_deadlines kept;
	struct mrrc_schedule_stats stats;
};

enum mrrc_step {
	MRRC_STEP_NONE, /* nothing to do before *wake */
	/* deregister *item, which counts as gone at once */
	MRRC_STEP_DEREGISTER,
	/* register *item, then call mrrc_schedule_registered() */
	MRRC_STEP_REGISTER,
};

void mrrc_schedule_init(struct mrrc_schedule *schedule,
			struct mrrc_predict *predict,
			const struct mrrc_cost *cost, uint64_t queue_ns);

/* Initialises the item of a region of @len bytes, not registered. */
void mrrc_scheduled_init(struct mrrc_scheduled *item, size_t len);

/*
 * Records that an operation with the signature @signature begins to use the
 * region. Returns false if the owner has to register the region first. The
 * region stays registered until mrrc_schedule_done().
 */
bool mrrc_schedule_use(struct mrrc_schedule *schedule,
		       struct mrrc_scheduled *item,
		       const struct mrrc_signature *signature, uint64_t now);

/* An operation on the region has ended. */
void mrrc_schedule_done(struct mrrc_schedule *schedule,
			struct mrrc_scheduled *item);

/*
 * Returns the next step: the step with the earliest deadline. *wake: the time
 * of the next call, if the schedule does not change before; UINT64_MAX: never.
 */
enum mrrc_step mrrc_schedule_next(struct mrrc_schedule *schedule, uint64_t now,
				  struct mrrc_scheduled **item, uint64_t *wake);

/* The registration of MRRC_STEP_REGISTER is complete. */
void mrrc_schedule_registered(struct mrrc_schedule *schedule,
			      struct mrrc_scheduled *item);

/*
 * Postpones the step MRRC_STEP_DEREGISTER, because an operation that was not
 * reported uses the region. The region is judged again at @until.
 */
void mrrc_schedule_retain(struct mrrc_schedule *schedule,
			  struct mrrc_scheduled *item, uint64_t until);

/* The region is not in use, and was invalidated, evicted or not registrable. */
void mrrc_schedule_forget(struct mrrc_schedule *schedule,
			  struct mrrc_scheduled *item);

static inline bool mrrc_scheduled_registered(const struct mrrc_scheduled *item)
{
	return item->state == MRRC_SCHEDULED_IN_USE ||
	       item->state == MRRC_SCHEDULED_USED ||
	       item->state == MRRC_SCHEDULED_KEPT;
}

/*
 * Is a region registered that is not in use, so that the region may leave one
 * day?
 */
static inline bool mrrc_schedule_holds(const struct mrrc_schedule *schedule)
{
	return !TAILQ_EMPTY(&schedule->used) || schedule->kept.count;
}

bool mrrc_schedule_valid(const struct mrrc_schedule *schedule);

#endif /* MRRC_SCHEDULE_H */
