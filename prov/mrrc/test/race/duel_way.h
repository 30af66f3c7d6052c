/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to unmap memory past all hooks, and how each gets into a program without
 * one: code that enters the kernel by itself, a thread or a child that runs it,
 * io_uring.
 */
#ifndef MRRC_TEST_DUEL_WAY_H
#define MRRC_TEST_DUEL_WAY_H

#include "test/race/duel.h"

struct duel_way {
	struct duel_move move;
	const struct duel_thread *thread; /* NULL: libc's */
	bool (*come)(void);		  /* false: not available here */
	void (*go)(void);		  /* NULL: the code stays */
};

/* For the moves "raw" of duel.h: a library in the program's folder. */
extern const struct duel_way duel_library;

extern const struct duel_way duel_ways[];
extern const unsigned duel_way_count;

#endif /* MRRC_TEST_DUEL_WAY_H */
