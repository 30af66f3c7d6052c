/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Did this process make an object, or is it a forked child with a copy of it? A
 * byte that the kernel clears in a child tells, however the child was made and
 * whatever its process number is.
 *
 * Callers serialise get and put.
 */
#ifndef MRRC_OURS_H
#define MRRC_OURS_H

#include <stdbool.h>

typedef volatile unsigned char mrrc_ours;

/*
 * Returns a byte that is set until it is put, or cleared. Never fails; if the
 * kernel clears no bytes, or none are left, a fork handler has to clear it.
 */
mrrc_ours *mrrc_ours_get(void);
void mrrc_ours_put(mrrc_ours *ours);

#endif /* MRRC_OURS_H */
