/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fillers of x86-64 code (code.h): instructions that do nothing, and follow an
 * instruction after which execution does not continue, to align what comes
 * next. A byte that ends another instruction may look like a return: code is
 * decoded from the start of the function.
 */
#include "config.h"
#include "sys/proof/code_body.h"

#include "sys/base/apart.h"

#ifdef HAVE_ZYDIS

struct filler_look {
	uintptr_t at, end; /* where they are looked for */
	size_t size;
	uintptr_t start; /* of the filler that is being passed, or 0 */
};

/* Does nothing lead to it but what is before it? */
static bool filler_alone(const struct mrrc_code_insn *insn)
{
	return insn->filler && insn->first == MRRC_CODE_NONE && !insn->split;
}

/* A filler ends at end: is it long enough? */
static bool filler_ends(struct filler_look *look, uintptr_t end)
{
	if (look->start && look->start < look->at)
		look->start = look->at;
	if (end > look->end)
		end = look->end;
	if (look->start && end > look->start && end - look->start >= look->size)
		return true;
	look->start = 0;
	return false;
}

/* Fillers in a function. */
static bool filler_inside(struct filler_look *look,
			  const struct mrrc_code_body *body)
{
	const struct mrrc_code_insn *insn;
	uintptr_t at;
	uint32_t i;

	look->start = 0;
	for (i = 1; i < body->count; i++) {
		insn = &body->insn[i];
		at = body->function.start + insn->at;
		if (filler_alone(insn)) {
			if (!look->start && !mrrc_code_body_falls(insn - 1))
				look->start = at;
		} else if (filler_ends(look, at)) {
			return true;
		}
	}
	return filler_ends(look, body->function.end);
}

/* All bytes between a function that does not continue there, and the next. */
static bool filler_between(struct filler_look *look,
			   const struct mrrc_code_range *gap)
{
	const uint32_t len = (uint32_t) (gap->end - gap->start);
	struct mrrc_code_insn insn;
	uint32_t at;

	for (at = 0; at < len; at += insn.len) {
		if (!mrrc_code_insn_read((const uint8_t *) gap->start, at, len,
					 &insn) ||
		    !insn.filler)
			return false;
	}
	look->start = gap->start;
	return filler_ends(look, gap->end);
}

static bool filler_look(struct filler_look *look, const struct mrrc_code *code,
			struct mrrc_code_body *body)
{
	struct mrrc_code_range function, gap;
	uintptr_t at;

	for (at = look->at; at < look->end; at = gap.end) {
		if (mrrc_code_function(code, at, &function, &gap))
			return false;
		if (function.start == function.end ||
		    mrrc_code_body_read(body, &function) || !body->whole ||
		    body->away)
			continue;
		if (filler_inside(look, body))
			return true;
		if (body->count && gap.end - gap.start < UINT32_MAX &&
		    !mrrc_code_body_falls(&body->insn[body->count - 1]) &&
		    filler_between(look, &gap))
			return true;
	}
	return false;
}

uintptr_t mrrc_code_filler(const struct mrrc_code_image *image, uintptr_t at,
			   uintptr_t end, size_t size)
{
	struct filler_look look = { .at = at, .end = end, .size = size };
	struct mrrc_code_body body = { 0 };
	struct mrrc_code code;
	bool found = false;

	if (!mrrc_code_headers(&code, image)) {
		found = code.ehdr->e_machine == EM_X86_64 &&
			filler_look(&look, &code, &body);
		mrrc_code_body_close(&body);
		mrrc_apart_free(code.section);
	}
	return found ? look.start : 0;
}

#else

uintptr_t mrrc_code_filler(const struct mrrc_code_image *image, uintptr_t at,
			   uintptr_t end, size_t size)
{
	return 0;
}

#endif /* HAVE_ZYDIS */
