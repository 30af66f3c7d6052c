/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conditional writes on one connection, as one side sees it: its own writes and
 * the peer's tags for which these writes wait (the writer's part), its own
 * exposed buffers (the target's part), and the messages between the two, with
 * their credits.
 *
 * Independent of the network: this code acts through struct mrrc_cw_ops, and
 * the caller reports events. The caller guarantees that data sent by ops->issue
 * arrive before messages sent by later calls of ops->send.
 *
 * A short write whose bytes may be copied goes inside the message that
 * reports the write: there is no other transfer, and the write ends when
 * ops->send has the message.
 *
 * Life of a write: held until a tag matches, ready until the network takes it,
 * issued until it has completed and the target was told. Life of a target:
 * queued until the peer has its tag, exposed until the peer has finished with
 * it. cw_state.c has both lives as tables. Each operation ends once, by
 * ops->wr_end or ops->target_end, whatever happens; the caller may then free
 * it.
 *
 * Invariants, mrrc_cw_valid():
 * W1 a key has writes held or tags known, never both
 * W2 a ready write has a matched tag, and the two point to each other
 * W3 counts of operations and records equal the lengths of the lists
 * W4 a message waits only as long as its operation or record lives
 * W5 of the ready writes the oldest are in the map `matched`, the others not
 *
 * Not thread-safe; ops must not call back.
 */
#ifndef MRRC_CW_H
#define MRRC_CW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "core/cw/cw_map.h"
#include "core/cw/cw_wire.h"
#include "core/text/stats.h"

enum mrrc_cw_wr_state {
	MRRC_CW_WR_HELD,   /* no tag yet */
	MRRC_CW_WR_READY,  /* a tag, but the network is full */
	MRRC_CW_WR_ISSUED, /* on its way, the target not told */
	MRRC_CW_WR_TOLD,   /* on its way, the target told */
	MRRC_CW_WR_LANDED, /* completed, the target not told */
	MRRC_CW_WR_ENDED,
	MRRC_CW_WR_CNT,
};

enum mrrc_cw_target_state {
	MRRC_CW_TARGET_QUEUED,	  /* the peer does not know */
	MRRC_CW_TARGET_EXPOSED,	  /* the peer may write */
	MRRC_CW_TARGET_WITHDRAWN, /* cancelled, the peer does not know */
	MRRC_CW_TARGET_REVOKING,  /* the peer has to confirm */
	MRRC_CW_TARGET_ENDED,
	MRRC_CW_TARGET_CNT,
};

/* A message that waits for credits or for the network. */
struct mrrc_cw_out {
	TAILQ_ENTRY(mrrc_cw_out) link;
	enum mrrc_cw_msg_type type; /* 0: no message */
};
TAILQ_HEAD(mrrc_cw_outq, mrrc_cw_out);

/*
 * A write. The caller sets len, data with has_data, and bytes: the address of
 * the whole write if the write may be copied into a message; else NULL.
 */
struct mrrc_cw_wr {
	struct mrrc_cw_node node; /* link by tag, while HELD or matched */
	TAILQ_ENTRY(mrrc_cw_wr) all, ready;
	bool matched; /* READY, and in the map `matched` */
	/* the write's tag, from READY until the peer is told */
	struct mrrc_cw_rtag *rtag;
	uint64_t cwtag, len, data;
	const void *bytes;
	bool has_data;
	enum mrrc_cw_wr_state state;
};

TAILQ_HEAD(mrrc_cw_wrq, mrrc_cw_wr);

/* An exposed buffer. The caller sets len, count and seg. */
struct mrrc_cw_target {
	struct mrrc_cw_node node; /* link by id */
	TAILQ_ENTRY(mrrc_cw_target) all;
	struct mrrc_cw_out out;
	uint64_t id, cwtag, len;
	uint16_t count;
	struct mrrc_cw_seg seg[MRRC_CW_SEGS];
	enum mrrc_cw_target_state state;
};

/* A tag of the peer's. */
struct mrrc_cw_rtag {
	struct mrrc_cw_node by_tag; /* link by tag, while no write has it */
	struct mrrc_cw_node by_id;  /* link by id, until REVOKED or told */
	TAILQ_ENTRY(mrrc_cw_rtag) all;
	struct mrrc_cw_out out;
	struct mrrc_cw_wr *wr; /* the write that has the tag, or NULL */
	uint64_t id, cwtag, len, wr_len, data;
	bool known, has_data;
	uint16_t count;
	struct mrrc_cw_seg seg[MRRC_CW_SEGS];
};

#define MRRC_CW_SPARE 64 /* records of tags whose memory is kept */

/* libfabric's FI_ETRUNC, for which there is no errno */
#define MRRC_CW_ETRUNC 265

/* How an operation ended: err is 0, a positive errno, or MRRC_CW_ETRUNC. */
struct mrrc_cw_end {
	int err;
	uint64_t len, data;
	bool has_data;
};

struct mrrc_cw_ops {
	/*
	 * Returns 0; -EAGAIN: mrrc_cw_push() retries; else the connection is
	 * lost
	 */
	int (*send)(void *arg, const struct mrrc_cw_msg *msg);
	/* Issues the whole write or nothing; returns what send returns */
	int (*issue)(void *arg, struct mrrc_cw_wr *wr,
		     const struct mrrc_cw_rtag *rtag);
	/* Copies a write that came in a message, at most inline_max bytes */
	void (*place)(void *arg, struct mrrc_cw_target *target,
		      const void *bytes, size_t len);
	void (*wr_end)(void *arg, struct mrrc_cw_wr *wr,
		       const struct mrrc_cw_end *end);
	void (*target_end)(void *arg, struct mrrc_cw_target *target,
			   const struct mrrc_cw_end *end);
};

struct mrrc_cw_stats {
	uint64_t writes, tags, at_once, later, writes_ended, tags_ended;
	uint64_t truncated, cancelled, sent, received, stalls;
};

struct mrrc_cw_attr {
	/* number of messages, besides HELLO, that this side has buffers for */
	uint16_t credits;
	/* maximum number of operations, and of tags */
	uint32_t pending;
	/* most bytes of a write that this side takes or sends in a message */
	uint16_t inline_max;
	uint64_t cookie;	   /* what the peer must send in HELLO */
	uint64_t my_cookie;	   /* cookie that is sent in HELLO */
	struct mrrc_stats *stats;  /* counters to increase, too, or NULL */
	struct mrrc_secret secret; /* random words for the maps' hashes */
};

struct mrrc_cw {
	const struct mrrc_cw_ops *ops;
	void *arg;
	struct mrrc_cw_attr attr;
	int err;		   /* negative: the connection is to be ended */
	bool down, greeted, heard; /* HELLO sent; received */
	bool stalled;		   /* the last message found no room */
	const struct mrrc_cw_wr *posting; /* inside mrrc_cw_post_wr() */
	/* number of messages that the peer has buffers for */
	uint16_t room;
	/* consumed: number of messages whose credits are not returned */
	uint16_t peer_credits, consumed;
	uint16_t peer_inline; /* limit of a write in a message to the peer */
	/* number of our tags that the peer can keep */
	uint32_t peer_tags;
	uint64_t next_id;
	uint32_t announced; /* number of our tags that the peer has */
	uint32_t wr_cnt, target_cnt, rtag_cnt, known_cnt;
	struct mrrc_cw_wrq wrs;
	struct mrrc_cw_wrq ready; /* matched writes come first */
	TAILQ_HEAD(, mrrc_cw_target) targets;
	TAILQ_HEAD(mrrc_cw_rtagq, mrrc_cw_rtag) rtags;
	struct mrrc_cw_rtagq spare; /* at most MRRC_CW_SPARE */
	unsigned spare_cnt;
	struct mrrc_cw_map held, matched, known; /* by tag */
	struct mrrc_cw_map by_id, rtag_by_id;
	struct mrrc_cw_outq replies, tags; /* messages that wait */
	struct mrrc_cw_stats stats;
};

void mrrc_cw_init(struct mrrc_cw *cw, const struct mrrc_cw_attr *attr,
		  const struct mrrc_cw_ops *ops, void *arg);
/* Frees the state, after mrrc_cw_down(). */
void mrrc_cw_fini(struct mrrc_cw *cw);

/* Sends HELLO. Called when the network is connected. */
void mrrc_cw_hello(struct mrrc_cw *cw);

/* Returns 0; -EAGAIN: too many operations are pending; -ENOTCONN: down */
int mrrc_cw_post_wr(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, uint64_t cwtag);
int mrrc_cw_post_target(struct mrrc_cw *cw, struct mrrc_cw_target *target,
			uint64_t cwtag);

/*
 * Handles a message that has arrived; the message's buffer is free again.
 * Errors of this function and those below are in cw->err: the caller ends the
 * connection and calls mrrc_cw_down().
 */
void mrrc_cw_receive(struct mrrc_cw *cw, const struct mrrc_cw_msg *msg);
/* The write that ops->issue took has completed. err: 0 or a positive errno */
void mrrc_cw_landed(struct mrrc_cw *cw, struct mrrc_cw_wr *wr, int err);
void mrrc_cw_cancel_wr(struct mrrc_cw *cw, struct mrrc_cw_wr *wr);
void mrrc_cw_cancel_target(struct mrrc_cw *cw, struct mrrc_cw_target *target);
/* The network may have room again. */
void mrrc_cw_push(struct mrrc_cw *cw);
/*
 * Sends a CREDIT message even if there are no credits to return: when it has
 * arrived, all messages before it have. false: there is no room for it now
 */
bool mrrc_cw_send_credit(struct mrrc_cw *cw);

/*
 * Ends all operations with err, a positive errno, once the network uses no
 * buffer of ours any more. Called once; nothing can be posted afterwards.
 */
void mrrc_cw_down(struct mrrc_cw *cw, int err);

/* Is there a message or a write that mrrc_cw_push() could send? */
static inline bool mrrc_cw_waits(const struct mrrc_cw *cw)
{
	return !TAILQ_EMPTY(&cw->ready) || !TAILQ_EMPTY(&cw->replies) ||
	       !TAILQ_EMPTY(&cw->tags);
}

/* cw_valid.c: do the invariants hold? */
bool mrrc_cw_valid(const struct mrrc_cw *cw);

#endif /* MRRC_CW_H */
