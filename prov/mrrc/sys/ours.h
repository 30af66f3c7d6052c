/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether this is the process that made something, or a child with a copy of
 * it, however that was forked, and whatever process number it has: a byte that
 * the kernel clears in a child.
 *
 * Callers serialise get and put.
 */
#ifndef MRRC_OURS_H
#define MRRC_OURS_H

#include <stdbool.h>

typedef volatile unsigned char mrrc_ours;

/* One that says "ours" until it is put, or told otherwise. Never fails; where
 * the kernel clears no bytes, or there are no more, a fork handler has to. */
mrrc_ours *mrrc_ours_get(void);
void mrrc_ours_put(mrrc_ours *ours);

#endif /* MRRC_OURS_H */
