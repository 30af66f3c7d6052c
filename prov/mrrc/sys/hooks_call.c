/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which ranges a system call takes away (hooks.h): from libc's calls to what
 * is told. Any thread, signal handlers included; errno is kept.
 */
#include "config.h"
#include "sys/hooks_priv.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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

#define HOOKS_TRIES	64	/* to have a mapping in one piece */

/*
 * Here, so that hooks.c needs this object file: link-time optimization does not
 * see that assembly calls mrrc_patch_called.
 */
size_t mrrc_hooks_page;

/* What the kernel refuses is not announced either. */
static bool hooks_valid(uintptr_t start, size_t len)
{
	const uintptr_t mask = mrrc_hooks_page - 1;

	return len && !(start & mask) && len <= UINTPTR_MAX - mask - start;
}

static void hooks_any(uintptr_t start, size_t len, bool silent)
{
	const uintptr_t mask = mrrc_hooks_page - 1;

	if (hooks_valid(start, len))
		mrrc_hooks_tell(start, (start + len + mask) & ~mask, silent);
}

static void hooks_range(uintptr_t start, size_t len)
{
	hooks_any(start, len, false);
}

/* ---- mremap ---- */

/*
 * The kernel moves and enlarges one mapping, and watching a part of it makes
 * it several. Once that is unwatched they are one again, unless another thread
 * has something there watched just then: so it is tried here. What is being
 * deregistered is watched, too, and known to no one else: it is unwatched when
 * the kernel has refused.
 */
static void hooks_move(struct mrrc_patch_call *call, size_t old_len)
{
	const uintptr_t old = call->arg[0];
	unsigned tries;
	long to = -EFAULT;

	hooks_any(old, old_len, true);
	for (tries = 0; tries < HOOKS_TRIES && to == -EFAULT; tries++) {
		if (tries)
			mrrc_hooks_clear(old, old + old_len);
		to = mrrc_patch_make(call);
	}
	call->number = to;
}

/* Returns whether it is still to be made. */
static bool hooks_mremap(struct mrrc_patch_call *call)
{
	const uintptr_t mask = mrrc_hooks_page - 1;
	const uintptr_t old = call->arg[0];
	const size_t old_len = (call->arg[1] + mask) & ~mask;
	const size_t len = (call->arg[2] + mask) & ~mask;
	const unsigned long flags = call->arg[3];

	if (flags & MREMAP_FIXED)
		hooks_range(call->arg[4], len);
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) || len > old_len) {
		if (!hooks_valid(old, old_len))
			return true;
		hooks_move(call, old_len);
		return false;
	}
	if (len < old_len)
		hooks_range(old + len, old_len - len);
	return true;
}

/* ---- the others ---- */

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

/* No such way of changing the signal mask: all it does is to read. */
static bool hooks_readable(const void *word)
{
	return !syscall(SYS_rt_sigprocmask, -1, word, NULL,
			sizeof(uint64_t)) || errno != EFAULT;
}

/* Whose process it is about is not looked at. */
static void hooks_process_madvise(const struct iovec *iov, size_t count,
				  long advice)
{
	const int error = errno;
	size_t i;

	for (i = 0; i < count && i < IOV_MAX; i++) {
		if (!hooks_readable(&iov[i].iov_base) ||
		    !hooks_readable(&iov[i].iov_len))
			break;
		hooks_madvise((uintptr_t)iov[i].iov_base, iov[i].iov_len,
			      advice);
	}
	errno = error;
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
 * the size of the segment's pages, which is not known: all from there on.
 */
static __attribute__((noinline)) void hooks_shmat(uintptr_t addr, int flags)
{
	if (!(flags & SHM_REMAP) || !addr)
		return;
	if (flags & SHM_RND)
		addr &= ~((uintptr_t)SHMLBA - 1);
	hooks_any(addr, UINTPTR_MAX - mrrc_hooks_page - addr, true);
}

bool mrrc_patch_called(struct mrrc_patch_call *call)
{
	const long *const arg = call->arg;

	switch (call->number) {
	case SYS_munmap:
		hooks_range(arg[0], arg[1]);
		break;
	case SYS_mremap:
		return hooks_mremap(call);
	case SYS_madvise:
		hooks_madvise(arg[0], arg[1], arg[2]);
		break;
	case SYS_process_madvise:
		hooks_process_madvise((const struct iovec *)arg[1], arg[2],
				      arg[3]);
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
	return true;
}
