/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions, by the table for unwinding. */
#ifndef MRRC_CODE_FRAME_H
#define MRRC_CODE_FRAME_H

#include "sys/proof/code_priv.h"

/*
 * Finds the last function that begins at @at or before, by .eh_frame_hdr, and
 * the gap between it and the next function. @at is in one of the two. If there
 * is no such function, it is empty. Both are within the mapping. -ENOENT: there
 * is no table; -EINVAL: it is malformed.
 */
int mrrc_code_function(const struct mrrc_code *code, uintptr_t at,
		       struct mrrc_code_range *function,
		       struct mrrc_code_range *gap);

#endif /* MRRC_CODE_FRAME_H */
