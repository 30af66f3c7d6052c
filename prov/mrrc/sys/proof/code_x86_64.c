/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the byte pairs 0F 05 (syscall), 0F 34 (sysenter) and CD 80 (int 0x80)
 * in code for x86-64 (code.h), and the system call that each pair makes.
 *
 * A pair is no instruction if its section holds data; or if the pair lies in
 * the middle of another instruction, into which no branch of the function
 * leads. The second case can be decided without decoding the whole function:
 * decoding some bytes before the pair finds the other instruction, and no bytes
 * of the function may be a distance to the pair.
 */
#include "config.h"
#include "sys/proof/code_x86_64.h"
#include "sys/proof/code_body.h"

#include <errno.h>
#include <string.h>

#include "sys/proof/code_names.h"
#include "sys/proof/code_frame.h"
#include "sys/proof/code_number.h"
#include "sys/proof/code_refs.h"
#include "sys/proof/code_gap.h"
#include "sys/proof/code_over.h"

#ifdef HAVE_ZYDIS

#define BLOCK 64 /* bytes that are compared at a time */

typedef uint8_t code_bytes __attribute__((vector_size(16)));

/*
 * Is there a pair that begins in this block? Reads one byte beyond the block.
 */
static bool x86_block(const uint8_t *at)
{
	code_bytes first, second, any = { 0 };
	uint64_t words[2];
	unsigned i;

#pragma GCC unroll 4
	for (i = 0; i < BLOCK; i += sizeof(first)) {
		memcpy(&first, at + i, sizeof(first));
		memcpy(&second, at + i + 1, sizeof(second));
		any |= (code_bytes) (first == 0x0f) &
		       ((code_bytes) (second == 0x05) |
			(code_bytes) (second == 0x34));
		any |= (code_bytes) (first == 0xcd) &
		       (code_bytes) (second == 0x80);
	}
	memcpy(words, &any, sizeof(words));
	return words[0] | words[1];
}

static bool x86_pair(const uint8_t *at)
{
	return (at[0] == 0x0f && (at[1] == 0x05 || at[1] == 0x34)) ||
	       (at[0] == 0xcd && at[1] == 0x80);
}

/*
 * Can a pair begin with this byte? If the mapping ends with such a byte, memory
 * behind the mapping may complete the pair.
 */
static bool x86_half(uint8_t byte)
{
	return byte == 0x0f || byte == 0xcd;
}

static int x86_pairs(struct mrrc_code *code)
{
	const uint8_t *at = (const uint8_t *) code->image->start;
	const uint8_t *const end = (const uint8_t *) code->image->end;
	const uint8_t *stop;
	int ret = 0;

	while (end - at > 1 && !ret) {
		if (end - at > BLOCK && !x86_block(at)) {
			at += BLOCK;
			continue;
		}
		stop = end - at > BLOCK ? at + BLOCK : end - 1;
		for (; at < stop && !ret; at++) {
			if (x86_pair(at))
				ret = mrrc_code_add(code, (uintptr_t) at);
		}
	}
	if (!ret && x86_half(end[-1]))
		ret = mrrc_code_add(code, (uintptr_t) (end - 1));
	return ret;
}

#define PASSES	64 /* passes over the mapping, at most */
#define DECODE	8  /* cost of decoding a byte, in bytes passed over */
#define SLOT	((uintptr_t) 16)
#define GOES_ON 1024 /* bytes of a function with the gap behind it, at most */

/*
 * State that decides about the pairs of a mapping: the last function and gap.
 */
struct x86_look {
	struct mrrc_code *code;
	struct mrrc_code_body body;
	struct mrrc_code_gap gap;
	uint64_t left;		     /* bytes that may still be passed over */
	struct mrrc_code_range over; /* the last function asked about */
	bool dead; /* the function is overwritten, and its rest not executed */
};

static void x86_unknown(struct mrrc_code_found *found, const char *why)
{
	found->kind = MRRC_CODE_UNKNOWN;
	found->why = why;
}

/*
 * Bounds the work: files with errors may have functions and gaps without end.
 */
static int x86_spend(struct x86_look *look, uint64_t bytes)
{
	if (bytes > look->left)
		return -E2BIG;
	look->left -= bytes;
	return 0;
}

