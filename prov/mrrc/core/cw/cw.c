/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes on one connection: see cw.h.
 */
#include "core/cw/cw_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* test/explore_world.c compiles a copy of this file with faults to find. */
#ifdef MRRC_CW_FAULTS
extern int mrrc_cw_fault;
#define FAULT(n) (mrrc_cw_fault == (n))
#else
#define FAULT(n) false
#endif

#define NODE_OF(ptr, type, field) \
	((struct type *) ((char *) (ptr) -offsetof(struct type, field)))
#define OUT_OF(ptr, type) NODE_OF(ptr, type, out)

/* Records the first error; later errors are ignored. */
static void cw_error(struct mrrc_cw *cw, int err)
{
	if (!cw->err)
		cw->err = err;
}

static bool cw_wr_step(struct mrrc_cw *cw, struct mrrc_cw_wr *wr,
		       enum mrrc_cw_wr_event event)
{
	if (mrrc_cw_wr_step(wr, event))
		return true;
	cw_error(cw, -EPROTO);
	return false;
}

static bool cw_target_step(struct mrrc_cw *cw, struct mrrc_cw_target *target,
			   enum mrrc_cw_target_event event)
{
	if (mrrc_cw_target_step(target, event))
		return true;
	cw_error(cw, -EPROTO);
	return false;
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

static void cw_count(struct mrrc_cw *cw, uint64_t *counter, enum mrrc_stat stat)
{
	++*counter;
	mrrc_stats_add(cw->attr.stats, stat, 1);
}

static void cw_count_end(struct mrrc_cw *cw, int err)
{
	if (err == MRRC_CW_ETRUNC)
		cw_count(cw, &cw->stats.truncated, MRRC_STAT_CW_TRUNCATED);
	else if (err == ECANCELED)
		cw_count(cw, &cw->stats.cancelled, MRRC_STAT_CW_CANCELLED);
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
	if (FAULT(1))
		return;
	if (cw->down || cw->spare_cnt == MRRC_CW_SPARE) {
		free(rtag);
		return;
	}
	TAILQ_INSERT_HEAD(&cw->spare, rtag, all);
	cw->spare_cnt++;
}

static struct mrrc_cw_rtag *cw_rtag_new(struct mrrc_cw *cw)
{
	struct mrrc_cw_rtag *rtag = TAILQ_FIRST(&cw->spare);

