/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * In a program that links clock.c the test moves CLOCK_MONOTONIC, as the provider,
 * the core and ft_now_us() read it. CLOCK_MONOTONIC_RAW, which ft_limit_us() reads,
 * stays the kernel's.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Moves the clock; timers that were set by it end that much earlier. */
void clock_advance(uint64_t us);
/* Stops the clock; false: the clock goes on from there. */
void clock_stop(bool stop);
/* While the clock stands, each reading advances it by this much. */
void clock_step(uint64_t us);

#endif /* CLOCK_H */
