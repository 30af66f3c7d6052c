/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds system calls in code for 64-bit ARM (code.h): the instruction svc, and
 * the number passed in x8.
 *
 * Instructions are aligned words, so a word in a section of code is executed
 * whole or not at all. From the start of the function around the svc, all paths
 * are followed forward: a path that sets x8 to a constant has this number until
 * an instruction may write x8, or a path with another number joins. Code that
 * no followed path reaches, such as code behind a table of jumps, begins with
 * any number.
 */
#include "config.h"
#include "sys/proof/code_aarch64.h"

#include <errno.h>
#include <string.h>

#include "sys/base/apart.h"
#include "sys/proof/code_frame.h"

#define NR	 8  /* the register with the number */
#define PASSES	 64 /* words that are decoded, for each word of the mapping */
#define LONGEST	 ((uintptr_t) 1 << 22) /* words of a function */
#define UNSEEN	 (-2)
#define ANY	 MRRC_CODE_ANY
#define SVC_MASK 0xffe0001fu
#define SVC	 0xd4000001u

/* A function, and what x8 is before each of its instructions. */
struct arm_body {
	struct mrrc_code_range function;
	const uint32_t *insn;
	uint32_t count, room;
	int32_t *number; /* a number, ANY, or UNSEEN */
	uint32_t *todo;	 /* instructions whose number has changed */
	uint32_t todos;
	bool odd; /* has an instruction that may lead anywhere */
};

struct arm_look {
	struct mrrc_code *code;
	struct arm_body body;
	uint64_t left; /* words that may still be decoded */
};

/* Bits @from to @from + @count - 1 of a word. */
static uint32_t bits(uint32_t word, unsigned from, unsigned count)
{
	return word >> from & ((1u << count) - 1);
}

static bool is_x8(uint32_t word, unsigned from)
{
	return bits(word, from, 5) == NR;
}

/* ---- one instruction ----------------------------------------------------- */

/* The signed distance of a branch, in words. */
static int32_t arm_distance(uint32_t word, unsigned from, unsigned count)
{
	return (int32_t) (word << (32 - from - count)) >> (32 - count);
}

#define TRAP 0xd4207d00u /* brk #1000, by which compilers end a path */

/* Other brk may stand for any instruction: a debugger's, or a uprobe. */
static bool is_breakpoint(uint32_t word)
{
	return bits(word, 21, 11) == 0x6a1;
}

/* Where an instruction leads. */
struct arm_flow {
	bool next, away;  /* to the next instruction; to @distance */
	bool odd;	  /* perhaps elsewhere: the instruction is not known */
	int32_t distance; /* in words */
};

static struct arm_flow arm_flow(uint32_t word)
{
	struct arm_flow flow = { .next = true };
	const uint32_t top = bits(word, 25, 7);

	if ((top & 0x3e) == 0x0a) { /* b; bl */
		flow.next = top & 0x40;
		flow.away = !flow.next;
		flow.distance = arm_distance(word, 0, 26);
	} else if ((top == 0x2a && !bits(word, 24, 1)) || /* b.cond */
		   (top & 0x3f) == 0x1a) {		  /* cbz, cbnz */
		flow.away = true;
		flow.distance = arm_distance(word, 5, 19);
	} else if ((top & 0x3f) == 0x1b) { /* tbz, tbnz */
		flow.away = true;
		flow.distance = arm_distance(word, 5, 14);
	} else if (top == 0x6b) { /* br, ret, eret; blr */
		flow.next = bits(word, 21, 3) == 1;
	} else if (!bits(word, 16, 16) /* udf */ || word == TRAP) {
		flow.next = false;
	} else {
		/* besides exceptions and system instructions */
		flow.odd = ((top & 0xe) == 0xa && top != 0x6a) ||
			   is_breakpoint(word);
	}
	return flow;
}

static bool arm_calls(uint32_t word)
{
	return bits(word, 26, 6) == 0x25 ||			      /* bl */
	       (bits(word, 25, 7) == 0x6b && bits(word, 21, 3) == 1); /* blr */
}

/* May a load, a store or an atomic instruction write x8? */
static bool arm_memory_writes(uint32_t word)
{
	const bool vector = bits(word, 26, 1);
	const bool target = is_x8(word, 0) && !vector;

	switch (bits(word, 27, 3)) {
	case 5: /* pairs, which may also write the address */
		return (bits(word, 22, 1) &&
			(target || (is_x8(word, 10) && !vector))) ||
		       is_x8(word, 5);
	case 7:
		if (bits(word, 24, 1)) /* at a fixed distance */
			return target && bits(word, 22, 2);
		/* at a distance in a register; atomics */
		if (bits(word, 21, 1))
			return target || is_x8(word, 5) ||
			       /* some write several registers */
			       (bits(word, 15, 1) && !bits(word, 10, 2));
		return (target && bits(word, 22, 2)) ||
		       (bits(word, 10, 1) && is_x8(word, 5));
	case 3: /* beside the instruction; copies, tags */
		return target || (bits(word, 24, 2) &&
				  (is_x8(word, 5) || is_x8(word, 16)));
	default: /* exclusive, compare and swap; several vectors */
		return is_x8(word, 0) || is_x8(word, 5) || is_x8(word, 10) ||
		       is_x8(word, 16);
	}
}

