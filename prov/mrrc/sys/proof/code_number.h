/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* System calls' numbers. */
#ifndef MRRC_CODE_NUMBER_H
#define MRRC_CODE_NUMBER_H

#include "sys/proof/code_body.h"

/*
 * Finds the numbers of the system call at instruction @i: the values of rax
 * before @i on all paths that lead to @i.
 */
void mrrc_code_body_number(const struct mrrc_code *code,
			   struct mrrc_code_body *body, uint32_t i,
			   struct mrrc_code_found *found);

#endif /* MRRC_CODE_NUMBER_H */
