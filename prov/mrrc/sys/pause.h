/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting for a thread that will be done in a moment, where it is not worth
 * being woken. Yielding alone is not enough: it lets none run that has less of
 * a real-time priority, so one that waits for such a thread on its own
 * processor would wait for ever.
 *
 * Any thread. Neither is a point of cancellation: locks may be held, but none
 * that the other thread needs.
 */
#ifndef MRRC_PAUSE_H
#define MRRC_PAUSE_H

/*
 * Each time round; *tries: 0 at first. Yields, and after a while sleeps for
 * some tens of microseconds.
 */
void mrrc_pause(unsigned *tries);

/* Where that is given up: how many looks are left. Sleeps before the last. */
void mrrc_pause_brief(unsigned left);

#endif /* MRRC_PAUSE_H */