	if (!rtag)
		return calloc(1, sizeof(*rtag));
	TAILQ_REMOVE(&cw->spare, rtag, all);
	cw->spare_cnt--;
	memset(rtag, 0, sizeof(*rtag));
	return rtag;
}

/* Ends a write whose state is ENDED already. */
static void cw_wr_end(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, int err)
{
	const struct mrrc_cw_end end = { .err = err, .len = wr->len };

	TAILQ_REMOVE(&cw->wrs, wr, all);
	cw->wr_cnt--;
	cw_count(cw, &cw->stats.writes_ended, MRRC_STAT_CW_WRITES_ENDED);
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
	cw_count(cw, &cw->stats.tags_ended, MRRC_STAT_CW_TAGS_ENDED);
	cw_count_end(cw, end->err);
	cw->ops->target_end(cw->arg, target, end);
}

/* ---- sending ------------------------------------------------------------- */

/*
 * Sends a message, with the credits that are due. Only CREDIT may take the last
 * free buffer at the peer: if both sides had no buffer left, neither side could
 * send again.
 */
static bool cw_send(struct mrrc_cw *cw, struct mrrc_cw_msg *msg)
{
	uint16_t need = msg->type == MRRC_CW_CREDIT || FAULT(2) ? 1 : 2;
	int ret;

	if (msg->type != MRRC_CW_HELLO) {
		if (!cw->heard)
			return false;
		if (cw->room < need) {
			if (!cw->stalled)
				cw_count(cw, &cw->stats.stalls,
					 MRRC_STAT_CW_STALLS);
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
	cw_count(cw, &cw->stats.sent, MRRC_STAT_CW_SENT);
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
			.inline_max = cw->attr.inline_max,
			.cookie = cw->attr.my_cookie,
		},
	};

	cw->greeted = cw_send(cw, &msg);
}

/*
 * Messages are made often, and struct mrrc_cw_msg is large for the tags' sake:
 * only the fields of the message's type are set.
 */
static void cw_msg(struct mrrc_cw_msg *msg, enum mrrc_cw_msg_type type,
		   uint64_t id, uint64_t len)
{
	msg->type = type;
	msg->credits = 0;
	msg->id = id;
	msg->len = len;
}

/* The writer's answer to a tag has been sent, so the tag is gone. */
static void cw_told(struct mrrc_cw *cw, struct mrrc_cw_rtag *rtag)
{
	struct mrrc_cw_wr *wr = rtag->wr;

	cw_rtag_free(cw, rtag);
	if (wr && cw_wr_step(cw, wr, WR_TELL) && wr->state == MRRC_CW_WR_ENDED)
		cw_wr_end(cw, wr, 0);
}

static bool cw_push_reply(struct mrrc_cw *cw, struct mrrc_cw_out *out)
{
	struct mrrc_cw_target *target;
	struct mrrc_cw_rtag *rtag;
	struct mrrc_cw_msg msg;

	if (out->type == MRRC_CW_REVOKE) {
		target = OUT_OF(out, mrrc_cw_target);
		cw_msg(&msg, out->type, target->id, 0);
		if (!cw_send(cw, &msg))
			return false;
		cw_unqueue(cw, out);
		cw_target_step(cw, target, TG_REVOKE);
		return true;
	}
	rtag = OUT_OF(out, mrrc_cw_rtag);
	cw_msg(&msg, out->type, rtag->id, rtag->wr_len);
	if (out->type == MRRC_CW_DONE) {
		msg.done.has_data = rtag->has_data;
		msg.done.data = rtag->data;
		msg.done.bytes = NULL;
	}
	if (!cw_send(cw, &msg))
		return false;
	cw_told(cw, rtag);
	return true;
}

/* Sends the replies that wait. Returns whether no reply is left. */
static bool cw_push_replies(struct mrrc_cw *cw)
{
	while (!TAILQ_EMPTY(&cw->replies) && !cw->err &&
	       cw_push_reply(cw, TAILQ_FIRST(&cw->replies)))
		;
	return TAILQ_EMPTY(&cw->replies);
}

static bool cw_push_tag(struct mrrc_cw *cw, struct mrrc_cw_target *target)
{
	struct mrrc_cw_msg msg;

	cw_msg(&msg, MRRC_CW_TAG, target->id, target->len);
	msg.tag.cwtag = target->cwtag;
	msg.tag.count = target->count;
	memcpy(msg.tag.seg, target->seg,
	       target->count * sizeof(target->seg[0]));
	if (!cw_send(cw, &msg))
		return false;
	cw_unqueue(cw, &target->out);
	cw_target_step(cw, target, TG_ANNOUNCE);
	cw->announced++;
	return true;
}

static void cw_ready_remove(struct mrrc_cw *cw, struct mrrc_cw_wr *wr)
{
	TAILQ_REMOVE(&cw->ready, wr, ready);
	if (wr->matched)
		mrrc_cw_map_remove(&cw->matched, &wr->node);
	wr->matched = false;
}

/*
 * Sends a write by itself, or inside the message that reports the write. A
 * message with a write follows the messages of older writes, so that writes end
 * in order.
 */
static bool cw_issue(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, bool inlined)
{
	struct mrrc_cw_msg msg;
	int ret;

	if (inlined) {
		if (!FAULT(9) && !cw_push_replies(cw))
			return false;
		cw_msg(&msg, MRRC_CW_DONE, wr->rtag->id, wr->len);
		msg.done.has_data = wr->has_data;
		msg.done.data = wr->data;
		msg.done.bytes = wr->bytes;
		return cw_send(cw, &msg);
	}
	ret = cw->ops->issue(cw->arg, wr, wr->rtag);
	if (ret && ret != -EAGAIN)
		cw_error(cw, ret);
	return !ret;
}

static bool cw_push_wr(struct mrrc_cw *cw, struct mrrc_cw_wr *wr)
{
	const bool inlined = wr->bytes && wr->len <= cw->peer_inline;
	struct mrrc_cw_rtag *rtag = wr->rtag;

	if (!cw_issue(cw, wr, inlined))
		return false;
	cw_ready_remove(cw, wr);
	cw_wr_step(cw, wr, WR_ISSUE);
	if (wr == cw->posting)
		cw_count(cw, &cw->stats.at_once, MRRC_STAT_CW_IMMEDIATE);
	else
		cw_count(cw, &cw->stats.later, MRRC_STAT_CW_HELD);
	if (inlined) {
		cw_told(cw, rtag);
		if (cw_wr_step(cw, wr, WR_LAND))
			cw_wr_end(cw, wr, 0);
		return true;
	}
	rtag->wr_len = wr->len;
	rtag->data = wr->data;
	rtag->has_data = wr->has_data;
	if (!FAULT(8) || !wr->data)
		cw_reply(cw, &rtag->out, MRRC_CW_DONE);
	return true;
}

static void cw_push_credit(struct mrrc_cw *cw)
{
	struct mrrc_cw_msg msg;

	cw_msg(&msg, MRRC_CW_CREDIT, 0, 0);
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
	cw_push_replies(cw);
	while (!TAILQ_EMPTY(&cw->tags) && !cw->err &&
	       cw->announced < cw->peer_tags &&
	       cw_push_tag(cw, OUT_OF(TAILQ_FIRST(&cw->tags), mrrc_cw_target)))
		;
	if (!cw->err)
		cw_push_credit(cw);
}

bool mrrc_cw_send_credit(struct mrrc_cw *cw)
{
	struct mrrc_cw_msg msg;

	cw_msg(&msg, MRRC_CW_CREDIT, 0, 0);
	return !cw->down && !cw->err && cw_send(cw, &msg);
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

/* Matches the oldest writes of a key with its oldest tags, while both exist. */
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
	cw_ready_remove(cw, wr);
	wr->rtag->wr = NULL;
	wr->rtag = NULL;
}

/*
 * Puts each ready write into the map `matched` once. Ready writes enter the map
 * only when a write is unmatched, since most writes are issued as soon as they
 * are ready.
 */
static void cw_index_ready(struct mrrc_cw *cw)
{
	struct mrrc_cw_wr *wr = TAILQ_LAST(&cw->ready, mrrc_cw_wrq), *prev;

	while (wr && !wr->matched &&
	       (prev = TAILQ_PREV(wr, mrrc_cw_wrq, ready)) && !prev->matched)
		wr = prev;
	for (; wr; wr = TAILQ_NEXT(wr, ready)) {
		if (wr->matched)
			continue;
		mrrc_cw_map_add(&cw->matched, &wr->node, wr->cwtag);
		wr->matched = true;
	}
}

/*
 * Unmatches the ready writes of a key from @from on, the newest first, before
 * @from or its tag is cancelled. The unmatched writes then get other tags; if
 * they kept their tags, they would end out of order. Writes before @from keep
 * their tags.
 */
static void cw_unmatch_from(struct mrrc_cw *cw, struct mrrc_cw_wr *from)
{
	const uint64_t cwtag = from->cwtag;
	struct mrrc_cw_rtag *rtag;
	struct mrrc_cw_wr *wr;

	cw_index_ready(cw);
	do {
		wr = NODE_OF(mrrc_cw_map_first(&cw->matched, cwtag)->prev,
			     mrrc_cw_wr, node);
		if (!cw_wr_step(cw, wr, WR_UNMATCH))
			return;
		rtag = wr->rtag;
		cw_unmatch(cw, wr);
		mrrc_cw_map_add_first(&cw->held, &wr->node, cwtag);
		mrrc_cw_map_add_first(&cw->known, &rtag->by_tag, cwtag);
		cw_know(cw, rtag);
	} while (wr != from);
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
	/* a peer that takes more than this side has room for gets what fits */
	cw->peer_inline = msg->hello.inline_max;
	if (cw->peer_inline > cw->attr.inline_max)
		cw->peer_inline = cw->attr.inline_max;
}

static void cw_receive_tag(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg)
{
	struct mrrc_cw_node *held;
	struct mrrc_cw_rtag *rtag;

	if (cw->rtag_cnt >= cw->attr.pending ||
	    mrrc_cw_map_first(&cw->rtag_by_id, msg->id)) {
		cw_error(cw, -EPROTO);
		return;
	}
	rtag = cw_rtag_new(cw);
	if (!rtag) {
		cw_error(cw, -ENOMEM);
		return;
	}
	rtag->id = msg->id;
	rtag->cwtag = msg->tag.cwtag;
	rtag->len = msg->len;
	rtag->count = msg->tag.count;
	memcpy(rtag->seg, msg->tag.seg, rtag->count * sizeof(rtag->seg[0]));
	mrrc_cw_map_add(&cw->rtag_by_id, &rtag->by_id, rtag->id);
	TAILQ_INSERT_TAIL(&cw->rtags, rtag, all);
	cw->rtag_cnt++;
	/* a key has held writes or known tags, never both (W1) */
	held = mrrc_cw_map_first(&cw->held, rtag->cwtag);
	if (held) {
		mrrc_cw_map_remove(&cw->held, held);
		cw_match(cw, NODE_OF(held, mrrc_cw_wr, node), rtag);
		return;
	}
	mrrc_cw_map_add(&cw->known, &rtag->by_tag, rtag->cwtag);
	cw_know(cw, rtag);
}

/*
 * The peer revokes a tag. If a message that the tag is used was sent or waits,
 * revoking comes too late: that message answers the peer's revocation.
 */
static void cw_receive_revoke(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg)
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
		cw_unmatch_from(cw, rtag->wr);
	if (rtag->known)
		cw_forget(cw, rtag);
	cw_reply(cw, &rtag->out, MRRC_CW_REVOKED);
	cw_match_all(cw, rtag->cwtag);
}

