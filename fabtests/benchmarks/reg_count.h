/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counts the device's registrations in a program that links reg_count.c. */
#ifndef REG_COUNT_H
#define REG_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the number of calls of ibv_reg_mr and similar functions since the
 * process started.
 */
uint64_t reg_count(void);
/* Returns the number of registrations with on-demand paging. */
uint64_t reg_count_odp(void);
/* Returns the maximum number of bytes that were registered at a time. */
uint64_t reg_count_peak(void);
/*
 * Returns the nanoseconds of processor time that registering and deregistering
 * took since the call of reg_count_time().
 */
uint64_t reg_count_ns(void);
void reg_count_time(void);
/*
 * Makes later registrations of memory that peers may write to use no on-demand
 * paging.
 */
void reg_count_pin_targets(void);

#endif /* REG_COUNT_H */
