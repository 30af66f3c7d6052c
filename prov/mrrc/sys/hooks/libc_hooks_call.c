/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Turns libc's calls into announcements of the ranges that they take away
 * (libc_hooks.h). Any thread, signal handlers included; errno is kept.
 */
#include "config.h"
#include "sys/hooks/libc_hooks_priv.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/hooks/patch.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
/* advice of Linux 6.13 that drops pages, yet makes no event */
#define HOOKS_MADV_GUARD_INSTALL 102
#define HOOKS_MADV_GUARD_REMOVE	 103
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/* all sizes that huge pages may have, in bytes */
#ifdef __x86_64__
#define HOOKS_HUGE_SIZES ((size_t) 1 << 21 | (size_t) 1 << 30)
#else
#define HOOKS_HUGE_SIZES (((size_t) 1 << 31) - ((size_t) 1 << 16))
#endif
#define HOOKS_TRIES	  64  /* attempts to have a mapping in one piece */
#define HOOKS_LAST_NUMBER 470 /* the last known system call */

#define HOOKS_ASK_PERSONALITY 0xffffffffu

/*
 * Defined in this file, so that libc_hooks.c needs this object file: link-time
 * optimization does not see that assembly calls mrrc_patch_called.
 */
size_t mrrc_libc_hooks_page;

/* 64-bit ARM ignores the uppermost byte of an address: a tag. */
static uintptr_t hooks_untag(uintptr_t addr)
{
#ifdef __aarch64__
	addr &= UINTPTR_MAX >> 8;
#endif
	return addr;
}

/* A call that the kernel would refuse is not announced. */
static bool hooks_valid(uintptr_t start, size_t len)
{
	const uintptr_t mask = mrrc_libc_hooks_page - 1;

	return len && !(start & mask) && len <= UINTPTR_MAX - mask - start;
}

/*
 * Announces a range. This function and the functions below return whether each
 * range was announced or needs no announcement.
 */
static bool hooks_any(uintptr_t start, size_t len, enum mrrc_libc_hooks_how how)
{
	const uintptr_t mask = mrrc_libc_hooks_page - 1;
	uintptr_t end;

	if (!hooks_valid(start, len))
		return true;
	end = (start + len + mask) & ~mask;
	/* hooks that go with the range announce nothing any more */
	return mrrc_libc_hooks_tell(start, end, how) &&
	       !mrrc_libc_hooks_use(start, end - start);
}

static bool hooks_range(uintptr_t start, size_t len)
{
	return hooks_any(start, len, MRRC_LIBC_HOOKS_BEFORE);
}

/* The size of the largest huge pages that a mapping at @start may have; or 0 */
static size_t hooks_huge(uintptr_t start)
{
	const size_t sizes = HOOKS_HUGE_SIZES & (2 * (start & -start) - 1);

	return sizes ? (size_t) 1 << (63 - __builtin_clzl(sizes)) : 0;
}

/* Rounds up to whole huge pages of size @huge; 0: none. */
static size_t hooks_whole(size_t len, size_t huge)
{
	return huge && len <= SIZE_MAX - huge ? (len + huge - 1) & ~(huge - 1) :
						len;
}

/* ---- mremap ---- */

/* May the call move or enlarge a mapping? */
static bool hooks_moves(const struct mrrc_patch_call *call)
{
	return call->number == SYS_mremap &&
	       hooks_valid(call->arg[0], call->arg[1]) &&
	       (call->arg[3] & (MREMAP_FIXED | MREMAP_DONTUNMAP) ||
		(size_t) call->arg[2] > (size_t) call->arg[1]);
}

/*
 * Makes a call of mremap(2), again while the kernel refuses. The kernel moves
 * and enlarges only a single mapping, and watching a part of a mapping splits
 * the mapping. The announcement has unwatched the parts, but other threads may
 * watch parts again. Regions that are being deregistered are watched, too,
 * though no cache knows these regions: the hook unwatches them when the kernel
 * has refused.
 */
