/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes on one connection: see cw.h.
 */
#include "cw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* test/explore_cw.c compiles a copy of this file with faults to find. */
#ifdef MRRC_CW_FAULTS
extern int mrrc_cw_fault;
#define FAULT(n)	(mrrc_cw_fault == (n))
#else
#define FAULT(n)	false
#endif

#define NODE_OF(ptr, type, field) \
	((struct type *)((char *)(ptr) - offsetof(struct type, field)))
#define OUT_OF(ptr, type)	NODE_OF(ptr, type, out)

/* ---- the tables ---------------------------------------------------------- */

enum cw_wr_event {
	WR_MATCH, WR_UNMATCH, WR_ISSUE, WR_TELL, WR_LAND, WR_CANCEL, WR_TRUNC,
	WR_FAIL, WR_DOWN, WR_EVENTS
};

enum cw_target_event {
	TG_ANNOUNCE, TG_DONE, TG_TRUNC, TG_CANCEL, TG_REVOKE, TG_REVOKED,
	TG_DOWN, TG_EVENTS
};

#define NEVER	0xff
#define W(name)	MRRC_CW_WR_##name
#define T(name)	MRRC_CW_TARGET_##name

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

#define CW_NAME(name)	#name,

const char *mrrc_cw_wr_name(enum mrrc_cw_wr_state state)
{
	static const char *const name[] = { MRRC_CW_WR_STATES(CW_NAME) };

	return (unsigned)state < MRRC_CW_WR_CNT ? name[state] : "?";
}

const char *mrrc_cw_target_name(enum mrrc_cw_target_state state)
{
	static const char *const name[] = { MRRC_CW_TARGET_STATES(CW_NAME) };

	return (unsigned)state < MRRC_CW_TARGET_CNT ? name[state] : "?";
}

/* The first error counts. */
static void cw_error(struct mrrc_cw *cw, int err)
{
	if (!cw->err)
		cw->err = err;
}

/* false: must not happen, or the peer's fault */
static bool cw_wr_step(struct mrrc_cw *cw, struct mrrc_cw_wr *wr,
		       enum cw_wr_event event)
{
	uint8_t next = cw_wr_next[wr->state][event];

	if (next == NEVER) {
		cw_error(cw, -EPROTO);
		return false;
	}
	wr->state = next;
	return true;
}

static bool cw_target_step(struct mrrc_cw *cw, struct mrrc_cw_target *target,
			   enum cw_target_event event)
{
	uint8_t next = cw_target_next[target->state][event];

	if (next == NEVER) {
		cw_error(cw, -EPROTO);
		return false;
	}
	target->state = next;
	return true;
}

/* ---- ends ---------------------------------------------------------------- */

static void cw_unqueue(struct mrrc_cw *cw, struct mrrc_cw_out *out)
{
	if (!out->type)
		return;
	if (out->type == MRRC_CW_TAG)
		TAILQ_REMOVE(&cw->tags, out, link);
	else
		TAILQ_REMOVE(&cw->replies, out, link);
	out->type = 0;
}

static void cw_reply(struct mrrc_cw *cw, struct mrrc_cw_out *out,
		     enum mrrc_cw_msg_type type)
{
	out->type = type;
	TAILQ_INSERT_TAIL(&cw->replies, out, link);
}

static void cw_count_end(struct mrrc_cw *cw, int err)
{
	if (err == MRRC_CW_ETRUNC)
		cw->stats.truncated++;
	else if (err == ECANCELED)
		cw->stats.cancelled++;
}

static void cw_rtag_free(struct mrrc_cw *cw, struct mrrc_cw_rtag *rtag)
{
	cw_unqueue(cw, &rtag->out);
	if (rtag->known) {
		mrrc_cw_map_remove(&cw->known, &rtag->by_tag);
		cw->known_cnt--;
	}
	mrrc_cw_map_remove(&cw->rtag_by_id, &rtag->by_id);
	TAILQ_REMOVE(&cw->rtags, rtag, all);
	cw->rtag_cnt--;
	if (rtag->wr)
		rtag->wr->rtag = NULL;
	if (!FAULT(1))
		free(rtag);
}

/* In state ENDED already. */
static void cw_wr_end(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, int err)
{
	const struct mrrc_cw_end end = { .err = err, .len = wr->len };

	TAILQ_REMOVE(&cw->wrs, wr, all);
	cw->wr_cnt--;
	cw->stats.writes_ended++;
	cw_count_end(cw, err);
	if (wr->rtag) {
		wr->rtag->wr = NULL;
		wr->rtag = NULL;
	}
	cw->ops->wr_end(cw->arg, wr, &end);
}

