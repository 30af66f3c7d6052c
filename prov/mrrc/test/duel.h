/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Duels over a mapping: one thread changes it; another waits for the very
 * moment at which the address is its own again, with other pages, and uses
 * it. What is known of the address must not be believed there.
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
	unsigned pages;		/* few, to be quick */
	void (*change)(struct duel *duel);	/* one thread */
	bool (*mine)(struct duel *duel);	/* the other, until true */
};

struct duel {
	const struct duel_move *move;
	char *ptr;
	char *spare;
	size_t len;
	atomic_int turn;	/* 1: change it; -1: end */
};

/* The ways there are, by libc and by system calls of their own. */
extern const struct duel_move duel_moves[];
extern const unsigned duel_count;
extern const struct duel_move duel_blind;	/* the one to go astray by */

/* The pages of a duel, by the thread whose they are; fresh: just replaced. */
typedef void (*duel_use)(void *arg, char *ptr, unsigned pages, bool fresh);

/* Rounds until @over, in this thread and one of its own. */
void duel_fight(const struct duel_move *move, duel_use use,
		bool (*over)(void *arg), void *arg);

/* A system call that no hook of libc sees. Negative: -errno. */
static inline long duel_raw(long number, long a, long b, long c, long d,
			    long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(number), "D"(a), "S"(b),
			 "d"(c), "r"(r10), "r"(r8), "r"(r9) :
			 "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2),
			 "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#else
	return syscall(number, a, b, c, d, e, f);
#endif
}

#endif /* MRRC_TEST_DUEL_H */
