/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * In a program that links clock.c the test moves CLOCK_MONOTONIC for the
 * provider, the core and ft_now_us(). CLOCK_MONOTONIC_RAW, which ft_limit_us()
 * reads, stays the kernel's.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Moves the clock forward; running timers end earlier by @us. */
void clock_advance(uint64_t us);
/* Stops the clock; false: the clock goes on from there. */
void clock_stop(bool stop);
/* While the clock is stopped, each reading advances it by @us. */
void clock_step(uint64_t us);

#endif /* CLOCK_H */
