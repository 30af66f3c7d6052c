/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Explores conditional writes (core/cw.c): two sides and a network between
 * them that keeps order, in every interleaving for small cases, at random for
 * large ones. After each step every invariant holds; from each state reached,
 * when the network does its work, whatever can end has ended, in order, once,
 * at both sides; and when the connection is lost then, all the rest has.
 *
 * A step sequence is run again from the start for each of its successors, so
 * that nothing of a state must be copied; states seen before, by digest, are
 * not continued.
 *
 * cw.c is compiled into this program with faults that can be switched on:
 * each has to be found.
 */
#include "config.h"
#include "suites.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *x_calloc(size_t n, size_t size);
static void x_free(void *ptr);

int mrrc_cw_fault;
#define MRRC_CW_FAULTS
#define calloc	x_calloc
#define free	x_free
#include "core/cw.c"
#undef calloc
#undef free
#include "core/hash.h"

#define FAULTS	8

#define OPS_MAX		4096
#define CHAN_MAX	4096

/* What the sides do, and what may go wrong how often. */
struct script {
	const char *name;
	unsigned wrs[2], targets[2];
	unsigned tags;		/* op i has tag i % tags */
	unsigned credits;
	bool greet;		/* HELLO is yet to be delivered */
	unsigned cancels, fails, closes, rooms, garbles;
	uint8_t longer;		/* write that is longer than its target */
};

enum xkind { X_MSG, X_WRITE };

struct item {
	enum xkind kind;
	uint32_t wr;
	uint64_t id;
	uint8_t bytes[MRRC_CW_MSG_MAX];
	size_t len;
};

struct xop {
	union {
		struct mrrc_cw_wr wr;
		struct mrrc_cw_target target;
	};
	unsigned side, index;
};

/* What is known of an operation from outside. */
struct fate {
	struct xop *op;		/* until it ends */
	bool posted, cancelled, landed;
	unsigned ended;
	int err;
	uint64_t id, len, data, tag;
};

struct side {
	struct mrrc_cw cw;
	bool full;		/* the network takes nothing */
	bool hard;		/* closed or noticed */
	bool open;
	unsigned wrs, targets;	/* posted */
	struct fate wr[OPS_MAX], target[OPS_MAX];
	/* on the way to the other side */
	struct item chan[CHAN_MAX];
	unsigned head, tail, msgs;
	/* issued and not completed, in order */
	unsigned fly[OPS_MAX], fly_head, fly_tail;
};

static struct world {
	const struct script *script;
	struct side side[2];
	struct script left;	/* budgets */
	bool cut;		/* nothing is delivered any more */
} world;

static jmp_buf violated;
static char violation[256];

#define MUST(cond, ...)							\
	do {								\
		if (!(cond)) {						\
			snprintf(violation, sizeof(violation),		\
				 __VA_ARGS__);				\
			longjmp(violated, 1);				\
		}							\
	} while (0)

/* ---- memory: nothing may be left, and nothing is when a run is abandoned */

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
	block = (struct block *)((char *)ptr - offsetof(struct block, data));
	TAILQ_REMOVE(&blocks, block, link);
	block_cnt--;
	free(block);
}

/* ---- the network --------------------------------------------------------- */

static struct item *chan_add(struct side *side)
{
	struct item *item = &side->chan[side->tail++ % CHAN_MAX];

	MUST(side->tail - side->head <= CHAN_MAX, "the network overflows");
	memset(item, 0, sizeof(*item));
	return item;
}

static int x_send(void *arg, const struct mrrc_cw_msg *msg)
{
	struct side *side = arg;
	struct item *item;

	if (side->full)
		return -EAGAIN;
	if (world.cut)
		return 0;
	item = chan_add(side);
	item->kind = X_MSG;
	item->len = mrrc_cw_encode(msg, item->bytes);
	/* one more for HELLO */
	MUST(++side->msgs <= world.script->credits + 1,
	     "more messages than credits");
	return 0;
}

static int x_issue(void *arg, struct mrrc_cw_wr *wr,
		   const struct mrrc_cw_rtag *rtag)
{
	struct xop *op = (struct xop *)wr;
	struct side *side = arg;
	struct item *item;

	if (side->full)
		return -EAGAIN;
	MUST(wr->len <= rtag->len, "write longer than its target is issued");
	side->fly[side->fly_tail++ % OPS_MAX] = op->index;
	if (world.cut)
		return 0;
	item = chan_add(side);
	item->kind = X_WRITE;
	item->wr = op->index;
	item->id = rtag->id;
	return 0;
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

	x_end(&side->wr[((struct xop *)wr)->index], end, "a write");
}

