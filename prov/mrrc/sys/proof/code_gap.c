/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Examines gaps between functions of a program's code: a gap has filler, data
 * in assembly code, or functions that .eh_frame does not name.
 *
 * Code in a gap is entered from outside of the gap. Places where code in a gap
 * may be entered:
 *
 * - its first byte, if the function before it does not end with a jump;
 * - targets of branches. The distance of a branch has four bytes, or one byte
 *   if the target is near. So any four bytes of the mapping, and any byte near
 *   the gap, are taken for a distance if they follow a byte that may end the
 *   opcode of a branch: no branch is missed, not even in code that does not
 *   decode;
 * - addresses that a lea computes, which are found as targets of branches are;
 * - addresses that the file's tables name (code_names.c).
 *
 * Instructions are followed along all paths from each place where the gap may
 * be entered. Bytes that decode to no instruction end a path, as such bytes
 * cannot be executed. If no path reaches a system call, no byte pair of the gap
 * is a system call.
 *
 * If a path from a distance's target reaches a system call, the distance is
 * checked: a distance does not count if its bytes are another part of an
 * instruction of a function, or filler between two functions.
 *
 * The answer is "not known" where pointers may be in no table (code_names.c),
 * or if a path reaches an indirect jump in the gap.
 */
#include "config.h"
#include "sys/proof/code_gap.h"

#ifdef HAVE_ZYDIS

#include <errno.h>
#include <string.h>

#include "sys/base/apart.h"
#include "sys/proof/code_refs.h"

#define LONGEST ((uintptr_t) 1 << 24) /* bytes of a gap */
#define PATHS	256		      /* paths that wait to be followed */

static bool gap_has(const struct mrrc_code_gap *gap, uintptr_t at)
{
	return at >= gap->range.start && at < gap->range.end;
}

static void gap_unknown(struct mrrc_code_gap *gap, const char *why)
{
	if (!gap->unknown)
		gap->unknown = why;
}

/* The paths from one place at which the gap may be entered. */
struct gap_trip {
	uint32_t path[PATHS];
	unsigned paths;
	const char *unknown;
};

static void trip_push(struct mrrc_code_gap *gap, struct gap_trip *trip,
		      uint32_t at)
{
	const uint8_t bit = (uint8_t) (1u << at % 8);

	if (at >= gap->range.end - gap->range.start || gap->seen[at / 8] & bit)
		return;
	gap->seen[at / 8] |= bit;
	if (trip->paths == PATHS)
		trip->unknown = "in no function, with many branches";
	else
		trip->path[trip->paths++] = at;
}

/*
 * Is this the jump, in each linked file's part from the compiler's start files,
 * to a function of another library that may be absent?
 *
 *	mov x(%rip), %rax; test %rax, %rax; je ...; jmp *%rax
 */
static bool gap_optional(const uint8_t *code, uint32_t at)
{
	return at >= 12 && !memcmp(code + at - 12, "\x48\x8b\x05", 3) &&
	       !memcmp(code + at - 5, "\x48\x85\xc0\x74", 4) &&
	       !memcmp(code + at, "\xff\xe0", 2);
}

static void trip_step(struct mrrc_code_gap *gap, struct gap_trip *trip,
		      uint32_t at)
{
	const uint8_t *const code = (const uint8_t *) gap->range.start;
	const uint32_t len = (uint32_t) (gap->range.end - gap->range.start);
	const uintptr_t more = gap->code->image->end - gap->range.end;
	const uint32_t end = len + (uint32_t) (more < 15 ? more : 15);
	struct mrrc_code_insn insn;

	if (!mrrc_code_insn_read(code, at, end, &insn)) {
		if (insn.flow == MRRC_CODE_AWAY)
			trip->unknown = "in no function, with an odd branch";
		return;
	}
	if (at + insn.len > len)
		trip->unknown = "in no function, and leads into one";
	if (insn.flow == MRRC_CODE_AWAY && !gap_optional(code, at))
		trip->unknown = "in no function, with an indirect jump";
	if (insn.flow == MRRC_CODE_SYSCALL || insn.flow == MRRC_CODE_SYSCALL32)
		trip->unknown = "in no function";
	if (insn.to != MRRC_CODE_NONE)
		trip_push(gap, trip, insn.to);
	if (mrrc_code_body_falls(&insn))
		trip_push(gap, trip, at + insn.len);
}

/*
 * Follows the code at @at. @field: the distance that leads there, or 0.
 */
static void gap_enter(struct mrrc_code_gap *gap, uintptr_t at, uintptr_t field)
{
	const size_t len = (gap->range.end - gap->range.start) / 8 + 1;
	struct gap_trip trip;

	if (!gap_has(gap, at) || gap->unknown)
		return;
	trip.paths = 0;
	trip.unknown = NULL;
	trip_push(gap, &trip, (uint32_t) (at - gap->range.start));
	while (trip.paths && !trip.unknown)
		trip_step(gap, &trip, trip.path[--trip.paths]);
	if (!trip.unknown)
		return;
	if (field && !mrrc_code_refs_real(gap->code, field)) {
		/* all paths so far have to be followed again. */
		memset(gap->seen, 0, len);
		return;
	}
	gap_unknown(gap, trip.unknown);
}

/* Branches within the gap are followed when a path reaches them. */
static void gap_ref(void *arg, uintptr_t to, uintptr_t field, unsigned size)
{
	if (!gap_has(arg, field))
		gap_enter(arg, to, field);
}

int mrrc_code_gap_read(struct mrrc_code_gap *gap, const struct mrrc_code *code,
		       const struct mrrc_code_range *range, bool falls)
{
	const size_t len = range->end - range->start;
	const struct mrrc_code_range in = { code->image->start,
					    code->image->end };
	size_t i;

	gap->range = *range;
	gap->code = code;
	gap->unknown = code->hidden;
	mrrc_apart_free(gap->seen);
	gap->seen = NULL;
	if (len > LONGEST)
		gap_unknown(gap, "in no function, in a long gap");
	if (gap->unknown)
		return 0;
	gap->seen = mrrc_apart_grow(NULL, len / 8 + 1);
	if (!gap->seen)
		return -ENOMEM;
	if (falls)
		gap_enter(gap, range->start, 0);
	for (i = 0; i < code->names; i++)
		gap_enter(gap, code->name[i], 0);
	mrrc_code_refs(&in, range, gap_ref, gap);
	return 0;
}

void mrrc_code_gap_close(struct mrrc_code_gap *gap)
{
	mrrc_apart_free(gap->seen);
	gap->seen = NULL;
}

#endif /* HAVE_ZYDIS */
