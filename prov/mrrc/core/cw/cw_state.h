/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * States of conditional writes and their targets, as tables: cw.h says what
 * each state means, and cw.c what is done on each transition.
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

/* The next state; false: must not happen, or the peer's fault */
bool mrrc_cw_wr_step(struct mrrc_cw_wr *wr, enum mrrc_cw_wr_event event);
bool mrrc_cw_target_step(struct mrrc_cw_target *target,
			 enum mrrc_cw_target_event event);

#endif /* MRRC_CW_STATE_H */
