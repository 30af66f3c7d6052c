/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether this process made something, or is a forked child with a copy of it,
 * however it was forked and whatever its process number is: a byte that the
 * kernel clears in a child tells.
 *
 * Callers serialise get and put.
 */
#ifndef MRRC_OURS_H
#define MRRC_OURS_H

#include <stdbool.h>

typedef volatile unsigned char mrrc_ours;

/* A byte that says "ours" until it is put, or cleared. Never fails; where the
 * kernel clears no bytes, or none are left, a fork handler has to clear it. */
mrrc_ours *mrrc_ours_get(void);
void mrrc_ours_put(mrrc_ours *ours);

#endif /* MRRC_OURS_H */