/* May the instruction write x8? Where this is not known, it may. */
static bool arm_writes(uint32_t word)
{
	switch (bits(word, 25, 4)) {
	case 0x8: /* immediates */
	case 0x9:
		return is_x8(word, 0);
	case 0xa: /* branches, system instructions */
	case 0xb:
		return arm_calls(word) ||
		       (bits(word, 21, 11) == 0x6a9 && is_x8(word, 0));
	case 0x4: /* memory */
	case 0x6:
	case 0xc:
	case 0xe:
		return arm_memory_writes(word);
	case 0x5: /* registers; the conditional comparisons have flags there */
	case 0xd:
		return is_x8(word, 0) && bits(word, 21, 8) != 0xd2;
	case 0x7: /* vectors */
	case 0xf:
		return is_x8(word, 0);
	default: /* scalable vectors, and words that are no instruction */
		return true;
	}
}

/* What x8 is after an instruction that finds @number in it. */
static int32_t arm_after(uint32_t word, int32_t number)
{
	/* mov x8, #number, and the same for w8 */
	if (bits(word, 21, 10) == 0x294 && is_x8(word, 0))
		return (int32_t) bits(word, 5, 16);
	return arm_writes(word) ? ANY : number;
}

/* ---- a function ---------------------------------------------------------- */

/* Notes a way to instruction @i, with @number. */
static void arm_reach(struct arm_body *body, uint32_t i, int32_t number)
{
	int32_t *const old = &body->number[i];

	if (i >= body->count || *old == number || *old == ANY)
		return;
	*old = *old == UNSEEN ? number : ANY;
	body->todo[body->todos++] = i;
}

static void arm_follow(struct arm_body *body)
{
	struct arm_flow flow;
	int32_t number;
	uint32_t i;

	while (body->todos) {
		i = body->todo[--body->todos];
		flow = arm_flow(body->insn[i]);
		number = arm_after(body->insn[i], body->number[i]);
		body->odd = body->odd || flow.odd;
		if (flow.away)
			arm_reach(body, i + (uint32_t) flow.distance, number);
		if (flow.next)
			arm_reach(body, i + 1, number);
	}
}

static int arm_read(struct arm_look *look,
		    const struct mrrc_code_range *function)
{
	struct arm_body *const body = &look->body;
	const uintptr_t count = (function->end - function->start) / 4;
	uint32_t i;

	if (body->function.start == function->start && body->count == count)
		return 0;
	body->count = 0;
	body->odd = false;
	if (count > look->left || count > LONGEST)
		return -E2BIG;
	look->left -= count;
	if (count > body->room) {
		mrrc_apart_free(body->number);
		mrrc_apart_free(body->todo);
		body->room = 0;
		body->number = mrrc_apart_grow(NULL, count * sizeof(int32_t));
		/* each number changes twice at most */
		body->todo =
			mrrc_apart_grow(NULL, count * 2 * sizeof(uint32_t));
		if (!body->number || !body->todo)
			return -ENOMEM;
		body->room = (uint32_t) count;
	}
	body->function = *function;
	body->insn = (const uint32_t *) function->start;
	body->count = (uint32_t) count;
	for (i = 0; i < count; i++)
		body->number[i] = UNSEEN;
	for (i = 0; i < count; i++) {
		if (body->number[i] == UNSEEN) {
			arm_reach(body, i, ANY);
			arm_follow(body);
		}
	}
	return 0;
}

/* ---- the mapping --------------------------------------------------------- */

static int arm_find(struct mrrc_code *code)
{
	const uint32_t *word = (const uint32_t *) code->image->start;
	const uint32_t *const end =
		word + (code->image->end - code->image->start) / 4;
	int ret = 0;

	for (; word < end && !ret; word++) {
		if ((*word & SVC_MASK) == SVC)
			ret = mrrc_code_add(code, (uintptr_t) word);
	}
	return ret;
}

