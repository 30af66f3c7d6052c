/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control endpoints of conditional writes: see cw/cw.h.
 */
#include "config.h"

#include <limits.h>

#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/mark.h"
#include "fi/cw/rdm.h"

const struct mrrc_cw_over *mrrc_cw_over;

#define CW_BATCH 16

static void cw_slots_init(struct mrrc_cw_ep *cw)
{
	const size_t frame = mrrc_cw_frame(cw->inline_max);
	char *buf = cw->mem;
	unsigned i;

	cw->tx_free = NULL;
	cw->deaf = cw->unconfirmed = cw->confirm = false;
	for (i = 0; i < CW_SLOTS; i++, buf += frame) {
		cw->tx[i].context.kind = CW_SEND;
		cw->tx[i].context.cw = cw;
		cw->tx[i].buf = buf;
		cw->tx[i].next = cw->tx_free;
		cw->tx_free = &cw->tx[i];
	}
	for (i = 0; i < CW_BUFS; i++, buf += frame) {
		cw->rx[i].context.kind = CW_RECV;
		cw->rx[i].context.cw = cw;
		cw->rx[i].buf = buf;
	}
	cw->rx_spare = &cw->rx[CW_BUFS - 1];
}

static int cw_post_recv(struct mrrc_cw_ep *cw, struct cw_slot *slot)
{
	return fi_recv(cw->ctl, slot->buf, mrrc_cw_frame(cw->inline_max),
		       cw->mr ? fi_mr_desc(cw->mr) : NULL, FI_ADDR_UNSPEC,
		       &slot->context);
}

/*
 * Opens the link's memory before anything is posted; the group's lock is not
 * needed yet.
 */
static int cw_mem_open(struct mrrc_cw_ep *cw)
{
	const size_t len = (CW_SLOTS + CW_BUFS) * mrrc_cw_frame(cw->inline_max);
	struct mrrc_domain *domain = cw->via->domain;
	int ret;

	if (cw->mem)
		return 0;
	if (posix_memalign((void **) &cw->mem, 4096, len)) {
		cw->mem = NULL;
		return -FI_ENOMEM;
	}
	if (domain->core_local) {
		memset(cw->mem, 0, len);
		ret = mrrc_reg_own(&domain->reg, cw->mem, len,
				   FI_SEND | FI_RECV, &cw->mr);
		if (ret) {
			free(cw->mem);
			cw->mem = NULL;
			return ret;
		}
	}
	return 0;
}

int mrrc_cw_link_open(struct mrrc_cw_ep *cw, struct fi_info *info)
{
	int ret;
	unsigned i;

	ret = cw_mem_open(cw);
	if (ret)
		return ret;
	cw_slots_init(cw);
	ret = fi_endpoint(cw->via->domain->core, info, &cw->ctl, cw);
	if (ret) {
		cw->ctl = NULL;
		return ret;
	}
	ret = fi_ep_bind(cw->ctl, &cw->group->eq->fid, 0);
	if (!ret)
		ret = fi_ep_bind(cw->ctl, &cw->group->cq->fid,
				 FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(cw->ctl);
	for (i = 0; !ret && &cw->rx[i] != cw->rx_spare; i++)
		ret = cw_post_recv(cw, &cw->rx[i]);
	if (ret) {
		fi_close(&cw->ctl->fid);
		cw->ctl = NULL;
	}
	return ret;
}

void mrrc_cw_lose(struct mrrc_cw_ep *cw, const char *why)
{
	if (mrrc_cw_closed(cw))
		return;
	MRRC_INFO(EP_CTRL, "a control connection ends: %s\n", why);
	cw->lost = true;
	TAILQ_INSERT_TAIL(&cw->group->lost, cw, lost_link);
}

/* ---- messages ------------------------------------------------------------ */

static void cw_fill_end(struct mrrc_cw_ep *cw)
{
	TAILQ_REMOVE(&cw->group->unsent, cw, unsent_link);
	cw->filling = NULL;
}

static int cw_fill_begin(struct mrrc_cw_ep *cw)
{
	struct cw_slot *slot = cw->tx_free;

	if (!slot || cw->busy >= CW_TX)
		return -FI_EAGAIN;
	cw->tx_free = slot->next;
	cw->busy++;
	cw->filling = slot;
	cw->filled = 0;
	TAILQ_INSERT_TAIL(&cw->group->unsent, cw, unsent_link);
	return 0;
}

/* Sends a message that completes when it has arrived at the peer. */
static ssize_t cw_send_confirmed(struct mrrc_cw_ep *cw, void *desc)
{
	const struct iovec iov = { cw->filling->buf, cw->filled };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.context = &cw->filling->context,
	};

	return fi_sendmsg(cw->ctl, &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE);
}

