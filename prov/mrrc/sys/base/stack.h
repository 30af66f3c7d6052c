/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock-free stack of free places in an array, numbered from 1. The head has
 * the number of the top place (0: the stack is empty), and a count of pushes,
 * by which a thread that was interrupted in a pop notices that the same place
 * was popped and pushed again. Places stay readable until the process ends.
 *
 * Threading: any.
 */
#ifndef MRRC_STACK_H
#define MRRC_STACK_H

#include <stdatomic.h>
#include <stdint.h>

/* Returns where in the array the number of the next lower place is stored. */
typedef _Atomic uint32_t *mrrc_stack_below(void *array, uint32_t place);

/* Pops a place; 0: the stack is empty. */
static inline __attribute__((always_inline)) uint32_t
mrrc_stack_pop(_Atomic uint64_t *stack, mrrc_stack_below *below, void *array)
{
	uint64_t head = atomic_load_explicit(stack, memory_order_acquire);
	uint64_t rest;

	do {
		if (!(uint32_t) head)
			return 0;
		rest = head >> 32 << 32 |
		       atomic_load_explicit(below(array, (uint32_t) head),
					    memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(stack, &head, rest,
							memory_order_acquire,
							memory_order_acquire));
	return (uint32_t) head;
}

static inline __attribute__((always_inline)) void
mrrc_stack_push(_Atomic uint64_t *stack, mrrc_stack_below *below, void *array,
		uint32_t place)
{
	uint64_t head = atomic_load_explicit(stack, memory_order_relaxed);

	do {
		atomic_store_explicit(below(array, place), (uint32_t) head,
				      memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		stack, &head, ((head >> 32) + 1) << 32 | place,
		memory_order_release, memory_order_relaxed));
}

#endif /* MRRC_STACK_H */
