/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two sides of conditional writes (core/cw/cw.c) and a network between them
 * that keeps order: all possible steps, and what must hold after each step. The
 * program has one world, which is started again and again, in one thread.
 */
#ifndef MRRC_TEST_EXPLORE_WORLD_H
#define MRRC_TEST_EXPLORE_WORLD_H

#include <setjmp.h>
#include <stdio.h>

#include "core/cw/cw.h"

/* cw.c is compiled with faults; mrrc_cw_fault is the one switched on, or 0. */
#define FAULTS 9
extern int mrrc_cw_fault;

#define OPS_MAX	 4096
#define CHAN_MAX 4096

/*
 * The operations of both sides, and the number of times that each kind of
 * trouble may occur.
 */
struct script {
	const char *id; /* name of Check's case */
	const char *name;
	unsigned wrs[2], targets[2];
	unsigned tags; /* number of tags; operation i has tag i % tags */
	unsigned credits;
	bool greet;   /* HELLO is not delivered yet */
	bool inlined; /* writes with odd numbers go inside messages */
	unsigned cancels, fails, closes, rooms, garbles;
	uint8_t longer; /* number of the write that is longer than its target */
};

enum xkind { X_MSG, X_WRITE };

struct item {
	enum xkind kind;
	uint32_t wr;
	uint64_t id;
	uint8_t bytes[256];
	size_t len;
};

struct xop {
	union {
		struct mrrc_cw_wr wr;
		struct mrrc_cw_target target;
	};
	unsigned side, index;
	uint8_t bytes[100]; /* number of the write, as its content */
};

/* State of an operation as seen from outside. */
struct fate {
	struct xop *op; /* operation, until it ends */
	bool posted, cancelled, landed, told;
	unsigned ended;
	int err;
	int placed; /* number of the write that came in a message, or -1 */
	uint64_t id, len, data, tag; /* a write's id is that of its target */
};

struct side {
	struct mrrc_cw cw;
	struct mrrc_stats counted; /* counters as others see them */
	bool full;		   /* the network accepts nothing */
	/* the connection is closed or a fault was noticed */
	bool hard;
	bool open;
	unsigned wrs, targets; /* posted writes and targets */
	struct fate wr[OPS_MAX], target[OPS_MAX];
	/* least number of the peer's next write, for each tag */
	uint64_t next[64];
	/* messages on the way to the other side */
	struct item chan[CHAN_MAX];
	unsigned head, tail, msgs;
	/* issued writes that are not completed, in order */
	unsigned fly[OPS_MAX], fly_head, fly_tail;
};

struct world {
	const struct script *script;
	struct side side[2];
	struct script left; /* remaining budgets */
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

/* A step or a check that finds a violation jumps here, with its text. */
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
/* Frees the world, and what an abandoned run left. */
void world_fini(void);

/* Whether a step can happen now; makes a step happen. */
bool enabled(struct step step);
void apply(struct step step);

/* The connection is lost for this side. */
void side_lose(unsigned side, int err);

/* Returns the number of blocks that are still allocated. */
unsigned long world_blocks(void);

/* Returns a digest that is equal for states that go on in the same ways. */
uint64_t world_digest(void);

/*
 * Checks of explore_check.c: for any state, and once all messages are
 * delivered.
 */
void check_valid(void);
void finish(void);

#endif /* MRRC_TEST_EXPLORE_WORLD_H */
