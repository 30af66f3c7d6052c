/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds filler in x86-64 code (code.h): instructions without effect between two
 * functions, if the first function does not continue into the filler. Functions
 * are decoded from their start, as the last byte of another instruction may
 * look like a return.
 */
#include "config.h"
#include "sys/proof/code_body.h"

#include "sys/proof/code_frame.h"

#ifdef HAVE_ZYDIS

static uintptr_t filler_look(const struct mrrc_code *code,
			     struct mrrc_code_body *body, uintptr_t from,
			     uintptr_t end, size_t size)
{
	struct mrrc_code_range function, gap;
	uintptr_t at = from, next;

	for (; at < end; at = next) {
		if (mrrc_code_function(code, at, &function, &gap))
			return 0;
		next = gap.end;
		gap.start = gap.start < from ? from : gap.start;
		gap.end = gap.end > end ? end : gap.end;
		if (function.start == function.end || gap.start >= gap.end ||
		    gap.end - gap.start < size ||
		    mrrc_code_body_read(body, &function) || !body->whole ||
		    body->away ||
		    mrrc_code_body_falls(&body->insn[body->count - 1]))
			continue;
		if (mrrc_code_filled(&(struct mrrc_code_range){ function.end,
								next },
				     next - 1))
			return gap.start;
	}
	return 0;
}

uintptr_t mrrc_code_filler(const struct mrrc_code_image *image, uintptr_t at,
			   uintptr_t end, size_t size)
{
	struct mrrc_code_body body = { 0 };
	struct mrrc_code code;
	uintptr_t found = 0;

	if (!mrrc_code_headers(&code, image) &&
	    code.ehdr->e_machine == EM_X86_64)
		found = filler_look(&code, &body, at, end, size);
	mrrc_code_body_close(&body);
	return found;
}

#else

uintptr_t mrrc_code_filler(const struct mrrc_code_image *image, uintptr_t at,
			   uintptr_t end, size_t size)
{
	return 0;
}

#endif /* HAVE_ZYDIS */
