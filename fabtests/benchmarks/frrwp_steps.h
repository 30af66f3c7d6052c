/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The steps of a transaction that frrwp_bench times, in microseconds since the
 * transaction's start. The times of steps up to the write are taken from the
 * transaction, of many, in which the core got the write soonest. The time of a
 * later step is the time of the write plus the shortest time from the write to
 * this step in any transaction, since other programs on the machine slow two
 * processes that poll.
 */
#ifndef FRRWP_STEPS_H
#define FRRWP_STEPS_H

#include <stdbool.h>

/*
 * The target takes a step, unless the step's comment names the writer. For crw,
 * the steps of registering are the begin and end of the call that also
 * registers.
 */
#define STEPS(X)                                         \
	X(asked)  /* the core has the request */         \
	X(heard)  /* the request has arrived */          \
	X(treg)	  /* the target begins to register */    \
	X(tregd)  /* the target has registered */        \
	X(key)	  /* the target has sent the key */      \
	X(keyin)  /* the key has arrived */              \
	X(wreg)	  /* the writer begins to register */    \
	X(wregd)  /* the writer has registered */        \
	X(posted) /* the core gets the write */          \
	X(free)	  /* the writer's application is free */ \
	X(done)	  /* the writer has its completion */    \
	X(told)	  /* the target is told that the data is there */

#define STEP_ENUM(name) S_##name,

enum step { STEPS(STEP_ENUM) STEP_CNT };

struct ft_steps {
	bool any;
	/* us since the start; -1: the step does not exist */
	double at[STEP_CNT];
	double soonest[STEP_CNT]; /* us since the write was posted */
};

/* Adds the times of one more transaction. */
void ft_steps_note(struct ft_steps *best, const double *times);
/* Prints the end of a line; if best is NULL, prints the names of the steps. */
void ft_steps_print(const struct ft_steps *best);

#endif /* FRRWP_STEPS_H */
