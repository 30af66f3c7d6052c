/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds references to places in code, without decoding the mapping: the bytes
 * after any byte that could end the opcode of a branch or lea are taken for a
 * distance. If a distance leads to a wanted place, the distance is verified by
 * decoding the code in front of the distance.
 */
#include "config.h"
#include "sys/proof/code_refs.h"

#ifdef HAVE_ZYDIS

#include <string.h>

#include "sys/proof/code_frame.h"

#define FILLER 64	   /* bytes of filler, at most */
#define BLOCK  64	   /* bytes that are compared at a time */
#define NEAR   128	   /* bytes that a near branch leads, at most */
#define SIGN   0x80000000u /* makes comparisons unsigned */

typedef int32_t refs_words __attribute__((vector_size(16)));
typedef uint32_t refs_unsigned __attribute__((vector_size(16)));

bool mrrc_code_refs_real(const struct mrrc_code *code, uintptr_t field)
{
	struct mrrc_code_range function, next;
	struct mrrc_code_insn insn;
	uintptr_t from;

	if (mrrc_code_function(code, field, &function, &next))
		return true;
	if (field >= function.end)
		return next.end - next.start > FILLER ||
		       !mrrc_code_filled(&next, field);
	return !mrrc_code_insn_at(&function, field, &insn, &from) ||
	       (insn.field && function.start + insn.at + insn.field == field);
}

/* Which of the four adjacent distances at @at lead into the range? A mask. */
static refs_words refs_lead(uintptr_t at, refs_unsigned from, refs_words limit)
{
	refs_unsigned distance;

	memcpy(&distance, (const void *) at, sizeof(distance));
	return (refs_words) (distance + from) < limit;
}

/*
 * May a 32-bit distance that begins at any byte of this block lead into @to?
 * Compares the low 32 bits of the target addresses. Reads three bytes beyond
 * the block.
 */
static bool refs_block(uintptr_t at, const struct mrrc_code_range *to)
{
	const uint32_t len = (uint32_t) (to->end - to->start);
	const refs_words limit = (refs_words){ 0 } + (int32_t) (len + SIGN);
	refs_unsigned from = (refs_unsigned){ 0, 4, 8, 12 } +
			     ((uint32_t) (at + 4 - to->start) + SIGN);
	refs_words any = { 0 };
	uint64_t words[2];
	unsigned i;

#pragma GCC unroll 4
	for (i = 0; i < BLOCK; i += sizeof(any), from += sizeof(any)) {
		any |= refs_lead(at + i, from, limit);
		any |= refs_lead(at + i + 1, from + 1, limit);
		any |= refs_lead(at + i + 2, from + 2, limit);
		any |= refs_lead(at + i + 3, from + 3, limit);
	}
	memcpy(words, &any, sizeof(words));
	return words[0] | words[1];
}

/*
 * The length of the distance after the @at-th byte, if this byte can end the
 * opcode of a branch or lea: 1 or 4; else 0.
 */
static unsigned refs_size(const uint8_t *code, size_t at)
{
	const uint8_t byte = code[at], before = at ? code[at - 1] : 0;

	switch (byte >> 4) {
	case 0x7: /* jcc */
		return 1;
	case 0x8: /* jcc */
		return before == 0x0f ? 4 : 0;
	case 0xe:
		if (byte == 0xe8 || byte == 0xe9) /* call, jmp */
			return 4;
		return byte == 0xeb || byte <= 0xe3; /* jmp, loop, jrcxz */
	case 0xf:
		return byte == 0xf8 && before == 0xc7 ? 4 : 0; /* xbegin */
	case 0x0:
	case 0x1:
	case 0x2:
	case 0x3:
		return (byte & 7) == 5 && before == 0x8d ? 4 : 0; /* lea */
	default:
		return 0;
	}
}

static void refs_far(const struct mrrc_code_range *in,
		     const struct mrrc_code_range *to, mrrc_code_refs_each each,
		     void *arg)
{
	const uint8_t *const code = (const uint8_t *) in->start;
	const uintptr_t len = to->end - to->start;
	uintptr_t at = in->start + 1, stop, there;
	int32_t distance;

	while (in->end > at && in->end - at >= sizeof(distance)) {
		if (in->end - at >= BLOCK + sizeof(distance)) {
			stop = at + BLOCK;
			if (!refs_block(at, to)) {
				at = stop;
				continue;
			}
		} else {
			stop = in->end - sizeof(distance) + 1;
		}
		for (; at < stop; at++) {
			memcpy(&distance, (const void *) at, sizeof(distance));
			there = at + sizeof(distance) +
				(uintptr_t) (intptr_t) distance;
			if (there - to->start < len &&
			    refs_size(code, at - in->start - 1) == 4)
				each(arg, there, at, 4);
		}
	}
}

void mrrc_code_refs(const struct mrrc_code_range *in,
		    const struct mrrc_code_range *to, mrrc_code_refs_each each,
		    void *arg)
{
	const uint8_t *const code = (const uint8_t *) in->start;
	const uintptr_t len = to->end - to->start;
	uintptr_t at = in->start + 1, there;

	refs_far(in, to, each, arg);
	if (to->start > at + NEAR + 1)
		at = to->start - NEAR - 1;
	for (; at < in->end && at < to->end + NEAR + 1; at++) {
		there = at + 1 + (uintptr_t) (intptr_t) * (const int8_t *) at;
		if (there - to->start < len &&
		    refs_size(code, at - in->start - 1) == 1)
			each(arg, there, at, 1);
	}
}

#endif /* HAVE_ZYDIS */
