/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Duels over a mapping: one thread replaces the pages, and another thread uses
 * the new pages as soon as it owns the address again. A cached registration of
 * the old pages must not be used for the new pages.
 */
#ifndef MRRC_TEST_DUEL_H
#define MRRC_TEST_DUEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

struct duel;

struct duel_move {
	const char *name;
	/* few pages, so that a round is short */
	unsigned pages;
	void (*change)(struct duel *duel); /* called in the changing thread */
	/* called in the using thread, until true */
	bool (*mine)(struct duel *duel);
};

struct duel {
	const struct duel_move *move;
	char *ptr;
	char *spare;
	size_t len;
	atomic_int turn; /* 1: the pages are to be changed; -1: the end */
};

/* All moves, by functions of libc and by raw system calls. */
extern const struct duel_move duel_moves[];
extern const unsigned duel_count;
/* the move for a monitor whose probe is blind */
extern const struct duel_move duel_blind;

/* Whether the caller owns the address again: by a new mapping or a new page. */
bool duel_remap(struct duel *duel);
bool duel_zero(struct duel *duel);

/*
 * Uses the pages of a duel in the thread that owns them. @fresh: the pages were
 * just replaced.
 */
typedef void (*duel_use)(void *arg, char *ptr, unsigned pages, bool fresh);

/* How the changing thread is started, and how its end is awaited. */
struct duel_thread {
	bool (*start)(void *(*run)(void *), void *arg);
	void (*join)(void);
};

/* Plays rounds until @over, in this thread and @thread (NULL: of libc). */
void duel_fight(const struct duel_move *move, const struct duel_thread *thread,
		duel_use use, bool (*over)(void *arg), void *arg);

/* Makes a system call that no hook sees; a negative result is -errno. */
long duel_raw(long number, long a, long b, long c, long d, long e, long f);

#endif /* MRRC_TEST_DUEL_H */
