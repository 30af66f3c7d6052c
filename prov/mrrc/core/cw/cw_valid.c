/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Invariants of conditional writes: see cw.h.
 */
#include "core/cw/cw.h"

static bool cw_valid_wrs(const struct mrrc_cw *cw)
{
	const struct mrrc_cw_wr *wr;
	uint32_t cnt = 0, held = 0, ready = 0, listed = 0, matched = 0;
	bool last = true;

	TAILQ_FOREACH(wr, &cw->wrs, all) {
		cnt++;
		if (wr->state == MRRC_CW_WR_ENDED)
			return false;
		if (wr->state == MRRC_CW_WR_HELD) {
			held++;
			if (wr->rtag ||
			    mrrc_cw_map_first(&cw->known, wr->cwtag))
				return false; /* W1 */
		}
		if (wr->rtag && wr->rtag->wr != wr)
			return false; /* W2 */
		if (wr->state == MRRC_CW_WR_READY) {
			ready++;
			if (!wr->rtag || wr->rtag->out.type)
				return false;
		}
	}
	TAILQ_FOREACH(wr, &cw->ready, ready) {
		listed++;
		matched += wr->matched;
		if (wr->matched && !last)
			return false; /* W5 */
		last = wr->matched;
	}
	return cnt == cw->wr_cnt && held == cw->held.nodes && ready == listed &&
	       matched == cw->matched.nodes; /* W3 */
}

static bool cw_valid_tags(const struct mrrc_cw *cw)
{
	const struct mrrc_cw_target *target;
	const struct mrrc_cw_rtag *rtag;
	const struct mrrc_cw_out *out;
	uint32_t targets = 0, rtags = 0, known = 0, announced = 0, waiting = 0;

	TAILQ_FOREACH(target, &cw->targets, all) {
		targets++;
		announced += target->state != MRRC_CW_TARGET_QUEUED;
		waiting += target->out.type != 0;
	}
	TAILQ_FOREACH(rtag, &cw->rtags, all) {
		rtags++;
		known += rtag->known;
		waiting += rtag->out.type != 0;
		/*
		 * the tag has no write and no message to send: it must be known
		 */
		if (!rtag->wr && !rtag->known && !rtag->out.type && !cw->err)
			return false;
	}
	TAILQ_FOREACH(out, &cw->replies, link)
		waiting--;
	TAILQ_FOREACH(out, &cw->tags, link)
		waiting--;
	return targets == cw->target_cnt && targets == cw->by_id.nodes &&
	       announced == cw->announced && rtags == cw->rtag_cnt &&
	       rtags == cw->rtag_by_id.nodes && known == cw->known_cnt &&
	       known == cw->known.nodes && !waiting && /* W3, W4 */
	       cw->spare_cnt <= MRRC_CW_SPARE;
}

bool mrrc_cw_valid(const struct mrrc_cw *cw)
{
	return mrrc_cw_map_valid(&cw->held) && mrrc_cw_map_valid(&cw->known) &&
	       mrrc_cw_map_valid(&cw->matched) &&
	       mrrc_cw_map_valid(&cw->by_id) &&
	       mrrc_cw_map_valid(&cw->rtag_by_id) && cw_valid_wrs(cw) &&
	       cw_valid_tags(cw) &&
	       cw->stats.writes == cw->stats.writes_ended + cw->wr_cnt &&
	       cw->stats.tags == cw->stats.tags_ended + cw->target_cnt &&
	       cw->room <= cw->peer_credits;
}
