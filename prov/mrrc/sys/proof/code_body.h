/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A function of x86-64, as instructions and the branches between them; what
 * leads to places in code; bytes between functions; functions that a patcher
 * has overwritten.
 *
 * Threading: a body and a gap are one thread's.
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
	bool whole;    /* it decodes to its end */
	bool away;     /* some instruction leads AWAY */
};

/* Reads the instruction at code[@at]; false: there is none within @len. */
bool mrrc_code_insn_read(const uint8_t *code, uint32_t at, uint32_t len,
			 struct mrrc_code_insn *insn);

/*
 * The instruction that has the byte @at of a function, without reading all of it:
 * what is executed on the way there has an instruction that begins in the first 15
 * of the 256 bytes in front of it, and all that could be one lead to the same.
 * What does not decode may be of any length. false: they do not.
 */
bool mrrc_code_insn_at(const struct mrrc_code_range *function, uintptr_t at,
		       struct mrrc_code_insn *insn);

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

/* ---- references: a file's tables, branches, address computations ---- */

/*
 * What begins at @field would be a distance to some place. Is it that of a branch
 * or lea, or in no function?
 */
bool mrrc_code_refs_real(const struct mrrc_code *code, uintptr_t field);

/* A distance of @size bytes at @field, that leads to @to. */
typedef void (*mrrc_code_refs_each)(void *arg, uintptr_t to, uintptr_t field,
				    unsigned size);

/*
 * Calls @each for all that may be a branch or lea in @in and lead to a place in
 * @to: whatever is behind a byte that could end the opcode of one. Each branch
 * that there is in 64-bit mode has a distance of four bytes or one.
 */
void mrrc_code_refs(const struct mrrc_code_range *in,
		    const struct mrrc_code_range *to, mrrc_code_refs_each each,
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

/* ---- gaps: bytes that belong to no function ---- */

struct mrrc_code_gap {
	struct mrrc_code_range range;
	const struct mrrc_code *code;
	uint8_t *seen;	     /* a bit for each byte: an instruction
					 * that may be executed begins there */
	const char *unknown; /* why its pairs may be executed; NULL: none is */
};

/*
 * Reads another gap. @falls: the function before it leads to its first byte.
 */
int mrrc_code_gap_read(struct mrrc_code_gap *gap, const struct mrrc_code *code,
		       const struct mrrc_code_range *range, bool falls);

void mrrc_code_gap_close(struct mrrc_code_gap *gap);

/* ---- functions that begin with a jump that the file does not have ---- */

/* Does the function begin with a jump out of it, as patchers write it? */
bool mrrc_code_over_jumps(const struct mrrc_code_range *function);

/*
 * Of a function that begins so: another library has written the jump there, and
 * no code, table or pointer of the file leads to the rest, which is not
 * executed then. false: it may be. Reads the whole mapping.
 */
bool mrrc_code_over(const struct mrrc_code *code,
		    const struct mrrc_code_range *function);

#endif /* MRRC_CODE_BODY_H */
