/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Trust: whether a lookup may go without asking the kernel if memory is quiet.
 * It may as long as each call that takes memory away is announced
 * (libc_hooks.h), and no code is present that could make such a call by itself
 * (prove.h).
 *
 * One word decides: whether trust is given, how many threads are inside a call
 * that ends it, and how many such calls there were. So trust is given only for
 * the state that was looked at, and it has ended before the call is made: no
 * lookup relies on it while new code runs or an unannounced call is under way.
 *
 * An unmap that was not announced, reported by the kernel while trust was
 * given, ends it for good.
 *
 * Threading: set under the REGISTRY lock (mon_registry.c), all else anywhere,
 * signal handlers included.
 */
#ifndef MRRC_TRUST_H
#define MRRC_TRUST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mrrc_trust_mode {
	MRRC_TRUST_NOBODY,
	MRRC_TRUST_PROVEN, /* given when all code has been looked at */
	MRRC_TRUST_HOOKED, /* given: the application unmaps by libc alone */
};

#define MRRC_TRUST_WHY 160 /* bytes of a reason why it is not given */

#define MRRC_TRUST_GIVEN       UINT64_C(1)
#define MRRC_TRUST_BROKEN      UINT64_C(2)	   /* never given again */
#define MRRC_TRUST_INSIDE      UINT64_C(4)	   /* one thread more */
#define MRRC_TRUST_CHANGE      (UINT64_C(1) << 24) /* one call more */
#define MRRC_TRUST_INSIDE_MASK (MRRC_TRUST_CHANGE - MRRC_TRUST_INSIDE)

extern _Atomic uint64_t mrrc_trust_word;

static inline bool mrrc_trusted(void)
{
	return atomic_load_explicit(&mrrc_trust_word, memory_order_relaxed) &
	       MRRC_TRUST_GIVEN;
}

/* @hooked: all that libc has is hooked. Is the mode possible? */
bool mrrc_trust_set(enum mrrc_trust_mode mode, bool hooked);

enum mrrc_trust_mode mrrc_trust_mode(void);

/*
 * Around a call that may bring code to [start, end), or that cannot be
 * announced; the call is made in between. Empty: no code. false (mode HOOKED):
 * not needed, and no mrrc_trust_end(). In mode NOBODY it counts, too: trust
 * may be asked for before the call is over.
 */
bool mrrc_trust_begin(void);
void mrrc_trust_end(uintptr_t start, uintptr_t end);

/* An unmap has happened that was not announced. */
void mrrc_trust_surprised(void);

/* Never given again. @why: static. */
void mrrc_trust_break(const char *why);

/*
 * The reason for that, or that a thread is inside such a call, perhaps for good:
 * of a process that shared the memory and was killed there. Or NULL.
 */
const char *mrrc_trust_broken(void);

/* In a forked child: calls that other threads were inside do not end here. */
void mrrc_trust_forked(void);

/* ---- for the thread that looks (prove.c) ---- */

/* The present word; false: trust is not asked for. */
bool mrrc_trust_wanted(uint64_t *word);

/* Gives trust if nothing has changed since @word was read. false: it has. */
bool mrrc_trust_give(uint64_t word);

/*
 * Calls @touched for the code that was brought since the last time, or for the
 * whole address space if there was too much. Without effect while a thread is
 * inside.
 */
void mrrc_trust_touched(void (*touched)(void *arg, uintptr_t start,
					uintptr_t end),
			void *arg);

#endif /* MRRC_TRUST_H */
