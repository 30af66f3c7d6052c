/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the number of a system call on x86-64: follows rax back along all paths
 * of the function until each path comes to a constant.
 *
 * A path ends at an instruction that writes a constant to the followed
 * register. At a copy of another register the path goes on with that register;
 * after any other write the number is not known. A path also ends at filler
 * after a jump, which is not executed. Calls keep the registers that a callee
 * saves, system calls keep all registers except rax, rcx and r11.
 */
#include "config.h"
#include "sys/proof/code_number.h"

#ifdef HAVE_ZYDIS

#include <string.h>
#include <Zydis/Zydis.h>

#include "sys/proof/code_frame.h"

#define RAX   0
#define RCX   1
#define R11   11
#define PATHS 512   /* limit of registers that wait to be followed */
#define STEPS 65536 /* limit of steps for one number */

/* rbx, rbp, r12 to r15 */
#define SAVED (1u << 3 | 1u << 5 | 0xf000u)

/* What an instruction does to a register. */
struct number_effect {
	enum { KEEPS, SETS, COPIES, LOSES } does;
	int64_t value;	 /* SETS */
	unsigned from;	 /* COPIES: this register */
	const char *why; /* LOSES */
};

/* A register's value before an instruction. */
struct number_path {
	uint32_t insn;
	unsigned reg;
};

struct number_walk {
	const struct mrrc_code *code;
	struct mrrc_code_body *body;
	struct mrrc_code_found *found;
	ZydisDecoder decoder;
	struct number_path path[PATHS];
	unsigned paths, steps;
};

/* The number of the general register that @reg is a part of; -1: none. */
static int number_gpr(ZydisRegister reg)
{
	const ZydisRegister whole =
		ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						 reg);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return whole - ZYDIS_REGISTER_RAX;
}

static bool number_writes(const ZydisDecodedInstruction *zydis,
			  const ZydisDecodedOperand *operands, unsigned reg)
{
	unsigned i;

	for (i = 0; i < zydis->operand_count; i++) {
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    number_gpr(operands[i].reg.value) == (int) reg)
			return true;
	}
	return false;
}

/* The effect of an instruction that only writes the register. */
static struct number_effect number_written(const ZydisDecodedInstruction *zydis,
					   const ZydisDecodedOperand *operands)
{
	const bool wide = operands[0].size >= 32;
	const bool same = operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			  operands[0].reg.value == operands[1].reg.value;
	struct number_effect effect = { .does = LOSES,
					.why = "the number is computed" };
	int from;

	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
			effect.why = "the number comes from memory";
		if (!wide)
			break;
		if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			effect.does = SETS;
			effect.value = operands[0].size == 32 ?
					       (int64_t) (uint32_t) operands[1]
						       .imm.value.u :
					       operands[1].imm.value.s;
		} else if (operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			from = number_gpr(operands[1].reg.value);
			if (from < 0)
				break;
			effect.does = COPIES;
			effect.from = (unsigned) from;
		}
		break;
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
		if (wide && same) {
			effect.does = SETS;
			effect.value = 0;
		}
		break;
	case ZYDIS_MNEMONIC_POP:
		effect.why = "the number comes from memory";
		break;
	default:
		break;
	}
	return effect;
}

static struct number_effect number_effect(struct number_walk *walk,
					  const struct mrrc_code_insn *insn,
					  unsigned reg)
{
	const uint8_t *const code =
		(const uint8_t *) walk->body->function.start + insn->at;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction zydis;

	switch (insn->flow) {
	case MRRC_CODE_CALLS:
		return SAVED & 1u << reg ?
			       (struct number_effect){ .does = KEEPS } :
			       (struct number_effect){
				       .does = LOSES,
				       .why = "the number is what a function "
					      "returns"
			       };
	case MRRC_CODE_SYSCALL:
		if (reg != RAX && reg != RCX && reg != R11)
			return (struct number_effect){ .does = KEEPS };
		/* fall through */
	case MRRC_CODE_SYSCALL32:
		return (struct number_effect){
			.does = LOSES,
			.why = "the number is another system call's result"
		};
	default:
		break;
	}
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&walk->decoder, code,
						 insn->len, &zydis, operands)))
		return (struct number_effect){
			.does = LOSES, .why = "the function does not decode"
		};
	if (!number_writes(&zydis, operands, reg))
		return (struct number_effect){ .does = KEEPS };
	return number_written(&zydis, operands);
}

/* Records that the number is unknown, and why. Always returns false. */
static bool number_any(struct number_walk *walk, const char *why)
{
	walk->found->kind = MRRC_CODE_CALL_ANY;
	walk->found->why = why;
	return false;
}

