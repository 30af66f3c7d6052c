/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * References to places in code (code_body.h). Branches are found without
 * decoding the mapping: the bytes after any byte that could end the opcode of a
 * branch or lea are taken for its distance. If that leads to a place of
 * interest, it is verified by decoding the function around it.
 */
#include "config.h"
#include "sys/proof/code_body.h"

#ifdef HAVE_ZYDIS

#include <errno.h>
#include <string.h>

#define FILLER 64	   /* bytes of it, at most */
#define BLOCK  64	   /* bytes that are compared at a time */
#define NEAR   128	   /* how far a near branch leads, at most */
#define SIGN   0x80000000u /* makes comparisons unsigned */

typedef int32_t refs_words __attribute__((vector_size(16)));
typedef uint32_t refs_unsigned __attribute__((vector_size(16)));

/* Is what lies between two functions only filler as far as @to? */
static bool refs_filler(const struct mrrc_code_range *range, uintptr_t to)
{
	const uint32_t len = (uint32_t) (range->end - range->start);
	struct mrrc_code_insn insn;
	uint32_t at;

	if (range->end - range->start > FILLER)
		return false;
	for (at = 0; range->start + at <= to; at += insn.len) {
		if (!mrrc_code_insn_read((const uint8_t *) range->start, at,
					 len, &insn) ||
		    !insn.filler)
			return false;
	}
	return true;
}

bool mrrc_code_refs_real(const struct mrrc_code *code,
			 struct mrrc_code_body *body, uintptr_t field,
			 unsigned size)
{
	struct mrrc_code_range function, next;
	const struct mrrc_code_insn *insn;
	uint32_t i;

	if (mrrc_code_function(code, field, &function, &next))
		return true;
	if (field >= function.end)
		return !refs_filler(&next, field);
	if (body->function.start != function.start &&
	    mrrc_code_body_read(body, &function))
		return true;
	i = mrrc_code_body_find(body, (uint32_t) (field - function.start));
	if (!body->whole || i == MRRC_CODE_NONE)
		return true;
	insn = &body->insn[i];
	return insn->field && insn->size == size &&
	       function.start + insn->at + insn->field == field;
}

/*
 * May one of the distances that begin in this block lead to one of @len bytes,
 * the first of which is at @start? Compares 32 bits of where they lead. Reads
 * three bytes more.
 */
static bool refs_block(uintptr_t at, uintptr_t start, uint32_t len)
{
	const uint32_t from = (uint32_t) (at + 4 - start) + SIGN;
	const refs_words limit = (refs_words){ 0 } + (int32_t) (len + SIGN);
	const refs_words step = { 16, 16, 16, 16 };
	refs_words base[4], distance, any = { 0 };
	uint64_t words[2];
	unsigned i, j;

	for (j = 0; j < 4; j++)
		base[j] = (refs_words) ((refs_unsigned){ 0, 4, 8, 12 } +
					(from + j));
	for (i = 0; i < BLOCK; i += sizeof(distance)) {
		for (j = 0; j < 4; j++) {
			memcpy(&distance, (const void *) (at + i + j),
			       sizeof(distance));
			distance = (refs_words) ((refs_unsigned) distance +
						 (refs_unsigned) base[j]);
			any |= distance < limit;
			base[j] = (refs_words) ((refs_unsigned) base[j] +
						(refs_unsigned) step);
		}
	}
	memcpy(words, &any, sizeof(words));
	return words[0] | words[1];
}

void mrrc_code_refs_far(const struct mrrc_code_range *in,
			const struct mrrc_code_range *to,
			void (*each)(void *arg, uintptr_t to, uintptr_t field),
			void *arg)
{
	const uintptr_t len = to->end - to->start;
	uintptr_t at = in->start, stop, there;
	int32_t distance;

	while (in->end > at && in->end - at >= sizeof(distance)) {
		if (in->end - at >= BLOCK + sizeof(distance)) {
			stop = at + BLOCK;
			if (!refs_block(at, to->start, (uint32_t) len)) {
				at = stop;
				continue;
			}
		} else {
			stop = in->end - sizeof(distance) + 1;
		}
		for (; at < stop; at++) {
			memcpy(&distance, (const void *) at, sizeof(distance));
			there = at + sizeof(distance) +
				(uintptr_t) (intptr_t) distance;
			if (there - to->start < len)
				each(arg, there, at);
		}
	}
}

void mrrc_code_refs_near(const struct mrrc_code_range *in,
			 const struct mrrc_code_range *to,
			 void (*each)(void *arg, uintptr_t to, uintptr_t field),
			 void *arg)
{
	const uintptr_t before = to->start - in->start;
	const uintptr_t len = to->end - to->start;
	uintptr_t at = in->start, there;

	if (to->start > in->start && before > NEAR + 1)
		at = to->start - NEAR - 1;
	for (; at < in->end && at < to->end + NEAR + 1; at++) {
		there = at + 1 + (uintptr_t) (intptr_t) * (const int8_t *) at;
		if (there - to->start < len)
			each(arg, there, at);
	}
}

struct refs_guard {
	const struct mrrc_code *code;
	const struct mrrc_code_guard *guard;
	struct mrrc_code_body body;
	bool begins; /* a table */
	void (*each)(void *arg, uintptr_t at);
	void *arg;
};

static bool refs_has(const struct refs_guard *refs, const uint8_t *bits,
		     uintptr_t at)
{
	const struct mrrc_code_image *const image = refs->code->image;
	const uintptr_t offset = at - image->start;

	return offset < image->end - image->start &&
	       bits[offset / 8] & 1u << offset % 8;
}

