/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Duels over a mapping: one thread changes it. Another waits for the moment at
 * which it owns the address again, with other pages, and uses it. A cached
 * registration of the old pages must not be used there.
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
	unsigned pages;			   /* few, to be quick */
	void (*change)(struct duel *duel); /* one thread */
	bool (*mine)(struct duel *duel);   /* the other, until true */
};

struct duel {
	const struct duel_move *move;
	char *ptr;
	char *spare;
	size_t len;
	atomic_int turn; /* 1: change it; -1: end */
};

/* The ways there are, by libc and by system calls of their own. */
extern const struct duel_move duel_moves[];
extern const unsigned duel_count;
extern const struct duel_move duel_blind; /* the one to go astray by */

/* Does the caller own the address again: is it mapped anew, or a new page? */
bool duel_remap(struct duel *duel);
bool duel_zero(struct duel *duel);

/*
 * Uses the pages of a duel, in the thread that owns them; fresh: just replaced.
 */
typedef void (*duel_use)(void *arg, char *ptr, unsigned pages, bool fresh);

/* How to start the thread that changes, and wait for its end. */
struct duel_thread {
	bool (*start)(void *(*run)(void *), void *arg);
	void (*join)(void);
};

/* Rounds until @over, in this thread and in @thread (NULL: one of libc's). */
void duel_fight(const struct duel_move *move, const struct duel_thread *thread,
		duel_use use, bool (*over)(void *arg), void *arg);

/* A system call that no hook of libc sees. Negative: -errno. */
long duel_raw(long number, long a, long b, long c, long d, long e, long f);

#endif /* MRRC_TEST_DUEL_H */
