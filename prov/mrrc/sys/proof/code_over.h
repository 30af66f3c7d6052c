/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * x86-64 functions that a patcher has overwritten: they begin with a jump that
 * the file does not have.
 *
 * Any thread.
 */
#ifndef MRRC_CODE_OVER_H
#define MRRC_CODE_OVER_H

#include "sys/proof/code_body.h"

/* Does the function begin with a jump out of it, as patchers write it? */
bool mrrc_code_over_jumps(const struct mrrc_code_range *function);

/*
 * Of a function that begins so: another library has written the jump there, and
 * no code, table or pointer of the file leads to the rest, which is not
 * executed then. false: it may be. Reads the whole mapping.
 */
bool mrrc_code_over(const struct mrrc_code *code,
		    const struct mrrc_code_range *function);

#endif /* MRRC_CODE_OVER_H */