static int cw_flush(struct mrrc_cw_ep *cw)
{
	void *desc = cw->mr ? fi_mr_desc(cw->mr) : NULL;
	ssize_t ret;

	if (mrrc_unlikely(cw->confirm))
		ret = cw_send_confirmed(cw, desc);
	else
		ret = fi_send(cw->ctl, cw->filling->buf, cw->filled, desc, 0,
			      &cw->filling->context);
	if (!ret)
		cw_fill_end(cw);
	return ret;
}

void mrrc_cw_flush_all(struct mrrc_cw_group *group)
{
	struct mrrc_cw_ep *cw, *next;
	int ret;

	for (cw = TAILQ_FIRST(&group->unsent); cw; cw = next) {
		next = TAILQ_NEXT(cw, unsent_link);
		ret = cw_flush(cw);
		if (ret && ret != -FI_EAGAIN)
			mrrc_cw_lose(cw, fi_strerror(-ret));
	}
}

/* ---- the state machine's calls ------------------------------------------- */

/*
 * Queues a message. Unlocking the group sends the queued messages, after all
 * writes that were issued before the unlock.
 */
static int cw_send(void *arg, const struct mrrc_cw_msg *msg)
{
	struct mrrc_cw_ep *cw = arg;
	int ret = 0;

	if (!mrrc_cw_up(cw) || cw->partial)
		return -FI_EAGAIN;
	if (cw->filling &&
	    cw->filled + mrrc_cw_len(msg) > mrrc_cw_frame(cw->sm.peer_inline))
		ret = cw_flush(cw);
	if (!ret && !cw->filling)
		ret = cw_fill_begin(cw);
	if (ret)
		return ret;
	cw->filled += mrrc_cw_encode(msg, cw->filling->buf + cw->filled);
	if (msg->type == MRRC_CW_DONE || msg->type == MRRC_CW_TRUNC)
		cw->unconfirmed = !cw->confirm && !cw->via->domain->core_local;
	if (msg->type == MRRC_CW_DONE && msg->done.bytes)
		cw->issued_ns = mrrc_cw_now_ns();
	return 0;
}

/*
 * Finds the buffers for len bytes of the write from off on; returns their
 * number
 */
static size_t cw_slice(const struct cw_rec *rec, uint64_t off, uint64_t len,
		       struct iovec *iov, void **desc)
{
	size_t i, cnt = 0;
	uint64_t part;

	for (i = 0; i < rec->iov_cnt && len; i++) {
		if (off >= rec->iov[i].iov_len) {
			off -= rec->iov[i].iov_len;
			continue;
		}
		part = rec->iov[i].iov_len - off;
		if (part > len)
			part = len;
		iov[cnt].iov_base = (char *) rec->iov[i].iov_base + off;
		iov[cnt].iov_len = part;
		desc[cnt++] = rec->desc[i];
		len -= part;
		off = 0;
	}
	return cnt;
}

/*
 * Notes that the core had no room for a transfer. The core's queues may be full
 * with other connections' transfers: then no completion of this connection
 * announces room.
 */
static void cw_full_begin(struct mrrc_cw_ep *cw)
{
	if (!cw->full)
		TAILQ_INSERT_TAIL(&cw->group->full, cw, full_link);
	cw->full = true;
}

static void cw_full_end(struct mrrc_cw_ep *cw)
{
	if (cw->full)
		TAILQ_REMOVE(&cw->group->full, cw, full_link);
	cw->full = false;
}

static ssize_t cw_write_piece(struct mrrc_cw_ep *cw, struct cw_rec *rec,
			      uint64_t off)
{
	const struct mrrc_cw_seg *seg = &rec->seg[rec->posted];
	struct cw_piece *piece = &rec->piece[rec->posted];
	struct fi_rma_iov rma = { seg->addr, seg->len, seg->key };
	struct iovec iov[MRRC_IOV_MAX];
	void *desc[MRRC_IOV_MAX] = { NULL };
	struct fi_msg_rma msg = {
		.msg_iov = iov,
		.iov_count = cw_slice(rec, off, seg->len, iov, desc),
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = piece,
	};

	msg.desc = desc[0] ? desc : NULL;
	piece->context.kind = CW_WRITE;
	piece->context.cw = cw;
	piece->rec = rec;
	return fi_writemsg(cw->ctl, &msg, FI_COMPLETION);
}

