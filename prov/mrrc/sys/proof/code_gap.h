/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gaps: bytes that belong to no function.
 *
 * Threading: a gap is one thread's.
 */
#ifndef MRRC_CODE_GAP_H
#define MRRC_CODE_GAP_H

#include "sys/proof/code_body.h"

struct mrrc_code_gap {
	struct mrrc_code_range range;
	const struct mrrc_code *code;
	uint8_t *seen; /* a bit for each byte: an instruction
					 * that may be executed begins there */
	/*
	 * the reason why byte pairs of the gap may be executed; NULL: no pair
	 * is executed
	 */
	const char *unknown;
};

/*
 * Reads a gap. @falls: execution may continue from the function before the gap
 * to the gap's first byte.
 */
int mrrc_code_gap_read(struct mrrc_code_gap *gap, const struct mrrc_code *code,
		       const struct mrrc_code_range *range, bool falls);

void mrrc_code_gap_close(struct mrrc_code_gap *gap);

#endif /* MRRC_CODE_GAP_H */
