/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two sides of conditional writes and a network: see explore_world.h.
 *
 * cw.c is compiled into this program with faults that can be switched on.
 */
#include "config.h"
#include "test/models/explore_world.h"

#include <stdlib.h>
#include <string.h>

static void *x_calloc(size_t n, size_t size);
static void x_free(void *ptr);

int mrrc_cw_fault;
#define MRRC_CW_FAULTS
#define calloc x_calloc
#define free   x_free
#include "core/cw/cw.c"
#undef calloc
#undef free
#include "core/text/hash.h"

struct world world;
jmp_buf violated;
char violation[256];

/* ---- memory: all is freed, also when a run is abandoned */

struct block {
	TAILQ_ENTRY(block) link;
	char data[];
};
static TAILQ_HEAD(, block) blocks = TAILQ_HEAD_INITIALIZER(blocks);
static unsigned long block_cnt;

static void *x_calloc(size_t n, size_t size)
{
	struct block *block = calloc(1, sizeof(*block) + n * size);

	if (!block)
		abort();
	TAILQ_INSERT_TAIL(&blocks, block, link);
	block_cnt++;
	return block->data;
}

static void x_free(void *ptr)
{
	struct block *block;

	if (!ptr)
		return;
	block = (struct block *) ((char *) ptr - offsetof(struct block, data));
	TAILQ_REMOVE(&blocks, block, link);
	block_cnt--;
	free(block);
}

unsigned long world_blocks(void)
{
	return block_cnt;
}

/* ---- the network --------------------------------------------------------- */

static struct item *chan_add(struct side *side)
{
	struct item *item = &side->chan[side->tail++ % CHAN_MAX];

	MUST(side->tail - side->head <= CHAN_MAX, "the network overflows");
	memset(item, 0, sizeof(*item));
	return item;
}

/* Returns the other side's target with this id; ids are given from 1 on. */
static struct fate *target_of(const struct side *side, uint64_t id)
{
	return &world.side[side == &world.side[0]].target[id - 1];
}

static int x_send(void *arg, const struct mrrc_cw_msg *msg)
{
	struct side *side = arg;
	struct item *item;

	if (side->full)
		return -EAGAIN;
	if (msg->type == MRRC_CW_DONE)
		target_of(side, msg->id)->told = true;
	if (msg->type == MRRC_CW_DONE && msg->done.bytes)
		side->wr[msg->done.data].id = msg->id;
	if (world.cut)
		return 0;
	item = chan_add(side);
	item->kind = X_MSG;
	item->len = mrrc_cw_encode(msg, item->bytes);
	/* HELLO needs no credit. */
	MUST(++side->msgs <= world.script->credits + 1,
	     "more messages than credits");
	return 0;
}

static int x_issue(void *arg, struct mrrc_cw_wr *wr,
		   const struct mrrc_cw_rtag *rtag)
{
	struct xop *op = (struct xop *) wr;
	struct side *side = arg;
	struct item *item;

	if (side->full)
		return -EAGAIN;
	MUST(wr->len <= rtag->len, "write longer than its target is issued");
	side->fly[side->fly_tail++ % OPS_MAX] = op->index;
	side->wr[op->index].id = rtag->id;
	if (world.cut)
		return 0;
	item = chan_add(side);
	item->kind = X_WRITE;
	item->wr = op->index;
	item->id = rtag->id;
	return 0;
}

static void x_place(void *arg, struct mrrc_cw_target *target, const void *bytes,
		    size_t len)
{
	struct side *side = arg;
	struct fate *fate = &side->target[((struct xop *) target)->index];

	MUST(!fate->landed, "two writes to one target");
	MUST(len <= 100, "more bytes than the target takes");
	fate->landed = true;
	fate->placed = *(const uint8_t *) bytes;
}

static void x_end(struct fate *fate, const struct mrrc_cw_end *end,
		  const char *what)
{
	MUST(fate->posted && !fate->ended, "%s ends twice", what);
	fate->ended++;
	fate->err = end->err;
	fate->len = end->len;
	fate->data = end->data;
	x_free(fate->op);
	fate->op = NULL;
}

