/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Proving that no unmap can go unannounced: a thread, which is started when
 * lookups have asked often and ends when it is done, looks at all code of the
 * process for system-call instructions (code.h) and gives trust (trust.h) when
 * each of them makes a call that takes no memory away and brings no code, or
 * one that is hooked. Only libc and the dynamic loader are hooked: of the
 * threads that run other libraries' system calls nothing is known.
 *
 * The argument is an induction. Code that was looked at can take memory away
 * through hooks alone, and bring new code through hooks alone: mmap, mprotect,
 * pkey_mprotect, mremap and shmat, which end trust before the call is made.
 * Some code cannot be looked at: code that is writable, or shared so that
 * another process may write to it, or of no file or a memfd, or in a file of
 * more than 512 MiB. While there is such code, lookups ask the kernel.
 *
 * The induction begins when the hooks are placed: a call that had entered the
 * kernel before, or was about to, is given 50 ms to end.
 *
 * Code that unmaps by itself, but maps nothing, is not trusted, although a
 * hooked mmap could ask whether an unmap by such code is still unread before
 * mmap gives that memory to a caller. After a madvise(MADV_DONTNEED) by such
 * code no hook could ask: the memory stays mapped, and is in use at once.
 *
 * The proof does not cover other processes (process_vm_writev, ptrace,
 * process_madvise, /proc/PID/mem), nor code that is changed in its file, or by
 * /proc/self/mem, while it runs.
 */
#ifndef MRRC_PROVE_H
#define MRRC_PROVE_H

#include <stdbool.h>
#include <stddef.h>

#include "sys/hooks/trust.h"

/* Can code be decoded here, so that trust may be given at all? */
#if (defined(HAVE_ZYDIS) && defined(__x86_64__)) || defined(__aarch64__)
#define MRRC_PROVE_CAN true
#else
#define MRRC_PROVE_CAN false
#endif

/*
 * prove_seal.c. REGISTRY lock: hooks the system calls that libc and the dynamic
 * loader have beside the functions hooked by name. Once.
 */
void mrrc_prove_seal(void);

/* prove.c */

/* Calls of the monitors' registry. false: not possible now. */
struct mrrc_prove_ops {
	/* take and release the REGISTRY lock */
	bool (*enter)(void);
	void (*leave)(void);
	/* handles all events that are queued */
	bool (*settle)(void);
};

/*
 * REGISTRY lock, before trust is wanted. @now: mrrc_prove_rent() starts the
 * thread at once, whenever trust is wanted and not given.
 */
void mrrc_prove_ready(const struct mrrc_prove_ops *ops, bool now);

/* Probes that take about as long as looking at the code of a process. */
#define MRRC_PROVE_PRICE 65536

/*
 * Lookups have asked the kernel @probes times more since the last call. The
 * thread is started when these probes have cost as much as looking at code
 * does. No lock of ours held.
 */
void mrrc_prove_rent(unsigned probes);

/* Stops the thread, unless trust is wanted. No lock of ours held. */
void mrrc_prove_stop(void);

/* In a forked child, which has no such thread. */
void mrrc_prove_forked(void);

/* Why trust is not given, or "". */
void mrrc_prove_why(char why[MRRC_TRUST_WHY]);

/*
 * @tell is called with each new reason, in the proving thread, no lock held. To
 * be set before the thread starts.
 */
void mrrc_prove_tell(void (*tell)(const char *why));

#endif /* MRRC_PROVE_H */
