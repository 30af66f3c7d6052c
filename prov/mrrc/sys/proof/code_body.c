/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decodes functions of x86-64 (code_body.h) from their start to their end by
 * Zydis, in the mode that tells only lengths and branches.
 */
#include "config.h"
#include "sys/proof/code_body.h"

#ifdef HAVE_ZYDIS

#include <errno.h>
#include <string.h>
#include <Zydis/Zydis.h>

#include "sys/base/apart.h"

#define LONGEST	 ((uint32_t) 1 << 24) /* bytes of a function */
#define LOCK	 0xf0
#define BACK_MIN 64	 /* bytes decoded before an address, at first */
#define BACK_MAX 1024	 /* bytes decoded before an address, at most */
#define ANY	 0x7fffu /* a bit for each byte of an instruction, at most 15 */

static int body_grow(struct mrrc_code_body *body)
{
	const uint32_t room = body->room ? 2 * body->room : 1024;
	struct mrrc_code_insn *insn;

	if (body->count < body->room)
		return 0;
	insn = mrrc_apart_grow(body->insn, room * sizeof(*insn));
	if (!insn)
		return -ENOMEM;
	body->insn = insn;
	body->room = room;
	return 0;
}

/*
 * Is this a branch with an operand-size prefix and no REX.W, whose target
 * differs between processors?
 */
static bool body_odd_branch(const ZydisDecodedInstruction *zydis)
{
	unsigned i;

	if (zydis->raw.rex.W)
		return false;
	for (i = 0; i < zydis->raw.prefix_count; i++) {
		if (zydis->raw.prefixes[i].value == 0x66)
			return true;
	}
	return false;
}

/*
 * Does the instruction name an address relative to its own address, other than
 * a branch's target?
 */
static bool body_rip(const ZydisDecodedInstruction *zydis)
{
	return zydis->raw.modrm.mod == 0 && zydis->raw.modrm.rm == 5;
}

/*
 * Sets where the instruction leads. false, and AWAY: this depends on the
 * processor.
 */
static bool body_flow(const ZydisDecodedInstruction *zydis,
		      struct mrrc_code_insn *insn)
{
	const bool relative = zydis->raw.imm[0].is_relative;
	int64_t to;

	insn->to = MRRC_CODE_NONE;
	insn->flow = MRRC_CODE_NEXT;
	if (relative) {
		insn->flow = MRRC_CODE_AWAY;
		if (body_odd_branch(zydis))
			return false;
		/*
		 * a distance has 32 bits at most; other immediates may have 64
		 */
		to = (int64_t) insn->at + insn->len + zydis->raw.imm[0].value.s;
		if (to >= 0 && to < LONGEST)
			insn->to = (uint32_t) to;
		insn->flow = MRRC_CODE_BRANCH;
	}
	switch (zydis->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_INT3:
		insn->filler = true;
		break;
	case ZYDIS_MNEMONIC_JMP:
		/*
		 * a jump by a pointer in the GOT leads to a function of another
		 * file
		 */
		insn->flow = relative || body_rip(zydis) ? MRRC_CODE_JUMP :
							   MRRC_CODE_AWAY;
		break;
	case ZYDIS_MNEMONIC_CALL:
		insn->flow = MRRC_CODE_CALLS;
		break;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
		insn->flow = MRRC_CODE_JUMP; /* names no place */
		break;
	case ZYDIS_MNEMONIC_SYSCALL:
		insn->flow = MRRC_CODE_SYSCALL;
		break;
	case ZYDIS_MNEMONIC_SYSENTER:
		insn->flow = MRRC_CODE_SYSCALL32;
		break;
	case ZYDIS_MNEMONIC_INT:
		if ((uint8_t) zydis->raw.imm[0].value.u == 0x80)
			insn->flow = MRRC_CODE_SYSCALL32;
		break;
	default:
		break;
	}
	return true;
}

static void body_decoder(ZydisDecoder *decoder)
{
	ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
}

static bool body_insn(const ZydisDecoder *decoder, const uint8_t *code,
		      uint32_t at, uint32_t len, struct mrrc_code_insn *insn)
{
	ZydisDecodedInstruction zydis;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		    decoder, NULL, code + at, len - at, &zydis)))
		return false;
	*insn = (struct mrrc_code_insn){
		.at = at,
		.len = zydis.length,
		.first = MRRC_CODE_NONE,
		.next = MRRC_CODE_NONE,
	};
	if (zydis.raw.imm[0].is_relative) {
		insn->field = zydis.raw.imm[0].offset;
		insn->size = zydis.raw.imm[0].size / 8;
	} else if (zydis.mnemonic == ZYDIS_MNEMONIC_LEA && body_rip(&zydis)) {
		insn->field = zydis.raw.disp.offset;
		insn->size = zydis.raw.disp.size / 8;
	}
	return body_flow(&zydis, insn);
}

bool mrrc_code_insn_read(const uint8_t *code, uint32_t at, uint32_t len,
			 struct mrrc_code_insn *insn)
{
	ZydisDecoder decoder;

	*insn = (struct mrrc_code_insn){ .flow = MRRC_CODE_NEXT };
	body_decoder(&decoder);
	return body_insn(&decoder, code, at, len, insn);
}

