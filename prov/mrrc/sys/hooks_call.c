/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which ranges a system call takes away (hooks.h): from libc's calls to what
 * is told. Any thread, signal handlers included; errno is kept.
 */
#include "config.h"
#include "sys/hooks_priv.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/patch.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE	0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP	4
#endif
/* these two drop pages, yet make no event: Linux 6.13 */
#define HOOKS_MADV_GUARD_INSTALL	102
#define HOOKS_MADV_GUARD_REMOVE		103
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED	24
#endif

static void hooks_any(uintptr_t start, size_t len, bool silent)
{
	const uintptr_t mask = mrrc_hooks_page - 1;

	/* What the kernel refuses is not announced either. */
	if (len && !(start & mask) && len <= UINTPTR_MAX - mask - start)
		mrrc_hooks_tell(start, (start + len + mask) & ~mask, silent);
}

static void hooks_range(uintptr_t start, size_t len)
{
	hooks_any(start, len, false);
}

static void hooks_mremap(uintptr_t old, size_t old_len, size_t len,
			 unsigned long flags, uintptr_t to)
{
	const uintptr_t mask = mrrc_hooks_page - 1;

	len = (len + mask) & ~mask;
	old_len = (old_len + mask) & ~mask;
	if (flags & MREMAP_FIXED)
		hooks_range(to, len);
	/* A mapping that grows may have to move. */
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) ||
	    (len > old_len && flags & MREMAP_MAYMOVE))
		hooks_range(old, old_len);
	else if (len < old_len)
		hooks_range(old + len, old_len - len);
}

static void hooks_madvise(uintptr_t start, size_t len, long advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
	case MADV_REMOVE:
		hooks_range(start, len);
		break;
	case HOOKS_MADV_GUARD_INSTALL:
	case HOOKS_MADV_GUARD_REMOVE:
		hooks_any(start, len, true);
		break;
	default:
		break;
	}
}

static __attribute__((noinline)) void hooks_brk(uintptr_t end)
{
	const uintptr_t mask = mrrc_hooks_page - 1;
	const uintptr_t start = (end + mask) & ~mask;
	uintptr_t now;

	if (!end)
		return;
	/* This one is announced, too, and comes to the line above. */
	now = syscall(SYS_brk, 0);
	if (start < now)
		hooks_range(start, now - start);
}

/*
 * The only call that replaces memory and makes no event. How much depends on
 * the segment's pages, of which nobody tells: everything from there on.
 */
static __attribute__((noinline)) void hooks_shmat(uintptr_t addr, int flags)
{
	if (!(flags & SHM_REMAP) || !addr)
		return;
	if (flags & SHM_RND)
		addr &= ~((uintptr_t)SHMLBA - 1);
	hooks_any(addr, UINTPTR_MAX - mrrc_hooks_page - addr, true);
}

static inline void hooks_call(long number, const long *arg)
{
	switch (number) {
	case SYS_munmap:
		hooks_range(arg[0], arg[1]);
		break;
	case SYS_mremap:
		hooks_mremap(arg[0], arg[1], arg[2], arg[3], arg[4]);
		break;
	case SYS_madvise:
		hooks_madvise(arg[0], arg[1], arg[2]);
		break;
	case SYS_mmap:
		mrrc_hooks_mapping();
		if (arg[3] & MAP_FIXED && !(arg[3] & MAP_FIXED_NOREPLACE))
			hooks_range(arg[0], arg[1]);
		break;
	case SYS_brk:
		hooks_brk(arg[0]);
		break;
	case SYS_shmat:
		hooks_shmat(arg[1], arg[2]);
		break;
	default:
		break;
	}
}

void mrrc_patch_called(const struct mrrc_patch_call *call)
{
	hooks_call(call->number, call->arg);
}
