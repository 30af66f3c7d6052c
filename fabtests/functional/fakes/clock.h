/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A CLOCK_MONOTONIC that the test moves: the provider's, the core's, and
 * ft_now_us(). It affects programs that link clock.c. ft_limit_us() reads
 * CLOCK_MONOTONIC_RAW, which the test does not move.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Timers that were set by this clock end as much earlier. */
void clock_advance(uint64_t us);
/* The clock stands still from then on; false: it goes on from there. */
void clock_stop(bool stop);
/* Each time that it is looked at while it stands, it advances by this much. */
void clock_step(uint64_t us);

#endif /* CLOCK_H */
