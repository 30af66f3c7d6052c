/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arrays in separate pages, apart from malloc: for arrays that are large and
 * short-lived. malloc would remember their size when they are freed and serve
 * the application's allocations differently from then on; and a thread that
 * uses malloc leaves a heap behind.
 *
 * Any thread. No lock may be held (sys/base/lock.h).
 */
#ifndef MRRC_APART_H
#define MRRC_APART_H

#include <stddef.h>

/*
 * Makes @old (NULL: none yet) at least @size bytes long; new bytes are zero,
 * and the array may move. Returns an array aligned to a cache line. NULL: no
 * memory is left, and @old is unchanged.
 */
void *mrrc_apart_grow(void *old, size_t size);

/* @array may be NULL. */
void mrrc_apart_free(void *array);

#endif /* MRRC_APART_H */