static long hooks_move(const struct mrrc_patch_call *call)
{
	const uintptr_t mask = mrrc_libc_hooks_page - 1;
	const uintptr_t old = call->arg[0];
	const size_t old_len = (call->arg[1] + mask) & ~mask;
	unsigned tries;
	long to = -EFAULT;

	for (tries = 0; tries < HOOKS_TRIES && to == -EFAULT; tries++) {
		if (tries)
			mrrc_libc_hooks_clear(old, old + old_len);
		to = mrrc_patch_make(call);
	}
	return to;
}

/*
 * Announces a mapping that moves even if no memory goes: unwatching makes the
 * mapping one piece again, which the kernel can move. The kernel takes whole
 * huge pages if the mapping has huge pages.
 */
static bool hooks_mremap(const struct mrrc_patch_call *call)
{
	const uintptr_t mask = mrrc_libc_hooks_page - 1;
	const uintptr_t old = call->arg[0];
	const size_t huge = hooks_huge(old);
	const size_t old_len = hooks_whole((call->arg[1] + mask) & ~mask, huge);
	const size_t len = (call->arg[2] + mask) & ~mask;
	bool told = true;

	if (call->arg[3] & MREMAP_FIXED)
		told = hooks_range(call->arg[4], hooks_whole(len, huge));
	if (hooks_moves(call))
		told &= hooks_range(old, old_len);
	else if (len < old_len)
		told &= hooks_range(old + len, old_len - len);
	return told;
}

/* ---- other calls ---- */

/*
 * Announces whole huge pages, as a mapping of huge pages replaces whole pages
 * even if the call's length is shorter. If the call does not name the pages'
 * size, the size is at most the alignment of the address. A file may have huge
 * pages without MAP_HUGETLB.
 */
static bool hooks_fixed(const struct mrrc_patch_call *call)
{
	const uintptr_t start = call->arg[0];
	const long flags = call->arg[3];
	size_t len = call->arg[1], huge = hooks_huge(start);

	if (flags & MAP_HUGETLB && flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK)
		huge = (size_t) 1 << (flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK);
	if (flags & MAP_HUGETLB || !(flags & MAP_ANONYMOUS))
		len = hooks_whole(len, huge);
	return hooks_range(start, len);
}

static bool hooks_madvise(uintptr_t start, size_t len, long advice, bool after)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
	case MADV_REMOVE:
	case HOOKS_MADV_GUARD_INSTALL:
	case HOOKS_MADV_GUARD_REMOVE:
		return hooks_any(start, len,
				 after ? MRRC_LIBC_HOOKS_AFTER :
					 MRRC_LIBC_HOOKS_BEFORE);
	default:
		return true;
	}
}

/*
 * Can the word be read? Asks the kernel for an invalid change of the signal
 * mask: before the kernel refuses, it reads the word.
 */
static bool hooks_readable(const void *word)
{
	return !syscall(SYS_rt_sigprocmask, -1, word, NULL, sizeof(uint64_t)) ||
	       errno != EFAULT;
}

/* The call's target process is not considered. */
static bool hooks_process_madvise(const struct iovec *iov, size_t count,
				  long advice, bool after)
{
	const int error = errno;
	bool told = true;
	size_t i;

	for (i = 0; i < count && i < IOV_MAX; i++) {
		if (!hooks_readable(&iov[i].iov_base) ||
		    !hooks_readable(&iov[i].iov_len))
			break;
		told &= hooks_madvise(hooks_untag((uintptr_t) iov[i].iov_base),
				      iov[i].iov_len, advice, after);
	}
	errno = error;
	return told;
}

static __attribute__((noinline)) bool hooks_brk(uintptr_t end)
{
	const uintptr_t mask = mrrc_libc_hooks_page - 1;
	const uintptr_t start = (end + mask) & ~mask;
	uintptr_t now;

	if (!end)
		return true;
	/* This system call reaches the hook, too, which returns above. */
	now = syscall(SYS_brk, 0);
	return start >= now || hooks_range(start, now - start);
}

/*
 * shmat(2) is the only call that replaces memory and makes no event. How much
 * memory goes depends on the segment, which the hook does not know: so all
 * memory from @addr on is announced.
 */