static bool number_constant(struct number_walk *walk, int64_t value)
{
	struct mrrc_code_found *const found = walk->found;

	if (value < 0 || value > INT32_MAX)
		return number_any(walk, "the number is out of range");
	if (found->kind == MRRC_CODE_CALL && found->number != value)
		return number_any(walk, "there is more than one number");
	found->kind = MRRC_CODE_CALL;
	found->number = (long) value;
	return true;
}

/* Notes that the register has to be followed from before instruction @i. */
static bool number_push(struct number_walk *walk, uint32_t i, unsigned reg)
{
	struct mrrc_code_insn *const insn = &walk->body->insn[i];

	if (insn->walk != walk->body->walk) {
		insn->walk = walk->body->walk;
		insn->seen = 0;
	}
	if (insn->seen & 1u << reg)
		return true;
	insn->seen |= (uint16_t) (1u << reg);
	if (walk->paths == PATHS || walk->steps++ == STEPS)
		return number_any(walk, "the paths are too many");
	walk->path[walk->paths++] = (struct number_path){ i, reg };
	return true;
}

/*
 * Follows the register back over instruction @i, which comes before the path's.
 */
static bool number_back(struct number_walk *walk, uint32_t i, unsigned reg)
{
	const struct number_effect effect =
		number_effect(walk, &walk->body->insn[i], reg);

	switch (effect.does) {
	case KEEPS:
		return number_push(walk, i, reg);
	case COPIES:
		return number_push(walk, i, effect.from);
	case SETS:
		return number_constant(walk, effect.value);
	default:
		return number_any(walk, effect.why);
	}
}

/*
 * Does the function at @at end the process, perhaps with a message? A function
 * that has no return, and is left only by calls, ends the process: its last
 * call cannot return, as no code follows.
 */
static bool number_fatal(const struct mrrc_code *code, uintptr_t at)
{
	struct mrrc_code_range function, gap;
	struct mrrc_code_body body = { 0 };
	const struct mrrc_code_insn *insn;
	bool fatal;

	if (mrrc_code_function(code, at, &function, &gap) ||
	    function.start != at || function.end <= at)
		return false;
	fatal = !mrrc_code_body_read(&body, &function) && body.whole &&
		!body.away &&
		(body.insn[body.count - 1].flow == MRRC_CODE_CALLS ||
		 !mrrc_code_body_falls(&body.insn[body.count - 1]));
	for (insn = body.insn; fatal && insn < body.insn + body.count; insn++)
		fatal = (insn->flow != MRRC_CODE_JUMP &&
			 insn->flow != MRRC_CODE_BRANCH) ||
			insn->to != MRRC_CODE_NONE;
	mrrc_code_body_close(&body);
	return fatal;
}

/* Is this a call that would lose the register, but does not return? */
static bool number_ends(const struct number_walk *walk,
			const struct mrrc_code_insn *insn, unsigned reg)
{
	const uintptr_t to = insn->flow == MRRC_CODE_CALLS &&
					     !(SAVED & 1u << reg) ?
				     mrrc_code_body_to(walk->body, insn) :
				     0;

	return to && number_fatal(walk->code, to);
}

/* Follows a path back over all instructions that lead to its instruction. */
static bool number_step(struct number_walk *walk, struct number_path path)
{
	const struct mrrc_code_insn *const all = walk->body->insn;
	const struct mrrc_code_insn *const insn = &all[path.insn];
	bool any = false;
	uint32_t i;

	if (!path.insn)
		return number_any(walk,
				  "the number is an argument of the function");
	if (insn->split)
		return number_any(walk, "a branch into an instruction");
	if (mrrc_code_body_falls(insn - 1) &&
	    !number_ends(walk, insn - 1, path.reg)) {
		any = true;
		if (!number_back(walk, path.insn - 1, path.reg))
			return false;
	}
	for (i = insn->first; i != MRRC_CODE_NONE; i = all[i].next) {
		any = true;
		/* a call to this place leaves its registers unchanged */
		if (all[i].flow == MRRC_CODE_CALLS ?
			    !number_push(walk, i, path.reg) :
			    !number_back(walk, i, path.reg))
			return false;
	}
	/* filler is never jumped to, so no path comes from there */
	return any || insn->filler || mrrc_code_body_falls(insn - 1) ||
	       number_any(walk, "no way to the instruction is seen");
}

void mrrc_code_body_number(const struct mrrc_code *code,
			   struct mrrc_code_body *body, uint32_t i,
			   struct mrrc_code_found *found)
{
	struct number_walk walk = { .code = code,
				    .body = body,
				    .found = found };

	ZydisDecoderInit(&walk.decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	body->walk++;
	if (!number_push(&walk, i, RAX))
		return;
	while (walk.paths) {
		if (!number_step(&walk, walk.path[--walk.paths]))
			return;
	}
	if (found->kind != MRRC_CODE_CALL)
		number_any(&walk, "no path comes to an end");
}

#endif /* HAVE_ZYDIS */
