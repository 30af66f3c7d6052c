/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks of the two sides of conditional writes: invariants and counters in any
 * state. From each state, when the network has delivered all messages, every
 * operation that can end has ended, in order, once, at both sides.
 */
#include "config.h"
#include "test/models/explore_world.h"

#include <errno.h>
#include <string.h>

static bool counted_too(const struct side *side)
{
	const struct mrrc_cw_stats *stats = &side->cw.stats;
	const uint64_t *value = side->counted.value;

	return value[MRRC_STAT_CW_WRITES] == stats->writes &&
	       value[MRRC_STAT_CW_TAGS] == stats->tags &&
	       value[MRRC_STAT_CW_IMMEDIATE] == stats->at_once &&
	       value[MRRC_STAT_CW_HELD] == stats->later &&
	       value[MRRC_STAT_CW_WRITES_ENDED] == stats->writes_ended &&
	       value[MRRC_STAT_CW_TAGS_ENDED] == stats->tags_ended &&
	       value[MRRC_STAT_CW_TRUNCATED] == stats->truncated &&
	       value[MRRC_STAT_CW_CANCELLED] == stats->cancelled &&
	       value[MRRC_STAT_CW_SENT] == stats->sent &&
	       value[MRRC_STAT_CW_RECEIVED] == stats->received &&
	       value[MRRC_STAT_CW_STALLS] == stats->stalls;
}

void check_valid(void)
{
	unsigned s;

	for (s = 0; s < 2; s++) {
		MUST(mrrc_cw_valid(&world.side[s].cw), "invariants, side %u",
		     s);
		MUST(counted_too(&world.side[s]), "counters, side %u", s);
	}
}

/* The network delivers all that it can; the sides do nothing new. */
static void settle(void)
{
	struct step step = { 0 };
	bool any;

	do {
		any = false;
		for (step.side = 0; step.side < 2; step.side++) {
			step.kind = S_ROOM;
			if (world.side[step.side].full && enabled(step)) {
				apply(step);
				any = true;
			}
			for (step.kind = S_DELIVER; step.kind <= S_LAND;
			     step.kind++) {
				while (enabled(step)) {
					apply(step);
					any = true;
				}
			}
			step.kind = S_NOTICE;
			if (enabled(step)) {
				apply(step);
				any = true;
			}
		}
	} while (any);
}

/* Compares side w's writes with the targets at the other side, all settled. */
static void check_pairs(unsigned w)
{
	const struct side *from = &world.side[w], *to = &world.side[!w];
	uint64_t last[64];
	unsigned i, waiting[64] = { 0 }, ok = 0, trunc = 0;
	const struct fate *fate;

	memset(last, 0xff, sizeof(last));
	for (i = 0; i < from->wrs; i++) {
		fate = &from->wr[i];
		if (!fate->ended) {
			MUST(!fate->cancelled, "a cancelled write hangs");
			waiting[fate->tag]++;
		}
		ok += fate->ended && !fate->err;
		trunc += fate->ended && fate->err == MRRC_CW_ETRUNC;
	}
	for (i = 0; i < to->targets; i++) {
		fate = &to->target[i];
		if (!fate->ended) {
			MUST(!fate->cancelled, "a cancelled target hangs");
			MUST(!waiting[fate->tag],
			     "a write and its target wait for each other");
			continue;
		}
		trunc -= fate->err == MRRC_CW_ETRUNC;
		if (fate->err)
			continue;
		ok--;
		MUST(fate->data < from->wrs &&
			     from->wr[fate->data].tag == fate->tag,
		     "a target got another tag's write");
		MUST(last[fate->tag] == UINT64_MAX ||
			     last[fate->tag] < fate->data,
		     "out of order");
		last[fate->tag] = fate->data;
		MUST(fate->len == from->wr[fate->data].len,
		     "a target is told another length");
	}
	MUST(!ok, "writes and targets that succeeded differ by %d", (int) ok);
	MUST(!trunc, "truncated writes and targets differ");
}

static void check_ended(void)
{
	const struct side *side;
	unsigned s, i;

	for (s = 0; s < 2; s++) {
		side = &world.side[s];
		for (i = 0; i < side->wrs; i++)
			MUST(side->wr[i].ended == 1, "a write never ends");
		for (i = 0; i < side->targets; i++)
			MUST(side->target[i].ended == 1, "a target never ends");
	}
	check_valid();
	MUST(!world_blocks(), "%lu blocks are left", world_blocks());
}

void finish(void)
{
	unsigned s;

	settle();
	check_valid();
	if (!world.cut) {
		for (s = 0; s < 2; s++) {
			check_pairs(s);
			MUST(!mrrc_cw_waits(&world.side[s].cw),
			     "messages wait for ever");
		}
	}
	for (s = 0; s < 2; s++)
		side_lose(s, ECONNABORTED);
	check_ended();
}
