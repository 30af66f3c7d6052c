/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks of libc: announce calls of libc that take memory away, before the
 * system call is made.
 *
 * Hooks only make unmapping cheap. A monitor that is told in time ends its
 * watch of the range, so that the unmapping thread waits for no event. Calls
 * that hooks do not announce in time (raw system calls, another patcher,
 * contention, a signal at a bad moment) are reported by the kernel, as without
 * hooks.
 *
 * Announced: munmap(), mremap(), madvise() that drops pages, mmap() with
 * MAP_FIXED, brk() and sbrk() that shrink, and the same by way of syscall().
 * For shmat() with SHM_REMAP, and guard pages by madvise(), the kernel makes no
 * event: the announcement is the only report. shmdt() is not announced: shared
 * memory is never kept.
 *
 * Calls of madvise() and shmat() are announced once more after the call: until
 * the call has dropped the old pages, other threads can still register them,
 * and the kernel makes its event, if any, before it drops them.
 *
 * Threading: add, remove and forked under the REGISTRY lock (mon_registry.c);
 * the rest anywhere, signal handlers included.
 */
#ifndef MRRC_LIBC_HOOKS_H
#define MRRC_LIBC_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/hooks/trust.h"

#define MRRC_LIBC_HOOKS_WHY 128 /* bytes of a reason */

enum mrrc_libc_hooks_how {
	MRRC_LIBC_HOOKS_BEFORE, /* the range is about to go */
	MRRC_LIBC_HOOKS_CLEAR,	/* as BEFORE, even where nothing is known: no
				 * part of the range may be watched after it */
	MRRC_LIBC_HOOKS_AFTER,	/* the range has gone, and may have been found
				 * and registered since it was announced */
};

/*
 * Called in the thread that takes the range away, with all signals blocked and
 * any lock held, perhaps one of ours; must not malloc, free, map or unmap, nor
 * wait for any lock. The caller keeps errno. An empty range means that the
 * application may have made as many mappings as were passed to
 * mrrc_libc_hooks_count().
 */
typedef void (*mrrc_libc_hooks_cb)(void *arg, uintptr_t start, uintptr_t end,
				   enum mrrc_libc_hooks_how how);

/*
 * Adds a user, whose callback @tell is called from now on; for the first user,
 * patches libc. @why (NULL, or MRRC_LIBC_HOOKS_WHY bytes): on failure the
 * reason, on success the functions that could not be hooked, or "".
 */
int mrrc_libc_hooks_add(mrrc_libc_hooks_cb tell, void *arg, char *why);

/*
 * Removes the user @arg, whose callback is then neither called nor running.
 * Removing the last user unpatches libc.
 */
void mrrc_libc_hooks_remove(void *arg);

/* To be called in a forked child, in which nothing is announced any more. */
void mrrc_libc_hooks_forked(void);

/*
 * Marks a range that is watched: without a mark, its changes are not announced.
 */
void mrrc_libc_hooks_mark(uintptr_t start, size_t len);

/*
 * Has the hooks call each user's callback once, with an empty range, when
 * @calls calls of mmap(2) were made. false: mmap(2) is not hooked, or @arg is
 * no user.
 */
bool mrrc_libc_hooks_count(const void *arg, size_t calls);

/*
 * Removes the mark of the chunk around @addr, when no range in this chunk is
 * watched any more.
 */
void mrrc_libc_hooks_unmark(uintptr_t addr);
#define MRRC_LIBC_HOOKS_CHUNK ((uintptr_t) 1 << 21)

/* Can hooks be relied on in this mode? REGISTRY lock. */
bool mrrc_libc_hooks_rely(enum mrrc_trust_mode mode);

/* libc_hooks_call.c */

/* Must a system call @number be hooked before hooks are relied on? */
bool mrrc_libc_hooks_matters(long number);

/*
 * Is the effect of system call @number known, so that a hook can announce it?
 */
bool mrrc_libc_hooks_knows(long number);

/* libc_hooks.c */

/*
 * Places a hook at a system-call instruction of the mapping [start, end).
 * REGISTRY lock. @filler: as in struct mrrc_patch_code; NULL: no filler.
 * Returns 0 or -E*.
 */
int mrrc_libc_hooks_place(uint8_t *at, long number, uintptr_t start,
			  uintptr_t end, uint8_t *filler);

/*
 * Replace the list of all code, before trust is given; mrrc_libc_hooks_code()
 * adds a mapping. One thread.
 */
void mrrc_libc_hooks_code_begin(void);
void mrrc_libc_hooks_code(uintptr_t start, uintptr_t end);
void mrrc_libc_hooks_code_end(void);

/*
 * Is libc's function for system call @number hooked now? false if another
 * patcher has overwritten the hook.
 */
bool mrrc_libc_hooks_on(long number);

/*
 * Checks that all hooks are in place. If another library has overwritten a
 * hook, or its page was unmapped, ends trust until the code in the hook's place
 * has been examined. Any thread, inside hooks, too.
 */
void mrrc_libc_hooks_check(void);

/* Is the system-call instruction at @at hooked now? */
bool mrrc_libc_hooks_has(uintptr_t at);

/* Does the patch of a hook use any of the @len bytes at @start? */
bool mrrc_libc_hooks_use(uintptr_t start, size_t len);

/* Restores in a copy of [start, end) the code without hooks. */
void mrrc_libc_hooks_undo(uint8_t *copy, uintptr_t start, uintptr_t end);

struct mrrc_libc_hooks_state {
	unsigned placed; /* functions that are hooked now */
	unsigned lost;	 /* hooked functions that were overwritten */
	uint64_t told;	 /* calls that were announced */
	bool surprised;	 /* trust has ended permanently */
};

void mrrc_libc_hooks_state(struct mrrc_libc_hooks_state *state);

#endif /* MRRC_LIBC_HOOKS_H */
