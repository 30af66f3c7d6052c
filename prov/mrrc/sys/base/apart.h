/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocates large, short-lived arrays in pages of their own, not by malloc.
 * malloc would serve the application's allocations differently after the free
 * of a large array; and a thread that uses malloc leaves a heap behind.
 *
 * Any thread. No lock may be held (sys/base/lock.h).
 */
#ifndef MRRC_APART_H
#define MRRC_APART_H

#include <stddef.h>

/*
 * Makes the array @old (NULL: no array yet) at least @size bytes long, with new
 * bytes zero. Returns the array, which may have moved, aligned to a cache line;
 * NULL: no memory is left, and @old is unchanged.
 */
void *mrrc_apart_grow(void *old, size_t size);

/* @array may be NULL. */
void mrrc_apart_free(void *array);

#endif /* MRRC_APART_H */