/* Decides about a pair in the function that was read into the body. */
static void x86_in_body(struct x86_look *look, struct mrrc_code_found *found)
{
	struct mrrc_code_body *const body = &look->body;
	const uint32_t at = (uint32_t) (found->at - body->function.start);
	const uint32_t i = mrrc_code_body_find(body, at);
	const struct mrrc_code_insn *insn;

	if (!body->whole || i == MRRC_CODE_NONE) {
		x86_unknown(found, "the function does not decode");
		return;
	}
	insn = &body->insn[i];
	if (x86_spend(look, body->count)) {
		x86_unknown(found, "there is too much to look at");
	} else if (insn->flow == MRRC_CODE_SYSCALL) {
		found->at = body->function.start + insn->at;
		mrrc_code_body_number(look->code, body, i, found);
	} else if (insn->flow == MRRC_CODE_SYSCALL32) {
		found->at = body->function.start + insn->at;
		found->kind = MRRC_CODE_CALL_ANY;
		found->why = "a 32-bit system call";
	} else if (body->split) {
		x86_unknown(found, "a branch leads into an instruction");
	} else {
		found->kind = MRRC_CODE_INSIDE;
	}
}

struct x86_led {
	const struct mrrc_code *code;
	const struct mrrc_code_range *function;
	uint32_t insn; /* the instruction's offset in the function */
	bool led;      /* a branch leads past the instruction's beginning */
};

static void x86_ref(void *arg, uintptr_t to, uintptr_t field, unsigned size)
{
	struct x86_led *const look = arg;
	const uintptr_t start = look->function->start;
	const uint32_t len = (uint32_t) (look->function->end - start);
	uint32_t at = (uint32_t) (to - start);
	struct mrrc_code_insn insn;

	while (at < look->insn &&
	       mrrc_code_insn_read((const uint8_t *) start, at, len, &insn))
		at += insn.len;
	look->led = look->led || (at != look->insn &&
				  mrrc_code_refs_real(look->code, field));
}

/*
 * Is the pair in the middle of an instruction that all branches of the function
 * to this place pass from the instruction's beginning? A branch to bytes in
 * front of the instruction may lead past the beginning, too. false: the whole
 * function has to be decoded.
 */
static bool x86_inside(const struct mrrc_code *code,
		       const struct mrrc_code_range *function, uintptr_t at)
{
	struct x86_led look = { .code = code, .function = function };
	struct mrrc_code_insn insn;
	struct mrrc_code_range middle;

	if (!mrrc_code_insn_at(function, at, &insn, &middle.start) ||
	    insn.flow == MRRC_CODE_SYSCALL || insn.flow == MRRC_CODE_SYSCALL32)
		return false;
	look.insn = insn.at;
	middle.end = at + 1;
	mrrc_code_refs(function, &middle, x86_ref, &look);
	return !look.led;
}

/* Is the pair in the unused rest of an overwritten function? */
static bool x86_over(struct x86_look *look,
		     const struct mrrc_code_range *function)
{
	const struct mrrc_code_image *const image = look->code->image;

	if (!mrrc_code_over_jumps(function))
		return false;
	if (look->over.start != function->start ||
	    look->over.end != function->end) {
		look->over = *function;
		mrrc_code_names(look->code);
		look->dead = !x86_spend(look, image->end - image->start) &&
			     mrrc_code_over(look->code, function);
	}
	return look->dead;
}

static int x86_read(struct x86_look *look,
		    const struct mrrc_code_range *function)
{
	if (look->body.function.start != function->start &&
	    x86_spend(look, DECODE * (function->end - function->start)))
		return -E2BIG;
	return mrrc_code_body_read(&look->body, function);
}

static int x86_in_function(struct x86_look *look,
			   const struct mrrc_code_range *function,
			   struct mrrc_code_found *found)
{
	int ret;

	if (x86_over(look, function) ||
	    x86_inside(look->code, function, found->at)) {
		found->kind = MRRC_CODE_INSIDE;
		return 0;
	}
	ret = x86_read(look, function);
	if (!ret)
		x86_in_body(look, found);
	return ret;
}

/* Does execution continue after the function's last instruction? */
static bool x86_goes_on(const struct mrrc_code_body *body)
{
	return body->whole && body->count &&
	       mrrc_code_body_falls(&body->insn[body->count - 1]);
}