static void x_wr_end(void *arg, struct mrrc_cw_wr *wr,
		     const struct mrrc_cw_end *end)
{
	struct side *side = arg;
	struct fate *fate = &side->wr[((struct xop *) wr)->index];

	if (!end->err)
		MUST(target_of(side, fate->id)->told,
		     "a write ends before its target is told");
	x_end(fate, end, "a write");
}

static void x_target_end(void *arg, struct mrrc_cw_target *target,
			 const struct mrrc_cw_end *end)
{
	struct side *side = arg;
	struct fate *fate = &side->target[((struct xop *) target)->index];

	x_end(fate, end, "a target");
	if (end->err == MRRC_CW_ETRUNC)
		MUST(!fate->landed, "a truncated write was placed");
	if (end->err)
		return;
	MUST(fate->landed &&
		     (fate->placed < 0 || fate->placed == (uint8_t) end->data),
	     "a target is told before its bytes arrive");
	MUST(end->data >= side->next[fate->tag],
	     "writes of one tag end out of order");
	side->next[fate->tag] = end->data + 1;
}

static const struct mrrc_cw_ops x_ops = {
	.send = x_send,
	.issue = x_issue,
	.place = x_place,
	.wr_end = x_wr_end,
	.target_end = x_target_end,
};

/* ---- steps --------------------------------------------------------------- */

void side_lose(unsigned i, int err)
{
	struct side *side = &world.side[i];

	world.cut = true;
	side->hard = true;
	side->fly_head = side->fly_tail;
	mrrc_cw_down(&side->cw, err);
}

static void post_wr(unsigned s)
{
	struct side *side = &world.side[s];
	unsigned i = side->wrs++;
	struct fate *fate = &side->wr[i];

	fate->op = x_calloc(1, sizeof(*fate->op));
	fate->op->side = s;
	fate->op->index = i;
	fate->op->wr.len = i + 1 == world.script->longer ? 200 : 100 - i % 7;
	fate->op->wr.has_data = true;
	fate->op->wr.data = i;
	memset(fate->op->bytes, i, sizeof(fate->op->bytes));
	if (i % 2)
		fate->op->wr.bytes = fate->op->bytes;
	fate->tag = i % world.script->tags;
	fate->posted = true;
	MUST(!mrrc_cw_post_wr(&side->cw, &fate->op->wr, fate->tag),
	     "posting a write fails");
}

static void post_target(unsigned s)
{
	struct side *side = &world.side[s];
	unsigned i = side->targets++;
	struct fate *fate = &side->target[i];
	struct mrrc_cw_target *target;

	fate->op = x_calloc(1, sizeof(*fate->op));
	fate->op->side = s;
	fate->op->index = i;
	target = &fate->op->target;
	target->len = 100;
	target->count = 1;
	target->seg[0] = (struct mrrc_cw_seg){ 4096 * i, i, 100 };
	fate->tag = i % world.script->tags;
	fate->posted = true;
	fate->id = side->cw.next_id + 1;
	fate->placed = -1;
	MUST(!mrrc_cw_post_target(&side->cw, target, fate->tag),
	     "posting a target fails");
}

static void deliver(unsigned s)
{
	struct side *from = &world.side[s], *to = &world.side[!s];
	struct item *item = &from->chan[from->head++ % CHAN_MAX];
	struct mrrc_cw_msg msg;
	struct fate *fate;

	if (item->kind == X_WRITE) {
		/* Ids are given from 1 on. */
		MUST(item->id && item->id <= to->targets, "a write to nowhere");
		fate = &to->target[item->id - 1];
		MUST(fate->op, "a write to what is exposed no longer");
		MUST(!fate->landed, "two writes to one target");
		fate->landed = true;
		return;
	}
	from->msgs--;
	MUST(!mrrc_cw_decode(item->bytes, item->len, &msg),
	     "a message cannot be decoded");
	mrrc_cw_receive(&to->cw, &msg);
	MUST(!to->cw.err, "an honest peer is blamed: %d", to->cw.err);
}

