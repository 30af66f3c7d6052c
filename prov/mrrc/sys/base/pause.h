/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Short waits for another thread that is about to finish, where sleeping until
 * that thread wakes this thread would take longer. Only yielding is not enough:
 * sched_yield(2) lets no thread of lower real-time priority run, so waiting for
 * such a thread on the same processor would never end.
 *
 * Any thread. No call is a cancellation point: locks may be held, but no lock
 * that the other thread needs.
 */
#ifndef MRRC_PAUSE_H
#define MRRC_PAUSE_H

/*
 * Called in each round of a wait; *tries: 0 at first. Yields, and after a while
 * sleeps for some tens of microseconds.
 */
void mrrc_pause(unsigned *tries);

/*
 * Called before each try in a wait with a limit: @left tries are left. Yields,
 * but sleeps before the last few tries.
 */
void mrrc_pause_brief(unsigned left);

/* Sleeps for @ns, less than a second, whatever signals come. */
void mrrc_pause_for(long ns);

#endif /* MRRC_PAUSE_H */
