/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Trust: lookups need not ask the kernel whether memory is quiet. Trust is
 * given as long as each call that takes memory away is announced
 * (libc_hooks.h), and no code is present that could make such a call by itself
 * (prove.h).
 *
 * One word tells whether trust is given, how many threads are inside a call
 * that ends trust, and how many such calls there were. So trust is given only
 * if no such call was made since the code was examined, and ends before such a
 * call is made: no lookup relies on trust while new code runs or an unannounced
 * call is under way.
 *
 * An unmap that was not announced, reported by the kernel while trust was
 * given, ends trust permanently.
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

#define MRRC_TRUST_WHY 160 /* bytes of a reason why trust is not given */

#define MRRC_TRUST_GIVEN       UINT64_C(1)
#define MRRC_TRUST_BROKEN      UINT64_C(2)	   /* never given again */
#define MRRC_TRUST_INSIDE      UINT64_C(4)	   /* one more thread inside */
#define MRRC_TRUST_CHANGE      (UINT64_C(1) << 24) /* one more call */
#define MRRC_TRUST_INSIDE_MASK (MRRC_TRUST_CHANGE - MRRC_TRUST_INSIDE)

extern _Atomic uint64_t mrrc_trust_word;

static inline bool mrrc_trusted(void)
{
	return atomic_load_explicit(&mrrc_trust_word, memory_order_relaxed) &
	       MRRC_TRUST_GIVEN;
}

/*
 * Sets the mode. @hooked: all calls of libc that take memory away are hooked.
 * Returns whether the mode is possible.
 */
bool mrrc_trust_set(enum mrrc_trust_mode mode, bool hooked);

enum mrrc_trust_mode mrrc_trust_mode(void);

/*
 * To be called before and after a call that may bring code to [start, end)
 * (empty: no code), or that cannot be announced. mrrc_trust_begin() returns
 * false in mode HOOKED: then mrrc_trust_end() is not called. In mode NOBODY the
 * call counts, too: the mode may change before the call is over.
 */
bool mrrc_trust_begin(void);
void mrrc_trust_end(uintptr_t start, uintptr_t end);

/* An unmap has happened that was not announced. */
void mrrc_trust_surprised(void);

/* Ends trust permanently. @why: static. */
void mrrc_trust_break(const char *why);

/*
 * The reason why trust has ended permanently; or a text that a thread is inside
 * a call that ends trust, perhaps permanently, as when a process that shared
 * the memory was killed in the call; or NULL.
 */
const char *mrrc_trust_broken(void);

/* In a forked child: calls that other threads were inside do not end here. */
void mrrc_trust_forked(void);

/* ---- for the proving thread (prove.c) ---- */

/* The present word; false: trust is not asked for. */
bool mrrc_trust_wanted(uint64_t *word);

/*
 * Gives trust, unless a call that ends trust was made since @word was read, or
 * trust has ended permanently; these cases return false.
 */
bool mrrc_trust_give(uint64_t word);

/*
 * Calls @touched for each range of code that was brought since the last call,
 * or for the whole address space if there were too many ranges. Without effect
 * while a thread is inside a call that ends trust.
 */
void mrrc_trust_touched(void (*touched)(void *arg, uintptr_t start,
					uintptr_t end),
			void *arg);

#endif /* MRRC_TRUST_H */