/* Decodes the function up to the first bytes that are no instruction. */
static int body_decode(struct mrrc_code_body *body, const uint8_t *code,
		       uint32_t len)
{
	struct mrrc_code_insn *insn;
	ZydisDecoder decoder;
	uint32_t at = 0;
	int ret;

	body_decoder(&decoder);
	while (at < len) {
		ret = body_grow(body);
		if (ret)
			return ret;
		insn = &body->insn[body->count];
		if (!body_insn(&decoder, code, at, len, insn))
			return 0;
		body->away = body->away || insn->flow == MRRC_CODE_AWAY;
		body->count++;
		at += insn->len;
	}
	body->whole = true;
	return 0;
}

uint32_t mrrc_code_body_find(const struct mrrc_code_body *body, uint32_t at)
{
	uint32_t lo = 0, hi = body->count, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (body->insn[mid].at + body->insn[mid].len <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < body->count ? lo : MRRC_CODE_NONE;
}

/*
 * Links each branch into the list of branches that lead to the same
 * instruction.
 */
static void body_link(struct mrrc_code_body *body, const uint8_t *code)
{
	struct mrrc_code_insn *insn, *to;
	uint32_t i, j, inside;

	for (i = 0; i < body->count; i++) {
		insn = &body->insn[i];
		j = insn->to == MRRC_CODE_NONE ?
			    MRRC_CODE_NONE :
			    mrrc_code_body_find(body, insn->to);
		if (j == MRRC_CODE_NONE) {
			insn->to = MRRC_CODE_NONE;
			continue;
		}
		to = &body->insn[j];
		inside = insn->to - to->at;
		if (inside && !(inside == 1 && code[to->at] == LOCK) &&
		    (!to->split || inside < to->split)) {
			to->split = (uint8_t) inside;
			body->split = true;
		}
		insn->next = to->first;
		to->first = i;
	}
}

int mrrc_code_body_read(struct mrrc_code_body *body,
			const struct mrrc_code_range *function)
{
	const uint8_t *const code = (const uint8_t *) function->start;
	int ret;

	if (body->function.start == function->start &&
	    body->function.end == function->end && code)
		return 0;
	body->function = (struct mrrc_code_range){ 0 };
	body->count = 0;
	body->whole = body->away = body->split = false;
	body->walk = 0;
	if (function->end - function->start > LONGEST)
		return -E2BIG;
	ret = body_decode(body, code,
			  (uint32_t) (function->end - function->start));
	if (ret)
		return ret;
	body->function = *function;
	body_link(body, code);
	return 0;
}

/*
 * mrrc_code_insn_at() for the byte @to, by decoding the @back bytes before @to.
 */
static bool body_insn_at(const ZydisDecoder *decoder, const uint8_t *code,
			 uint32_t len, uint32_t to, uint32_t back,
			 struct mrrc_code_insn *insn)
{
	uint32_t i = to > back ? to - back : 0;
	/*
	 * a bit for each position from @i on at which an instruction may begin
	 */
	uint32_t begins = i ? ANY : 1;
	struct mrrc_code_insn one;
	bool found = false;

	for (; i <= to; i++, begins >>= 1) {
		if (!(begins & 1))
			continue;
		if (!body_insn(decoder, code, i, len, &one)) {
			if (i == to)
				return false;
			begins |= ANY << 1;
		} else if (i + one.len <= to) {
			begins |= 1u << one.len;
		} else if (found) {
			return false;
		} else {
			found = true;
			*insn = one;
		}
	}
	return found;
}

/*
 * Decodes a few bytes before @at, which is enough for most code, and more bytes
 * if that fails: long runs of vector instructions still decode without their
 * first byte.
 */
bool mrrc_code_insn_at(const struct mrrc_code_range *function, uintptr_t at,
		       struct mrrc_code_insn *insn, uintptr_t *from)
{
	const uint8_t *const code = (const uint8_t *) function->start;
	const uint32_t len = (uint32_t) (function->end - function->start);
	const uint32_t to = (uint32_t) (at - function->start);
	ZydisDecoder decoder;
	uint32_t back;

	body_decoder(&decoder);
	for (back = BACK_MIN; back <= BACK_MAX; back *= 4) {
		*from = to > back ? at - back : function->start;
		if (body_insn_at(&decoder, code, len, to, back, insn))
			return true;
	}
	return false;
}

uintptr_t mrrc_code_body_to(const struct mrrc_code_body *body,
			    const struct mrrc_code_insn *insn)
{
	const uintptr_t at = body->function.start + insn->at;
	const uint8_t *const field = (const uint8_t *) at + insn->field;
	int32_t distance = 0;

	if (!insn->field)
		return 0;
	if (insn->size == 1)
		distance = *(const int8_t *) field;
	else
		memcpy(&distance, field, sizeof(distance));
	return at + insn->len + (uintptr_t) (intptr_t) distance;
}

void mrrc_code_body_close(struct mrrc_code_body *body)
{
	mrrc_apart_free(body->insn);
	*body = (struct mrrc_code_body){ 0 };
}

bool mrrc_code_filled(const struct mrrc_code_range *gap, uintptr_t to)
{
	const uint32_t len = (uint32_t) (gap->end - gap->start);
	struct mrrc_code_insn insn;
	uint32_t at;

	for (at = 0; gap->start + at <= to; at += insn.len) {
		if (!mrrc_code_insn_read((const uint8_t *) gap->start, at, len,
					 &insn) ||
		    !insn.filler)
			return false;
	}
	return true;
}

#endif /* HAVE_ZYDIS */
