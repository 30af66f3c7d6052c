/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Patching libc's system calls in place: a patched function of the running libc
 * calls mrrc_patch_called() before it enters the kernel.
 *
 * What is replaced is one instruction, by one atomic store within an aligned
 * word, so that a thread which executes it meanwhile sees the old one or the
 * new one. It leads to a stub of ours, which keeps every register,
 * runs the instruction that was replaced, then mrrc_patch_called(),
 * makes the system call unless that was done, and returns behind it; libc
 * handles errors and errno as before. Only code that looks exactly as known is
 * patched (patch_x86_64.c, patch_aarch64.c).
 *
 * Stubs lie in a page of this library, which has unwind information for them.
 * Where libc is too far away for a jump, it jumps to a page near it, and that to
 * the stub. On 64-bit ARM the stub itself is near, without such information.
 *
 * Stubs and the pages that they are in stay for good: a thread may be in one.
 *
 * Threading: one thread at a time, but for mrrc_patch_called().
 */
#ifndef MRRC_PATCH_H
#define MRRC_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_PATCH_STUB	 64    /* bytes of a stub, at most */
#define MRRC_PATCH_PAGES 8     /* near what is patched, at most */
#define MRRC_PATCH_HOME	 4096  /* bytes of mrrc_patch_home() */
#define MRRC_PATCH_ANY	 (-1L) /* any system call: syscall(2) */
#define MRRC_PATCH_PROBE 0xcc  /* what a uprobe or debugger writes on x86-64 */

/* The call's arguments, as the kernel is about to get them. */
struct mrrc_patch_call {
	long number;
	long arg[6];
};

#define MRRC_PATCH_FILLER 5   /* bytes that lead to a stub */
#define MRRC_PATCH_NEAR	  122 /* bytes to filler, at most, each way */
#define MRRC_PATCH_FIXED \
	7 /* exactly, if only its first byte can
					 * be changed */

/* A word of code, and another that leads to a stub. Empty: no word. */
struct mrrc_patch {
	uint8_t *at; /* the system-call instruction */
	uint64_t *word;
	uint64_t before;
	uint64_t after;
	/*
	 * The long jump, where the word has no room for it; never executed
	 * before.
	 */
	uint8_t *filler;
	uint8_t filling[MRRC_PATCH_FILLER];
	uint8_t filled[MRRC_PATCH_FILLER]; /* the filler's old bytes */
	uint8_t *stub; /* or what leads to it, near the code */
};

/*
 * The one place in the function @name of libc that makes system call @number
 * as we know it. What else there is in the function is not looked for.
 * -EOPNOTSUPP: not known on this processor or not the GNU libc; -ENOENT: the
 * code is not as known, perhaps because another patcher changed it; -ESRCH:
 * there is no such function; -ENOMEM, -EACCES: no memory of ours near it, or
 * none that may be executed.
 */
int mrrc_patch_find(const char *name, long number, struct mrrc_patch *patch);

/* A stretch of code. */
struct mrrc_patch_code {
	uint8_t *start;
	size_t len;
	/* MRRC_PATCH_FILLER bytes that nothing runs; NULL: behind a return in
	 * the code, if it is as we know it */
	uint8_t *filler;
};

/*
 * The same at a system-call instruction that is known to pass that number.
 */
int mrrc_patch_site(const struct mrrc_patch_code *code, uint8_t *site,
		    long number, struct mrrc_patch *patch);

/*
 * Are all pages of the range pages of stubs? The kernel joins a page of the
 * application's that is mapped beside one to the same mapping.
 */
bool mrrc_patch_stubs(uintptr_t start, uintptr_t end);

/*
 * Patch, and take it back. -EACCES: code may not be changed here (SELinux,
 * MemoryDenyWriteExecute); -EBUSY: other code has changed it.
 */
int mrrc_patch_on(const struct mrrc_patch *patch);
int mrrc_patch_off(const struct mrrc_patch *patch);

/* Takes back the jump in filler of a patch; no thread runs it. */
void mrrc_patch_unfill(const struct mrrc_patch *patch);

/* The word, as if there were no probes beside the jump, which do no harm. */
uint64_t mrrc_patch_now(const struct mrrc_patch *patch);

/* Is it patched, by us? */
bool mrrc_patch_is_on(const struct mrrc_patch *patch);

/*
 * Where another has written over the first byte of the jump alone, as a uprobe does,
 * takes back the rest: the kernel ends the probe by the byte of the file, and then
 * the instruction is whole again. By /proc/self/mem; without it, it stays.
 */
void mrrc_patch_yield(const struct mrrc_patch *patch);

/*
 * Restores the bytes before the patch in a copy of the code in [start, end); the
 * copy may have bytes of the file in place of probes. Returns whether the code was
 * patched, and the jump is whole.
 */
bool mrrc_patch_undo(const struct mrrc_patch *patch, uint8_t *copy,
		     uintptr_t start, uintptr_t end);

/*
 * @copy has the code of [start, end): the stubs of the provider's own page are
 * taken out of it, as if none had been written.
 */
void mrrc_patch_hide(uint8_t *copy, uintptr_t start, uintptr_t end);

/* Are any of these bytes in the word or the filler? */
bool mrrc_patch_uses(const struct mrrc_patch *patch, uintptr_t start,
		     size_t len);

/* patch_clean.c */

/*
 * Takes back the jumps in filler of patches that were taken back: the code is as
 * it was, to the last byte. Not where another thread may be about to run one.
 */
void mrrc_patch_clean(const struct mrrc_patch *all, size_t count);

/* libc_hooks_call.c, which uses patch.h, defines: */

/*
 * In the thread that calls libc, perhaps in a signal handler or under locks
 * of libc's; must keep errno. Returns whether the system call is still to be
 * made; if not, number is its result (or -errno). Called from assembly, which
 * link-time optimization does not look into.
 */
#ifdef __clang__
__attribute__((used))
#else
__attribute__((externally_visible))
#endif
bool mrrc_patch_called(struct mrrc_patch_call *call);

/* patch_x86_64.c, patch_aarch64.c: for each processor */

/*
 * Makes the system call, not by way of libc, whose calls are patched: its
 * result, or -errno. Where the instruction is that does so.
 */
long mrrc_patch_make(const struct mrrc_patch_call *call);
uintptr_t mrrc_patch_made(void);

/* How far a stub may be from what it serves. */
extern const size_t mrrc_patch_reach;

/*
 * The address of the aligned 8 bytes that a patch of the system call at @site
 * changes; 0: it cannot be patched. @before: bytes of code in front of @site that
 * may be read.
 */
uintptr_t mrrc_patch_word(const uint8_t *site, size_t before, long number);

/* The one system-call instruction with that number as we know it, or NULL. */
uint8_t *mrrc_patch_search(const struct mrrc_patch_code *code, long number);

/*
 * Looks whether the code is as known, writes the stub at @stub, where it is
 * executed, and fills in the patch, which leads to @near: the stub itself, or
 * what leads there.
 */
int mrrc_patch_build(const struct mrrc_patch_code *code, uint8_t *site,
		     long number, uint8_t *stub, const uint8_t *near,
		     struct mrrc_patch *patch);

/*
 * A page of this library for stubs, whose callers unwinders find; NULL: none.
 */
uint8_t *mrrc_patch_home(void);

/* Writes code that leads to a stub at any distance. */
void mrrc_patch_lead(uint8_t *near, const uint8_t *stub);

#endif /* MRRC_PATCH_H */
