/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads of ours, and whether the application has more than one.
 *
 * A process with one thread cannot unmap while it looks something up, which
 * saves a system call for each lookup. libc counts the threads that pthread
 * knows; it is asked only as long as its figure proves right: other C
 * libraries, other linker namespaces and sanitizers have us assume many. A
 * process that had two threads once is not trusted with one again. What
 * libc does not know, threads made by a bare clone(), are looked for:
 * each time that something unmaps without a hook's telling. Children that share
 * memory are not seen: where code can be decoded, nothing relies on this
 * (struct mrrc_mon: lone).
 *
 * All calls: any thread.
 */
#ifndef MRRC_THREADS_H
#define MRRC_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mrrc_threads {
	const unsigned *live; /* libc's count; NULL: unknown */
	_Atomic unsigned ours;
	_Atomic unsigned outside; /* of ours, in code that may unmap */
	atomic_bool many;	  /* never cleared; true until init */
};

extern struct mrrc_threads mrrc_threads;

/* Before the first mrrc_threads_alone(); may be repeated. */
void mrrc_threads_init(void);

/* Looks for threads that libc does not know of. Allocates nothing. */
void mrrc_threads_look(void);

/*
 * Threads of ours block all signals. They unmap memory that the application
 * could have had registered (free() may) only between _outside and _inside.
 * @stack: bytes, 0 for the default. Returns 0 or -E*.
 */
int mrrc_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *),
		      void *arg);
void mrrc_thread_join(pthread_t thread);

static inline void mrrc_thread_outside(void)
{
	atomic_fetch_add(&mrrc_threads.outside, 1);
}

static inline void mrrc_thread_inside(void)
{
	atomic_fetch_sub(&mrrc_threads.outside, 1);
}

/*
 * Is there no thread but this one and those that we started, and are none of
 * ours in code that may unmap? Reusing an address that another thread unmapped
 * takes a system call, after which that thread is counted here, unless it has
 * ended or is inside again: then its effects are visible to what is loaded
 * after this.
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