static void x_target_end(void *arg, struct mrrc_cw_target *target,
			 const struct mrrc_cw_end *end)
{
	struct side *side = arg;
	struct fate *fate = &side->target[((struct xop *)target)->index];

	x_end(fate, end, "a target");
	if (!end->err)
		MUST(fate->landed, "a target is told before its bytes arrive");
	else if (end->err == MRRC_CW_ETRUNC)
		MUST(!fate->landed, "a truncated write was placed");
}

static const struct mrrc_cw_ops x_ops = {
	.send = x_send,
	.issue = x_issue,
	.wr_end = x_wr_end,
	.target_end = x_target_end,
};

/* ---- steps --------------------------------------------------------------- */

enum step_kind {
	S_POST_WR, S_POST_TARGET, S_DELIVER, S_LAND, S_FAIL, S_CANCEL_WR,
	S_CANCEL_TARGET, S_ROOM, S_CLOSE, S_NOTICE, S_GARBLE, S_KINDS
};

struct step {
	uint8_t kind, side;
	uint16_t index;
};

static void side_lose(unsigned i, int err)
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
	target->seg[0] = (struct mrrc_cw_seg) { 4096 * i, i, 100 };
	fate->tag = i % world.script->tags;
	fate->posted = true;
	fate->id = side->cw.next_id + 1;
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
		/* ids are given from 1 on */
		MUST(item->id && item->id <= to->targets,
		     "a write to nowhere");
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
	/* a connection is lost with the write, and with what follows it */
	if (err)
		world.cut = true;
	mrrc_cw_landed(&side->cw, &side->wr[i].op->wr, err);
	if (side->cw.err)
		side_lose(s, ECONNABORTED);
}

/* Nonsense in the place of a message. */
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

static bool enabled(struct step step)
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

static void apply(struct step step)
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

static void world_fini(void)
{
	struct block *block;
	unsigned s;

	for (s = 0; s < 2; s++) {
		if (world.side[s].open)
			mrrc_cw_fini(&world.side[s].cw);
		world.side[s].open = false;
	}
	/* of an abandoned run */
	while ((block = TAILQ_FIRST(&blocks)))
		x_free(block->data);
}

static void world_init(const struct script *script)
{
	struct mrrc_cw_attr attr = {
		.credits = script->credits,
		.pending = OPS_MAX,
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
		mrrc_cw_init(&side->cw, &attr, &x_ops, side);
	}
	for (s = 0; s < 2; s++)
		mrrc_cw_hello(&world.side[s].cw);
	for (s = 0; s < 2 && !script->greet; s++)
		deliver(s);
}

static void check_valid(void)
{
	unsigned s;

	for (s = 0; s < 2; s++)
		MUST(mrrc_cw_valid(&world.side[s].cw), "invariants, side %u",
		     s);
}

/* The network does all that it can; the sides do nothing new. */
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

/* Writes of side w and their targets at the other, all settled. */
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
		     last[fate->tag] < fate->data, "out of order");
		last[fate->tag] = fate->data;
		MUST(fate->len == from->wr[fate->data].len,
		     "a target is told another length");
	}
	MUST(!ok, "writes and targets that succeeded differ by %d", (int)ok);
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
			MUST(side->target[i].ended == 1,
			     "a target never ends");
	}
	check_valid();
	MUST(!block_cnt, "%lu blocks are left", block_cnt);
}

static void finish(void)
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

		hash = mix(hash, f->ended ? 100 + f->err :
					    (int)f->op->wr.state);
		hash = mix(hash, f->cancelled);
	}
	for (i = 0; i < side->targets; i++) {
		const struct fate *f = &side->target[i];

		hash = mix(hash, f->ended ? 100 + f->err :
					    (int)f->op->target.state);
		hash = mix(hash, f->cancelled | f->landed << 1 |
			   f->data << 2);
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
		hash = mix(hash, rtag->id << 4 | rtag->out.type << 1 |
			   rtag->known);
	TAILQ_FOREACH(out, &cw->replies, link)
		hash = mix(hash, out->type == MRRC_CW_REVOKE ?
			   OUT_OF(out, mrrc_cw_target)->id :
			   OUT_OF(out, mrrc_cw_rtag)->id << 8);
	hash = mix(hash, cw->room | cw->consumed << 8 | cw->heard << 16 |
		   cw->greeted << 17 | cw->down << 18);
	return hash;
}