static void land(unsigned s, int err)
{
	struct side *side = &world.side[s];
	unsigned i = side->fly[side->fly_head++ % OPS_MAX];

	MUST(side->wr[i].op, "a write ends before it is completed");
	/* A connection is lost with the write and later messages. */
	if (err)
		world.cut = true;
	mrrc_cw_landed(&side->cw, &side->wr[i].op->wr, err);
	if (side->cw.err)
		side_lose(s, ECONNABORTED);
}

/* Puts nonsense in the place of a message. */
static void garble(unsigned s)
{
	struct mrrc_cw_msg msg = { .type = MRRC_CW_DONE, .id = 1ULL << 60 };
	struct side *to = &world.side[!s];

	world.side[s].head++;
	mrrc_cw_receive(&to->cw, &msg);
	MUST(to->cw.err, "nonsense is believed");
	side_lose(!s, ECONNABORTED);
}

static bool cancellable(const struct fate *fate)
{
	return fate->op && !fate->cancelled;
}

bool enabled(struct step step)
{
	const struct side *side = &world.side[step.side];
	const struct script *script = world.script;

	if (side->hard)
		return false;
	switch (step.kind) {
	case S_POST_WR:
		return side->wrs < script->wrs[step.side];
	case S_POST_TARGET:
		return side->targets < script->targets[step.side];
	case S_DELIVER:
		return !world.cut && side->head != side->tail &&
		       !world.side[!step.side].hard;
	case S_GARBLE:
		return !world.cut && world.left.garbles &&
		       side->head != side->tail && !world.side[!step.side].hard;
	case S_LAND:
		return side->fly_head != side->fly_tail;
	case S_FAIL:
		return world.left.fails && side->fly_head != side->fly_tail;
	case S_CANCEL_WR:
		return world.left.cancels && step.index < side->wrs &&
		       cancellable(&side->wr[step.index]);
	case S_CANCEL_TARGET:
		return world.left.cancels && step.index < side->targets &&
		       cancellable(&side->target[step.index]);
	case S_ROOM:
		return side->full || world.left.rooms;
	case S_CLOSE:
		return world.left.closes;
	case S_NOTICE:
		return world.cut;
	default:
		return false;
	}
}

void apply(struct step step)
{
	struct side *side = &world.side[step.side];
	unsigned s = step.side;

	switch (step.kind) {
	case S_POST_WR:
		post_wr(s);
		break;
	case S_POST_TARGET:
		post_target(s);
		break;
	case S_DELIVER:
		deliver(s);
		break;
	case S_LAND:
		land(s, 0);
		break;
	case S_FAIL:
		world.left.fails--;
		land(s, EIO);
		break;
	case S_CANCEL_WR:
		world.left.cancels--;
		side->wr[step.index].cancelled = true;
		mrrc_cw_cancel_wr(&side->cw, &side->wr[step.index].op->wr);
		break;
	case S_CANCEL_TARGET:
		world.left.cancels--;
		side->target[step.index].cancelled = true;
		mrrc_cw_cancel_target(&side->cw,
				      &side->target[step.index].op->target);
		break;
	case S_ROOM:
		if (!side->full)
			world.left.rooms--;
		side->full = !side->full;
		if (!side->full)
			mrrc_cw_push(&side->cw);
		break;
	case S_CLOSE:
		world.left.closes--;
		side_lose(s, ECANCELED);
		break;
	case S_NOTICE:
		side_lose(s, ECONNABORTED);
		break;
	case S_GARBLE:
		world.left.garbles--;
		garble(s);
		break;
	}
}

/* ---- the world ----------------------------------------------------------- */

