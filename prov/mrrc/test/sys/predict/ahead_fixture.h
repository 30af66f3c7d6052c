/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of a helper that registers ahead of use share: a cache with a
 * fake monitor, whose helper is no thread. Its turns are calls of the test, at
 * times that the test chooses.
 */
#ifndef MRRC_TEST_AHEAD_FIXTURE_H
#define MRRC_TEST_AHEAD_FIXTURE_H

/* before another `cache` */
#include "sys/predict/ahead_priv.h"
#include "sys/cache/cache_use.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#define MS     UINT64_C(1000000)
#define PERIOD (40 * MS)
#define LEARN  24 /* periods */
#define PAGES  5  /* more than 16 KiB */
#define SITE   ((void *) 0x401000)

extern struct mrrc_mon_ops ops; /* of mt_mon */
extern uint64_t now;		/* the test's clock */

void ahead_setup(void);
void ahead_teardown(void);

void clock_set(uint64_t ns);

/* As if the node had said so. */
void leave(bool may, uint64_t move);

/* All that there is to do now; returns when there is more. */
uint64_t turns(void);
void pass(uint64_t ns);

void note(unsigned first, unsigned pages);
void use(unsigned first, unsigned pages); /* note and touch */

/* Once in each period; the last one has just begun. */
void learn(unsigned first, unsigned pages);

/* The window's part is registered. */
bool registered(unsigned first, unsigned pages);

/* Between two locks of this thread, of which so many are let pass. */
void act_after(unsigned count, void (*call)(void));

/* In another thread, to its end. */
void elsewhere(void *(*run)(void *) );

#endif /* MRRC_TEST_AHEAD_FIXTURE_H */