static void cw_target_end(struct mrrc_cw *cw, struct mrrc_cw_target *target,
			  const struct mrrc_cw_end *end, bool announced)
{
	cw_unqueue(cw, &target->out);
	mrrc_cw_map_remove(&cw->by_id, &target->node);
	TAILQ_REMOVE(&cw->targets, target, all);
	cw->target_cnt--;
	if (announced)
		cw->announced--;
	cw->stats.tags_ended++;
	cw_count_end(cw, end->err);
	cw->ops->target_end(cw->arg, target, end);
}

/* ---- sending ------------------------------------------------------------- */

/*
 * A message, with the credits that are due. The last place at the peer is for
 * CREDIT alone: with none left at both sides nothing could ever go on.
 */
static bool cw_send(struct mrrc_cw *cw, struct mrrc_cw_msg *msg)
{
	uint16_t need = msg->type == MRRC_CW_CREDIT || FAULT(2) ? 1 : 2;
	int ret;

	if (msg->type != MRRC_CW_HELLO) {
		if (!cw->heard)
			return false;
		if (cw->room < need) {
			cw->stats.stalls += !cw->stalled;
			cw->stalled = true;
			return false;
		}
		msg->credits = cw->consumed;
	}
	ret = cw->ops->send(cw->arg, msg);
	if (ret) {
		if (ret != -EAGAIN)
			cw_error(cw, ret);
		return false;
	}
	cw->stats.sent++;
	cw->stalled = false;
	if (msg->type != MRRC_CW_HELLO) {
		cw->room--;
		cw->consumed = 0;
	}
	return true;
}

static void cw_push_hello(struct mrrc_cw *cw)
{
	struct mrrc_cw_msg msg = {
		.type = MRRC_CW_HELLO,
		.hello = {
			.min = MRRC_CW_VERSION_MIN,
			.max = MRRC_CW_VERSION_MAX,
			.credits = cw->attr.credits,
			.tags = cw->attr.pending,
			.cookie = cw->attr.my_cookie,
		},
	};

	cw->greeted = cw_send(cw, &msg);
}

/* The writer's answer to a tag is out, so the tag is gone. */
static void cw_told(struct mrrc_cw *cw, struct mrrc_cw_rtag *rtag)
{
	struct mrrc_cw_wr *wr = rtag->wr;

	cw_rtag_free(cw, rtag);
	if (wr && cw_wr_step(cw, wr, WR_TELL) &&
	    wr->state == MRRC_CW_WR_ENDED)
		cw_wr_end(cw, wr, 0);
}

static bool cw_push_reply(struct mrrc_cw *cw, struct mrrc_cw_out *out)
{
	struct mrrc_cw_msg msg = { .type = out->type };
	struct mrrc_cw_target *target;
	struct mrrc_cw_rtag *rtag;

	if (out->type == MRRC_CW_REVOKE) {
		target = OUT_OF(out, mrrc_cw_target);
		msg.id = target->id;
		if (!cw_send(cw, &msg))
			return false;
		cw_unqueue(cw, out);
		cw_target_step(cw, target, TG_REVOKE);
		return true;
	}
	rtag = OUT_OF(out, mrrc_cw_rtag);
	msg.id = rtag->id;
	msg.len = rtag->wr_len;
	if (out->type == MRRC_CW_DONE) {
		msg.done.has_data = rtag->has_data;
		msg.done.data = rtag->data;
	}
	if (!cw_send(cw, &msg))
		return false;
	cw_told(cw, rtag);
	return true;
}

static bool cw_push_tag(struct mrrc_cw *cw, struct mrrc_cw_target *target)
{
	struct mrrc_cw_msg msg = {
		.type = MRRC_CW_TAG,
		.id = target->id,
		.len = target->len,
		.tag = { .cwtag = target->cwtag, .count = target->count },
	};

	memcpy(msg.tag.seg, target->seg,
	       target->count * sizeof(target->seg[0]));
	if (!cw_send(cw, &msg))
		return false;
	cw_unqueue(cw, &target->out);
	cw_target_step(cw, target, TG_ANNOUNCE);
	cw->announced++;
	return true;
}