static void cw_receive_end(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg,
			   enum mrrc_cw_target_event event)
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
	/*
	 * the lengths must fit the target, and the limit of writes in messages
	 */
	if ((event == TG_DONE && msg->len > target->len) ||
	    (event == TG_DONE && msg->done.bytes &&
	     msg->len > cw->attr.inline_max) ||
	    (event == TG_TRUNC && msg->len <= target->len)) {
		cw_error(cw, -EPROTO);
		return;
	}
	if (!cw_target_step(cw, target, event))
		return;
	switch (event) {
	case TG_DONE:
		if (msg->done.bytes)
			cw->ops->place(cw->arg, target, msg->done.bytes,
				       msg->len);
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

/* Every message but HELLO carries credits. */
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
	cw_count(cw, &cw->stats.received, MRRC_STAT_CW_RECEIVED);
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
	default:
		cw_error(cw, -EPROTO);
		break;
	}
	mrrc_cw_push(cw);
}

/* ---- the caller's calls -------------------------------------------------- */

int mrrc_cw_post_wr(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, uint64_t cwtag)
{
	struct mrrc_cw_node *known;
	struct mrrc_cw_rtag *rtag;

	if (cw->down || cw->err)
		return -ENOTCONN;
	if (cw->wr_cnt >= cw->attr.pending)
		return -EAGAIN;
	wr->cwtag = cwtag;
	wr->rtag = NULL;
	if (!wr->len)
		wr->bytes = "";
	wr->matched = false;
	wr->state = MRRC_CW_WR_HELD;
	TAILQ_INSERT_TAIL(&cw->wrs, wr, all);
	cw->wr_cnt++;
	cw_count(cw, &cw->stats.writes, MRRC_STAT_CW_WRITES);
	cw->posting = wr;
	known = mrrc_cw_map_first(&cw->known, cwtag);
	if (known) {
		rtag = NODE_OF(known, mrrc_cw_rtag, by_tag);
		cw_forget(cw, rtag);
		cw_match(cw, wr, rtag);
	} else {
		mrrc_cw_map_add(&cw->held, &wr->node, cwtag);
	}
	/* from here on the write may have ended */
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
	cw_count(cw, &cw->stats.tags, MRRC_STAT_CW_TAGS);
	mrrc_cw_push(cw);
	return 0;
}

