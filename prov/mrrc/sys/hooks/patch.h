/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Patches libc's system calls in place: a patched function of the running libc
 * calls mrrc_patch_called() before it enters the kernel.
 *
 * One atomic store within an aligned word replaces one instruction, so that a
 * thread that executes the instruction meanwhile sees the old or the new one.
 * The new instruction leads to a stub of ours, which keeps every register, runs
 * the replaced instruction, calls mrrc_patch_called(), makes the system call
 * unless mrrc_patch_called() has made it, and returns behind libc's system-call
 * instruction; libc handles errors and errno as before. Only code that looks
 * exactly as known is patched (patch_x86_64.c, patch_aarch64.c).
 *
 * Stubs lie in a page of this library, which has unwind information for stubs.
 * If a jump from libc cannot reach this page, libc jumps to a page near libc,
 * which jumps to the stub. On 64-bit ARM the stub itself lies near libc,
 * without unwind information.
 *
 * Stubs and their pages are never freed: a thread may be in a stub.
 *
 * Threading: one thread at a time, except for mrrc_patch_called().
 */
#ifndef MRRC_PATCH_H
#define MRRC_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_PATCH_STUB	 64    /* bytes of a stub, at most */
#define MRRC_PATCH_PAGES 8     /* pages of stubs near libc, at most */
#define MRRC_PATCH_HOME	 4096  /* bytes of mrrc_patch_home() */
#define MRRC_PATCH_ANY	 (-1L) /* any system call: syscall(2) */
#define MRRC_PATCH_PROBE 0xcc  /* byte of a uprobe or debugger on x86-64 */

/* The call's arguments, as the kernel is about to get them. */
struct mrrc_patch_call {
	long number;
	long arg[6];
};

#define MRRC_PATCH_FILLER 5   /* bytes that lead to a stub */
#define MRRC_PATCH_NEAR	  122 /* distance to filler, at most, each way */
#define MRRC_PATCH_FIXED \
	7 /* distance to filler, if only the
					 * first byte can be changed */

/*
 * An aligned word of code, and the word that replaces it to lead to a stub. All
 * fields zero: no patch.
 */
struct mrrc_patch {
	uint8_t *at; /* the system-call instruction */
	uint64_t *word;
	uint64_t before;
	uint64_t after;
	/*
	 * The place of the long jump, if the word has room for a short jump
	 * only: bytes that are never executed without the patch.
	 */
	uint8_t *filler;
	uint8_t filling[MRRC_PATCH_FILLER];
	uint8_t filled[MRRC_PATCH_FILLER]; /* the filler's old bytes */
	uint8_t *stub; /* or the code that leads to it, near libc */
};

/*
 * Finds the only place in libc's function @name that makes system call @number
 * by instructions that are known here. Other code of the function is not
 * examined. -EOPNOTSUPP: this architecture is not known, or libc is not the GNU
 * libc; -ENOENT: the instructions are not the known ones, perhaps because
 * another patcher changed them; -ESRCH: there is no such function; -ENOMEM: no
 * memory for a stub near the function; -EACCES: memory of ours may not be
 * executed.
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
 * Like mrrc_patch_find(), for the system-call instruction at @site, which is
 * known to pass the number @number.
 */
int mrrc_patch_site(const struct mrrc_patch_code *code, uint8_t *site,
		    long number, struct mrrc_patch *patch);

/*
 * Are all pages of the range pages of stubs? The kernel may merge a page of the
 * application's beside a page of stubs into one mapping.
 */
bool mrrc_patch_stubs(uintptr_t start, uintptr_t end);

/*
 * mrrc_patch_on() makes a patch, mrrc_patch_off() takes the patch back.
 * -EACCES: code may not be changed here (SELinux, MemoryDenyWriteExecute);
 * -EBUSY: other code has changed the word, or uses the filler.
 */
int mrrc_patch_on(const struct mrrc_patch *patch);
int mrrc_patch_off(const struct mrrc_patch *patch);

