/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to libc_hooks.c (announces, places hooks) and libc_hooks_call.c
 * (finds the ranges that a call takes away).
 */
#ifndef MRRC_LIBC_HOOKS_PRIV_H
#define MRRC_LIBC_HOOKS_PRIV_H

#include "sys/hooks/libc_hooks.h"

extern size_t mrrc_libc_hooks_page; /* bytes; 0: nothing was hooked yet */

/*
 * Announces whole pages that are about to go, if any of them are watched.
 * false: a watched range could not be announced.
 */
bool mrrc_libc_hooks_tell(uintptr_t start, uintptr_t end,
			  enum mrrc_libc_hooks_how how);

/*
 * Block and unblock signals: so no signal handler runs inside a hook, and can
 * leave the hook by a jump.
 */
uint64_t mrrc_libc_hooks_block(void);
void mrrc_libc_hooks_unblock(uint64_t old);

/* Nothing is watched in the range afterwards, even if no cache knows it. */
void mrrc_libc_hooks_clear(uintptr_t start, uintptr_t end);

/* May code be in the range? "Yes" may be wrong. */
bool mrrc_libc_hooks_is_code(uintptr_t start, size_t len);

/* Counts a call of mmap(2). */
void mrrc_libc_hooks_mapping(void);

#endif /* MRRC_LIBC_HOOKS_PRIV_H */