static bool cw_push_wr(struct mrrc_cw *cw, struct mrrc_cw_wr *wr)
{
	struct mrrc_cw_rtag *rtag = wr->rtag;
	int ret;

	ret = cw->ops->issue(cw->arg, wr, rtag);
	if (ret) {
		if (ret != -EAGAIN)
			cw_error(cw, ret);
		return false;
	}
	TAILQ_REMOVE(&cw->ready, wr, ready);
	cw_wr_step(cw, wr, WR_ISSUE);
	if (wr == cw->posting)
		cw->stats.at_once++;
	else
		cw->stats.later++;
	rtag->wr_len = wr->len;
	rtag->data = wr->data;
	rtag->has_data = wr->has_data;
	if (!FAULT(8) || !wr->data)
		cw_reply(cw, &rtag->out, MRRC_CW_DONE);
	return true;
}

static void cw_push_credit(struct mrrc_cw *cw)
{
	struct mrrc_cw_msg msg = { .type = MRRC_CW_CREDIT };

	if (cw->consumed >= (cw->attr.credits + 1) / 2 && !FAULT(3))
		cw_send(cw, &msg);
}

void mrrc_cw_push(struct mrrc_cw *cw)
{
	if (cw->down || cw->err)
		return;
	if (!cw->greeted) {
		cw_push_hello(cw);
		if (!cw->greeted)
			return;
	}
	while (!TAILQ_EMPTY(&cw->ready) && !cw->err &&
	       cw_push_wr(cw, TAILQ_FIRST(&cw->ready)))
		;
	while (!TAILQ_EMPTY(&cw->replies) && !cw->err &&
	       cw_push_reply(cw, TAILQ_FIRST(&cw->replies)))
		;
	while (!TAILQ_EMPTY(&cw->tags) && !cw->err &&
	       cw->announced < cw->peer_tags &&
	       cw_push_tag(cw, OUT_OF(TAILQ_FIRST(&cw->tags), mrrc_cw_target)))
		;
	if (!cw->err)
		cw_push_credit(cw);
}

/* ---- matching ------------------------------------------------------------ */

static void cw_match(struct mrrc_cw *cw, struct mrrc_cw_wr *wr,
		     struct mrrc_cw_rtag *rtag)
{
	if (wr->len > rtag->len && !FAULT(4)) {
		rtag->wr_len = wr->len;
		cw_reply(cw, &rtag->out, MRRC_CW_TRUNC);
		if (cw_wr_step(cw, wr, WR_TRUNC))
			cw_wr_end(cw, wr, MRRC_CW_ETRUNC);
		return;
	}
	if (!cw_wr_step(cw, wr, WR_MATCH))
		return;
	wr->rtag = rtag;
	rtag->wr = wr;
	TAILQ_INSERT_TAIL(&cw->ready, wr, ready);
}

static void cw_know(struct mrrc_cw *cw, struct mrrc_cw_rtag *rtag)
{
	rtag->known = true;
	cw->known_cnt++;
}

static void cw_forget(struct mrrc_cw *cw, struct mrrc_cw_rtag *rtag)
{
	mrrc_cw_map_remove(&cw->known, &rtag->by_tag);
	rtag->known = false;
	cw->known_cnt--;
}

/* The oldest writes and tags of a key, as long as there are both. */
static void cw_match_all(struct mrrc_cw *cw, uint64_t cwtag)
{
	struct mrrc_cw_node *held, *known;
	struct mrrc_cw_rtag *rtag;

	while ((held = mrrc_cw_map_first(&cw->held, cwtag)) &&
	       (known = mrrc_cw_map_first(&cw->known, cwtag))) {
		rtag = NODE_OF(known, mrrc_cw_rtag, by_tag);
		mrrc_cw_map_remove(&cw->held, held);
		cw_forget(cw, rtag);
		cw_match(cw, NODE_OF(held, mrrc_cw_wr, node), rtag);
	}
}

static void cw_unmatch(struct mrrc_cw *cw, struct mrrc_cw_wr *wr)
{
	TAILQ_REMOVE(&cw->ready, wr, ready);
	wr->rtag->wr = NULL;
	wr->rtag = NULL;
}

/*
 * Take apart what is ready under a key, before one of it is cancelled: those
 * after it get other partners, or they would end out of order.
 */
