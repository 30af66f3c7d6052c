/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions that begin with a jump that the file does not have. */
#ifndef MRRC_CODE_OVER_H
#define MRRC_CODE_OVER_H

#include "sys/proof/code_body.h"

/* Does the function begin with a jump out of it, as patchers write one? */
bool mrrc_code_over_jumps(const struct mrrc_code_range *function);

/*
 * Is the rest of a function that begins with a patcher's jump never executed?
 * That is so if another library has written the jump, and no code, table or
 * pointer of the file leads to the rest. Reads the whole mapping.
 */
bool mrrc_code_over(const struct mrrc_code *code,
		    const struct mrrc_code_range *function);

#endif /* MRRC_CODE_OVER_H */