/*
 * Takes back the jump in filler of a patch; no thread may be running the jump.
 */
void mrrc_patch_unfill(const struct mrrc_patch *patch);

/* The word, as if there were no probes beside the jump, which do no harm. */
uint64_t mrrc_patch_now(const struct mrrc_patch *patch);

/* Is the code patched, by us? */
bool mrrc_patch_is_on(const struct mrrc_patch *patch);

/*
 * If only the first byte of the jump was overwritten, as by a uprobe, takes
 * back the rest of the jump: when the kernel ends the probe by writing the
 * file's byte, the instruction is whole again. Writes by /proc/self/mem;
 * without that file the rest of the jump stays.
 */
void mrrc_patch_yield(const struct mrrc_patch *patch);

/*
 * Restores the unpatched bytes in a copy of the code in [start, end); the copy
 * may have bytes of the file in place of probes. Returns whether the code was
 * patched, with the whole jump.
 */
bool mrrc_patch_undo(const struct mrrc_patch *patch, uint8_t *copy,
		     uintptr_t start, uintptr_t end);

/*
 * Takes the stubs of the provider's own page out of @copy, which has the code
 * of [start, end), as if no stub had been written.
 */
void mrrc_patch_hide(uint8_t *copy, uintptr_t start, uintptr_t end);

/* Are any of the @len bytes at @start in the patch's word or filler? */
bool mrrc_patch_uses(const struct mrrc_patch *patch, uintptr_t start,
		     size_t len);

/* patch_clean.c */

/*
 * Takes back the jumps that patches which were taken back have left in filler:
 * then every byte of the code is as before the patches. Does nothing if another
 * thread may be about to run such a jump.
 */
void mrrc_patch_clean(const struct mrrc_patch *all, size_t count);

/* libc_hooks_call.c, which uses patch.h, defines: */

/*
 * Called in the thread that calls libc, perhaps in a signal handler or under
 * locks of libc's; must keep errno. Returns whether the stub has to make the
 * system call; if not, number is the call's result (or -errno). Called from
 * assembly, which link-time optimization does not see.
 */
#ifdef __clang__
__attribute__((used))
#else
__attribute__((externally_visible))
#endif
bool mrrc_patch_called(struct mrrc_patch_call *call);

/* patch_x86_64.c, patch_aarch64.c: for each processor */

/*
 * mrrc_patch_make() makes the system call, not by libc, whose calls are
 * patched, and returns the call's result, or -errno. mrrc_patch_made(): the
 * address of mrrc_patch_make()'s system-call instruction.
 */
long mrrc_patch_make(const struct mrrc_patch_call *call);
uintptr_t mrrc_patch_made(void);

/* Bytes that a stub may be away from the code that it serves. */
extern const size_t mrrc_patch_reach;

/*
 * The address of the aligned 8 bytes that a patch of the system call at @site
 * changes; 0: the system call cannot be patched. @before: bytes of code in
 * front of @site that may be read.
 */
uintptr_t mrrc_patch_word(const uint8_t *site, size_t before, long number);

/*
 * The only system-call instruction that passes @number as known here, or NULL.
 */
uint8_t *mrrc_patch_search(const struct mrrc_patch_code *code, long number);

/*
 * Checks that the instructions are known, writes a stub at @stub, and fills in
 * the patch, which leads to @near: the stub itself, or code that leads to the
 * stub.
 */
int mrrc_patch_build(const struct mrrc_patch_code *code, uint8_t *site,
		     long number, uint8_t *stub, const uint8_t *near,
		     struct mrrc_patch *patch);

/*
 * The page of this library for stubs, from which unwinders find a stub's
 * caller; NULL: no such page.
 */
uint8_t *mrrc_patch_home(void);

/* Writes code that leads to a stub at any distance. */
void mrrc_patch_lead(uint8_t *near, const uint8_t *stub);

#endif /* MRRC_PATCH_H */
