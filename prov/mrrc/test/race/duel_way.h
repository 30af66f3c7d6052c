/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to unmap memory past all hooks, and how each way gets into a program:
 * code that enters the kernel by itself, a thread or a child that runs such
 * code, io_uring.
 */
#ifndef MRRC_TEST_DUEL_WAY_H
#define MRRC_TEST_DUEL_WAY_H

#include "test/race/duel.h"

struct duel_way {
	struct duel_move move;
	const struct duel_thread *thread; /* NULL: a thread of libc */
	/* brings the code; false: not available here */
	bool (*come)(void);
	/* removes the code; NULL: the code stays */
	void (*go)(void);
};

/* A library in the program's folder, for the moves "raw" of duel.h. */
extern const struct duel_way duel_library;

extern const struct duel_way duel_ways[];
extern const unsigned duel_way_count;

#endif /* MRRC_TEST_DUEL_WAY_H */
