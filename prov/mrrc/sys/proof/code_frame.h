/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions, by the table for unwinding. */
#ifndef MRRC_CODE_FRAME_H
#define MRRC_CODE_FRAME_H

#include "sys/proof/code_priv.h"

/*
 * Finds, by .eh_frame_hdr, the last function that begins at or before @at, and
 * the gap between this and the next function. @at is in the function or in the
 * gap. *function is empty if no function begins at or before @at. Both ranges
 * are within the mapping. -ENOENT: the file has no .eh_frame_hdr; -EINVAL: the
 * table is malformed.
 */
int mrrc_code_function(const struct mrrc_code *code, uintptr_t at,
		       struct mrrc_code_range *function,
		       struct mrrc_code_range *gap);

#endif /* MRRC_CODE_FRAME_H */
