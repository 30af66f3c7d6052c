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
	MRRC_CODE_NEXT,	     /* to the one behind it */
	MRRC_CODE_BRANCH,    /* there, or to a place that it names */
	MRRC_CODE_JUMP,	     /* to a place that it names */
	MRRC_CODE_CALLS,     /* behind it, after a function */
	MRRC_CODE_AWAY,	     /* to a place that it does not name */
	MRRC_CODE_SYSCALL,   /* behind it, after a system call */
	MRRC_CODE_SYSCALL32, /* the same, by sysenter or int */
};

struct mrrc_code_insn {
	uint32_t at;	/* from the start of the function */
	uint32_t to;	/* what it names, if in the function; or NONE */
	uint32_t first; /* of those that name this one; or NONE */
	uint32_t next;	/* that names what this one does; or NONE */
	uint32_t walk;	/* that @seen is of */
	uint16_t seen;	/* registers followed to before this one */
	uint8_t len;
	uint8_t flow; /* enum mrrc_code_flow */
	/*
	 * offset of the first byte within the instruction that a branch leads
	 * to, or 0; a jump over a lock prefix does not count
	 */
	uint8_t split;
	/*
	 * offset in it of the distance to an address that it branches to or
	 * computes, or 0
	 */
	uint8_t field;
	uint8_t size; /* of that, in bytes */
	bool filler;  /* does nothing: aligns what is behind it */
};

struct mrrc_code_body {
	struct mrrc_code_range function;
	struct mrrc_code_insn *insn;
	uint32_t count, room;
	uint32_t walk; /* the last one */
	bool whole;    /* it decodes to its end */
	bool away;     /* some instruction leads AWAY */
};

/* Reads the instruction at code[@at]; false: no instruction fits in @len. */
bool mrrc_code_insn_read(const uint8_t *code, uint32_t at, uint32_t len,
			 struct mrrc_code_insn *insn);

/*
 * The instruction that has the byte @at of a function, without reading all of it:
 * execution that reaches it passes an instruction that begins in the first 15
 * of the bytes before it, 64 or up to 1024, and all possible beginnings lead to
 * the same instruction. Bytes that do not decode may have any length. false: they
 * lead to different instructions.
 */
bool mrrc_code_insn_at(const struct mrrc_code_range *function, uintptr_t at,
		       struct mrrc_code_insn *insn);

/* Reads a whole function. -E2BIG: it is too long. */
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

/* The instruction that this byte belongs to, or NONE. */
uint32_t mrrc_code_body_find(const struct mrrc_code_body *body, uint32_t at);

void mrrc_code_body_close(struct mrrc_code_body *body);

/*
 * Are there only instructions without effect between two functions, from the
 * beginning of the gap to the byte @to in it?
 */
bool mrrc_code_filled(const struct mrrc_code_range *gap, uintptr_t to);

#endif /* MRRC_CODE_BODY_H */
