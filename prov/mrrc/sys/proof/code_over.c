/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recognises overwritten functions. Patchers redirect a function of libc by
 * writing one of these jumps over the function's first instructions:
 *
 *	e9 REL32			jmp			UCX, if near
 *	48 b8 IMM64  ff e0		mov, %rax; jmp *%rax	UCX, else
 *	49 bb IMM64  41 ff e3		mov, %r11; jmp *%r11	Open MPI
 *
 * As the jump may end in the middle of an instruction, the rest of the function
 * cannot be decoded; nor need it be, if nothing leads to the rest. Compilers,
 * too, make functions that begin with a jump, and reach the rest in ways that
 * are not found here (landing pads): but such a function has the same jump in
 * its file.
 *
 * References to the rest are searched for in the whole mapping and its tables.
 * A patcher that still calls the original function has a jump to the rest in
 * memory of its own, which is code of no file, and therefore not trusted
 * (prove.c).
 */
#include "config.h"
#include "sys/proof/code_over.h"

#ifdef HAVE_ZYDIS

#include <string.h>

#include "sys/proof/code_frame.h"
#include "sys/proof/code_refs.h"

#define CHUNK 4096 /* bytes of the file that are read at a time */

struct over_look {
	const struct mrrc_code *code;
	struct mrrc_code_range rest; /* all but the function's first byte */
	bool led;		     /* something leads to the rest */
};

/* The length of the jump that a function begins with; 0: no such jump. */
static size_t over_jump(const uint8_t *at, size_t len)
{
	if (len >= 5 && at[0] == 0xe9)
		return 5;
	if (len >= 12 && !memcmp(at, "\x48\xb8", 2) &&
	    !memcmp(at + 10, "\xff\xe0", 2))
		return 12;
	if (len >= 13 && !memcmp(at, "\x49\xbb", 2) &&
	    !memcmp(at + 10, "\x41\xff\xe3", 3))
		return 13;
	return 0;
}

/* Does a near jump lead to another place in the function? */
static bool over_loops(const struct mrrc_code_range *function)
{
	const uint8_t *const at = (const uint8_t *) function->start;
	uintptr_t to = function->start + 5;
	int32_t distance;

	if (at[0] != 0xe9)
		return false;
	memcpy(&distance, at + 1, sizeof(distance));
	to += (uintptr_t) (intptr_t) distance;
	return to >= function->start && to < function->end;
}

/*
 * Compares the code at @at with the file. Returns 0: the same bytes; 1: other
 * bytes; -1: the file has no bytes for @at.
 */
static int over_compare(const struct mrrc_code *code, uintptr_t at, size_t len)
{
	uint8_t bytes[CHUNK];

	if (!mrrc_code_filed(code, at, bytes, len))
		return -1;
	return memcmp(bytes, (const void *) at, len) != 0;
}

/*
 * Does the function differ from the file in the jump, and not behind the word
 * in which the jump ends? The rest of this word may have remains of a patch of
 * ours (patch.h).
 */
static bool over_differs(const struct mrrc_code *code,
			 const struct mrrc_code_range *function, size_t jump)
{
	uintptr_t at = (function->start + jump + 7) & ~(uintptr_t) 7;
	size_t len;

	if (over_compare(code, function->start, jump) != 1)
		return false;
	for (; at < function->end; at += len) {
		len = function->end - at;
		if (len > CHUNK)
			len = CHUNK;
		if (over_compare(code, at, len))
			return false;
	}
	return true;
}

/*
 * Handles a reference to the rest from another function. If that function also
 * begins with a patcher's jump, its code behind the jump may not decode: so all
 * bytes that may be a branch count, except the jump's own address. An
 * instruction that the jump has partly overwritten is not executed.
 */
static void over_ref(void *arg, uintptr_t to, uintptr_t field, unsigned size)
{
	struct over_look *const look = arg;
	struct mrrc_code_range from, gap;
	size_t jump;

	if (look->led ||
	    (field >= look->rest.start - 1 && field < look->rest.end))
		return;
	look->led = true;
	if (mrrc_code_function(look->code, field, &from, &gap))
		return;
	jump = over_jump((const uint8_t *) from.start, from.end - from.start);
	if (jump)
		look->led = field > from.start + jump ||
			    field == from.start + 1;
	else
		look->led = mrrc_code_refs_real(look->code, field);
}

bool mrrc_code_over_jumps(const struct mrrc_code_range *function)
{
	return over_jump((const uint8_t *) function->start,
			 function->end - function->start) &&
	       !over_loops(function);
}

bool mrrc_code_over(const struct mrrc_code *code,
		    const struct mrrc_code_range *function)
{
	struct over_look look = {
		.code = code,
		.rest = { function->start + 1, function->end },
	};
	const struct mrrc_code_range in = { code->image->start,
					    code->image->end };
	const size_t jump = over_jump((const uint8_t *) function->start,
				      function->end - function->start);
	size_t i;

	if (code->hidden || !over_differs(code, function, jump))
		return false;
	for (i = 0; i < code->names; i++)
		look.led |= code->name[i] >= look.rest.start &&
			    code->name[i] < look.rest.end;
	mrrc_code_refs(&in, &look.rest, over_ref, &look);
	return !look.led;
}

#endif /* HAVE_ZYDIS */
