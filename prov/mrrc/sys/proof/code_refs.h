/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * References to places in x86-64 code from elsewhere: a file's tables, and
 * branches and address computations in other code.
 *
 * Any thread.
 */
#ifndef MRRC_CODE_REFS_H
#define MRRC_CODE_REFS_H

#include "sys/proof/code_body.h"

/*
 * The @size bytes at @field would be a distance to some place. Are they that of
 * a branch or lea, or in no function? @body keeps the last function.
 */
bool mrrc_code_refs_real(const struct mrrc_code *code,
			 struct mrrc_code_body *body, uintptr_t field,
			 unsigned size);

/*
 * How long the distance may be that follows the @at-th byte, if that ends the
 * opcode of a branch or lea: 1 or 4; or 0. Each branch that there is in 64-bit
 * mode has one of these.
 */
unsigned mrrc_code_refs_size(const uint8_t *code, size_t at);

/*
 * All four bytes of @in, or single ones near by, that would be a distance to a
 * place in @to: calls @each with that place, and where they are.
 */
void mrrc_code_refs_far(const struct mrrc_code_range *in,
			const struct mrrc_code_range *to,
			void (*each)(void *arg, uintptr_t to, uintptr_t field),
			void *arg);
void mrrc_code_refs_near(const struct mrrc_code_range *in,
			 const struct mrrc_code_range *to,
			 void (*each)(void *arg, uintptr_t to, uintptr_t field),
			 void *arg);

/* A bit for each byte of the mapping. */
struct mrrc_code_guard {
	uint8_t *at;	 /* only what was followed may lead there */
	uint8_t *inside; /* nor may its address be taken: it is in a function of
			  * which an instruction is relied on */
};

/* Calls @each for such places of which that is not so. */
void mrrc_code_refs_guarded(const struct mrrc_code *code,
			    const struct mrrc_code_guard *guard,
			    void (*each)(void *arg, uintptr_t at), void *arg);

#endif /* MRRC_CODE_REFS_H */
