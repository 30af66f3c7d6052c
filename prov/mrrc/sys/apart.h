/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arrays in pages of their own, apart from malloc: for arrays that are large
 * and short-lived. malloc would remember their size when they are freed and
 * serve the application's allocations differently from then on; and a thread
 * that uses malloc leaves a heap behind.
 *
 * Any thread. Not while a lock is held (sys/lock.h).
 */
#ifndef MRRC_APART_H
#define MRRC_APART_H

#include <stddef.h>

/* At least so many bytes, those that are new zero; @old: NULL, or what there
 * was, which may move. NULL: there is no memory, and @old as it was. */
void *mrrc_apart_grow(void *old, size_t size);

/* NULL is none. */
void mrrc_apart_free(void *array);

#endif /* MRRC_APART_H */