/* Posts the pieces that are left. */
static int cw_write(struct mrrc_cw_ep *cw, struct cw_rec *rec)
{
	uint64_t off = 0;
	unsigned i;
	ssize_t ret;

	for (i = 0; i < rec->posted; i++)
		off += rec->seg[i].len;
	while (rec->posted < rec->piece_cnt) {
		ret = cw_write_piece(cw, rec, off);
		if (ret == -FI_EAGAIN)
			cw_full_begin(cw);
		if (ret)
			return ret;
		off += rec->seg[rec->posted++].len;
		rec->flying++;
		cw->busy++;
	}
	return 0;
}

static int cw_issue(void *arg, struct mrrc_cw_wr *wr,
		    const struct mrrc_cw_rtag *rtag)
{
	struct cw_rec *rec = container_of(wr, struct cw_rec, wr);
	struct mrrc_cw_ep *cw = arg;
	uint64_t left = wr->len;
	unsigned i;
	int ret;

	if (!mrrc_cw_up(cw) || cw->partial || cw->busy + rtag->count > CW_TX)
		return -FI_EAGAIN;
	for (i = 0; left; i++) {
		rec->seg[i] = rtag->seg[i];
		if (rec->seg[i].len > left)
			rec->seg[i].len = left;
		left -= rec->seg[i].len;
	}
	rec->piece_cnt = i;
	cw->issued_ns = mrrc_cw_now_ns();
	ret = cw_write(cw, rec);
	if (ret == -FI_EAGAIN && rec->posted) {
		/* the write is issued: no other may come between its parts */
		cw->partial = rec;
		return 0;
	}
	return ret;
}

static void cw_place(void *arg, struct mrrc_cw_target *target,
		     const void *bytes, size_t len)
{
	const struct iovec *iov =
		container_of(target, struct cw_rec, target)->few;
	size_t part;

	for (; len; iov++, len -= part) {
		part = len < iov->iov_len ? len : iov->iov_len;
		memcpy(iov->iov_base, bytes, part);
		bytes = (const char *) bytes + part;
	}
}

void mrrc_cw_forget(struct mrrc_cw_ep *cw, struct cw_rec *rec)
{
	if (rec->noted)
		mrrc_cw_map_remove(&cw->by_context, &rec->by_context);
	rec->noted = false;
}

static void cw_ended(struct mrrc_cw_ep *cw, struct cw_rec *rec,
		     const struct mrrc_cw_end *end)
{
	rec->end = *end;
	if (rec->confirm_by)
		mrrc_cw_confirmed(rec);
	if (cw->partial == rec)
		cw->partial = NULL;
	mrrc_cw_forget(cw, rec);
	atomic_fetch_add(&cw->ending, 1);
	STAILQ_INSERT_TAIL(&cw->group->ended, rec, link);
}

static void cw_wr_end(void *arg, struct mrrc_cw_wr *wr,
		      const struct mrrc_cw_end *end)
{
	cw_ended(arg, container_of(wr, struct cw_rec, wr), end);
}

static void cw_target_end(void *arg, struct mrrc_cw_target *target,
			  const struct mrrc_cw_end *end)
{
	cw_ended(arg, container_of(target, struct cw_rec, target), end);
}

const struct mrrc_cw_ops mrrc_cw_sm_ops = {
	.send = cw_send,
	.issue = cw_issue,
	.place = cw_place,
	.wr_end = cw_wr_end,
	.target_end = cw_target_end,
};

static void cw_push_partial(struct mrrc_cw_ep *cw)
{
	int ret;

	if (!cw->partial || !mrrc_cw_up(cw))
		return;
	ret = cw_write(cw, cw->partial);
	if (!ret) {
		cw->partial = NULL;
		mrrc_cw_push(&cw->sm);
	} else if (ret != -FI_EAGAIN) {
		mrrc_cw_lose(cw, fi_strerror(-ret));
	}
}