static __attribute__((noinline)) bool hooks_shmat(uintptr_t addr, int flags,
						  bool after)
{
	if (!(flags & SHM_REMAP) || !addr)
		return true;
	if (flags & SHM_RND)
		addr &= ~((uintptr_t) SHMLBA - 1);
	return hooks_any(addr, UINTPTR_MAX - mrrc_libc_hooks_page - addr,
			 after ? MRRC_LIBC_HOOKS_AFTER :
				 MRRC_LIBC_HOOKS_BEFORE);
}

/*
 * Does the kernel report the change before making the change, or not at all?
 * Then regions registered before the change are forgotten after the call.
 */
static bool hooks_early(const struct mrrc_patch_call *call)
{
	return call->number == SYS_madvise ||
	       call->number == SYS_process_madvise || call->number == SYS_shmat;
}

static bool hooks_told_early(const struct mrrc_patch_call *call, bool after)
{
	const long *const arg = call->arg;

	switch (call->number) {
	case SYS_madvise:
		return hooks_madvise(arg[0], arg[1], arg[2], after);
	case SYS_process_madvise:
		return hooks_process_madvise((const struct iovec *) arg[1],
					     arg[2], arg[3], after);
	default:
		return hooks_shmat(arg[1], arg[2], after);
	}
}

static bool hooks_told(const struct mrrc_patch_call *call)
{
	const long *const arg = call->arg;

	switch (call->number) {
	case SYS_munmap:
		return hooks_range(arg[0], arg[1]);
	case SYS_mremap:
		return hooks_mremap(call);
	case SYS_mmap:
		mrrc_libc_hooks_mapping();
		return !(arg[3] & MAP_FIXED) ||
		       (arg[3] & MAP_FIXED_NOREPLACE) || hooks_fixed(call);
	case SYS_brk:
		return hooks_brk(arg[0]);
	default:
		return !hooks_early(call) || hooks_told_early(call, false);
	}
}

/* ---- code ---- */

bool mrrc_libc_hooks_knows(long number)
{
	static const long numbers[] = {
		SYS_munmap,	    SYS_mremap,
		SYS_madvise,	    SYS_process_madvise,
		SYS_mmap,	    SYS_brk,
		SYS_shmat,	    SYS_mprotect,
		SYS_pkey_mprotect,  SYS_remap_file_pages,
		SYS_personality,    SYS_io_uring_setup,
		SYS_io_uring_enter,
	};
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (number == numbers[i])
			return true;
	}
	return false;
}

bool mrrc_libc_hooks_matters(long number)
{
	/* so may numbers of future kernels */
	return mrrc_libc_hooks_knows(number) || number < 0 ||
	       number > HOOKS_LAST_NUMBER;
}

/* Does the advice drop pages, so that data written to them are lost? */
static bool hooks_drops(long advice)
{
	return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED ||
	       advice == MADV_FREE || advice == MADV_REMOVE;
}

/* May the call bring new code? */
static bool hooks_brings(const struct mrrc_patch_call *call)
{
	const long *const arg = call->arg;

	switch (call->number) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		return arg[2] & PROT_EXEC;
	case SYS_mremap:
		return hooks_moves(call) &&
		       mrrc_libc_hooks_is_code(arg[0], arg[1]);
	case SYS_shmat:
		return arg[2] & SHM_EXEC;
	case SYS_remap_file_pages:
		return true;
	default:
		return false;
	}
}

/*
 * Drops pages, but not the provider's page of stubs: dropped pages of code have
 * the bytes of their file again, so stubs would be lost, and a thread executes
 * one of these stubs now.
 */
