/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of sys/node/budget: two budgets in one process, each of
 * which takes the other for another process. The clock stands until a test
 * moves it.
 */
#ifndef MRRC_TEST_BUDGET_FIXTURE_H
#define MRRC_TEST_BUDGET_FIXTURE_H

#include "test/suites.h"
#include "sys/node/budget_priv.h"

#define KIB   ((size_t) 1024)
#define GRAIN (64 * KIB)
#define ALL   (16 * GRAIN)

/* A member with bytes to evict, which are put back at once. */
struct member {
	struct mrrc_budget_member member;
	struct mrrc_budget *budget;
	struct mrrc_stats stats;
	_Atomic uint64_t uses;
	_Atomic size_t bytes;
	atomic_bool later; /* evicted bytes are not put back */
};

/* dir: the segment's directory; path: the segment's file */
extern char dir[64], path[128];
extern struct mrrc_budget *a, *b;
extern struct member has; /* member of budget a */

void budget_setup(void);
/* Opens both budgets of @bytes, with clock and directory, without a member. */
void budget_open_both(size_t bytes);
void budget_teardown(void);

struct mrrc_budget *open_one(size_t bytes);

uint64_t reserved(struct mrrc_budget *budget);
uint64_t node(void);

/* The clock moves by @ms; both threads have answered all earlier rings. */
void step(uint64_t ms);

/* Whether bytes become free in @ms; the others are asked each millisecond. */
bool take_within(struct mrrc_budget *budget, size_t bytes, uint64_t ms);
bool take_soon(struct mrrc_budget *budget, size_t bytes);

#endif /* MRRC_TEST_BUDGET_FIXTURE_H */
