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
	uint8_t flow;  /* enum mrrc_code_flow */
	uint8_t split; /* first byte in here that a branch leads to, or
				 * 0; a jump over a lock prefix is none */
	uint8_t field; /* where in it the distance is of a place that
				 * it branches to or computes, or 0 */
	uint8_t size;  /* of that, in bytes */
	bool filler;   /* does nothing: aligns what is behind it */
};

struct mrrc_code_body {
	struct mrrc_code_range function;
	struct mrrc_code_insn *insn;
	uint32_t count, room;
	uint32_t walk; /* the last one */
	bool whole;    /* it decodes to its end, and was */
	bool linked;   /* branches are known */
	bool away;     /* some instruction leads AWAY */
};

/* Reads the instruction at code[@at]; false: there is none within @len. */
bool mrrc_code_insn_read(const uint8_t *code, uint32_t at, uint32_t len,
			 struct mrrc_code_insn *insn);

/* Another function, of which nothing is read yet. -E2BIG: too long. */
int mrrc_code_body_begin(struct mrrc_code_body *body,
			 const struct mrrc_code_range *function);

/* Reads as far as the instruction that has this byte, without branches. */
int mrrc_code_body_reach(struct mrrc_code_body *body, uint32_t until);

/* Reads all of a function. -E2BIG: too long. */
int mrrc_code_body_read(struct mrrc_code_body *body,
			const struct mrrc_code_range *function);

/* Does it lead to the one behind it? */
static inline bool mrrc_code_body_falls(const struct mrrc_code_insn *insn)
{
	return insn->flow != MRRC_CODE_JUMP && insn->flow != MRRC_CODE_AWAY;
}

/* What a branch, call or lea names by its distance, wherever it is; 0: none. */
uintptr_t mrrc_code_body_to(const struct mrrc_code_body *body,
			    const struct mrrc_code_insn *insn);

/* The instruction that this byte belongs to, or NONE. */
uint32_t mrrc_code_body_find(const struct mrrc_code_body *body, uint32_t at);

/*
 * Sets a found system call's numbers: rax before instruction @i, by all paths
 * that lead there.
 */
void mrrc_code_body_number(const struct mrrc_code *code,
			   struct mrrc_code_body *body, uint32_t i,
			   struct mrrc_code_found *found);

/*
 * Sets bits, one for each byte of the mapping: in @at of the instructions that
 * the last number that was found in @body depends on, in @inside of all but the
 * first.
 */
void mrrc_code_body_guard(const struct mrrc_code_body *body,
			  const struct mrrc_code *code, uint8_t *at,
			  uint8_t *inside);

void mrrc_code_body_close(struct mrrc_code_body *body);

#endif /* MRRC_CODE_BODY_H */