/* Refuses a peer from now on, because it violated the protocol. */
static void cw_blame(struct mrrc_cw_ep *cw, int err)
{
	if (!cw->rdm || err != -EPROTO || cw->hostile)
		return;
	cw->hostile = true;
	MRRC_WARN(EP_CTRL,
		  "peer %s sent an invalid message: its address is "
		  "quarantined, operations with the peer fail with "
		  "FI_EACCES\n",
		  mrrc_cw_addr_text(&cw->peer).text);
}

void mrrc_cw_after(struct mrrc_cw_ep *cw)
{
	cw_push_partial(cw);
	mrrc_cw_over->count(cw);
	if (!cw->sm.err)
		return;
	cw_blame(cw, cw->sm.err);
	mrrc_cw_lose(cw, fi_strerror(-cw->sm.err));
}

bool mrrc_cw_unconfirmed(struct mrrc_cw_ep *cw)
{
	if (!mrrc_cw_up(cw) || cw->lost)
		return false;
	cw->confirm = true;
	if (cw->unconfirmed && mrrc_cw_send_credit(&cw->sm))
		cw->unconfirmed = false;
	mrrc_cw_after(cw);
	return cw->unconfirmed || cw->busy || !TAILQ_EMPTY(&cw->sm.replies);
}

/* ---- completions --------------------------------------------------------- */

static void cw_received(struct mrrc_cw_ep *cw, struct cw_slot *slot, size_t len)
{
	struct cw_slot *spare = cw->rx_spare;
	const char *at = slot->buf;
	struct mrrc_cw_msg msg;
	size_t first;
	ssize_t ret;

	if (len > mrrc_cw_frame(cw->inline_max)) {
		mrrc_cw_lose(cw, "a message is longer than its buffer");
		return;
	}
	/*
	 * the peer may send once more with the next credits, but not into the
	 * slot that is read here
	 */
	cw->rx_spare = slot;
	if (cw_post_recv(cw, spare))
		cw->deaf = cw->group->deaf = true;
	do {
		first = len ? mrrc_cw_first(at, len) : 0;
		ret = mrrc_cw_decode(at, first, &msg);
		if (ret) {
			MRRC_WARN(EP_CTRL,
				  "a peer's message of %zu bytes violates "
				  "the protocol of conditional writes: "
				  "%s\n",
				  len, fi_strerror(-ret));
			cw_blame(cw, ret);
			mrrc_cw_lose(cw, "bad message");
			return;
		}
		mrrc_cw_receive(&cw->sm, &msg);
		at += first;
		len -= first;
	} while (len);
}

static void cw_piece_done(struct mrrc_cw_ep *cw, struct cw_piece *piece)
{
	struct cw_rec *rec = piece->rec;

	cw->busy--;
	if (!--rec->flying && rec->posted == rec->piece_cnt)
		mrrc_cw_landed(&cw->sm, &rec->wr, 0);
}

static void cw_sent(struct mrrc_cw_ep *cw, struct cw_slot *slot)
{
	slot->next = cw->tx_free;
	cw->tx_free = slot;
	cw->busy--;
	mrrc_cw_push(&cw->sm);
}

/*
 * Handles a completion. An error ends the connection: a reliable connection
 * cannot continue after an error.
 */
static void cw_complete(struct cw_context *context, size_t len, int err)
{
	struct cw_slot *slot = container_of(context, struct cw_slot, context);
	struct mrrc_cw_ep *cw = context->cw;

	if (mrrc_cw_closed(cw))
		return;
	if (err) {
		mrrc_cw_lose(cw, fi_strerror(err));
		return;
	}
	switch (context->kind) {
	case CW_RECV:
		cw_received(cw, slot, len);
		break;
	case CW_SEND:
		cw_sent(cw, slot);
		break;
	case CW_WRITE:
		cw_piece_done(cw,
			      container_of(context, struct cw_piece, context));
		break;
	}
	mrrc_cw_after(cw);
}

/*
 * Handles a peer's write with data, whose completion names no peer (tcp), or
 * the receive that the write consumed (verbs).
 */
static void cw_stray(struct cw_context *context)
{
	if (!context || mrrc_cw_closed(context->cw))
		return;
	cw_blame(context->cw, -EPROTO);
	mrrc_cw_lose(context->cw, "a write with data");
}

/*
 * Reads at most max batches of completions, until the CQ is empty. If brief,
 * stops at a batch that is not full: reading the CQ once more would make
 * progress, and so delay the messages that the completions caused.
 */