static void cw_unmatch_all(struct mrrc_cw *cw, uint64_t cwtag)
{
	struct mrrc_cw_wr *wr, *before;
	struct mrrc_cw_rtag *rtag;

	TAILQ_FOREACH_REVERSE_SAFE(wr, &cw->ready, mrrc_cw_wrq, ready,
				   before) {
		if (wr->cwtag != cwtag || !cw_wr_step(cw, wr, WR_UNMATCH))
			continue;
		rtag = wr->rtag;
		cw_unmatch(cw, wr);
		mrrc_cw_map_add_first(&cw->held, &wr->node, cwtag);
		mrrc_cw_map_add_first(&cw->known, &rtag->by_tag, cwtag);
		cw_know(cw, rtag);
	}
}

/* ---- the peer's messages ------------------------------------------------- */

static void cw_receive_hello(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg)
{
	int version = mrrc_cw_version(msg);

	if (version < 0) {
		cw_error(cw, version);
		return;
	}
	if (cw->heard || msg->hello.cookie != cw->attr.cookie) {
		cw_error(cw, -EPROTO);
		return;
	}
	cw->heard = true;
	cw->peer_credits = cw->room = msg->hello.credits;
	cw->peer_tags = msg->hello.tags;
}

static void cw_receive_tag(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg)
{
	struct mrrc_cw_rtag *rtag;

	if (cw->rtag_cnt >= cw->attr.pending ||
	    mrrc_cw_map_first(&cw->rtag_by_id, msg->id)) {
		cw_error(cw, -EPROTO);
		return;
	}
	rtag = calloc(1, sizeof(*rtag));
	if (!rtag) {
		cw_error(cw, -ENOMEM);
		return;
	}
	rtag->id = msg->id;
	rtag->cwtag = msg->tag.cwtag;
	rtag->len = msg->len;
	rtag->count = msg->tag.count;
	memcpy(rtag->seg, msg->tag.seg, sizeof(rtag->seg));
	mrrc_cw_map_add(&cw->rtag_by_id, &rtag->by_id, rtag->id);
	TAILQ_INSERT_TAIL(&cw->rtags, rtag, all);
	cw->rtag_cnt++;
	mrrc_cw_map_add(&cw->known, &rtag->by_tag, rtag->cwtag);
	cw_know(cw, rtag);
	cw_match_all(cw, rtag->cwtag);
}

/*
 * Too late for a tag that the peer has been, or will be, told about: that
 * message answers this one.
 */
static void cw_receive_revoke(struct mrrc_cw *cw,
			      const struct mrrc_cw_msg *msg)
{
	struct mrrc_cw_node *node;
	struct mrrc_cw_rtag *rtag;

	node = mrrc_cw_map_first(&cw->rtag_by_id, msg->id);
	if (!node)
		return;
	rtag = NODE_OF(node, mrrc_cw_rtag, by_id);
	if (rtag->out.type && !FAULT(7))
		return;
	cw_unqueue(cw, &rtag->out);
	if (rtag->wr && rtag->wr->state == MRRC_CW_WR_READY)
		cw_unmatch_all(cw, rtag->cwtag);
	if (rtag->known)
		cw_forget(cw, rtag);
	cw_reply(cw, &rtag->out, MRRC_CW_REVOKED);
	cw_match_all(cw, rtag->cwtag);
}

static void cw_receive_end(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg,
			   enum cw_target_event event)
{
	struct mrrc_cw_end end = { 0 };
	struct mrrc_cw_target *target;
	struct mrrc_cw_node *node;

	node = mrrc_cw_map_first(&cw->by_id, msg->id);
	if (!node) {
		cw_error(cw, -EPROTO);
		return;
	}
	target = NODE_OF(node, mrrc_cw_target, node);
	/* what it says about lengths must fit */
	if ((event == TG_DONE && msg->len > target->len) ||
	    (event == TG_TRUNC && msg->len <= target->len)) {
		cw_error(cw, -EPROTO);
		return;
	}
	if (!cw_target_step(cw, target, event))
		return;
	switch (event) {
	case TG_DONE:
		end.len = msg->len;
		end.data = msg->done.data;
		end.has_data = msg->done.has_data;
		break;
	case TG_TRUNC:
		end.err = MRRC_CW_ETRUNC;
		break;
	default:
		end.err = ECANCELED;
		break;
	}
	cw_target_end(cw, target, &end, true);
}

/* What every message but HELLO does to the credits. */
static bool cw_take_credits(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg)
{
	if (!cw->heard || cw->consumed >= cw->attr.credits ||
	    msg->credits > cw->peer_credits - cw->room) {
		cw_error(cw, -EPROTO);
		return false;
	}
	cw->consumed++;
	cw->room += msg->credits;
	return true;
}