/*
 * Decides about a pair in a gap, after the function that was read into the
 * body. A function whose unwinding entry ends before the function's last
 * instruction, as the entry of clone(), continues in the gap.
 */
static int x86_in_gap(struct x86_look *look,
		      const struct mrrc_code_range *range,
		      struct mrrc_code_found *found)
{
	const struct mrrc_code_range both = { look->body.function.start,
					      range->end };
	const bool falls = look->body.function.end == range->start &&
			   (!look->body.whole || x86_goes_on(&look->body));
	const struct mrrc_code_image *const image = look->code->image;
	const char *why;
	int ret = 0;

	if (falls && both.end - both.start <= GOES_ON) {
		ret = mrrc_code_body_read(&look->body, &both);
		if (!ret)
			x86_in_body(look, found);
		if (ret || found->kind == MRRC_CODE_CALL)
			return ret;
	}
	if (look->gap.range.start != range->start) {
		ret = x86_spend(look, image->end - image->start);
		mrrc_code_names(look->code);
		if (!ret)
			ret = mrrc_code_gap_read(&look->gap, look->code, range,
						 falls);
	}
	if (ret)
		return ret;
	why = look->gap.unknown;
	if (!why) {
		found->kind = MRRC_CODE_DATA;
		return 0;
	}
	x86_unknown(found, why);
	return 0;
}

/*
 * Finds the slot with the byte @at in a linker's table of other libraries'
 * functions (PLT). A slot is a function, with or without an entry in unwinding
 * tables:
 *
 *	jmp *x(%rip); push n; jmp ...
 */
static bool x86_slot(const struct mrrc_code_range *gap, uintptr_t at,
		     struct mrrc_code_range *slot)
{
	const uint8_t *const code = (const uint8_t *) (at & ~(SLOT - 1));

	slot->start = (uintptr_t) code;
	slot->end = slot->start + SLOT;
	return slot->start >= gap->start && slot->end <= gap->end &&
	       !memcmp(code, "\xff\x25", 2) && code[6] == 0x68 &&
	       code[11] == 0xe9;
}

static int x86_in_text(struct x86_look *look,
		       const struct mrrc_code_range *text,
		       struct mrrc_code_found *found)
{
	struct mrrc_code_range function, gap, slot;
	int ret;

	if (mrrc_code_function(look->code, found->at, &function, &gap)) {
		x86_unknown(found, "no table of functions");
		return 0;
	}
	if (found->at < function.end)
		return x86_in_function(look, &function, found);
	if (gap.start < text->start)
		gap.start = text->start;
	if (gap.end > text->end)
		gap.end = text->end;
	if (x86_slot(&gap, found->at, &slot) &&
	    x86_inside(look->code, &slot, found->at)) {
		found->kind = MRRC_CODE_INSIDE;
		return 0;
	}
	ret = x86_read(look, &function);
	if (ret)
		return ret;
	return x86_in_gap(look, &gap, found);
}

static int x86_decide(struct x86_look *look, struct mrrc_code_found *found)
{
	struct mrrc_code_range text;
	int ret;

	if (!mrrc_code_text(look->code, found->at, &text)) {
		found->kind = MRRC_CODE_DATA;
		return 0;
	}
	if (found->at == look->code->image->end - 1) {
		x86_unknown(found, "at the end of the mapping");
		return 0;
	}
	ret = x86_in_text(look, &text, found);
	if (ret != -E2BIG)
		return ret;
	x86_unknown(found, "there is too much to look at");
	return 0;
}

int mrrc_code_look_x86_64(struct mrrc_code *code)
{
	const size_t len = code->image->end - code->image->start;
	struct x86_look look = { .code = code,
				 .left = PASSES * (uint64_t) len };
	size_t i;
	int ret;

	ret = x86_pairs(code);
	if (ret || !code->count)
		return ret;
	mrrc_code_sections(code);
	for (i = 0; i < code->count && !ret; i++)
		ret = x86_decide(&look, &code->found[i]);
	mrrc_code_body_close(&look.body);
	mrrc_code_gap_close(&look.gap);
	return ret;
}

#else

int mrrc_code_look_x86_64(struct mrrc_code *code)
{
	return -EOPNOTSUPP;
}

#endif
