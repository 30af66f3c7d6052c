/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core/cw/cw_phase: each pair of phase and event is listed here, too. */
#include "config.h"
#include "test/case.h"

#include "core/cw/cw_phase.h"

/*
 * Each entry is the letter of the next phase (C: CONNECTING, A: ALONE, X: LOST)
 * and the number of the act; "--": the event must not happen in this phase.
 * Entries are in the order of the events: AWAIT RECALL PLAIN JOIN DIAL MET QUIT
 * REQUEST POST CLOSE RESET
 */
static const char *const expected[CW_PHASE_CNT] = {
	[CW_OPTED] = "L1 -- A1 O8 C1 -- O1 O1 O8 X1 --",
	[CW_LISTENING] = "-- O1 L1 L1 -- U2 L3 L5 L1 X1 --",
	[CW_CONNECTING] = "-- -- C1 C1 -- U2 C3 C4 C1 X1 --",
	[CW_UP] = "-- U1 U1 U1 -- U1 U1 U6 U1 X1 --",
	[CW_LOST] = "-- X1 X1 X1 -- -- X1 X7 X7 X1 O1",
	[CW_ALONE] = "-- -- A1 A1 -- -- A1 -- A9 X1 --",
};

TEST_CASE(cw_phase, NULL, NULL);

LOOP_TEST(every_pair, 0, CW_PHASE_CNT *CW_EVENT_CNT)
{
	static const char letter[] = { 'O', 'L', 'C', 'U', 'X', 'A' };
	enum cw_phase phase = _i / CW_EVENT_CNT;
	enum cw_event event = _i % CW_EVENT_CNT;
	struct cw_step step = mrrc_cw_phase_step(phase, event);
	char found[] = "--";

	if (step.act != CW_DO_REFUSE) {
		found[0] = letter[step.next];
		found[1] = '0' + step.act;
	}
	ck_assert_msg(!strncmp(found, &expected[phase][3 * event], 2),
		      "%s in %s: %s", mrrc_cw_event_name(event),
		      mrrc_cw_phase_name(phase), found);
}

/* Only closing a connection makes it LOST, and only RESET leaves LOST. */
TEST(lost_is_closed)
{
	unsigned phase, event;
	struct cw_step step;

	for (phase = 0; phase < CW_PHASE_CNT; phase++) {
		for (event = 0; event < CW_EVENT_CNT; event++) {
			step = mrrc_cw_phase_step(phase, event);
			if (step.act == CW_DO_REFUSE)
				continue;
			if (event == CW_ON_CLOSE)
				ck_assert_uint_eq(step.next, CW_LOST);
			else if (phase == CW_LOST && event != CW_ON_RESET)
				ck_assert_uint_eq(step.next, CW_LOST);
			else
				ck_assert_uint_ne(step.next, CW_LOST);
		}
	}
}
