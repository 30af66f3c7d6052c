/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * States of conditional writes and their targets, as tables: cw.h describes the
 * states, and cw.c acts on transitions.
 */
#ifndef MRRC_CW_STATE_H
#define MRRC_CW_STATE_H

#include "core/cw/cw.h"

enum mrrc_cw_wr_event {
	WR_MATCH,
	WR_UNMATCH,
	WR_ISSUE,
	WR_TELL,
	WR_LAND,
	WR_CANCEL,
	WR_TRUNC,
	WR_FAIL,
	WR_DOWN,
	WR_EVENTS
};

enum mrrc_cw_target_event {
	TG_ANNOUNCE,
	TG_DONE,
	TG_TRUNC,
	TG_CANCEL,
	TG_REVOKE,
	TG_REVOKED,
	TG_DOWN,
	TG_EVENTS
};

/*
 * Moves to the next state. false: the event must not happen in this state, or
 * the peer is at fault
 */
bool mrrc_cw_wr_step(struct mrrc_cw_wr *wr, enum mrrc_cw_wr_event event);
bool mrrc_cw_target_step(struct mrrc_cw_target *target,
			 enum mrrc_cw_target_event event);

#endif /* MRRC_CW_STATE_H */
