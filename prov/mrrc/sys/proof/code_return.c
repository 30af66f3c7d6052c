/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions of x86-64 that do not return, as those that end the process with a
 * message: none of the instructions that their first one leads to is a return
 * or jumps to what may return. What a compiler puts behind a call of such a
 * function is not executed after it.
 */
#include "config.h"
#include "sys/proof/code_body.h"

#ifdef HAVE_ZYDIS

#include <string.h>

#define DEPTH 6	  /* functions that call each other */
#define PATHS 256 /* instructions that wait to be followed */

struct return_look {
	const struct mrrc_code *code;
	struct mrrc_code_body body;
	uint32_t path[PATHS];
	unsigned paths;
	unsigned depth;
};

/* false: there is no room for it. */
static bool return_push(struct return_look *look, uint32_t i)
{
	if (i >= look->body.count)
		return false;
	if (look->body.insn[i].walk)
		return true;
	look->body.insn[i].walk = 1;
	if (look->paths == PATHS)
		return false;
	look->path[look->paths++] = i;
	return true;
}

static bool return_follow(struct return_look *look);

static bool return_never(const struct mrrc_code *code, uintptr_t at,
			 unsigned depth)
{
	struct return_look look = { .code = code, .depth = depth };
	struct mrrc_code_range function, gap;
	bool never;

	if (!depth || mrrc_code_function(code, at, &function, &gap) ||
	    function.start != at || function.end <= at)
		return false;
	never = !mrrc_code_body_read(&look.body, &function) &&
		look.body.whole && return_follow(&look);
	mrrc_code_body_close(&look.body);
	return never;
}

/* What @insn leads to, as a call or jump, does not return. */
static bool return_there(const struct return_look *look,
			 const struct mrrc_code_insn *insn)
{
	const uintptr_t to = mrrc_code_body_to(&look->body, insn);

	return to && return_never(look->code, to, look->depth - 1);
}

/* true: no instruction that is come to returns. */
static bool return_follow(struct return_look *look)
{
	const struct mrrc_code_insn *insn;
	uint32_t i;

	if (!return_push(look, 0))
		return false;
	while (look->paths) {
		i = look->path[--look->paths];
		insn = &look->body.insn[i];
		if (insn->flow == MRRC_CODE_AWAY)
			return false;
		if (insn->flow == MRRC_CODE_CALLS && return_there(look, insn))
			continue;
		if (mrrc_code_body_falls(insn) && !return_push(look, i + 1))
			return false;
		if (insn->flow != MRRC_CODE_JUMP &&
		    insn->flow != MRRC_CODE_BRANCH)
			continue;
		/* A return, or a jump to another function. */
		if (insn->to == MRRC_CODE_NONE ?
			    !return_there(look, insn) :
			    !return_push(look, mrrc_code_body_find(&look->body,
								   insn->to)))
			return false;
	}
	return true;
}

bool mrrc_code_returns_not(const struct mrrc_code *code, uintptr_t at)
{
	return return_never(code, at, DEPTH);
}

#endif /* HAVE_ZYDIS */
