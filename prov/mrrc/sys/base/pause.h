/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Short waits for a thread that will finish in a moment, if sleeping and being
 * woken would take longer. Yielding alone is not enough: it does not let
 * threads of lower real-time priority run, so a thread that waits for such a
 * thread on its own processor would never stop waiting.
 *
 * Any thread. None of the calls is a cancellation point: locks may be held, but
 * no lock that the other thread needs.
 */
#ifndef MRRC_PAUSE_H
#define MRRC_PAUSE_H

/*
 * Called in each round of a wait; *tries: 0 at first. Yields, and after a while
 * sleeps for some tens of microseconds.
 */
void mrrc_pause(unsigned *tries);

/*
 * For waits with a limit: @left tries are left. Sleeps before the last few
 * tries.
 */
void mrrc_pause_brief(unsigned left);

/* Sleeps for @ns, less than a second, whatever signals come. */
void mrrc_pause_for(long ns);

#endif /* MRRC_PAUSE_H */
