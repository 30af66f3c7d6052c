/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System calls in code for 64-bit ARM (code.h): svc, its number in x8.
 *
 * Instructions are aligned words, so a word of a section that holds code is an
 * instruction or, in a table beside the code, taken for one. x8 is followed
 * back through the function, as far as .eh_frame tells where that begins, and
 * along all branches, until each path has come to a constant.
 *
 * What is not known to leave a register alone may write each one that a field
 * for a register in it names: the bits 0 to 4 (Rd, Rt), 10 to 14 (Rt2), and 5
 * to 9 or 16 to 20 where addresses are updated (Rn) or results are kept (Rs).
 * Calls write all but x19 to x29.
 */
#include "config.h"
#include "sys/proof/code_priv.h"

#include <errno.h>
#include <string.h>

#define X8	8
#define PATHS	256 /* words of a function, that are followed */
#define PASSES	64  /* over the mapping, in sum */
#define LONGEST ((uintptr_t) 1 << 20) /* bytes of a function */

/* A register's value before the word at @at. */
struct arm_path {
	uintptr_t at;
	unsigned reg;
};

struct arm_walk {
	struct mrrc_code_range function;
	struct mrrc_code_found *found;
	struct arm_path path[PATHS];
	unsigned paths; /* that were come to */
	unsigned done;	/* of them that were followed */
	uint64_t *left; /* bytes that may still be passed over */
};

static uint32_t arm_word(uintptr_t at)
{
	uint32_t word;

	memcpy(&word, (const void *) at, sizeof(word));
	return word;
}

static bool arm_svc(uint32_t word)
{
	return (word & 0xffe0001f) == 0xd4000001;
}

/* Where a branch of @bits leads that are at @shift; in bytes. */
static uintptr_t arm_to(uintptr_t at, uint32_t word, unsigned shift,
			unsigned bits)
{
	const uint64_t top = (uint64_t) word << (64 - shift - bits);
	const int64_t words = (int64_t) top >> (64 - bits);

	return at + (uintptr_t) (words * 4);
}

enum arm_flow { ARM_NEXT, ARM_BRANCH, ARM_JUMP, ARM_CALL, ARM_AWAY };

