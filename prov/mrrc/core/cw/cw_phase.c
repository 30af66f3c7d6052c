/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Phases of a link's connection: see cw_phase.h.
 */
#include "core/cw/cw_phase.h"

#define ON(event, next, act) [CW_ON_##event] = { CW_##next, CW_DO_##act }

/* Pairs of phase and event that are not listed must not happen. */
static const struct cw_step cw_steps[CW_PHASE_CNT][CW_EVENT_CNT] = {
	[CW_OPTED] = {
		ON(AWAIT,	LISTENING,	NONE),
		ON(PLAIN,	ALONE,		NONE),
		ON(JOIN,	OPTED,		CONNECT),
		ON(DIAL,	CONNECTING,	NONE),
		ON(QUIT,	OPTED,		NONE),
		ON(REQUEST,	OPTED,		NONE),
		ON(POST,	OPTED,		CONNECT),
		ON(CLOSE,	LOST,		NONE),
	},
	[CW_LISTENING] = {
		ON(RECALL,	OPTED,		NONE),
		ON(PLAIN,	LISTENING,	NONE),
		ON(JOIN,	LISTENING,	NONE),
		ON(MET,		UP,		GREET),
		ON(QUIT,	LISTENING,	LOSE),
		ON(REQUEST,	LISTENING,	DROP),
		ON(POST,	LISTENING,	NONE),
		ON(CLOSE,	LOST,		NONE),
	},
	[CW_CONNECTING] = {
		ON(PLAIN,	CONNECTING,	NONE),
		ON(JOIN,	CONNECTING,	NONE),
		ON(MET,		UP,		GREET),
		ON(QUIT,	CONNECTING,	LOSE),
		ON(REQUEST,	CONNECTING,	CHOOSE),
		ON(POST,	CONNECTING,	NONE),
		ON(CLOSE,	LOST,		NONE),
	},
	[CW_UP] = {
		ON(RECALL,	UP,		NONE),
		ON(PLAIN,	UP,		NONE),
		ON(JOIN,	UP,		NONE),
		ON(MET,		UP,		NONE),
		ON(QUIT,	UP,		NONE),
		ON(REQUEST,	UP,		END),
		ON(POST,	UP,		NONE),
		ON(CLOSE,	LOST,		NONE),
	},
	[CW_LOST] = {
		ON(RECALL,	LOST,		NONE),
		ON(PLAIN,	LOST,		NONE),
		ON(JOIN,	LOST,		NONE),
		ON(QUIT,	LOST,		NONE),
		ON(REQUEST,	LOST,		RENEW),
		ON(POST,	LOST,		RENEW),
		ON(CLOSE,	LOST,		NONE),
		ON(RESET,	OPTED,		NONE),
	},
	[CW_ALONE] = {
		ON(PLAIN,	ALONE,		NONE),
		ON(JOIN,	ALONE,		NONE),
		ON(QUIT,	ALONE,		NONE),
		ON(POST,	ALONE,		FAIL),
		ON(CLOSE,	LOST,		NONE),
	},
};

#define CW_NAME(name) #name,

struct cw_step mrrc_cw_phase_step(enum cw_phase phase, enum cw_event event)
{
	return cw_steps[phase][event];
}

const char *mrrc_cw_phase_name(enum cw_phase phase)
{
	static const char *const name[] = { MRRC_CW_PHASES(CW_NAME) };

	return name[phase];
}

const char *mrrc_cw_event_name(enum cw_event event)
{
	static const char *const name[] = { MRRC_CW_EVENTS(CW_NAME) };

	return name[event];
}
