/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A function of x86-64, as instructions and the branches between them.
 *
 * Threading: a body is one thread's.
 */
#ifndef MRRC_CODE_BODY_H
#define MRRC_CODE_BODY_H

#include "sys/proof/code_priv.h"

#define MRRC_CODE_NONE UINT32_MAX

/* Where an instruction leads. */
enum mrrc_code_flow {
	MRRC_CODE_NEXT,	     /* to the next instruction */
	MRRC_CODE_BRANCH,    /* to the next instruction, or to a named place */
	MRRC_CODE_JUMP,	     /* to a place that it names */
	MRRC_CODE_CALLS,     /* to the next instruction, after a function */
	MRRC_CODE_AWAY,	     /* to a place that it does not name */
	MRRC_CODE_SYSCALL,   /* to the next instruction, after a system call */
	MRRC_CODE_SYSCALL32, /* the same, by sysenter or int 0x80 */
};

struct mrrc_code_insn {
	uint32_t at;	/* offset in the function */
	uint32_t to;	/* offset in the function that it names; or NONE */
	uint32_t first; /* first branch to this instruction; or NONE */
	uint32_t next;	/* next branch to the same instruction; or NONE */
	uint32_t walk;	/* the walk that @seen belongs to */
	uint16_t seen;	/* registers followed back to this instruction */
	uint8_t len;
	uint8_t flow; /* enum mrrc_code_flow */
	/*
	 * offset in the instruction of the first inner byte to which a branch
	 * leads, or 0; a jump over a lock prefix does not count
	 */
	uint8_t split;
	/*
	 * if the instruction branches to an address or computes one by a
	 * distance: the distance's offset in the instruction; else 0
	 */
	uint8_t field;
	uint8_t size; /* bytes of the distance */
	bool filler;  /* does nothing: aligns the code after it */
};

struct mrrc_code_body {
	struct mrrc_code_range function;
	struct mrrc_code_insn *insn;
	uint32_t count, room;
	uint32_t walk; /* number of the last walk */
	bool whole;    /* the function decodes to its end */
	bool away;     /* some instruction leads AWAY */
	bool split;    /* some instruction has a split */
};

/*
 * Reads the instruction at code[@at]. false: no instruction fits in @len, or,
 * with the flow AWAY, the instruction is a branch whose target and length differ
 * between processors.
 */
bool mrrc_code_insn_read(const uint8_t *code, uint32_t at, uint32_t len,
			 struct mrrc_code_insn *insn);

/*
 * Finds the instruction that has the byte @at of a function, without decoding
 * the whole function. Decoding begins 64 to 1024 bytes before @at: execution
 * that reaches @at, unless a branch leads to one of the bytes between, passes an
 * instruction that begins in the first 15 of these bytes, and decoding from each
 * of these 15 bytes has to lead to the same instruction at @at. Bytes that do
 * not decode may have any length. @from: where decoding begins. false: decoding
 * leads to different instructions.
 */
bool mrrc_code_insn_at(const struct mrrc_code_range *function, uintptr_t at,
		       struct mrrc_code_insn *insn, uintptr_t *from);

/* Reads a whole function. -E2BIG: the function is too long. */
int mrrc_code_body_read(struct mrrc_code_body *body,
			const struct mrrc_code_range *function);

/* Does execution continue from this instruction to the next one? */
static inline bool mrrc_code_body_falls(const struct mrrc_code_insn *insn)
{
	return insn->flow != MRRC_CODE_JUMP && insn->flow != MRRC_CODE_AWAY;
}

/* The address that a branch, call or lea names by its distance; 0: none. */
uintptr_t mrrc_code_body_to(const struct mrrc_code_body *body,
			    const struct mrrc_code_insn *insn);

/* The index of the instruction that has the byte @at, or NONE. */
uint32_t mrrc_code_body_find(const struct mrrc_code_body *body, uint32_t at);

void mrrc_code_body_close(struct mrrc_code_body *body);

/*
 * Has the gap between two functions only instructions without effect, from the
 * gap's beginning to the byte @to in the gap?
 */
bool mrrc_code_filled(const struct mrrc_code_range *gap, uintptr_t to);

#endif /* MRRC_CODE_BODY_H */
