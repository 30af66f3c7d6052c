/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Starts the provider's threads, and tells whether the application has more
 * than one thread.
 *
 * A process with one thread cannot unmap during a lookup, so that its lookups
 * need no system call. libc's count of threads is used only while it is known
 * to be right: with other C libraries, in other linker namespaces and under
 * sanitizers, several threads are assumed. A process that once had two threads
 * counts as threaded from then on. libc does not know threads made by a bare
 * clone(): such threads are searched for after each unmap that no hook
 * announced. Children that share memory are not found; where code can be
 * decoded, nothing relies on the number of threads (struct mrrc_mon: lone).
 *
 * All calls: any thread.
 */
#ifndef MRRC_THREADS_H
#define MRRC_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mrrc_threads {
	const unsigned *live; /* libc's count; NULL: unknown */
	_Atomic unsigned ours;
	/* number of our threads in code that may unmap */
	_Atomic unsigned outside;
	atomic_bool many; /* never cleared; true until init */
};

extern struct mrrc_threads mrrc_threads;

/* Called before the first mrrc_threads_alone(); may be repeated. */
void mrrc_threads_init(void);

/*
 * Is ThreadSanitizer in this process? The application may be built with
 * ThreadSanitizer, and the provider without. ThreadSanitizer takes clone(2) for
 * fork(2), and its replacements of libc's functions must not be called in a
 * thread that ThreadSanitizer has finished already.
 */
bool mrrc_threads_sanitized(void);

/* Searches for threads that libc does not know. Allocates nothing. */
void mrrc_threads_look(void);

/*
 * All signals except those of a thread's own faults: if the signal of a fault
 * were blocked, the fault would end the process without running the
 * application's handler.
 */
void mrrc_thread_signals(sigset_t *set);

/*
 * Starts a thread that blocks the signals of mrrc_thread_signals(). Between
 * mrrc_thread_outside() and mrrc_thread_inside(), and only there, the thread
 * may unmap memory that the application could have registered (as free() may).
 * @stack: bytes of the stack, 0: 1 MiB; the stack is larger if the program's
 * thread-local variables need more. Returns 0 or -E*.
 */
int mrrc_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *),
		      void *arg);
void mrrc_thread_join(pthread_t thread);

/*
 * Called at the end of a thread that pthread_join() joins much later. Until it
 * has ended the thread counts as one of the application's.
 */
void mrrc_thread_over(void);

static inline void mrrc_thread_outside(void)
{
	atomic_fetch_add(&mrrc_threads.outside, 1);
}

static inline void mrrc_thread_inside(void)
{
	atomic_fetch_sub(&mrrc_threads.outside, 1);
}

/*
 * Is this the only thread apart from the provider's threads, and is no thread
 * of the provider in code that may unmap? A thread needs a system call to reuse
 * an address that another thread unmapped. After that system call the other
 * thread is counted here, unless it has ended or is inside again; in these
 * cases its unmap is visible to later loads.
 */
static inline bool mrrc_threads_alone(void)
{
	if (atomic_load_explicit(&mrrc_threads.many, memory_order_relaxed))
		return false;
	if (__atomic_load_n(mrrc_threads.live, __ATOMIC_ACQUIRE) <=
	    1 + atomic_load_explicit(&mrrc_threads.ours, memory_order_relaxed))
		return !atomic_load_explicit(&mrrc_threads.outside,
					     memory_order_acquire);
	atomic_store_explicit(&mrrc_threads.many, true, memory_order_relaxed);
	return false;
}

#endif /* MRRC_THREADS_H */