static int arm_decide(struct arm_look *look, struct mrrc_code_found *found)
{
	struct mrrc_code_range text, function, gap;
	int32_t number;
	int ret;

	if (!mrrc_code_text(look->code, found->at, &text)) {
		found->kind = MRRC_CODE_DATA;
		return 0;
	}
	found->kind = MRRC_CODE_CALL_ANY;
	if (mrrc_code_function(look->code, found->at, &function, &gap)) {
		found->why = "no table of functions";
		return 0;
	}
	if (found->at >= function.end || function.end - found->at < 4) {
		found->why = "outside all functions";
		return 0;
	}
	if (function.start % 4) {
		found->why = "the function does not decode";
		return 0;
	}
	ret = arm_read(look, &function);
	if (ret == -E2BIG) {
		found->why = "there is too much to look at";
		return 0;
	}
	if (ret)
		return ret;
	number = look->body.number[(found->at - function.start) / 4];
	found->why = "the number is not a constant";
	if (number == ANY || look->body.odd)
		return 0;
	found->kind = MRRC_CODE_CALL;
	found->number = number;
	return 0;
}

int mrrc_code_look_aarch64(struct mrrc_code *code)
{
	const size_t len = code->image->end - code->image->start;
	struct arm_look look = { .code = code,
				 .left = PASSES * (uint64_t) len / 4 };
	size_t i;
	int ret;

	if (code->image->start % 4)
		return -EINVAL;
	ret = arm_find(code);
	if (ret || !code->count)
		return ret;
	mrrc_code_sections(code);
	for (i = 0; i < code->count && !ret; i++)
		ret = arm_decide(&look, &code->found[i]);
	mrrc_apart_free(look.body.number);
	mrrc_apart_free(look.body.todo);
	return ret;
}

/* ---- glibc --------------------------------------------------------------- */

#define BASE	  (0x1fu << 5) /* bits of a load that name the address */
#define LDRSW_X8  0xb9800008u  /* ldrsw x8, [] */
#define LDP_X0_X1 0xa9408400u  /* ldp x0, x1, [, #8] */
#define LDR_X2	  0xf9400c02u  /* ldr x2, [, #24] */
#define MOV_X8_X6 0xaa0603e8u
#define FAR	  48 /* words from the start of a function to its svc */

/* str of a register to the stack */
static bool is_saving(uint32_t word)
{
	return (word & 0xffc003e0u) == 0xf90003e0u;
}

/* stp x29, x30, [sp, #...]!, at the start of a function */
static bool is_start(uint32_t word)
{
	return (word & 0xffc07fffu) == 0xa9807bfdu;
}

/*
 * Is this glibc's system call for set*id(2) in each thread, which loads number
 * and arguments from a struct, in any order?
 */
static bool glibc_setxid(const uint32_t *svc, size_t before)
{
	static const uint32_t load[] = { LDRSW_X8, LDP_X0_X1, LDR_X2 };
	uint32_t base = 0, seen = 0;
	size_t i, k;

	for (i = 1; i <= 4 && i <= before && seen != 7; i++) {
		if (is_saving(svc[-i]))
			continue;
		for (k = 0; k < 3 && (svc[-i] & ~BASE) != load[k]; k++)
			;
		if (k == 3 || (seen && bits(svc[-i], 5, 5) != base))
			return false;
		base = bits(svc[-i], 5, 5);
		seen |= 1u << k;
	}
	return seen == 7 && base > 2 && base != NR;
}

/*
 * Is this the system call of glibc 2.41's function for calls that can be
 * cancelled, whose second argument is the number?
 */
static bool glibc_cancel(const uint32_t *svc, size_t before)
{
	static const uint32_t code[] = {
		0xaa0103e8, /* mov x8, x1 */
		0xaa0203e0, /* mov x0, x2 */
		0xaa0303e1, /* mov x1, x3 */
		0xaa0403e2, /* mov x2, x4 */
		0xaa0503e3, /* mov x3, x5 */
		0xaa0603e4, /* mov x4, x6 */
		0xaa0703e5, /* mov x5, x7 */
	};

	return before >= 7 && !memcmp(svc - 7, code, sizeof(code));
}

/*
 * Is this the system call that glibc 2.41 makes in a process with one thread,
 * in a function whose seventh argument is the number? The function's start
 * copies the number to x8, and no other instruction sets x8.
 */
static bool glibc_direct(const uint32_t *svc, size_t before)
{
	size_t i;

	for (i = 1; i <= FAR && i < before; i++) {
		if (svc[-i] == MOV_X8_X6)
			return is_start(svc[-i - 1]) ||
			       (i + 1 < before && is_start(svc[-i - 2]));
		if (arm_writes(svc[-i]) && !arm_calls(svc[-i]))
			return false;
	}
	return false;
}

bool mrrc_code_glibc_aarch64(const uint8_t *site, size_t before)
{
	const uint32_t *const svc = (const uint32_t *) site;

	return glibc_setxid(svc, before / 4) || glibc_cancel(svc, before / 4) ||
	       glibc_direct(svc, before / 4);
}