static uint64_t digest(void)
{
	const struct script *left = &world.left;
	uint64_t hash = world.cut;

	hash = mix(hash, left->cancels | left->fails << 4 | left->closes << 8 |
		   left->rooms << 12 | left->garbles << 16);
	hash = digest_side(&world.side[0], hash);
	return digest_side(&world.side[1], hash);
}

/* ---- every interleaving -------------------------------------------------- */

struct node {
	struct mrrc_cw_node seen;
	uint32_t parent;
	struct step step;
};

#define NODES_MAX	(3U << 20)
#define DEPTH_MAX	256

static struct node *nodes;
static uint32_t node_cnt;
static struct mrrc_cw_map seen;

static void replay(const struct script *script, uint32_t at)
{
	struct step path[DEPTH_MAX];
	unsigned depth = 0;

	for (; at; at = nodes[at].parent) {
		MUST(depth < DEPTH_MAX, "too deep");
		path[depth++] = nodes[at].step;
	}
	world_fini();
	world_init(script);
	while (depth--)
		apply(path[depth]);
}

static unsigned list_steps(struct step *steps)
{
	struct step step;
	unsigned cnt = 0, last;

	for (step.kind = 0; step.kind < S_KINDS; step.kind++) {
		for (step.side = 0; step.side < 2; step.side++) {
			last = step.kind == S_CANCEL_WR ||
			       step.kind == S_CANCEL_TARGET ? 8 : 1;
			for (step.index = 0; step.index < last; step.index++)
				if (enabled(step))
					steps[cnt++] = step;
		}
	}
	return cnt;
}

/* not inline: with setjmp() its variables would be lost */
static __attribute__((noinline)) void
explore_from(const struct script *script, uint32_t at)
{
	struct step steps[64];
	unsigned cnt, i;
	uint64_t hash;

	replay(script, at);
	cnt = list_steps(steps);
	for (i = 0; i < cnt; i++) {
		if (i)
			replay(script, at);
		apply(steps[i]);
		check_valid();
		hash = digest();
		if (mrrc_cw_map_first(&seen, hash))
			continue;
		MUST(node_cnt < NODES_MAX, "too many states: a smaller case");
		nodes[node_cnt].parent = at;
		nodes[node_cnt].step = steps[i];
		mrrc_cw_map_add(&seen, &nodes[node_cnt++].seen, hash);
		finish();
	}
}

static void print_path(uint32_t at)
{
	static const char *const name[] = {
		"post write", "post target", "deliver from", "land", "fail",
		"cancel write", "cancel target", "room", "close", "notice",
		"garble",
	};

	if (!at)
		return;
	print_path(nodes[at].parent);
	fprintf(stderr, "  %s, side %u, %u\n", name[nodes[at].step.kind],
		nodes[at].step.side, nodes[at].step.index);
}

/* States reached, or 0: violation says what is wrong. */
static uint32_t explore(const struct script *script, bool loud)
{
	static volatile uint32_t at;
	uint32_t states;

	nodes = calloc(NODES_MAX, sizeof(*nodes));
	ck_assert_ptr_nonnull(nodes);
	node_cnt = 1;
	mrrc_cw_map_init(&seen);
	at = 0;
	if (!setjmp(violated)) {
		for (at = 0; at < node_cnt; at++)
			explore_from(script, at);
		states = node_cnt;
	} else {
		states = 0;
		if (loud) {
			fprintf(stderr, "%s: %s, after\n", script->name,
				violation);
			print_path(at);
		}
	}
	mrrc_cw_map_fini(&seen);
	free(nodes);
	world_fini();
	return states;
}

static const struct script small[] = {
	{ "one of each, everything may happen", .wrs = { 1, 0 },
	  .targets = { 0, 1 }, .tags = 1, .credits = 4, .greet = true,
	  .cancels = 2, .fails = 1, .closes = 1, .rooms = 2, .garbles = 1 },
	{ "two of each, one tag, cancels", .wrs = { 2, 0 },
	  .targets = { 0, 2 }, .tags = 1, .credits = 4, .cancels = 3,
	  .rooms = 1 },
	{ "two of each, one tag, losses", .wrs = { 2, 0 },
	  .targets = { 0, 2 }, .tags = 1, .credits = 4, .cancels = 1,
	  .closes = 1, .fails = 1, .rooms = 1 },
	{ "two of each, two tags", .wrs = { 2, 0 }, .targets = { 0, 2 },
	  .tags = 2, .credits = 4, .cancels = 2, .rooms = 2 },
	{ "both ways", .wrs = { 1, 1 }, .targets = { 1, 1 }, .tags = 1,
	  .credits = 4, .cancels = 1, .rooms = 1 },
	{ "too long", .wrs = { 2, 0 }, .targets = { 0, 2 }, .tags = 1,
	  .credits = 4, .cancels = 2, .rooms = 1, .longer = 1 },
	{ "three of each, credits run out", .wrs = { 3, 0 },
	  .targets = { 0, 3 }, .tags = 1, .credits = 4, .rooms = 1 },
	{ "tags both ways, credits run out", .wrs = { 0, 0 },
	  .targets = { 6, 6 }, .tags = 1, .credits = 4 },
};