static long hooks_drop(const struct mrrc_patch_call *call)
{
	const uintptr_t mask = mrrc_libc_hooks_page - 1;
	const uintptr_t home = (uintptr_t) mrrc_patch_home();
	const uintptr_t start = call->arg[0];
	const uintptr_t end = (start + call->arg[1] + mask) & ~mask;
	struct mrrc_patch_call part = *call;
	long ret = 0;

	if (!home || end <= home || start >= home + MRRC_PATCH_HOME)
		return mrrc_patch_make(call);
	part.arg[1] = (long) (home - start);
	if (start < home)
		ret = mrrc_patch_make(&part);
	part.arg[0] = (long) (home + MRRC_PATCH_HOME);
	part.arg[1] = (long) (end - part.arg[0]);
	if (!ret && part.arg[1])
		ret = mrrc_patch_make(&part);
	return ret;
}

static long hooks_made(const struct mrrc_patch_call *call, bool moves)
{
	if (moves)
		return hooks_move(call);
	return call->number == SYS_madvise && hooks_drops(call->arg[2]) ?
		       hooks_drop(call) :
		       mrrc_patch_make(call);
}

/*
 * Called after the call: names the code that has to be examined before trust is
 * given again.
 */
static void hooks_end(const struct mrrc_patch_call *made, long result,
		      bool brings)
{
	const long *const arg = made->arg;

	if (!brings)
		mrrc_trust_end(0, 0);
	else if (made->number == SYS_mprotect ||
		 made->number == SYS_pkey_mprotect)
		mrrc_trust_end(arg[0], arg[0] + arg[1]);
	else if (made->number == SYS_mmap)
		mrrc_trust_end(result, result + arg[1]);
	else
		mrrc_trust_end(0, UINTPTR_MAX);
}

/*
 * Makes the system call in libc's place. If the call brings code or was not
 * announced, lookups ask the kernel from before the call until after it
 * (mrrc_trust_begin, mrrc_trust_end), and signals are blocked: a handler that
 * left the call by a jump would end trust permanently. The calls do not wait
 * for long.
 */
static void hooks_make(struct mrrc_patch_call *call, bool told, bool moves,
		       bool brings)
{
	const bool changes = brings || !told;
	const uint64_t old = changes ? mrrc_libc_hooks_block() : 0;
	const bool ends = changes && mrrc_trust_begin();
	const struct mrrc_patch_call made = *call;

	call->number = hooks_made(&made, moves);
	if (hooks_early(&made))
		hooks_told_early(&made, true);
	if (!told)
		mrrc_libc_hooks_check();
	if (ends)
		hooks_end(&made, call->number, brings);
	if (changes)
		mrrc_libc_hooks_unblock(old);
}

/* Ends trust permanently at calls that evade hooks and proof. */
static void hooks_ends(const struct mrrc_patch_call *call)
{
	switch (call->number) {
	case SYS_io_uring_setup:
	case SYS_io_uring_enter:
		mrrc_trust_break("io_uring is in use");
		break;
	case SYS_personality:
		if ((unsigned) call->arg[0] != HOOKS_ASK_PERSONALITY &&
		    call->arg[0] & READ_IMPLIES_EXEC)
			mrrc_trust_break("what can be read can be executed");
		break;
	default:
		if (call->number > HOOKS_LAST_NUMBER)
			mrrc_trust_break("an unknown system call was made");
		break;
	}
}

/* Removes a tag that the kernel ignores. Other calls refuse tags. */
static void hooks_untag_call(struct mrrc_patch_call *call)
{
	switch (call->number) {
	case SYS_munmap:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_remap_file_pages:
		call->arg[0] = (long) hooks_untag((uintptr_t) call->arg[0]);
		break;
	default:
		break;
	}
}

bool mrrc_patch_called(struct mrrc_patch_call *call)
{
	bool told, brings, moves;

	/* the kernel ignores the upper half, too */
	call->number = (int) call->number;
	hooks_untag_call(call);
	told = hooks_told(call);
	brings = mrrc_trust_mode() != MRRC_TRUST_HOOKED && hooks_brings(call);
	moves = hooks_moves(call);
	/* else memory that a lost hook missed could come back unnoticed */
	mrrc_libc_hooks_check();
	hooks_ends(call);
	if (!moves && !brings && !hooks_early(call) && told)
		return true;
	hooks_make(call, told, moves, brings);
	return false;
}