void mrrc_cw_landed(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, int err)
{
	if (err) {
		if (!cw_wr_step(cw, wr, WR_FAIL))
			return;
		/*
		 * no message after this write reaches the peer: the target must
		 * not be told
		 */
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
		cw_unmatch_from(cw, wr);
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
	while ((rtag = TAILQ_FIRST(&cw->spare))) {
		TAILQ_REMOVE(&cw->spare, rtag, all);
		free(rtag);
	}
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
	TAILQ_INIT(&cw->spare);
	TAILQ_INIT(&cw->replies);
	TAILQ_INIT(&cw->tags);
	mrrc_cw_map_init(&cw->held, &attr->secret);
	mrrc_cw_map_init_as(&cw->matched, &cw->held);
	mrrc_cw_map_init_as(&cw->known, &cw->held);
	mrrc_cw_map_init(&cw->by_id, NULL);
	mrrc_cw_map_init(&cw->rtag_by_id, &attr->secret);
}

void mrrc_cw_fini(struct mrrc_cw *cw)
{
	mrrc_cw_map_fini(&cw->held);
	mrrc_cw_map_fini(&cw->matched);
	mrrc_cw_map_fini(&cw->known);
	mrrc_cw_map_fini(&cw->by_id);
	mrrc_cw_map_fini(&cw->rtag_by_id);
}