/* A branch at @field would lead to @to, which is relied on. */
static void refs_branch(struct refs_guard *refs, uintptr_t to, uintptr_t field,
			unsigned size)
{
	struct mrrc_code_range function, gap;

	/* What leads there in the same function, was followed. */
	if (!mrrc_code_function(refs->code, to, &function, &gap) &&
	    field >= function.start &&
	    field < (to < function.end ? function.end : gap.end))
		return;
	if (mrrc_code_refs_real(refs->code, &refs->body, field, size))
		refs->each(refs->arg, to);
}

static bool refs_real(struct refs_guard *refs, uintptr_t field)
{
	return mrrc_code_refs_real(refs->code, &refs->body, field,
				   sizeof(int32_t));
}

static void refs_begins(void *arg, uintptr_t to, uintptr_t field)
{
	struct refs_guard *const refs = arg;

	refs->begins = refs->begins || refs_real(refs, field);
}

/* Does another table begin behind @table, at @at or before? */
static bool refs_ended(struct refs_guard *refs, uintptr_t table, uintptr_t at)
{
	const struct mrrc_code_image *const image = refs->code->image;
	const struct mrrc_code_range in = { image->start, image->end };
	const struct mrrc_code_range behind = { table + 1, at + 1 };

	refs->begins = false;
	mrrc_code_refs_far(&in, &behind, refs_begins, refs);
	return refs->begins;
}

/*
 * A lea at @field would compute @to: a place in a function, or a table of
 * distances from it to places. Of a table, only the begin is known: it ends
 * before what leads out of the mapping, and before the next one.
 */
static void refs_lea(struct refs_guard *refs, uintptr_t to, uintptr_t field)
{
	const struct mrrc_code_image *const image = refs->code->image;
	int32_t distance;
	uintptr_t at, there;

	if ((refs_has(refs, refs->guard->at, to) ||
	     refs_has(refs, refs->guard->inside, to)) &&
	    refs_real(refs, field))
		refs->each(refs->arg, to);
	for (at = to; mrrc_code_readable(refs->code, at, sizeof(distance));
	     at += sizeof(distance)) {
		memcpy(&distance, (const void *) at, sizeof(distance));
		there = to + (uintptr_t) (intptr_t) distance;
		if (there < image->start || there >= image->end)
			return;
		if (!refs_has(refs, refs->guard->at, there))
			continue;
		if (!refs_real(refs, field) || refs_ended(refs, to, at))
			return;
		refs->each(refs->arg, there);
	}
}

unsigned mrrc_code_refs_size(const uint8_t *code, size_t at)
{
	const uint8_t byte = code[at], before = at ? code[at - 1] : 0;

	switch (byte >> 4) {
	case 0x7: /* jcc */
		return 1;
	case 0x8: /* jcc */
		return before == 0x0f ? 4 : 0;
	case 0xe:
		if (byte == 0xe8 || byte == 0xe9) /* call, jmp */
			return 4;
		return byte == 0xeb || byte <= 0xe3; /* jmp, loop, jrcxz */
	case 0xf:
		return byte == 0xf8 && before == 0xc7 ? 4 : 0; /* xbegin */
	case 0x0:
	case 0x1:
	case 0x2:
	case 0x3:
		return (byte & 7) == 5 && before == 0x8d ? 4 : 0; /* lea */
	default:
		return 0;
	}
}

/* Those bytes that mrrc_code_refs_size() may answer a length for. */
static void refs_bytes(bool any[256])
{
	unsigned byte;
	uint8_t code[2];

	for (byte = 0; byte < 256; byte++) {
		code[1] = (uint8_t) byte;
		code[0] = byte >= 0xf0 ? 0xc7 : byte >= 0x80 ? 0x0f : 0x8d;
		any[byte] = mrrc_code_refs_size(code, 1) != 0;
	}
}

static void refs_names(struct refs_guard *refs)
{
	uintptr_t at;
	size_t i;

	for (i = 0; i < refs->code->names; i++) {
		at = refs->code->name[i];
		if (refs_has(refs, refs->guard->at, at) ||
		    refs_has(refs, refs->guard->inside, at))
			refs->each(refs->arg, at);
	}
}

void mrrc_code_refs_guarded(const struct mrrc_code *code,
			    const struct mrrc_code_guard *guard,
			    void (*each)(void *arg, uintptr_t at), void *arg)
{
	struct refs_guard refs = {
		.code = code, .guard = guard, .each = each, .arg = arg
	};
	const uint8_t *const bytes = (const uint8_t *) code->image->start;
	const size_t len = code->image->end - code->image->start;
	int32_t distance;
	uintptr_t field, to;
	bool any[256];
	unsigned size;
	size_t at;

	refs_bytes(any);
	refs_names(&refs);
	for (at = 0; at < len; at++) {
		if (!any[bytes[at]])
			continue;
		size = mrrc_code_refs_size(bytes, at);
		if (!size || len - at <= size)
			continue;
		field = (uintptr_t) bytes + at + 1;
		if (size == 1)
			distance = *(const int8_t *) field;
		else
			memcpy(&distance, (const void *) field,
			       sizeof(distance));
		to = field + size + (uintptr_t) (intptr_t) distance;
		if (bytes[at] < 0x40)
			refs_lea(&refs, to, field);
		else if (refs_has(&refs, guard->at, to))
			refs_branch(&refs, to, field, size);
	}
	mrrc_code_body_close(&refs.body);
}

#endif /* HAVE_ZYDIS */
