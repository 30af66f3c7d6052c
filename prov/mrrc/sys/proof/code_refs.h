/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds references to a program's code by branches and by instructions that
 * compute addresses.
 */
#ifndef MRRC_CODE_REFS_H
#define MRRC_CODE_REFS_H

#include "sys/proof/code_body.h"

/*
 * Are the bytes at @field the distance of a branch or lea, or bytes of no
 * function? false: they are another part of an instruction, or filler.
 */
bool mrrc_code_refs_real(const struct mrrc_code *code, uintptr_t field);

/* A distance of @size bytes at @field, that leads to @to. */
typedef void (*mrrc_code_refs_each)(void *arg, uintptr_t to, uintptr_t field,
				    unsigned size);

/*
 * Calls @each for each possible branch or lea in @in that leads into @to: takes
 * all bytes after a byte that could end the opcode of a branch or lea for a
 * distance. All branches in 64-bit mode have a distance of four bytes or of one
 * byte.
 */
void mrrc_code_refs(const struct mrrc_code_range *in,
		    const struct mrrc_code_range *to, mrrc_code_refs_each each,
		    void *arg);

#endif /* MRRC_CODE_REFS_H */
