/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two sides of conditional writes (core/cw/cw.c) and a network between them that
 * keeps order: what can happen, step by step, and what must hold then. One
 * world, which is started again and again, in one thread.
 */
#ifndef MRRC_TEST_EXPLORE_WORLD_H
#define MRRC_TEST_EXPLORE_WORLD_H

#include <setjmp.h>
#include <stdio.h>

#include "core/cw/cw.h"

/* cw.c is compiled with faults: the one that is switched on, or 0. */
#define FAULTS 9
extern int mrrc_cw_fault;

#define OPS_MAX	 4096
#define CHAN_MAX 4096

/* What the sides do, and what may go wrong how often. */
struct script {
	const char *id; /* Check's case */
	const char *name;
	unsigned wrs[2], targets[2];
	unsigned tags; /* op i has tag i % tags */
	unsigned credits;
	bool greet;   /* HELLO is yet to be delivered */
	bool inlined; /* writes with odd numbers go inside messages */
	unsigned cancels, fails, closes, rooms, garbles;
	uint8_t longer; /* write that is longer than its target */
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
	uint8_t bytes[100]; /* of a write: its number */
};

/* What is known of an operation from outside. */
struct fate {
	struct xop *op; /* until it ends */
	bool posted, cancelled, landed, told;
	unsigned ended;
	int err;
	int placed; /* number of the write that came in a message, or -1 */
	uint64_t id, len, data, tag; /* a write's id: its target's */
};

struct side {
	struct mrrc_cw cw;
	struct mrrc_stats counted; /* as others see it */
	bool full;		   /* the network takes nothing */
	bool hard;		   /* closed or noticed */
	bool open;
	unsigned wrs, targets; /* posted */
	struct fate wr[OPS_MAX], target[OPS_MAX];
	uint64_t next[64]; /* by tag: least number of the peer's next write */
	/* on the way to the other side */
	struct item chan[CHAN_MAX];
	unsigned head, tail, msgs;
	/* issued and not completed, in order */
	unsigned fly[OPS_MAX], fly_head, fly_tail;
};

struct world {
	const struct script *script;
	struct side side[2];
	struct script left; /* budgets */
	bool cut;	    /* nothing is delivered any more */
};
extern struct world world;

enum step_kind {
	S_POST_WR,
	S_POST_TARGET,
	S_DELIVER,
	S_LAND,
	S_FAIL,
	S_CANCEL_WR,
	S_CANCEL_TARGET,
	S_ROOM,
	S_CLOSE,
	S_NOTICE,
	S_GARBLE,
	S_KINDS
};

struct step {
	uint8_t kind, side;
	uint16_t index;
};

/* Where a step, or a check, goes when something does not hold, and what. */
extern jmp_buf violated;
extern char violation[256];

#define MUST(cond, ...)                                                      \
	do {                                                                 \
		if (!(cond)) {                                               \
			snprintf(violation, sizeof(violation), __VA_ARGS__); \
			longjmp(violated, 1);                                \
		}                                                            \
	} while (0)

void world_init(const struct script *script);
/* Frees what an abandoned run left, too. */
void world_fini(void);

/* Whether it can happen now; make it happen. */
bool enabled(struct step step);
void apply(struct step step);

/* The connection is lost for this side. */
void side_lose(unsigned side, int err);

/* Allocations that are left. */
unsigned long world_blocks(void);

/* The same for states that go on in the same ways. */
uint64_t world_digest(void);

/* explore_check.c: in any state; and once the network has done its work. */
void check_valid(void);
void finish(void);

#endif /* MRRC_TEST_EXPLORE_WORLD_H */
