/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gives random bits that peers do not know to the code in core/, which has no
 * random source. Any thread may call this.
 */
#ifndef MRRC_SECRET_H
#define MRRC_SECRET_H

#include "core/text/hash.h"

/* Each call returns a different secret. */
void mrrc_secret_make(struct mrrc_secret *secret);

#endif /* MRRC_SECRET_H */