void world_fini(void)
{
	struct block *block;
	unsigned s;

	for (s = 0; s < 2; s++) {
		if (world.side[s].open)
			mrrc_cw_fini(&world.side[s].cw);
		world.side[s].open = false;
	}
	/* Frees memory of an abandoned run. */
	while ((block = TAILQ_FIRST(&blocks)))
		x_free(block->data);
}

void world_init(const struct script *script)
{
	struct mrrc_cw_attr attr = {
		.credits = script->credits,
		.pending = OPS_MAX,
		.inline_max = script->inlined ? 100 : 0,
	};
	struct side *side;
	unsigned s, n;

	world.script = script;
	world.left = *script;
	world.cut = false;
	for (s = 0; s < 2; s++) {
		side = &world.side[s];
		n = script->wrs[s] > script->targets[s] ? script->wrs[s] :
							  script->targets[s];
		if (n < script->wrs[!s])
			n = script->wrs[!s];
		memset(side->wr, 0, (n + 1) * sizeof(side->wr[0]));
		memset(side->target, 0, (n + 1) * sizeof(side->target[0]));
		side->full = side->hard = false;
		side->wrs = side->targets = 0;
		side->head = side->tail = side->msgs = 0;
		side->fly_head = side->fly_tail = 0;
		side->open = true;
		memset(side->next, 0, sizeof(side->next));
		side->counted = (struct mrrc_stats){ 0 };
		attr.stats = &side->counted;
		mrrc_cw_init(&side->cw, &attr, &x_ops, side);
	}
	for (s = 0; s < 2; s++)
		mrrc_cw_hello(&world.side[s].cw);
	for (s = 0; s < 2 && !script->greet; s++)
		deliver(s);
}

/* ---- digests ------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return mrrc_hash(hash * 31 + value + 1);
}

static uint64_t digest_side(const struct side *side, uint64_t hash)
{
	const struct mrrc_cw *cw = &side->cw;
	const struct mrrc_cw_rtag *rtag;
	const struct mrrc_cw_out *out;
	const struct item *item;
	unsigned i, k;

	hash = mix(hash, side->full | side->hard << 1 | side->wrs << 2 |
				 side->targets << 16);
	for (i = 0; i < side->wrs; i++) {
		const struct fate *f = &side->wr[i];

		hash = mix(hash,
			   f->ended ? 100 + f->err : (int) f->op->wr.state);
		hash = mix(hash, f->cancelled);
	}
	for (i = 0; i < side->targets; i++) {
		const struct fate *f = &side->target[i];

		hash = mix(hash,
			   f->ended ? 100 + f->err : (int) f->op->target.state);
		hash = mix(hash, f->cancelled | f->landed << 1 | f->data << 2);
	}
	for (k = side->head; k != side->tail; k++) {
		item = &side->chan[k % CHAN_MAX];
		hash = mix(hash, item->kind | item->wr << 1);
		hash = mix(hash, item->id);
		for (i = 0; i < item->len; i++)
			hash = mix(hash, item->bytes[i]);
	}
	for (k = side->fly_head; k != side->fly_tail; k++)
		hash = mix(hash, side->fly[k % OPS_MAX]);
	TAILQ_FOREACH(rtag, &cw->rtags, all)
		hash = mix(hash,
			   rtag->id << 4 | rtag->out.type << 1 | rtag->known);
	TAILQ_FOREACH(out, &cw->replies, link)
		hash = mix(hash, out->type == MRRC_CW_REVOKE ?
					 OUT_OF(out, mrrc_cw_target)->id :
					 OUT_OF(out, mrrc_cw_rtag)->id << 8);
	hash = mix(hash, cw->room | cw->consumed << 8 | cw->heard << 16 |
				 cw->greeted << 17 | cw->down << 18);
	return hash;
}

uint64_t world_digest(void)
{
	const struct script *left = &world.left;
	uint64_t hash = world.cut;

	hash = mix(hash, left->cancels | left->fails << 4 | left->closes << 8 |
				 left->rooms << 12 | left->garbles << 16);
	hash = digest_side(&world.side[0], hash);
	return digest_side(&world.side[1], hash);
}
