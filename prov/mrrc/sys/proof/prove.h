/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Proves that no unmap can go unannounced: a thread, which is started when
 * lookups have asked the kernel often, and ends after the proof, examines the
 * system-call instructions (code.h) in all code of the process. The thread
 * gives trust (trust.h) if each of these instructions is hooked, or makes a
 * system call that takes no memory away and brings no code. Only libc and the
 * dynamic loader are hooked: nothing is known of the threads that run other
 * libraries' system calls.
 *
 * The proof is an induction. Examined code can take memory away only through
 * hooks, and bring new code only through hooks: mmap, mprotect, pkey_mprotect,
 * mremap and shmat, whose hooks end trust before they make the call. Some code
 * cannot be examined: writable code, code in shared memory that another process
 * may write to, code of no file or of a memfd, or of a file of more than 512
 * MiB. As long as the process has such code, lookups ask the kernel.
 *
 * The induction begins when the hooks have been placed: the thread waits 50 ms
 * for calls that had entered the kernel, or were about to enter it, to end.
 *
 * Code that unmaps without a hook, but maps nothing, is not trusted, although
 * the hook of mmap could ask for unread unmap events before mmap gives the
 * unmapped memory to a caller. After a madvise(MADV_DONTNEED) without a hook no
 * other hook could ask: the memory stays mapped, and is used at once.
 *
 * The proof does not cover other processes (process_vm_writev, ptrace,
 * process_madvise, /proc/PID/mem), nor code that is changed in its file, or by
 * /proc/self/mem, while it runs, nor an io_uring that was made before the hooks
 * and is not mapped when code is examined.
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
 * prove_seal.c. REGISTRY lock. Hooks, once, the system calls of libc and the
 * dynamic loader that are not in the functions hooked by name.
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
 * Called under the REGISTRY lock, before trust is wanted. @now:
 * mrrc_prove_rent() starts the thread at once whenever trust is wanted and not
 * given.
 */
void mrrc_prove_ready(const struct mrrc_prove_ops *ops, bool now);

/* Probes that take about as long as looking at the code of a process. */
#define MRRC_PROVE_PRICE 65536

/*
 * Called when lookups have asked the kernel @probes times more. Starts the
 * thread when all these probes have taken as long as an examination of the
 * code. No lock of ours held.
 */
void mrrc_prove_rent(unsigned probes);

/* Stops the thread, unless trust is wanted. No lock of ours held. */
void mrrc_prove_stop(void);

/* In a forked child, which has no such thread. */
void mrrc_prove_forked(void);

/* Why trust is not given, or "". */
void mrrc_prove_why(char why[MRRC_TRUST_WHY]);

/*
 * Sets @tell, which the proving thread calls with each new reason, no lock
 * held. To be called before the thread starts.
 */
void mrrc_prove_tell(void (*tell)(const char *why));

#endif /* MRRC_PROVE_H */