static void cw_read(struct mrrc_cw_group *group, unsigned max, bool brief)
{
	struct fi_cq_msg_entry entry[CW_BATCH];
	struct fi_cq_err_entry err[2] = { 0 }; /* two: see reg.c */
	ssize_t ret, i;

	while (max--) {
		ret = fi_cq_read(group->cq, entry, CW_BATCH);
		for (i = 0; i < ret; i++) {
			if (mrrc_unlikely(entry[i].flags & FI_REMOTE_WRITE))
				cw_stray(entry[i].op_context);
			else
				cw_complete(entry[i].op_context, entry[i].len,
					    0);
		}
		if (ret == CW_BATCH || (ret > 0 && !brief))
			continue;
		if (ret != -FI_EAVAIL)
			return;
		memset(err, 0, sizeof(err));
		if (group->cq->ops->readerr(group->cq, err, 0) > 0 &&
		    err->op_context)
			cw_complete(err->op_context, 0,
				    err->err ? err->err : FI_EIO);
	}
}

void mrrc_cw_link_close(struct mrrc_cw_ep *cw)
{
	int ret = 0;

	if (cw->filling)
		cw_fill_end(cw);
	cw_full_end(cw);
	if (cw->ctl)
		ret = fi_close(&cw->ctl->fid);
	if (ret)
		MRRC_WARN(EP_CTRL, "cannot close a control endpoint: %s\n",
			  fi_strerror(-ret));
	cw->ctl = NULL;
	/*
	 * The link's memory stays until its completions are read from the CQ,
	 * where any number of entries may precede them: a peer can write with
	 * data, which consumes no receive (tcp).
	 */
	cw_read(cw->group, UINT_MAX, false);
}

/*
 * Pushes each link of the list once: a push may put its link on the list again,
 * or end another link.
 */
static void cw_push_full(struct mrrc_cw_group *group)
{
	struct mrrc_cw_ep *cw;
	unsigned cnt = 0;

	TAILQ_FOREACH(cw, &group->full, full_link)
		cnt++;
	while (cnt-- && (cw = TAILQ_FIRST(&group->full))) {
		cw_full_end(cw);
		if (cw->lost)
			continue;
		mrrc_cw_push(&cw->sm);
		mrrc_cw_after(cw);
	}
}

void mrrc_cw_links_drain(struct mrrc_cw_group *group)
{
	/* a peer that sends without end cannot keep this thread here */
	cw_read(group, CW_CQ_SIZE, false);
}

/*
 * Ends the links for which the core takes no receive: usually the peer has
 * closed its side (libfabric 2.x). Messages that came before the close are
 * handled first.
 */
static void cw_lose_deaf(struct mrrc_cw_group *group)
{
	struct mrrc_cw_ep *cw;

	mrrc_cw_links_drain(group);
	group->deaf = false;
	TAILQ_FOREACH(cw, &group->eps, link) {
		if (cw->deaf)
			mrrc_cw_lose(cw, "the core takes no receive");
		cw->deaf = false;
	}
}

void mrrc_cw_links_poll(struct mrrc_cw_group *group, bool asleep)
{
	cw_read(group, 8, !asleep);
	if (mrrc_unlikely(group->deaf))
		cw_lose_deaf(group);
	cw_push_full(group);
}

struct cw_rec *mrrc_cw_oldest(const struct mrrc_cw_ep *cw, const void *context)
{
	struct mrrc_cw_node *node;

	node = mrrc_cw_map_first(&cw->by_context, (uintptr_t) context);
	return node ? container_of(node, struct cw_rec, by_context) : NULL;
}

void mrrc_cw_stats_add(struct fi_mrrc_cw_stats *sum,
		       const struct mrrc_cw_ep *cw)
{
	const struct mrrc_cw_stats *st = &cw->sm.stats;

	sum->writes += st->writes;
	sum->tags += st->tags;
	sum->immediate += st->at_once;
	sum->held += st->later;
	sum->writes_ended += st->writes_ended;
	sum->tags_ended += st->tags_ended;
	sum->truncated += st->truncated;
	sum->cancelled += st->cancelled;
	sum->pending_writes += cw->sm.wr_cnt;
	sum->pending_tags += cw->sm.target_cnt;
	sum->known_tags += cw->sm.known_cnt;
	sum->messages_sent += st->sent;
	sum->messages_received += st->received;
	sum->stalls += st->stalls;
	if (cw->issued_ns > sum->last_issued)
		sum->last_issued = cw->issued_ns;
}