/* What the word does next; @to: where else, of BRANCH and JUMP. */
static enum arm_flow arm_flow(uintptr_t at, uint32_t word, uintptr_t *to)
{
	if ((word & 0xfc000000) == 0x14000000) { /* b */
		*to = arm_to(at, word, 0, 26);
		return ARM_JUMP;
	}
	if ((word & 0xfc000000) == 0x94000000) /* bl */
		return ARM_CALL;
	if ((word & 0xff000000) == 0x54000000 || /* b.cond, bc.cond */
	    (word & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		*to = arm_to(at, word, 5, 19);
		return ARM_BRANCH;
	}
	if ((word & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		*to = arm_to(at, word, 5, 14);
		return ARM_BRANCH;
	}
	if ((word & 0xfe000000) == 0xd6000000) /* br, blr, ret ... */
		return (word & 0x00600000) == 0x00200000 ? ARM_CALL : ARM_AWAY;
	return ARM_NEXT;
}

/* Does it write registers that no field in it names? */
static bool arm_pairs(uint32_t word)
{
	return (word & 0xbfa07c00) == 0x08207c00 || /* casp */
	       (word & 0xfffffc00) == 0xf83fd000 || /* ld64b */
	       (word & 0xfff00000) == 0xd5700000;   /* mrrs */
}

/* Does an instruction with no known effect leave the register alone? */
static bool arm_keeps(uint32_t word, unsigned reg)
{
	/* nop, bti and others of the kind, some of which write these */
	if ((word & 0xfffff01f) == 0xd503201f)
		return reg != 16 && reg != 17 && reg != 30;
	return !arm_pairs(word) && (word & 0x1f) != reg &&
	       (word >> 5 & 0x1f) != reg && (word >> 10 & 0x1f) != reg &&
	       (word >> 16 & 0x1f) != reg;
}

/* Those that read the register in all fields but the lowest, or write none. */
static bool arm_reads_only(uint32_t word, unsigned reg)
{
	/* Data processing, immediate or of registers: Rd is the lowest. */
	const bool data = (word & 0x1c000000) == 0x10000000 ||
			  (word & 0x0e000000) == 0x0a000000;
	/* A load or store of one register at an offset that is a number. */
	const bool single = (word & 0x3b000000) == 0x39000000;
	const bool store = single && !(word & 0x04c00000);

	if (store)
		return true;
	return (data || single) && (word & 0x1f) != reg;
}

static bool arm_any(struct arm_walk *walk, const char *why)
{
	walk->found->kind = MRRC_CODE_CALL_ANY;
	walk->found->why = why;
	return false;
}

static bool arm_constant(struct arm_walk *walk, uint32_t value)
{
	struct mrrc_code_found *const found = walk->found;

	if (found->kind == MRRC_CODE_CALL && found->number != (long) value)
		return arm_any(walk, "there is more than one number");
	found->kind = MRRC_CODE_CALL;
	found->number = (long) value;
	return true;
}

static bool arm_push(struct arm_walk *walk, uintptr_t at, unsigned reg)
{
	unsigned i;

	for (i = 0; i < walk->paths; i++) {
		if (walk->path[i].at == at && walk->path[i].reg == reg)
			return true;
	}
	if (walk->paths == PATHS)
		return arm_any(walk, "the paths are too many");
	walk->path[walk->paths++] = (struct arm_path){ at, reg };
	return true;
}

/* The word at @at comes before a path's. */
static bool arm_back(struct arm_walk *walk, uintptr_t at, unsigned reg)
{
	const uint32_t word = arm_word(at);
	uintptr_t to;

	switch (arm_flow(at, word, &to)) {
	case ARM_BRANCH:
	case ARM_JUMP:
		return arm_push(walk, at, reg);
	case ARM_CALL:
		return reg >= 19 && reg <= 29 ?
			       arm_push(walk, at, reg) :
			       arm_any(walk,
				       "the number is what a function leaves");
	default:
		break;
	}
	/* movz, in 32 or 64 bits, not shifted */
	if ((word & 0x7fe0001f) == (0x52800000 | reg))
		return arm_constant(walk, word >> 5 & 0xffff);
	/* mov of a register: orr with the zero register, not shifted */
	if ((word & 0x7fe0ffff) == (0x2a0003e0 | reg))
		return (word >> 16 & 0x1f) == 31 ?
			       arm_constant(walk, 0) :
			       arm_push(walk, at, word >> 16 & 0x1f);
	if (arm_svc(word))
		return reg ? arm_push(walk, at, reg) :
			     arm_any(walk,
				     "the number is a system call's result");
	if (arm_keeps(word, reg) || arm_reads_only(word, reg))
		return arm_push(walk, at, reg);
	return arm_any(walk, "the number is computed");
}

static bool arm_step(struct arm_walk *walk, struct arm_path path)
{
	enum arm_flow flow;
	bool any = false;
	uintptr_t at, to;

	if (path.at == walk->function.start)
		return arm_any(walk,
			       "the number is an argument of the function");
	flow = arm_flow(path.at - 4, arm_word(path.at - 4), &to);
	if (flow != ARM_JUMP && flow != ARM_AWAY) {
		any = true;
		if (!arm_back(walk, path.at - 4, path.reg))
			return false;
	}
	if (*walk->left < walk->function.end - walk->function.start)
		return arm_any(walk, "there is too much to look at");
	*walk->left -= walk->function.end - walk->function.start;
	for (at = walk->function.start; at < walk->function.end; at += 4) {
		flow = arm_flow(at, arm_word(at), &to);
		if ((flow != ARM_BRANCH && flow != ARM_JUMP) || to != path.at)
			continue;
		any = true;
		if (!arm_back(walk, at, path.reg))
			return false;
	}
	/* nop, that aligns what is behind it */
	return any || arm_word(path.at) == 0xd503201f ||
	       arm_any(walk, "no way to the instruction is seen");
}

static void arm_number(struct mrrc_code *code, struct mrrc_code_found *found,
		       uint64_t *left)
{
	struct arm_walk walk = { .found = found, .left = left };
	struct mrrc_code_range gap;

	if (mrrc_code_function(code, found->at, &walk.function, &gap)) {
		found->why = "no table of functions";
		return;
	}
	if (found->at >= walk.function.end) {
		found->why = "in no function";
		return;
	}
	if (walk.function.start % 4 || walk.function.end % 4 ||
	    walk.function.end - walk.function.start > LONGEST) {
		found->why = "the function is too long";
		return;
	}
	arm_push(&walk, found->at, X8);
	while (walk.done < walk.paths) {
		if (!arm_step(&walk, walk.path[walk.done++]))
			return;
	}
	if (found->kind != MRRC_CODE_CALL)
		arm_any(&walk, "no path comes to an end");
}

int mrrc_code_look_aarch64(struct mrrc_code *code)
{
	uint64_t left =
		PASSES * (uint64_t) (code->image->end - code->image->start);
	struct mrrc_code_range text;
	uintptr_t at;
	size_t i;
	int ret;

	for (at = (code->image->start + 3) & ~(uintptr_t) 3;
	     at < code->image->end && code->image->end - at >= 4; at += 4) {
		ret = arm_svc(arm_word(at)) ? mrrc_code_add(code, at) : 0;
		if (ret)
			return ret;
	}
	if (code->count)
		mrrc_code_sections(code);
	for (i = 0; i < code->count; i++) {
		if (mrrc_code_text(code, code->found[i].at, &text))
			arm_number(code, &code->found[i], &left);
		else
			code->found[i].kind = MRRC_CODE_DATA;
	}
	return 0;
}
