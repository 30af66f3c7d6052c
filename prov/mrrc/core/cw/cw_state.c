/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * States of conditional writes and their targets: see cw_state.h.
 */
#include "core/cw/cw_state.h"

#define NEVER	0xff
#define W(name) MRRC_CW_WR_##name
#define T(name) MRRC_CW_TARGET_##name

static const uint8_t cw_wr_next[MRRC_CW_WR_CNT][WR_EVENTS] = {
	/*	MATCH		UNMATCH		ISSUE
	 *	TELL		LAND		CANCEL
	 *	TRUNC		FAIL		DOWN */
	[W(HELD)] = {
		W(READY),	NEVER,		NEVER,
		NEVER,		NEVER,		W(ENDED),
		W(ENDED),	NEVER,		W(ENDED),
	},
	[W(READY)] = {
		NEVER,		W(HELD),	W(ISSUED),
		NEVER,		NEVER,		NEVER,
		NEVER,		NEVER,		W(ENDED),
	},
	[W(ISSUED)] = {
		NEVER,		NEVER,		NEVER,
		W(TOLD),	W(LANDED),	W(ISSUED),
		NEVER,		W(ENDED),	W(ENDED),
	},
	[W(TOLD)] = {
		NEVER,		NEVER,		NEVER,
		NEVER,		W(ENDED),	W(TOLD),
		NEVER,		W(ENDED),	W(ENDED),
	},
	[W(LANDED)] = {
		NEVER,		NEVER,		NEVER,
		W(ENDED),	NEVER,		W(LANDED),
		NEVER,		NEVER,		W(ENDED),
	},
	[W(ENDED)] = {
		NEVER,		NEVER,		NEVER,
		NEVER,		NEVER,		NEVER,
		NEVER,		NEVER,		NEVER,
	},
};

static const uint8_t cw_target_next[MRRC_CW_TARGET_CNT][TG_EVENTS] = {
	/*	ANNOUNCE	DONE		TRUNC		CANCEL
	 *	REVOKE		REVOKED		DOWN */
	[T(QUEUED)] = {
		T(EXPOSED),	NEVER,		NEVER,		T(ENDED),
		NEVER,		NEVER,		T(ENDED),
	},
	[T(EXPOSED)] = {
		NEVER,		T(ENDED),	T(ENDED),	T(WITHDRAWN),
		NEVER,		NEVER,		T(ENDED),
	},
	[T(WITHDRAWN)] = {
		NEVER,		T(ENDED),	T(ENDED),	T(WITHDRAWN),
		T(REVOKING),	NEVER,		T(ENDED),
	},
	[T(REVOKING)] = {
		NEVER,		T(ENDED),	T(ENDED),	T(REVOKING),
		NEVER,		T(ENDED),	T(ENDED),
	},
	[T(ENDED)] = {
		NEVER,		NEVER,		NEVER,		NEVER,
		NEVER,		NEVER,		NEVER,
	},
};

bool mrrc_cw_wr_step(struct mrrc_cw_wr *wr, enum mrrc_cw_wr_event event)
{
	uint8_t next = cw_wr_next[wr->state][event];

	if (next == NEVER)
		return false;
	wr->state = next;
	return true;
}

bool mrrc_cw_target_step(struct mrrc_cw_target *target,
			 enum mrrc_cw_target_event event)
{
	uint8_t next = cw_target_next[target->state][event];

	if (next == NEVER)
		return false;
	target->state = next;
	return true;
}