void mrrc_cw_receive(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg)
{
	if (cw->down || cw->err)
		return;
	cw->stats.received++;
	if (msg->type != MRRC_CW_HELLO && !cw_take_credits(cw, msg))
		return;
	switch (msg->type) {
	case MRRC_CW_HELLO:
		cw_receive_hello(cw, msg);
		break;
	case MRRC_CW_TAG:
		cw_receive_tag(cw, msg);
		break;
	case MRRC_CW_REVOKE:
		cw_receive_revoke(cw, msg);
		break;
	case MRRC_CW_REVOKED:
		cw_receive_end(cw, msg, TG_REVOKED);
		break;
	case MRRC_CW_DONE:
		cw_receive_end(cw, msg, TG_DONE);
		break;
	case MRRC_CW_TRUNC:
		cw_receive_end(cw, msg, TG_TRUNC);
		break;
	case MRRC_CW_CREDIT:
		break;
	case MRRC_CW_BYE:
		cw_error(cw, -ECONNABORTED);
		break;
	default:
		cw_error(cw, -EPROTO);
		break;
	}
	mrrc_cw_push(cw);
}

/* ---- the caller's calls -------------------------------------------------- */

int mrrc_cw_post_wr(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, uint64_t cwtag)
{
	if (cw->down || cw->err)
		return -ENOTCONN;
	if (cw->wr_cnt >= cw->attr.pending)
		return -EAGAIN;
	wr->cwtag = cwtag;
	wr->rtag = NULL;
	wr->state = MRRC_CW_WR_HELD;
	TAILQ_INSERT_TAIL(&cw->wrs, wr, all);
	cw->wr_cnt++;
	cw->stats.writes++;
	cw->posting = wr;
	mrrc_cw_map_add(&cw->held, &wr->node, cwtag);
	cw_match_all(cw, cwtag);
	/* from here on it may be gone */
	mrrc_cw_push(cw);
	cw->posting = NULL;
	return 0;
}

int mrrc_cw_post_target(struct mrrc_cw *cw, struct mrrc_cw_target *target,
			uint64_t cwtag)
{
	if (cw->down || cw->err)
		return -ENOTCONN;
	if (cw->target_cnt >= cw->attr.pending)
		return -EAGAIN;
	target->id = ++cw->next_id;
	target->cwtag = cwtag;
	target->state = MRRC_CW_TARGET_QUEUED;
	target->out.type = MRRC_CW_TAG;
	TAILQ_INSERT_TAIL(&cw->tags, &target->out, link);
	TAILQ_INSERT_TAIL(&cw->targets, target, all);
	mrrc_cw_map_add(&cw->by_id, &target->node, target->id);
	cw->target_cnt++;
	cw->stats.tags++;
	mrrc_cw_push(cw);
	return 0;
}

void mrrc_cw_landed(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, int err)
{
	if (err) {
		if (!cw_wr_step(cw, wr, WR_FAIL))
			return;
		/* nothing after it arrives: the target must not be told */
		if (wr->rtag)
			cw_unqueue(cw, &wr->rtag->out);
		cw_wr_end(cw, wr, err);
		cw_error(cw, -err);
		return;
	}
	if (cw_wr_step(cw, wr, WR_LAND) && wr->state == MRRC_CW_WR_ENDED)
		cw_wr_end(cw, wr, 0);
	mrrc_cw_push(cw);
}

void mrrc_cw_cancel_wr(struct mrrc_cw *cw, struct mrrc_cw_wr *wr)
{
	uint64_t cwtag = wr->cwtag;

	if (wr->state == MRRC_CW_WR_READY)
		cw_unmatch_all(cw, cwtag);
	if (!cw_wr_step(cw, wr, WR_CANCEL) || wr->state != MRRC_CW_WR_ENDED)
		return;
	mrrc_cw_map_remove(&cw->held, &wr->node);
	cw_wr_end(cw, wr, ECANCELED);
	if (!FAULT(5))
		cw_match_all(cw, cwtag);
	mrrc_cw_push(cw);
}

void mrrc_cw_cancel_target(struct mrrc_cw *cw, struct mrrc_cw_target *target)
{
	const struct mrrc_cw_end end = { .err = ECANCELED };
	enum mrrc_cw_target_state was = target->state;

	if (!cw_target_step(cw, target, TG_CANCEL))
		return;
	if (target->state == MRRC_CW_TARGET_ENDED) {
		cw_target_end(cw, target, &end, false);
	} else if (FAULT(6)) {
		target->state = MRRC_CW_TARGET_ENDED;
		cw_target_end(cw, target, &end, true);
	} else if (was == MRRC_CW_TARGET_EXPOSED) {
		cw_reply(cw, &target->out, MRRC_CW_REVOKE);
		mrrc_cw_push(cw);
	}
}