START_TEST(every_interleaving)
{
	uint32_t states = explore(&small[_i], true);

	ck_assert_uint_gt(states, 0);
	fprintf(stderr, "%s: %u states\n", small[_i].name, states);
}
END_TEST

/* ---- at random ----------------------------------------------------------- */

static uint64_t x_seed;

static uint64_t x_rand(void)
{
	x_seed += UINT64_C(0x9e3779b97f4a7c15);
	return mrrc_hash(x_seed);
}

static __attribute__((noinline)) void
random_run(const struct script *script, unsigned steps)
{
	/* in proportion to what they should be */
	static const uint8_t kinds[] = {
		S_POST_WR, S_POST_WR, S_POST_TARGET, S_POST_TARGET, S_DELIVER,
		S_DELIVER, S_DELIVER, S_DELIVER, S_DELIVER, S_LAND, S_LAND,
		S_CANCEL_WR, S_CANCEL_TARGET, S_ROOM,
	};
	struct step step;
	unsigned i;

	world_fini();
	world_init(script);
	for (i = 0; i < steps; i++) {
		step.kind = kinds[x_rand() % (sizeof(kinds))];
		step.side = x_rand() % 2;
		step.index = x_rand() % OPS_MAX;
		if (step.kind == S_CANCEL_WR && world.side[step.side].wrs)
			step.index %= world.side[step.side].wrs;
		if (step.kind == S_CANCEL_TARGET &&
		    world.side[step.side].targets)
			step.index %= world.side[step.side].targets;
		if (!(x_rand() % 4096))
			step.kind = S_FAIL + x_rand() % (S_KINDS - S_FAIL);
		if (enabled(step))
			apply(step);
		if (!(i % 512))
			check_valid();
	}
	finish();
}

static bool random_ok(uint64_t seed, bool loud)
{
	const unsigned n = x_seed = seed, tags[] = { 1, 3, 17, 64 };
	struct script script = {
		.name = "random",
		.wrs = { 1 + seed % 2000, 1 + seed % 37 },
		.targets = { 1 + seed % 41, 1 + seed % 1900 },
		.tags = tags[n % 4],
		.credits = 4 + seed % 13,
		.cancels = seed % 3 ? 400 : 0,
		.rooms = 1000,
		.fails = !(seed % 5),
		.closes = !(seed % 7),
		.garbles = !(seed % 11),
		.longer = seed % 200,
	};

	if (!setjmp(violated)) {
		random_run(&script, 20000);
		world_fini();
		return true;
	}
	if (loud)
		fprintf(stderr, "seed %lu: %s\n", (unsigned long)seed,
			violation);
	world_fini();
	return false;
}

START_TEST(at_random)
{
	const char *given = getenv("MRRC_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) :
				(uint64_t)getpid() * 1000003;
	unsigned i;

	fprintf(stderr, "MRRC_TEST_SEED=%lu\n", (unsigned long)seed);
	for (i = 0; i < 60; i++)
		ck_assert(random_ok(seed + i, true));
}
END_TEST

/* ---- can it fail? -------------------------------------------------------- */

START_TEST(fault_is_found)
{
	bool found = false;
	unsigned i;

	mrrc_cw_fault = _i + 1;
	for (i = 0; i < sizeof(small) / sizeof(small[0]) && !found; i++)
		found = !explore(&small[i], false);
	for (i = 0; i < 20 && !found; i++)
		found = !random_ok(i + 1, false);
	mrrc_cw_fault = 0;
	ck_assert_msg(found, "fault %d is not found", _i + 1);
	fprintf(stderr, "fault %d: %s\n", _i + 1, violation);
}
END_TEST

static Suite *explore_suite(void)
{
	Suite *suite = suite_create("explore_cw");
	TCase *tcase = tcase_create("explore_cw");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, every_interleaving, 0,
			    sizeof(small) / sizeof(small[0]));
	tcase_add_test(tcase, at_random);
	tcase_add_loop_test(tcase, fault_is_found, 0, FAULTS);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	static Suite *(*const suites[])(void) = { explore_suite };

	return run_suites(suites, 1);
}
