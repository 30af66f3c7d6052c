/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a helper thread does when, so that a region is registered while it is
 * used and not in between: the two queues of li2011, section 3.2.
 *
 * A region whose last operation has ended is put into the deregistration
 * queue. The schedule asks the predictor for the next use, and if
 *
 *   now + cost <= deadline
 *
 * where the cost is that of deregistering and registering it, and of the
 * queues, the region is deregistered, and enters the registration queue;
 * deadlines there are spaced (deadline.h). Else it is kept until the latest
 * time at which its use is expected. A region is registered again at its
 * deadline less the cost.
 *
 * The owner has a mrrc_scheduled for each buffer, registered or not, tells of
 * uses, and does what mrrc_schedule_next() says, in one thread. Times are
 * nanoseconds; an argument, there is no clock. Not thread-safe; allocates
 * nothing.
 *
 * Invariants (mrrc_schedule_valid):
 *   D1 a region is in the queue of its state, and in no other
 *   D2 a region has holds exactly while it is IN_USE
 *   D3 planned registrations leave room for each other
 */
#ifndef MRRC_SCHEDULE_H
#define MRRC_SCHEDULE_H

#include <bsd/sys/queue.h>

#include "core/cost.h"
#include "core/deadline.h"
#include "core/predict.h"

enum mrrc_scheduled_state {
	MRRC_SCHEDULED_OUT,	/* not registered, and nothing planned */
	MRRC_SCHEDULED_IN_USE,	/* by operations: registered */
	MRRC_SCHEDULED_USED,	/* registered; to be judged */
	MRRC_SCHEDULED_KEPT,	/* registered, for a use that may come */
	MRRC_SCHEDULED_PLANNED, /* not registered, to be by its deadline */
	MRRC_SCHEDULED_COMING,	/* being registered for its next use */
};

struct mrrc_scheduled {
	TAILQ_ENTRY(mrrc_scheduled) link; /* while USED */
	struct mrrc_deadline deadline;	  /* while KEPT or PLANNED */
	struct mrrc_signature signature;  /* of the last use */
	uint64_t last;			  /* when that was */
	size_t len;			  /* bytes */
	unsigned holds;			  /* operations */
	enum mrrc_scheduled_state state;
	bool before; /* signature and last are set */
};

/* Counted since the beginning; that which the paper's figure 5 has. */
struct mrrc_schedule_stats {
	uint64_t uses;
	uint64_t again;	    /* of a region that was used before: of these */
	uint64_t late;	    /* was not registered any more, or not yet */
	uint64_t predicted; /* of uses again, those with a period */
	uint64_t within_5;  /* percent of it */
	uint64_t within_05; /* a half percent */
	uint64_t planned;   /* deregistered until a deadline */
	uint64_t dropped;   /* deregistered for good */
};

struct mrrc_schedule {
	struct mrrc_predict *predict;
	struct mrrc_cost cost;
	uint64_t queue_ns; /* what handling a region in a queue takes */
	TAILQ_HEAD(, mrrc_scheduled) used; /* deregistration queue */
	struct mrrc_deadlines planned;	   /* registration queue */
	struct mrrc_deadlines kept;	   /* until when */
	struct mrrc_schedule_stats stats;
};

enum mrrc_step {
	MRRC_STEP_NONE,	      /* nothing to do before *wake */
	MRRC_STEP_DEREGISTER, /* *item, which the schedule holds for gone */
	MRRC_STEP_REGISTER,   /* *item, then mrrc_schedule_registered() */
};

void mrrc_schedule_init(struct mrrc_schedule *schedule,
			struct mrrc_predict *predict,
			const struct mrrc_cost *cost, uint64_t queue_ns);

/* A region of so many bytes; not registered. */
void mrrc_scheduled_init(struct mrrc_scheduled *item, size_t len);

/*
 * An operation begins to use it, with that signature. false: the owner has to
 * register it first. Until mrrc_schedule_done() it stays registered.
 */
bool mrrc_schedule_use(struct mrrc_schedule *schedule,
		       struct mrrc_scheduled *item,
		       const struct mrrc_signature *signature, uint64_t now);

/* An operation has ended. */
void mrrc_schedule_done(struct mrrc_schedule *schedule,
			struct mrrc_scheduled *item);

/*
 * What to do now, first what is due first. *wake: when to ask again if nothing
 * happens in between; UINT64_MAX: never.
 */
enum mrrc_step mrrc_schedule_next(struct mrrc_schedule *schedule, uint64_t now,
				  struct mrrc_scheduled **item, uint64_t *wake);

/* The registration that was asked for is there. */
void mrrc_schedule_registered(struct mrrc_schedule *schedule,
			      struct mrrc_scheduled *item);

/* Not in use, it was invalidated or evicted, or could not be registered. */
void mrrc_schedule_forget(struct mrrc_schedule *schedule,
			  struct mrrc_scheduled *item);

static inline bool mrrc_scheduled_registered(const struct mrrc_scheduled *item)
{
	return item->state == MRRC_SCHEDULED_IN_USE ||
	       item->state == MRRC_SCHEDULED_USED ||
	       item->state == MRRC_SCHEDULED_KEPT;
}

bool mrrc_schedule_valid(const struct mrrc_schedule *schedule);

#endif /* MRRC_SCHEDULE_H */
