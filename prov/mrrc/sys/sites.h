/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks at system calls of libraries other than libc and the loader: code that
 * threads may be running when it is patched (patch.h), and that may be unloaded
 * at any time.
 *
 * Whether a site is hooked is never read from the live code, which may be gone,
 * but from a copy (code_copy.h): a site is hooked if word and filler are those
 * of its patch, in the same copy. So no record has to be dropped when a library
 * is unloaded, and another library at its place is not taken for patched.
 *
 * These patches are not taken back: the library may go meanwhile. Its stubs
 * then announce nothing.
 *
 * Threading: the thread that proves, which holds the REGISTRY lock where it
 * writes; mrrc_sites_undo and _on also under the REGISTRY lock.
 */
#ifndef MRRC_SITES_H
#define MRRC_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/code.h"

/* Which of the hooks are in a copy. */
typedef uint64_t mrrc_sites_set;

#define MRRC_SITES_MAX 64 /* bits of it */

/* In a copy of [start, end): the code as it is without hooks. Which it had. */
mrrc_sites_set mrrc_sites_undo(uint8_t *copy, uintptr_t start, uintptr_t end);

/* Is the system-call instruction at @at one of those? */
bool mrrc_sites_on(mrrc_sites_set set, uintptr_t at);

/* Does a hook of the set, or one that is none of these sites, use these bytes? */
bool mrrc_sites_use(mrrc_sites_set set, uintptr_t start, size_t len);

/*
 * Bytes that lead from the system call at @at in the image to its stub: no
 * other patch uses them. @inside: see struct mrrc_patch_code. @used: does
 * another patch use the @len bytes there? 0: there are none.
 */
uintptr_t mrrc_sites_filler(const struct mrrc_code_image *image, uintptr_t at,
			    long number, bool inside,
			    bool (*used)(void *arg, uintptr_t at, size_t len),
			    void *arg);

/* Has hooking it failed before? */
bool mrrc_sites_refused(uintptr_t at);

/*
 * Hooks the system call at @at, by way of the filler: both live addresses. The
 * code must not be unmapped meanwhile (mrrc_libc_hooks_stop). 0 or -E*.
 */
int mrrc_sites_place(uintptr_t at, long number, uintptr_t filler);

/* Sites where nothing is mapped any more are free for others. */
void mrrc_sites_sweep(void);

/* How many are in use: for tests. */
unsigned mrrc_sites_count(void);

#endif /* MRRC_SITES_H */