void mrrc_cw_down(struct mrrc_cw *cw, int err)
{
	const struct mrrc_cw_end end = { .err = err };
	struct mrrc_cw_target *target;
	struct mrrc_cw_rtag *rtag;
	struct mrrc_cw_wr *wr;
	bool announced;

	if (cw->down)
		return;
	cw->down = true;
	while ((wr = TAILQ_FIRST(&cw->wrs))) {
		if (wr->state == MRRC_CW_WR_HELD)
			mrrc_cw_map_remove(&cw->held, &wr->node);
		else if (wr->state == MRRC_CW_WR_READY)
			cw_unmatch(cw, wr);
		cw_wr_step(cw, wr, WR_DOWN);
		cw_wr_end(cw, wr, err);
	}
	while ((target = TAILQ_FIRST(&cw->targets))) {
		announced = target->state != MRRC_CW_TARGET_QUEUED;
		cw_target_step(cw, target, TG_DOWN);
		cw_target_end(cw, target, &end, announced);
	}
	while ((rtag = TAILQ_FIRST(&cw->rtags)))
		cw_rtag_free(cw, rtag);
}

void mrrc_cw_hello(struct mrrc_cw *cw)
{
	mrrc_cw_push(cw);
}

void mrrc_cw_init(struct mrrc_cw *cw, const struct mrrc_cw_attr *attr,
		  const struct mrrc_cw_ops *ops, void *arg)
{
	memset(cw, 0, sizeof(*cw));
	cw->ops = ops;
	cw->arg = arg;
	cw->attr = *attr;
	TAILQ_INIT(&cw->wrs);
	TAILQ_INIT(&cw->ready);
	TAILQ_INIT(&cw->targets);
	TAILQ_INIT(&cw->rtags);
	TAILQ_INIT(&cw->replies);
	TAILQ_INIT(&cw->tags);
	mrrc_cw_map_init(&cw->held);
	mrrc_cw_map_init(&cw->known);
	mrrc_cw_map_init(&cw->by_id);
	mrrc_cw_map_init(&cw->rtag_by_id);
}

void mrrc_cw_fini(struct mrrc_cw *cw)
{
	mrrc_cw_map_fini(&cw->held);
	mrrc_cw_map_fini(&cw->known);
	mrrc_cw_map_fini(&cw->by_id);
	mrrc_cw_map_fini(&cw->rtag_by_id);
}

/* ---- invariants ---------------------------------------------------------- */

static bool cw_valid_wrs(const struct mrrc_cw *cw)
{
	const struct mrrc_cw_wr *wr;
	uint32_t cnt = 0, held = 0, ready = 0;

	TAILQ_FOREACH(wr, &cw->wrs, all) {
		cnt++;
		if (wr->state == MRRC_CW_WR_ENDED)
			return false;
		if (wr->state == MRRC_CW_WR_HELD) {
			held++;
			if (wr->rtag || mrrc_cw_map_first(&cw->known,
							  wr->cwtag))
				return false;	/* W1 */
		}
		if (wr->rtag && wr->rtag->wr != wr)
			return false;		/* W2 */
		if (wr->state == MRRC_CW_WR_READY) {
			ready++;
			if (!wr->rtag || wr->rtag->out.type)
				return false;
		}
	}
	TAILQ_FOREACH(wr, &cw->ready, ready)
		ready--;
	return cnt == cw->wr_cnt && held == cw->held.nodes && !ready;
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
		/* without a write, and nobody to be told: it is known */
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
	       known == cw->known.nodes && !waiting;	/* W3, W4 */
}

bool mrrc_cw_valid(const struct mrrc_cw *cw)
{
	return mrrc_cw_map_valid(&cw->held) && mrrc_cw_map_valid(&cw->known) &&
	       mrrc_cw_map_valid(&cw->by_id) &&
	       mrrc_cw_map_valid(&cw->rtag_by_id) && cw_valid_wrs(cw) &&
	       cw_valid_tags(cw) &&
	       cw->stats.writes == cw->stats.writes_ended + cw->wr_cnt &&
	       cw->stats.tags == cw->stats.tags_ended + cw->target_cnt &&
	       cw->room <= cw->peer_credits;
}
