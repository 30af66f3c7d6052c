/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The naive side of model_cache.c: indexed regions in an array, oldest use
 * first, and each policy as its definition has it.
 */
#ifndef MRRC_TEST_MODEL_H
#define MRRC_TEST_MODEL_H

#include <stdio.h>
#include <stdlib.h>

#include "core/cache/plan.h"
#include "core/policy/ghost.h"
#include "core/policy/shadow.h"
#include "core/policy/reuse.h"

#define PAGE  4096u
#define SPACE 300u /* number of existing pages */

struct entry {
	struct mrrc_region *region;
	unsigned first, pages;
	enum mrrc_access access;
	double factor;		/* for mre */
	double priority, value; /* for gdsf */
	unsigned uses;
	unsigned long turn; /* when it came to its place in its class,
				 * or aside */
	double weight;	    /* for gdl */
	unsigned here;
	uint64_t last;
	double floor;
	bool aside, used;
};

struct model {
	const struct mrrc_cache *cache;
	struct entry entry[64];
	unsigned count;
	unsigned segment; /* for mre */
	double floor;	  /* for gdsf */
	unsigned history[SPACE];
	unsigned long added, turn;
	/* for gdl: its parts, which have tests of their own */
	struct mrrc_reuse learned;
	struct mrrc_ghosts ghosts;
	struct mrrc_shadow lru;
	unsigned first, pages; /* pages of the last request */
	uint64_t now;
	bool by_estimate;
	const struct mrrc_region *named; /* the last victim */
};

extern unsigned long seed;
extern unsigned long step;

#define check(what)                                                           \
	do {                                                                  \
		if (!(what)) {                                                \
			printf("step %lu: %s (MRRC_SEED=%lu)\n", step, #what, \
			       seed);                                         \
			exit(EXIT_FAILURE);                                   \
		}                                                             \
	} while (0)

void model_open(struct model *model, const struct mrrc_cache *cache);
void model_close(struct model *model);
void model_request(struct model *model, unsigned first, unsigned pages);
void model_enter(struct model *model, struct mrrc_region *region);
void model_touch(struct model *model, struct mrrc_region *region);
void model_drop(struct model *model, unsigned i);

/* Fails the test unless the plan is right, in at most @limit pieces. */
void model_check_plan(const struct model *model, const struct mrrc_plan *plan,
		      unsigned first, unsigned pages, enum mrrc_access access,
		      unsigned limit);

static inline bool entry_overlaps(const struct entry *e, unsigned first,
				  unsigned pages)
{
	return e->first < first + pages && first < e->first + e->pages;
}

/* Returns the victim's place, or count. */
unsigned model_victim(struct model *model);
bool model_more(const struct model *model, unsigned gone);

#endif /* MRRC_TEST_MODEL_H */
