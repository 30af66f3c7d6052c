/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of a helper that registers ahead of use: a cache with a
 * fake monitor, whose helper is no thread. The test calls the helper's turns,
 * at times that the test chooses.
 */
#ifndef MRRC_TEST_AHEAD_FIXTURE_H
#define MRRC_TEST_AHEAD_FIXTURE_H

/* This header precedes headers that declare a global `cache`. */
#include "sys/predict/ahead_priv.h"
#include "sys/cache/cache_use.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#define MS     UINT64_C(1000000)
#define PERIOD (40 * MS)
#define LEARN  24 /* number of periods */
#define PAGES  5  /* number of pages: more than 16 KiB */
#define SITE   ((void *) 0x401000)

extern struct mrrc_mon_ops ops; /* calls of mt_mon */
extern uint64_t now;		/* clock of the test */

void ahead_setup(void);
void ahead_teardown(void);

void clock_set(uint64_t ns);

/* Lets the helper act or not, as if the node had decided so. */
void leave(bool may, uint64_t move);

/* Makes all turns that are due; returns the time of the next one. */
uint64_t turns(void);
void pass(uint64_t ns);

void note(unsigned first, unsigned pages);
/* notes a use, and touches the pages */
void use(unsigned first, unsigned pages);

/* Uses pages once in each period; the last period has just begun. */
void learn(unsigned first, unsigned pages);

/* Whether pages of the window are registered. */
bool registered(unsigned first, unsigned pages);

/* Calls @call between two locks of this thread, after @count locks. */
void act_after(unsigned count, void (*call)(void));

/* Runs @run in another thread, to its end. */
void elsewhere(void *(*run)(void *) );

#endif /* MRRC_TEST_AHEAD_FIXTURE_H */
