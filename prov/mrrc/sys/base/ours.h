/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether this process made an object, or is a forked child with a copy
 * of the object, by a byte that the kernel clears in every child, whichever
 * call made the child and whatever its process number is.
 *
 * Callers serialise get and put.
 */
#ifndef MRRC_OURS_H
#define MRRC_OURS_H

#include <stdbool.h>

typedef volatile unsigned char mrrc_ours;

/*
 * Returns a byte that is set until mrrc_ours_put(), or until the kernel clears
 * the byte in a child. Never fails; if the kernel clears no bytes, or no byte
 * is left, a fork handler has to clear the returned byte.
 */
mrrc_ours *mrrc_ours_get(void);
void mrrc_ours_put(mrrc_ours *ours);

#endif /* MRRC_OURS_H */
