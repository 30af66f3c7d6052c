/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of sys/node/budget share: two budgets in one process, which are as
 * two processes to each other. Their clock stands until a test moves it.
 */
#ifndef MRRC_TEST_BUDGET_FIXTURE_H
#define MRRC_TEST_BUDGET_FIXTURE_H

#include "test/suites.h"
#include "sys/node/budget_priv.h"

#define KIB   ((size_t) 1024)
#define GRAIN (64 * KIB)
#define ALL   (16 * GRAIN)

/* A member with bytes to evict, which it puts back at once. */
struct member {
	struct mrrc_budget_member member;
	struct mrrc_budget *budget;
	struct mrrc_stats stats;
	_Atomic uint64_t uses;
	_Atomic size_t bytes;
	atomic_bool later; /* it does not put them back */
};

extern char dir[64], path[128]; /* of the segment, and its file */
extern struct mrrc_budget *a, *b;
extern struct member has; /* of a */

void budget_setup(void);
/* Without a member: the clock, the segment's directory, budgets of @bytes. */
void budget_open_both(size_t bytes);
void budget_teardown(void);

struct mrrc_budget *open_one(size_t bytes);

uint64_t reserved(struct mrrc_budget *budget);
uint64_t node(void);

/* The time is @ms later, and both threads have answered all that rang so far. */
void step(uint64_t ms);

/* Whether bytes become free within a time: others are asked each millisecond. */
bool take_within(struct mrrc_budget *budget, size_t bytes, uint64_t ms);
bool take_soon(struct mrrc_budget *budget, size_t bytes);

#endif /* MRRC_TEST_BUDGET_FIXTURE_H */
